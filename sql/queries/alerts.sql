-- name: put
-- Put a message into the outbox; a fact that was told is not told again.
insert into ops.alerts (alert_key, severity, text, next_try_at, created_at)
values (%(key)s, %(severity)s, %(text)s, collect.clock(), collect.clock())
on conflict (alert_key) do nothing;

-- name: next
-- The two oldest messages that wait, and whether their time has come. Each is looked for among all that wait: one that was
-- committed late is older than some that are sent.
select *, next_try_at <= collect.clock() as is_due, extract(epoch from collect.clock() - created_at) as age_seconds
  from ops.alerts where sent_at is null and silenced_at is null and refused_at is null order by alert_id limit 2;

-- name: mark_silenced
-- Take what a silence covers out of what waits; how many.
select ops.mark_silenced() as silenced;

-- name: clean
-- Delete delivered and silenced messages that are older than they are kept, so many at most.
delete from ops.alerts
 where alert_id in (select a.alert_id from ops.alerts a
                     where coalesce(a.sent_at, a.silenced_at) < collect.clock() - %(keep)s::interval
                     order by a.alert_id limit %(limit)s);

-- name: waiting
-- How many messages wait for Slack, and since when the oldest does.
select count(*) as waiting, min(created_at) as since, collect.clock() as now
  from ops.alerts where sent_at is null and silenced_at is null and refused_at is null;

-- name: sent
-- Slack took it.
update ops.alerts set sent_at = collect.clock(), attempts = attempts + 1, last_error = %(error)s where alert_id = %(id)s;

-- name: failed
-- Slack did not take it: again later, with growing gaps up to five minutes.
update ops.alerts
   set attempts = attempts + 1, last_error = %(error)s,
       next_try_at = collect.clock() + least(interval '10 seconds' * power(2, least(attempts, 10)), interval '5 minutes')
 where alert_id = %(id)s;

-- name: refused
-- Slack refuses it for good: it is put aside, and those behind it go on.
update ops.alerts
   set attempts = attempts + 1, last_error = %(error)s, refused_at = collect.clock(), refused_why = %(error)s,
       settled_by = null, settled_why = null
 where alert_id = %(id)s;

-- name: put_aside
-- Messages that Slack refused for good and nobody has decided on, the oldest first.
select * from ops.alerts where refused_at is not null and settled_by is null order by alert_id;

-- name: try_again
-- A message that was put aside waits again; not where something that came after it in its incident was sent meanwhile: that
-- it began would be told after that it is over.
update ops.alerts a
   set refused_at = null, refused_why = null, next_try_at = collect.clock(), settled_by = %(who)s, settled_why = %(why)s
 where a.alert_id = %(id)s and a.refused_at is not null
   and not exists (select 1 from ops.alerts l where l.incident_id = a.incident_id and l.alert_id > a.alert_id and l.sent_at is not null)
returning *;

-- name: drop
-- A message that was put aside is not wanted any more; it is kept.
update ops.alerts set settled_by = %(who)s, settled_why = %(why)s
 where alert_id = %(id)s and refused_at is not null and settled_by is null
returning *;
