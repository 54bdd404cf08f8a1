-- name: streams
-- Every stream with its newest window that has begun, its last good one, how far it is behind, and what waits.
select s.stream, s.source, s.title, coalesce(s.job, s.source) as job, s.host_group, s.calendar, s.active as in_service, s.sla_eligible,
       s.awaits_connection,
       collect.frozen(s.stream) as held_why,
       c.cycle_id, c.cycle_status, c.outcome, c.kind, c.window_start, c.due_at, c.session_date, c.finished_at, c.next_eligible_at,
       c.failure_reason, c.failure_cause_summary, c.budget_exhausted_reason, c.success_reason,
       coalesce(c.due_at < %(now)s and c.cycle_status <> 'SUCCESS', false) as is_late,
       coalesce(h.abnormal, false) as abnormal,
       g.finished_at as last_success_at, g.session_date as last_success_session, k.session_date as checkpoint,
       (select count(*) from collect.cycles w
         where w.stream = s.stream and w.window_start > coalesce(g.window_start, s.activated_at) and w.kind = 'scheduled'
           and w.due_at <= %(now)s and w.cycle_status <> 'SUCCESS') as windows_behind,
       (select count(*) from collect.pending p where p.stream = s.stream and p.given_up_at is null and p.why <> 'recheck') as pending,
       (select count(*) from collect.pending p where p.stream = s.stream and p.given_up_at is not null) as given_up,
       (select count(*) from collect.quarantine q where q.stream = s.stream and q.state = 'open') as quarantined
  from collect.streams s
  left join collect.checkpoints k on k.stream = s.stream
  left join lateral (select * from collect.cycles c where c.stream = s.stream and c.window_start <= %(now)s
                      order by c.window_start desc limit 1) c on true
  left join lateral (select g.finished_at, g.session_date, g.window_start from collect.cycles g
                      where g.stream = s.stream and g.window_start is not null and g.cycle_status = 'SUCCESS'
                      order by g.window_start desc limit 1) g on true
  left join lateral (select h.abnormal from collect.cycles h
                      where h.stream = s.stream and h.window_start is not null and h.abnormal is not null
                      order by h.window_start desc limit 1) h on true
 order by s.stream;

-- name: states
-- How many windows of each stream ended in each state since a date in Seoul, and how many of a day's are in each.
select c.stream, c.cycle_status, count(*) as number, count(*) filter (where c.run_date = %(today)s) as today
  from collect.cycles c
 where c.run_date between %(first)s and %(today)s
 group by c.stream, c.cycle_status;

-- name: orphans
-- Seen rows that are older than 48 hours and whose cycle is over.
select count(*) as number from collect.seen_items i
 where i.seen_at < %(now)s - interval '48 hours'
   and exists (select 1 from collect.cycles c where c.cycle_id = i.cycle_id and c.finished_at is not null);

-- name: leases
-- Leases that ended because their holder vanished, and writes that were refused, since an instant.
select count(*) filter (where kind = 'expired') as expired, count(*) filter (where kind = 'refused') as refused
  from collect.lease_events where at >= %(since)s;

-- name: intervals
-- Of each host group the shortest time between two requests since an instant, beside the declared one.
select h.host_group, h.interval, h.blocked_until, h.blocked_reason, coalesce(f.requests, 0) as requests, f.shortest
  from collect.host_groups h
  left join (select g.host_group, count(*) as requests, min(g.sent_at - g.before) as shortest
               from (select s.host_group, f.sent_at, lag(f.sent_at) over (partition by s.host_group order by f.sent_at) as before
                       from collect.fetches f join collect.streams s on s.stream = f.stream
                      where f.sent_at >= %(since)s) g
              group by g.host_group) f on f.host_group = h.host_group
 order by h.host_group;

-- name: last_snapshot
-- The newest snapshot that is final.
select snapshot_date, scheduled_at, capture_status, captured_at, captured_by, capture_offset, expected_count, late_count, miss_reason
  from collect.sla_snapshots where capture_status in ('CAPTURED', 'MISSED', 'NOT_APPLICABLE')
 order by snapshot_date desc limit 1;
