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

-- name: first_session
-- The oldest session that a window of a stream was responsible for: where its ground begins while there is no checkpoint.
select min(session_date) as session_date from collect.cycles where stream = %(stream)s and window_start is not null;

-- name: spent
-- What a stream's windows of one KST date have spent. Requests that no window counted, as it crashed, count as both kinds:
-- nobody knows any more which they were.
with w as (
    select cycle_id, list_page_count, fetched_count, detail_request_count from collect.cycles
     where stream = %(stream)s and run_date = %(run_date)s
), s as (
    select coalesce(sum(list_page_count), 0) as list_pages, coalesce(sum(fetched_count), 0) as items,
           coalesce(sum(detail_request_count), 0) as details,
           coalesce(sum(greatest(r.sent - list_page_count - detail_request_count, 0)), 0) as uncounted
      from w cross join lateral (select count(*) as sent from collect.fetches f where f.cycle_id = w.cycle_id and f.tries = 1) r
)
select (list_pages + uncounted)::int as list_pages, items::bigint as items, (details + uncounted)::int as details from s;

-- name: before
-- The window before a cycle's own, and what it came to.
select cycle_status, outcome from collect.cycles
 where stream = %(stream)s and window_start < %(window_start)s order by window_start desc limit 1;

-- name: opened
-- Days that an operator called open although the ground was gone over before; newest first.
select day from collect.calendar_exceptions
 where calendar = %(calendar)s and state = 'open' and day >= %(first)s and day < %(since)s
 order by day desc;

-- name: looked_at
-- Those of some keys that are pending, or had an answer as of an open day; what was absent on a closed one is no word.
select k.key from unnest(%(keys)s::text[]) as k (key)
 where exists (select 1 from collect.pending p where p.stream = %(stream)s and p.key = k.key)
    or exists (select 1 from collect.fetches f
                where f.stream = %(stream)s and f.request_key = k.key and f.answer_class in ('data', 'empty', 'unchanged', 'not_yet'));
