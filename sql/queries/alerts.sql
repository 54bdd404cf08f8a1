-- name: put
-- Put a message into the outbox; a fact that was told is not told again.
insert into ops.alerts (alert_key, severity, text, next_try_at, created_at)
values (%(key)s, %(severity)s, %(text)s, collect.clock(), collect.clock())
on conflict (alert_key) do nothing;

-- name: next
-- The oldest message that waits, and whether its time has come.
select *, next_try_at <= collect.clock() as is_due, extract(epoch from collect.clock() - created_at) as age_seconds
  from ops.alerts where sent_at is null and silenced_at is null order by alert_id limit 1;

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
  from ops.alerts where sent_at is null and silenced_at is null;

-- name: sent
-- Slack took it.
update ops.alerts set sent_at = collect.clock(), attempts = attempts + 1, last_error = %(error)s where alert_id = %(id)s;

-- name: failed
-- Slack did not take it: again later, with growing gaps up to five minutes.
update ops.alerts
   set attempts = attempts + 1, last_error = %(error)s,
       next_try_at = collect.clock() + least(interval '10 seconds' * power(2, least(attempts, 10)), interval '5 minutes')
 where alert_id = %(id)s;
