-- name: checkpoint
-- Up to where everything of a stream is held or explained.
select session_date, position from collect.checkpoints where stream = %(stream)s;

-- name: move_checkpoint
-- The checkpoint moves forward only.
insert into collect.checkpoints as c (stream, session_date, cycle_id, updated_at)
values (%(stream)s, %(session_date)s, %(cycle)s, collect.clock())
on conflict (stream) do update
   set session_date = excluded.session_date, cycle_id = excluded.cycle_id, updated_at = excluded.updated_at
 where c.session_date is null or c.session_date < excluded.session_date;
