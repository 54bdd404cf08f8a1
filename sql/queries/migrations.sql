-- name: lock
-- One starter migrates; the others wait here and then find it done. Transaction-scoped, so it cannot strand.
select pg_advisory_xact_lock(9009, 1);
