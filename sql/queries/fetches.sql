-- name: raw_object
-- Bytes that were stored; equal bytes share an object.
insert into collect.raw_objects (sha256, size, stored_size, created_at)
values (%(sha256)s, %(size)s, %(stored_size)s, collect.clock())
on conflict do nothing;

-- name: record
-- One request sent and what came back.
insert into collect.fetches (stream, cycle_id, attempt, request_key, unit, page, head_fetch, is_last, session_date, sent_at, received_at,
                             answer_class, http_status, etag, last_modified, headers, sha256, size, masked, tries, goes_on, left_out, error, about)
values (%(stream)s, %(cycle)s, %(attempt)s, %(key)s, %(unit)s, %(page)s, %(head)s, %(is_last)s, %(session_date)s, %(sent_at)s,
        collect.clock(), %(class)s, %(status)s, %(etag)s, %(last_modified)s, %(headers)s, %(sha256)s, %(size)s,
        %(masked)s, %(tries)s, %(goes_on)s, %(left_out)s, %(error)s, %(about)s)
returning fetch_id;

-- name: written
-- The row of one request sent, where it is there.
select fetch_id from collect.fetches
 where stream = %(stream)s and request_key = %(key)s and cycle_id = %(cycle)s and attempt = %(attempt)s and sent_at = %(sent_at)s;

-- name: validators
-- The validators of the last answer with content to a request of one page; not of one that could not be read, which is
-- asked for whole, and not of the first of several pages, as only the whole unit says whether anything is new.
select etag, last_modified from collect.fetches
 where stream = %(stream)s and request_key = %(key)s and answer_class in ('data', 'empty') and applied_at is not null
   and head_fetch is null and is_last
 order by fetch_id desc limit 1;

-- name: answered
-- The last answer's class of each key that a cycle has asked for since it began, where it is the last word: all pages are
-- there, also those that another cycle asked for, or a page was refused, or a fault that may pass was tried as often as it may be.
select distinct on (h.request_key) h.request_key,
       case when l.answer_class in ('data', 'empty') then h.answer_class else l.answer_class end as answer_class
  from (select distinct coalesce(p.head_fetch, p.fetch_id) as head
          from collect.fetches p join collect.cycles c on c.cycle_id = p.cycle_id
         where p.cycle_id = %(cycle)s and p.sent_at >= c.started_at) a
  join collect.fetches h on h.fetch_id = a.head
  cross join lateral (select x.* from (select * from collect.fetches where fetch_id = a.head
                                       union all
                                       select * from collect.fetches where head_fetch = a.head) x
                       order by x.fetch_id desc limit 1) l
 where case when l.answer_class in ('data', 'empty') then l.is_last
            when l.answer_class = 'error' then not l.goes_on or l.tries >= %(most_tries)s
            else true end
 order by h.request_key, h.fetch_id desc;

-- name: open_askings
-- Askings of a cycle since it began, or handed on to it, of which pages are missing; of each key the newest. One whose next
-- page was refused, or failed as often as it may, begins anew.
select distinct on (h.request_key) h.fetch_id as head, h.request_key
  from collect.fetches h join collect.cycles c on c.cycle_id = %(cycle)s
  cross join lateral (
      select bool_or(x.is_last and x.answer_class in ('data', 'empty')) as is_whole,
             (array_agg(x.answer_class in ('data', 'empty')
                        or (x.answer_class = 'error' and x.goes_on and x.tries < %(most_tries)s)
                        order by x.fetch_id desc))[1] as goes_on
        from (select * from collect.fetches where fetch_id = h.fetch_id
              union all
              select * from collect.fetches where head_fetch = h.fetch_id) x) p
 where h.head_fetch is null and h.stream = c.stream and h.answer_class in ('data', 'empty') and not h.is_last
   and ((h.cycle_id = %(cycle)s and h.sent_at >= c.started_at) or h.fetch_id = any(%(handed_on)s::bigint[]))
   and not p.is_whole and p.goes_on
 order by h.request_key, h.fetch_id desc;

-- name: left_out
-- What a cycle left out of its requests since it began.
select distinct f.left_out ->> 'key' as key from collect.fetches f join collect.cycles c on c.cycle_id = f.cycle_id
 where f.cycle_id = %(cycle)s and f.sent_at >= c.started_at and f.left_out is not null
 order by 1;

-- name: last_asking
-- The last whole asking of a key that a cycle ended.
select h.fetch_id as head
  from collect.fetches l join collect.fetches h on h.fetch_id = coalesce(l.head_fetch, l.fetch_id)
 where l.cycle_id = %(cycle)s and l.is_last and l.answer_class in ('data', 'empty') and h.request_key = %(key)s
 order by h.fetch_id desc limit 1;

-- name: had
-- Those of some keys of which a whole answer is stored; where it is not applied yet, the next cycle does that first.
select distinct h.request_key from collect.fetches h
 where h.stream = %(stream)s and h.request_key = any(%(keys)s) and h.head_fetch is null and h.answer_class in ('data', 'empty')
   and (h.is_last or exists (select 1 from collect.fetches l where l.head_fetch = h.fetch_id and l.is_last));

-- name: answered_in_run
-- Keys that another chunk of the same run has had an answer to since it began, where it was read and applied, or says that
-- there is nothing, or nothing new.
select distinct on (f.request_key) f.request_key, f.answer_class
  from collect.fetches f join collect.cycles c on c.cycle_id = f.cycle_id
 where f.stream = %(stream)s and f.request_key = any(%(keys)s) and c.run_id = %(run_id)s and c.cycle_id <> %(cycle)s
   and f.head_fetch is null and f.sent_at >= c.started_at
   and ((f.answer_class in ('data', 'empty') and f.applied_at is not null) or f.answer_class in ('unchanged', 'absent'))
 order by f.request_key, f.fetch_id desc;

-- name: held
-- Keys of some sessions whose answers were applied.
select distinct request_key, session_date from collect.fetches
 where stream = %(stream)s and session_date = any(%(sessions)s) and applied_at is not null and head_fetch is null
   and answer_class in ('data', 'empty')
 order by request_key;

-- name: not_applied
-- Askings that a crash left between storing and applying: of ended or reopened cycles, oldest first.
select coalesce(f.head_fetch, f.fetch_id) as head from collect.fetches f
 where f.stream = %(stream)s and f.applied_at is null and f.answer_class in ('data', 'empty')
   and (%(run_id)s::text is null or exists (select 1 from collect.cycles c where c.cycle_id = f.cycle_id and c.run_id = %(run_id)s))
   and not exists (select 1 from collect.quarantine q where q.stream = f.stream and q.fetch_id = f.fetch_id and q.scope = 'unit')
   and not exists (select 1 from collect.cycles c where c.cycle_id = f.cycle_id and c.cycle_status = 'RUNNING' and c.cycle_id <> %(cycle)s)
 group by 1 having bool_or(f.is_last) order by 1;

-- name: askings_of_unit
-- Every stored asking of a unit that can be parsed, in the order of sending.
select coalesce(head_fetch, fetch_id) as head from collect.fetches
 where stream = %(stream)s and unit = %(unit)s and answer_class in ('data', 'empty')
 group by 1 having bool_or(is_last) order by max(sent_at), 1;

-- name: of_another
-- The first page of the last whole answer that a stream holds of a unit, and the instant at which it is read; without a hash
-- where it holds none.
select collect.clock() as at, h.http_status, h.headers, h.sha256, h.size, h.masked, o.stored_size
  from (select 1) one
  left join lateral (select f.* from collect.fetches f
                      where f.stream = %(stream)s and f.unit = %(unit)s and f.head_fetch is null
                        and f.answer_class in ('data', 'empty') and f.sha256 is not null
                        and (f.is_last or exists (select 1 from collect.fetches l where l.head_fetch = f.fetch_id and l.is_last))
                      order by f.fetch_id desc limit 1) h on true
  left join collect.raw_objects o on o.sha256 = h.sha256;

-- name: newest_parser
-- The newest parser that has read an asking of a unit.
select coalesce(max(parser_version), 0) as newest from collect.fetches where stream = %(stream)s and unit = %(unit)s;

-- name: read_by_newer
-- Units of which an asking was read by a newer parser.
select distinct unit from collect.fetches
 where stream = %(stream)s and unit = any(%(units)s) and parser_version > %(parser_version)s;

-- name: units_between
-- Units with stored answers for the session dates of a range; who was asked for first comes first, as a key may have gone from
-- one to another.
select unit from collect.fetches
 where stream = %(stream)s and session_date between %(start)s and %(end)s and answer_class in ('data', 'empty')
 group by unit order by min(sent_at), unit;

-- name: units_with_answers
-- Those of some units that have stored answers.
select distinct unit from collect.fetches
 where stream = %(stream)s and unit = any(%(units)s) and answer_class in ('data', 'empty')
 order by unit;

-- name: asking
-- All pages of one asking, in order.
select fetch_id, unit, page, session_date, request_key, sent_at, http_status, headers, sha256, size, answer_class, about from collect.fetches
 where (fetch_id = %(head)s or head_fetch = %(head)s) and answer_class in ('data', 'empty')
 order by page, fetch_id;

-- name: mark_applied
-- Answers that were applied, by which cycle and parser.
update collect.fetches
   set applied_at = collect.clock(), applied_by = %(cycle)s, parser_version = %(parser_version)s, rows_read = %(rows)s
 where fetch_id = any(%(ids)s);
