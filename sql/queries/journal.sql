-- name: state
-- How far the journal goes, and the instant at which it is looked at.
select fetches_to, changes_to, is_restoring, collect.clock() as now from collect.journal;

-- name: fetches
-- Requests that were not written down yet, with those that were passed over; what was made of the answers is not in it, as a
-- database that is told again has made nothing of them.
with wanted as (
    (select fetch_id from collect.fetches where fetch_id > %(after)s order by fetch_id limit %(limit)s)
    union
    select g.fetch_id from collect.journal_gaps g join collect.fetches f using (fetch_id)
)
select f.fetch_id, to_jsonb(f) - '{applied_at,applied_by,parser_version,rows_read}'::text[] as fetch, to_jsonb(o) as object
  from wanted join collect.fetches f using (fetch_id) left join collect.raw_objects o on o.sha256 = f.sha256
 order by f.fetch_id;

-- name: changes
-- What has changed since, and is read again by a replay or asked for by nobody but a person: cycles that ended, archives and their
-- members, and decisions.
select 'collect.cycles' as of, to_jsonb(t) as row from collect.cycles t
 where finished_at >= %(since)s and cycle_status in ('SUCCESS', 'FAILED', 'BUDGET_EXHAUSTED')
union all
select 'collect.job_runs', to_jsonb(t) from collect.job_runs t where finished_at >= %(since)s
union all
select 'collect.archives', to_jsonb(t) from collect.archives t where greatest(checked_at, verified_at) >= %(since)s
union all
select 'collect.archive_members', to_jsonb(t) from collect.archive_members t where updated_at >= %(since)s
union all
select 'collect.calendar_exceptions', to_jsonb(t) from collect.calendar_exceptions t where updated_at >= %(since)s
union all
select 'collect.controls', to_jsonb(t) from collect.controls t where changed_at >= %(since)s
union all
select 'collect.quarantine', to_jsonb(t) from collect.quarantine t
 where resolved_at >= %(since)s and state in ('accepted', 'dropped');

-- name: lock
-- Nobody else notes how far the journal goes meanwhile.
select fetches_to from collect.journal for update;

-- name: note_gaps
-- Numbers up to the last one written that were not there: their transactions may still be open.
insert into collect.journal_gaps (fetch_id, missed_at)
select n, collect.clock() from generate_series(%(after)s::bigint + 1, %(to)s::bigint) n where n <> all(%(written)s::bigint[])
on conflict do nothing;

-- name: close_gaps
-- Those that came since, and those that were missing for an hour: numbers of transactions that were rolled back.
delete from collect.journal_gaps where fetch_id = any(%(written)s::bigint[]) or missed_at < collect.clock() - interval '1 hour';

-- name: note
-- How far the journal goes now.
update collect.journal
   set fetches_to = greatest(fetches_to, %(to)s), changes_to = greatest(changes_to, %(changes_to)s), written_at = collect.clock();

-- name: is_empty
-- Whether this database knows of no request, window or run: numbers of its own would be those of the journal.
select not exists (select 1 from collect.fetches) and not exists (select 1 from collect.cycles)
       and not exists (select 1 from collect.job_runs) as is_empty;

-- name: begin_restoring
-- From now on until its end, who reads a journal in may go on.
update collect.journal set is_restoring = true;

-- name: end_restoring
-- All is told again: from now on the journal goes on.
update collect.journal set is_restoring = false;

-- name: forget_chunks
-- Chunks of runs that were not over when the database was lost: asked for again, such a run plans them anew.
delete from collect.cycles c where c.run_id is not null and not exists (select 1 from collect.job_runs r where r.run_id = c.run_id);

-- name: go_on_behind
-- The journal is read: what it says is not written down again, and new numbers begin behind its own.
with numbers as (
    select greatest((select max(fetch_id) from collect.fetches), 1) as fetch,
           greatest((select max(cycle_id) from collect.fetches), (select max(cycle_id) from collect.cycles), 1) as cycle,
           greatest((select max(quarantine_id) from collect.quarantine), 1) as quarantine
), moved as (
    select n.fetch, setval(pg_get_serial_sequence('collect.fetches', 'fetch_id'), n.fetch),
           setval(pg_get_serial_sequence('collect.cycles', 'cycle_id'), n.cycle),
           setval(pg_get_serial_sequence('collect.quarantine', 'quarantine_id'), n.quarantine) from numbers n
)
update collect.journal set fetches_to = moved.fetch from moved;

-- name: objects_between
-- Objects that answers refer to, by the beginning of their hash.
select distinct sha256 from collect.fetches where sha256 is not null and substring(sha256 from 1 for 1) = %(first)s;

-- name: without_bytes
-- Answers whose bytes are gone are no answers any more: they are asked for again.
update collect.fetches
   set answer_class = 'error', sha256 = null, size = null, etag = null, last_modified = null, goes_on = false,
       error = 'its bytes were not in the raw store when the database was restored'
 where sha256 = any(%(hashes)s::bytea[]);

-- name: units
-- Units of a stream with answers that can be read, who was asked for first first.
select unit from collect.fetches where stream = %(stream)s and answer_class in ('data', 'empty')
 group by unit order by min(sent_at), unit;

-- name: streams
-- Streams of which there are answers, and the days of their sessions.
select stream, count(*) as fetches, max(session_date) as newest from collect.fetches
 where answer_class in ('data', 'empty') group by stream order by stream;
