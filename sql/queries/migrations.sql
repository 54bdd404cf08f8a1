-- name: lock
-- One starter migrates; the others wait here and then find it done. Transaction-scoped, so it cannot strand.
select pg_advisory_xact_lock(9009, 1);

-- name: has_schema
-- Whether a schema of ours was ever made here.
select to_regclass('schema_version') is not null as found;

-- name: revision
-- The newest migration that was run.
select version_num as revision from schema_version;
