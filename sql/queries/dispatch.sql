-- name: day
-- The day's snapshot header, expectations and windows, each where it is not there yet.
select * from collect.dispatch(%(date)s, %(windows)s, %(expected)s, %(who)s);

-- name: unexpected
-- Streams in service of which the day's pending snapshot expects nothing yet: they came after dispatch; none while it is off.
select s.stream from collect.sla_snapshots h join collect.streams s on s.active and s.sla_eligible and s.stream = any(%(streams)s)
 where h.snapshot_date = (collect.clock() at time zone 'Asia/Seoul')::date and h.capture_status = 'PENDING'
   and h.scheduled_at > collect.clock() and collect.dispatch_is_off() is null
   and not exists (select 1 from collect.sla_expectations e where e.snapshot_date = h.snapshot_date and e.stream = s.stream)
 order by s.stream;
