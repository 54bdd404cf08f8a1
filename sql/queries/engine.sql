-- name: commit
-- Ends a transaction in the same round trip as the call before it.
commit;

-- name: clock
-- The database's time, the only clock.
select collect.clock() as now;
