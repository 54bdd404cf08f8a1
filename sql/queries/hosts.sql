-- name: declare
-- The declared interval and penalty of a host group; reservations and blocks are kept.
insert into collect.host_groups as h (host_group, interval, penalty, next_allowed_at, updated_at)
values (%(group)s, %(interval)s, %(penalty)s, collect.clock(), collect.clock())
on conflict (host_group) do update set interval = excluded.interval, penalty = excluded.penalty, updated_at = excluded.updated_at
 where (h.interval, h.penalty) is distinct from (excluded.interval, excluded.penalty);

-- name: reserve
-- The next turn of a host group: how long to wait for it, or until when it is blocked.
select * from collect.reserve(%(group)s, %(patient)s);

-- name: confirm
-- After the wait: the instant of sending, or until when the group has been blocked meanwhile.
select * from collect.confirm(%(group)s, %(epoch)s);

-- name: block
-- Stop a host group for its penalty time.
select collect.block(%(group)s, %(penalty)s, %(reason)s) as blocked_until;

-- name: blocked
-- Until when a host group is stopped; no row where it is not.
select blocked_until as until from collect.host_groups where host_group = %(group)s and blocked_until > collect.clock();
