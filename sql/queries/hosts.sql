-- name: declare
-- The declared interval, penalty and quota of a host group; reservations and blocks are kept.
insert into collect.host_groups as h (host_group, interval, penalty, quota, quota_zone, next_allowed_at, updated_at)
values (%(group)s, %(interval)s, %(penalty)s, %(quota)s, %(quota_zone)s, collect.clock(), collect.clock())
on conflict (host_group) do update
   set interval = excluded.interval, penalty = excluded.penalty, quota = excluded.quota, quota_zone = excluded.quota_zone,
       updated_at = excluded.updated_at
 where (h.interval, h.penalty, h.quota, h.quota_zone)
       is distinct from (excluded.interval, excluded.penalty, excluded.quota, excluded.quota_zone);

-- name: reserve
-- The next turn of a host group, and the key to ask with: how long to wait for it, or until when there is none.
select * from collect.reserve(%(group)s, %(patient)s, %(keys)s::text[], %(leaves)s);

-- name: confirm
-- After the wait: the instant of sending, or until when the group has been blocked meanwhile.
select * from collect.confirm(%(group)s, %(epoch)s);

-- name: block
-- Stop a host group for its penalty time.
select collect.block(%(group)s, %(penalty)s, %(reason)s) as blocked_until;

-- name: use_up
-- The upstream says that a key has no requests left today.
select collect.use_up(%(group)s, %(key)s) as until;
