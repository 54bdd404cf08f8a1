-- name: capture
-- Take the snapshot of a date if its time has come.
select collect.capture(%(date)s, %(who)s) as result;

-- name: rehearse
-- What the snapshot of a date would read now; warms everything that the capture needs.
select count(*) as streams from collect.judge(%(date)s);

-- name: mark_missed
-- End as MISSED what is still pending so long after its cutoff, and active days that have no header.
select snapshot_date, capture_status from collect.mark_missed(%(grace)s, %(who)s);

-- name: header
-- The header of a date, and whether its cutoff has passed.
select s.*, s.scheduled_at <= collect.clock() as is_past from collect.sla_snapshots s where s.snapshot_date = %(date)s;

-- name: items
-- The items of a date, by stream.
select * from collect.sla_snapshot_sources where snapshot_date = %(date)s order by stream;
