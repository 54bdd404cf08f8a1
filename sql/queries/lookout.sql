-- name: streams
-- How each of some streams stands, besides its windows: service, freezes, whether its DAG is paused, checkpoint, health.
select s.stream, s.active, s.activated_at, k.session_date as checkpoint, p.since as paused_since,
       collect.frozen(s.stream) as frozen,
       h.abnormal is true and h.cycle_status = 'SUCCESS' as is_empty, h.window_start as health_window
  from collect.streams s
  left join collect.checkpoints k on k.stream = s.stream
  left join ops.paused_jobs p on p.job = s.job
  left join lateral (select c.abnormal, c.cycle_status, c.window_start from collect.cycles c
                      where c.stream = s.stream and c.window_start is not null and c.abnormal is not null
                      order by c.window_start desc limit 1) h on true
 where s.stream = any(%(streams)s);

-- name: due_window
-- The last window of a stream from an instant on that was due so long ago; a slot without a cycle has none.
select * from collect.cycles c
 where c.stream = %(stream)s and c.mode = 'poll' and c.run_id is null and c.window_start >= %(start)s
   and c.due_at <= collect.clock() - %(grace)s::interval
 order by c.window_start desc limit 1;

-- name: raw_success
-- Of what each source was asked in the last hour, the last try of each: how many answers came or should have, how many are held.
with tries as (
    select distinct on (f.stream, f.cycle_id, f.request_key, f.page) f.stream, f.answer_class, f.error
      from collect.fetches f where f.sent_at > collect.clock() - interval '60 minutes'
     order by f.stream, f.cycle_id, f.request_key, f.page, f.fetch_id desc
)
select s.source, count(*) as received, count(*) filter (where t.answer_class not in ('error', 'blocked')) as stored,
       max(t.error) filter (where t.answer_class in ('error', 'blocked')) as error
  from tries t join collect.streams s on s.stream = t.stream and s.source = any(%(sources)s) group by s.source order by s.source;

-- name: over
-- Open incidents whose cause is gone, with what ended them in words, and whether that mends anything.
select i.incident_key,
       i.kind <> 'undispatched' or exists (
           select 1 from collect.sla_snapshots s where i.incident_key = 'undispatched/' || s.snapshot_date
              and s.capture_status in ('PENDING', 'CAPTURED')) as is_mended,
       case i.kind
           when 'quarantine' then i.stream || ' has no open entry of ' || split_part(i.incident_key, '/', 3) || ' in quarantine any more.'
           when 'given-up' then i.stream || ' has no key any more that was given up.'
           when 'run' then 'no chunk of ' || i.stream || ' is failed any more in that run.'
           when 'block' then split_part(i.incident_key, '/', 2) || ' answers again.'
           when 'untaken' then 'the snapshot of ' || split_part(i.incident_key, '/', 2) || ' is final.'
           when 'undispatched' then case
               when exists (select 1 from collect.sla_snapshots s where i.incident_key = 'undispatched/' || s.snapshot_date
                               and s.capture_status in ('PENDING', 'CAPTURED'))
                   then substr(i.incident_key, 14) || ' is dispatched.'
               when collect.dispatch_is_off() is not null then collect.dispatch_is_off()
               else 'it is past 09:00 of ' || substr(i.incident_key, 14) || ': nothing can be prepared any more, and that date has no verdict.'
           end
           when 'refused' then 'no message that Slack refused waits for a decision any more.'
           when 'late' then 'every stream that was late at 09:00 of ' || split_part(i.incident_key, '/', 2) || ' is complete now.'
       end as text
  from ops.incidents i
 where i.closed_at is null
   and case i.kind
           when 'quarantine' then not exists (
               select 1 from collect.quarantine q
                where q.state = 'open' and q.stream = i.stream and i.incident_key = 'quarantine/' || q.stream || '/' || q.rule)
           when 'given-up' then not exists (
               select 1 from collect.pending p where p.stream = i.stream and p.given_up_at is not null)
           when 'run' then not exists (
               select 1 from collect.cycles c
                where c.run_id = substr(i.incident_key, 5, length(i.incident_key) - 5 - length(i.stream)) and c.stream = i.stream
                  and c.cycle_status = 'FAILED')
           when 'block' then exists (
               select 1 from collect.host_groups h join collect.streams s on s.host_group = h.host_group
                 join collect.fetches f on f.stream = s.stream
                where h.host_group = substr(i.incident_key, 7) and h.blocked_until <= collect.clock()
                  and f.sent_at > i.seen_at and f.answer_class not in ('error', 'blocked'))
           when 'untaken' then not exists (
               select 1 from collect.sla_snapshots s where i.incident_key = 'untaken/' || s.snapshot_date and s.capture_status = 'PENDING')
           when 'undispatched' then collect.dispatch_is_off() is not null
               or collect.clock() >= collect.cutoff(substr(i.incident_key, 14)::date)
               or exists (select 1 from collect.sla_snapshots s where i.incident_key = 'undispatched/' || s.snapshot_date)
           when 'refused' then not exists (
               select 1 from ops.alerts a where a.refused_at is not null and a.settled_by is null)
           when 'late' then not exists (
               select 1 from collect.sla_snapshot_sources l
                 join collect.streams s on s.stream = l.stream and s.active and s.stream = any(%(streams)s)
                where i.incident_key = 'late/' || l.snapshot_date and l.is_late
                  and not exists (select 1 from collect.cycles c
                                   where c.stream = l.stream and c.window_start >= l.window_start and c.cycle_status = 'SUCCESS'))
           else false
       end
 order by i.incident_key;

-- name: without_anybody
-- Open incidents that nobody will end, with why: their stream, source or host group is not declared any more, or what was
-- wrong with the windows of a stream that is out of service. What an operator may still decide there stays open.
select i.incident_key,
       coalesce(i.stream, substr(i.incident_key, length(i.kind) + 2))
       || case when i.stream = any(%(streams)s) then ' is out of service' else ' is not in the registry any more' end
       || ', so that nobody looks after this. What was collected is kept.' as text
  from ops.incidents i
 where i.closed_at is null
   and (i.stream is not null and i.stream <> all(%(streams)s)
        or i.kind = 'raw' and substr(i.incident_key, 5) <> all(%(sources)s)
        or i.kind = 'block' and substr(i.incident_key, 7) <> all(%(groups)s)
        or i.kind in ('failing', 'partial', 'budget', 'empty')
           and exists (select 1 from collect.streams s where s.stream = i.stream and not s.active))
 order by i.incident_key;

-- name: undispatched
-- The date in Seoul whose snapshot should have been prepared by now and was not, and since when its DAG is paused; no row
-- where it was, or need not be.
select d.day, (select p.since from ops.paused_jobs p where p.job = %(job)s) as paused_since
  from (select (collect.clock() at time zone 'Asia/Seoul')::date as day) d
 where collect.clock() >= (d.day::timestamp at time zone 'Asia/Seoul') + %(grace)s::interval and collect.clock() < collect.cutoff(d.day)
   and collect.active_day(d.day) and collect.dispatch_is_off() is null
   and exists (select 1 from collect.streams s where s.sla_eligible and s.active and s.activated_at <= collect.clock() - %(grace)s::interval)
   and not exists (select 1 from collect.sla_snapshots s where s.snapshot_date = d.day);

-- name: alive
-- Somebody who must run all the time does.
insert into ops.signs_of_life as l (name, seen_at) values (%(name)s, collect.clock())
on conflict (name) do update set seen_at = greatest(l.seen_at, excluded.seen_at);

-- name: last_sign
-- When somebody who must run all the time last did, and the instant now.
select (select seen_at from ops.signs_of_life where name = %(name)s) as seen_at, collect.clock() as now;

-- name: silent
-- Of what must run once a day, when it last did and whether that is too long ago; of what never did, since streams came into
-- service, where that counts.
select n.name, l.seen_at as last,
       coalesce(coalesce(l.seen_at, case when %(ever)s then (select min(s.activated_at) from collect.streams s) end)
                < collect.clock() - %(most)s::interval, false) as is_silent
  from unnest(%(names)s::text[]) n (name)
  left join ops.signs_of_life l on l.name = n.name
 order by n.name;

-- name: paused
-- A job whose DAG is paused.
insert into ops.paused_jobs as p (job, since, seen_at) values (%(job)s, collect.clock(), collect.clock())
on conflict (job) do update set seen_at = excluded.seen_at;

-- name: not_paused
-- Jobs whose DAG runs.
delete from ops.paused_jobs where job = any(%(jobs)s);

-- name: views_of_doubts
-- Where sources tell, by stream and key, what is doubtful in their tables though every answer was fine.
select v.table_schema, v.table_name from information_schema.views v
 where v.table_schema in ('market', 'filings') and v.table_name like '%\_doubts' order by 1, 2;
