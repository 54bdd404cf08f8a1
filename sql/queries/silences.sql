-- name: make
-- Keep alerts of a pattern from being sent until an instant, which is to come and not further away than allowed.
insert into ops.silences (pattern, reason, made_by, made_at, ends_at)
select %(pattern)s, %(reason)s, %(who)s, t, %(ends_at)s from collect.clock() t
 where %(ends_at)s > t and %(ends_at)s <= t + %(longest)s::interval
returning *;

-- name: lift
-- End a silence before its time.
update ops.silences s set ends_at = greatest(collect.clock(), s.made_at), lifted_by = %(who)s, lifted_why = %(why)s
 where s.silence_id = %(id)s and s.ends_at > collect.clock()
returning s.*;

-- name: listed
-- Silences that hold now, or all of them, the newest first, with how many messages each has kept back.
select s.*, s.ends_at > collect.clock() as holds, (select count(*) from ops.alerts a where a.silence_id = s.silence_id) as kept_back
  from ops.silences s where s.ends_at > collect.clock() or %(all)s order by s.silence_id desc;
