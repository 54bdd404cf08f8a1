-- name: facts
-- What a complete listing is judged by: how many items it showed, how many the last trusted one did and whether that was by an
-- operator's word, how many of those that the last one showed it does not, whether a newer one is complete already, and whether
-- anything of it could not be read.
select (select count(*) from collect.seen_items where cycle_id = %(cycle)s) as seen, t.seen_count as trusted,
       coalesce(t.is_accepted, false) as is_accepted,
       (select count(*) from collect.items i
         where i.stream = %(stream)s and i.closed_at is null and i.missed = 0
           and not exists (select 1 from collect.seen_items s where s.cycle_id = %(cycle)s and s.item_key = i.item_key)) as lost,
       exists (select 1 from collect.cycles c
                where c.stream = %(stream)s and c.window_start > %(window_start)s and c.cycle_status = 'SUCCESS') as is_overtaken,
       exists (select 1 from collect.quarantine q where q.cycle_id = %(cycle)s and q.rule = 'parse') as is_unread
  from (select 1) one
  left join lateral (
      select c.seen_count, c.missed_count is null as is_accepted from collect.cycles c
       where c.stream = %(stream)s and c.window_start < %(window_start)s and c.cycle_status = 'SUCCESS' and c.seen_count is not null
         and (c.missed_count is not null
              or exists (select 1 from collect.quarantine q
                          where q.stream = c.stream and q.cycle_id = c.cycle_id and q.rule = %(rule)s and q.state = 'accepted'))
       order by c.window_start desc limit 1) t on true;

-- name: opened
-- How many items a listing shows that were not open before it.
select count(*) as opened
  from collect.seen_items s left join collect.items i on i.stream = %(stream)s and i.item_key = s.item_key and i.closed_at is null
 where s.cycle_id = %(cycle)s and i.item_key is null;

-- name: show
-- Items that the listing showed: new ones begin, closed ones are open again, none is missed.
insert into collect.items as i (stream, item_key, first_seen_at, last_seen_at)
select %(stream)s, s.item_key, s.seen_at, s.seen_at from collect.seen_items s where s.cycle_id = %(cycle)s order by s.item_key
on conflict (stream, item_key) do update set last_seen_at = excluded.last_seen_at, missed = 0, closed_at = null;

-- name: miss
-- Open items that the listing did not show: missed once more, and closed at the threshold, as of when the list was asked for.
with missed as (
    update collect.items i
       set missed = i.missed + 1,
           closed_at = case when i.missed + 1 >= %(close_after)s
                            then (select max(s.seen_at) from collect.seen_items s where s.cycle_id = %(cycle)s) end
     where i.stream = %(stream)s and i.closed_at is null
       and not exists (select 1 from collect.seen_items s where s.cycle_id = %(cycle)s and s.item_key = i.item_key)
    returning i.closed_at
)
select count(*) as missed, count(closed_at) as closed from missed;

-- name: whole_again
-- A listing of the usual size resolves the doubt about smaller ones before it.
update collect.quarantine
   set state = 'resolved', resolved_by = 'cycle ' || %(cycle)s, resolved_why = 'a later listing was whole again', resolved_at = collect.clock()
 where stream = %(stream)s and rule = %(rule)s and state = 'open';

-- name: orphans
-- Seen items that outlived their cycle: two days old and the cycle is over.
select count(*) as orphans from collect.seen_items s join collect.cycles c on c.cycle_id = s.cycle_id
 where s.seen_at < collect.clock() - %(age)s::interval and c.finished_at is not null;

-- name: clean
-- Delete the oldest of them, so many at most.
delete from collect.seen_items d
 using (select s.cycle_id, s.item_key from collect.seen_items s join collect.cycles c on c.cycle_id = s.cycle_id
         where s.seen_at < collect.clock() - %(age)s::interval and c.finished_at is not null
         order by s.seen_at limit %(limit)s) o
 where d.cycle_id = o.cycle_id and d.item_key = o.item_key;

-- name: no_items
-- Whether a listing has no item at all.
select not exists (select 1 from collect.items where stream = %(stream)s) as is_empty;

-- name: askings
-- Every whole asking of a listing with the poll that asked, the polls in the order of sending. Of a poll that is not known any more
-- the answers decide; of one that is, only where it ended well. What an operator accepted comes with it.
select coalesce(f.head_fetch, f.fetch_id) as head, f.cycle_id, c.session_date,
       min(f.request_key) filter (where f.head_fetch is null) as request_key, min(f.session_date) as asked_for,
       exists (select 1 from collect.quarantine q
                where q.stream = %(stream)s and q.cycle_id = f.cycle_id and q.rule = %(rule)s and q.state = 'accepted') as is_accepted
  from collect.fetches f left join collect.cycles c on c.cycle_id = f.cycle_id and c.stream = f.stream and c.created_at <= f.sent_at
 where f.stream = %(stream)s and f.answer_class in ('data', 'empty')
   and (c.cycle_id is null or (c.mode = 'poll' and c.run_id is null and c.cycle_status = 'SUCCESS'))
 group by 1, 2, 3 having bool_or(f.is_last)
 order by max(max(f.sent_at)) over (partition by f.cycle_id), f.cycle_id, max(f.sent_at), 1;

-- name: put_items
-- Items of a listing that had none, as the stored lists tell them.
insert into collect.items (stream, item_key, first_seen_at, last_seen_at, missed, closed_at)
select %(stream)s, u.item_key, u.first_seen_at, u.last_seen_at, u.missed, u.closed_at
  from unnest(%(keys)s::text[], %(first)s::timestamptz[], %(last)s::timestamptz[], %(missed)s::integer[], %(closed)s::timestamptz[])
       as u (item_key, first_seen_at, last_seen_at, missed, closed_at);
