-- name: put
-- Put a message into the outbox; a fact that was told is not told again.
insert into ops.alerts (alert_key, severity, text, next_try_at, created_at)
values (%(key)s, %(severity)s, %(text)s, collect.clock(), collect.clock())
on conflict (alert_key) do nothing;

-- name: next
-- The oldest message that waits, and whether its time has come.
select *, next_try_at <= collect.clock() as is_due, extract(epoch from collect.clock() - created_at) as age_seconds
  from ops.alerts where sent_at is null order by alert_id limit 1;

-- name: sent
-- Slack took it.
update ops.alerts set sent_at = collect.clock(), attempts = attempts + 1, last_error = %(error)s where alert_id = %(id)s;

-- name: failed
-- Slack did not take it: again later, with growing gaps up to five minutes.
update ops.alerts
   set attempts = attempts + 1, last_error = %(error)s,
       next_try_at = collect.clock() + least(interval '10 seconds' * power(2, least(attempts, 10)), interval '5 minutes')
 where alert_id = %(id)s;
