-- name: database_exists
-- Whether the server has a database of this name.
select exists (select from pg_database where datname = %(name)s) as found;

-- name: create_airflow
-- Airflow's own database, on a server that the user brought.
create database airflow;

-- name: create_daybook
-- The warehouse, on a server that the user brought.
create database daybook;

-- name: create_airflow_demo
-- Airflow's own database of a demo, on a server that the user brought.
create database airflow_demo;

-- name: create_daybook_demo
-- The warehouse of a demo, on a server that the user brought.
create database daybook_demo;

-- name: server_version
-- The server's version as a number, e.g. 180006.
select current_setting('server_version_num')::integer as version;

-- name: airflow_schema
-- The revision of Airflow's own tables; the table is missing in an empty database.
select version_num from alembic_version;

-- name: airflow_has_schema
-- Whether Airflow's tables were ever made here.
select to_regclass('alembic_version') is not null as found;

-- name: installation
-- What kind of installation the warehouse serves, and whether it has collected anything.
select is_sandbox, exists (select from collect.cycles) as in_use from collect.installation;

-- name: become_sandbox
-- Marks a fresh warehouse as a sandbox, whose simulated clock shows the given instant now and goes on from there.
update collect.installation
   set is_sandbox = true, clock_offset = %(start)s::timestamptz - clock_timestamp(),
       activated_at = %(start)s::timestamptz
 where not is_sandbox and not exists (select from collect.cycles);

-- name: clock
-- The warehouse's time: simulated in a sandbox.
select collect.clock() as now;
