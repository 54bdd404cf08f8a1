-- name: change
-- Write a control under the gate.
select * from collect.control(%(scope)s, %(name)s, %(state)s, %(why)s, %(who)s);

-- name: serve
-- Take a stream out of service, or back into it, under the gate; null where it is so already.
select collect.serve(%(name)s, %(active)s, %(why)s, %(who)s) as changed_at;

-- name: defaults
-- Make the defaults what the file says.
select collect.control_defaults_are(%(defaults)s) as changed;

-- name: known
-- What can be controlled: sources, streams and jobs that were ever declared.
select 'source' as scope, source as name from collect.streams union select 'stream', stream from collect.streams
union select 'job', coalesce(job, source) from collect.streams union select 'job', replace(stream, '.', '_') from collect.streams
 order by 1, 2;

-- name: list
-- Every control that is set, by an operator or by the file, how many streams it holds, and how many slices still run there.
with k as (
    select scope, name, state, reason, changed_by, changed_at from collect.controls
    union all
    select d.scope, d.name, d.state, 'the default', 'config/controls.yaml', d.updated_at from collect.control_defaults d
     where not exists (select 1 from collect.controls o where o.scope = d.scope and o.name = d.name)
    union all
    select 'stream', s.stream, 'retired', s.service_why, s.service_by, s.retired_at from collect.streams s where not s.active and not s.awaits_connection
)
select k.*, (select count(*) from collect.streams s where collect.is_under(s, k.scope, k.name)) as streams,
       (select count(*) from collect.cycles c join collect.streams s on s.stream = c.stream
         where c.cycle_status = 'RUNNING' and c.mode <> 'replay' and collect.is_under(s, k.scope, k.name)) as running
  from k
 order by array_position(array['dispatch', 'all', 'source', 'job', 'stream'], k.scope), k.name;

-- name: held
-- Streams that a control covers and of which nothing may be claimed, with the reason.
select s.stream, collect.frozen(s.stream) as why
  from collect.streams s where collect.is_under(s, %(scope)s, %(name)s) and collect.frozen(s.stream) is not null order by s.stream;

-- name: service
-- Whether a stream is in service, and who last said so.
select active, service_by, service_why, retired_at from collect.streams where stream = %(name)s;
