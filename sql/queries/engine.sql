-- name: commit
-- Ends a transaction in the same round trip as the call before it.
commit;

-- name: clock
-- The database's time, the only clock.
select collect.clock() as now;

-- name: statement_timeout
-- How long each statement of this transaction may take.
select set_config('statement_timeout', %(timeout)s, true);
