-- name: put
-- A unit or row that could not be read, or broke a rule; once, whatever became of the entry.
insert into collect.quarantine (stream, unit, fetch_id, cycle_id, scope, position, rule, reason, content, parser_version, created_at)
select %(stream)s, %(unit)s, %(fetch)s, %(cycle)s, %(scope)s, %(position)s::text, %(rule)s, %(reason)s, %(content)s,
       %(parser_version)s, collect.clock()
 where not exists (select 1 from collect.quarantine q
                    where q.stream = %(stream)s and q.unit = %(unit)s and q.fetch_id = %(fetch)s and q.scope = %(scope)s
                      and q.position is not distinct from %(position)s::text and q.rule = %(rule)s
                      and q.parser_version = %(parser_version)s)
on conflict do nothing;

-- name: resolve_by_reading
-- What a newer answer or a newer parser reads without objection resolves by itself, and so does what can be read again.
update collect.quarantine q
   set state = 'resolved', resolved_by = 'cycle ' || %(cycle)s, resolved_why = %(why)s, resolved_at = collect.clock()
 where q.stream = %(stream)s and q.unit = any(%(units)s) and q.state = 'open'
   and (q.fetch_id, q.parser_version) <= (%(fetch)s, %(parser_version)s);

-- name: superseded
-- What an older parser refused, a newer one has looked at: its own word counts.
update collect.quarantine q
   set state = 'resolved', resolved_by = 'cycle ' || %(cycle)s, resolved_at = collect.clock(),
       resolved_why = 'read again by parser ' || %(parser_version)s
 where q.stream = %(stream)s and q.unit = any(%(units)s) and q.fetch_id = any(%(fetches)s) and q.state = 'open'
   and q.parser_version < %(parser_version)s;

-- name: entries
-- Entries by state, newest first.
select quarantine_id, stream, unit, scope, position, rule, reason, content, state, resolved_by, resolved_why, resolved_at, created_at
  from collect.quarantine
 where (%(stream)s::text is null or stream = %(stream)s) and state = %(state)s
 order by quarantine_id desc limit %(limit)s;

-- name: find
-- One entry, and how often its unit was read again for it.
select q.*, (select count(*) from collect.job_runs r where r.run_id like 'quarantine-' || q.quarantine_id || '-%%') as attempts
  from collect.quarantine q where q.quarantine_id = %(id)s;

-- name: lock
-- The first thing that an operator's word does: a second one waits, and reads the entry afterwards.
select quarantine_id from collect.quarantine where quarantine_id = %(id)s for no key update;

-- name: resolve
-- An operator's word on an entry.
update collect.quarantine set state = %(state)s, resolved_by = %(who)s, resolved_why = %(why)s, resolved_at = collect.clock()
 where quarantine_id = %(id)s and state = 'open'
returning *;

-- name: read_again
-- A replay run of one chunk that covers just one unit.
with run as (
    insert into collect.job_runs (run_id, mode, streams, replay_into, reason, parser_versions, planned_to, total_chunks,
                                  requested_by, created_at, updated_at)
    values (%(run_id)s, 'replay', array[%(stream)s], 'overwrite', %(why)s, %(parsers)s,
            jsonb_build_object(%(stream)s::text, 'all'), 1, %(who)s, collect.clock(), collect.clock())
    returning run_id
)
insert into collect.cycles (stream, mode, slot, run_id, kind, chunk, created_at, updated_at)
select %(stream)s, 'replay', run_id || '/' || %(unit)s, run_id, 'chunk', %(chunk)s, collect.clock(), collect.clock() from run;

-- name: refused_units
-- Units that a cycle could not read; not those that it read and doubts.
select unit, min(reason) as reason from collect.quarantine
 where cycle_id = %(cycle)s and scope = 'unit' and state = 'open' and rule <> %(doubted)s group by unit order by unit;

-- name: believed
-- How many rows the last answer to a unit gave that was applied and not doubted, of those sent before one.
select f.rows_read from collect.fetches f
 where f.stream = %(stream)s and f.unit = %(unit)s and f.sent_at < %(sent_at)s and f.is_last and f.applied_at is not null
   and f.rows_read is not null
   and not exists (select 1 from collect.quarantine q
                    where q.stream = f.stream and q.unit = f.unit and q.fetch_id = f.fetch_id and q.rule = %(rule)s
                      and q.state <> 'accepted')
 order by f.sent_at desc, f.fetch_id desc limit 1;

-- name: is_accepted
-- Whether an operator has accepted an answer that was doubted.
select 1 as one from collect.quarantine
 where stream = %(stream)s and unit = %(unit)s and fetch_id = %(fetch)s and rule = %(rule)s and state = 'accepted' limit 1;
