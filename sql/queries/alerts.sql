-- name: put
-- Put a message into the outbox; a fact that was told is not told again.
insert into ops.alerts (alert_key, severity, text, next_try_at, created_at)
values (%(key)s, %(severity)s, %(text)s, collect.clock(), collect.clock())
on conflict (alert_key) do nothing;
