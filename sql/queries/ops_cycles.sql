-- name: newest
-- A page of cycles, the newest number first.
select c.*, split_part(c.stream, '.', 1) as source from collect.cycles c
 where (%(stream)s::text is null or c.stream = %(stream)s) and (%(mode)s::text is null or c.mode = %(mode)s)
   and (%(status)s::text is null or c.cycle_status = %(status)s)
   and (%(before)s::bigint is null or c.cycle_id < %(before)s)
 order by c.cycle_id desc limit %(limit)s;

-- name: of_run
-- A page of the chunks of one run, the newest number first. What is over, what waits and what is being worked on is each
-- found in an index of its own, however many chunks of other runs came after it.
with chunks as (
    select c.cycle_id, c.stream, c.cycle_status from collect.cycles c
     where c.run_id = %(run_id)s and c.cycle_status in ('SUCCESS', 'FAILED', 'BUDGET_EXHAUSTED')
    union all
    select c.cycle_id, c.stream, c.cycle_status from collect.cycles c
     where c.run_id = %(run_id)s and c.cycle_status in ('NOT_STARTED', 'PENDING')
    union all
    select c.cycle_id, c.stream, c.cycle_status from collect.cycles c
     where c.run_id = %(run_id)s and c.cycle_status = 'RUNNING'
), page as (
    select k.cycle_id from chunks k
     where (%(stream)s::text is null or k.stream = %(stream)s) and (%(status)s::text is null or k.cycle_status = %(status)s)
       and (%(before)s::bigint is null or k.cycle_id < %(before)s)
       -- The chunks of a run have one mode.
       and (%(mode)s::text is null or exists (select 1 from collect.job_runs r where r.run_id = %(run_id)s and r.mode = %(mode)s))
     order by k.cycle_id desc limit %(limit)s
)
select c.*, split_part(c.stream, '.', 1) as source from page p join collect.cycles c on c.cycle_id = p.cycle_id
 order by c.cycle_id desc;

-- name: by_date
-- A page of windows of some dates in Seoul, the newest date first.
select c.*, split_part(c.stream, '.', 1) as source from collect.cycles c
 where c.run_date between %(first)s and %(last)s
   and (%(stream)s::text is null or c.stream = %(stream)s) and (%(mode)s::text is null or c.mode = %(mode)s)
   and (%(status)s::text is null or c.cycle_status = %(status)s) and (%(run_id)s::text is null or c.run_id = %(run_id)s)
   and (%(before)s::bigint is null or (c.run_date, c.cycle_id) < (%(before_date)s::date, %(before)s))
 order by c.run_date desc, c.cycle_id desc limit %(limit)s;

-- name: one
-- One cycle.
select c.*, split_part(c.stream, '.', 1) as source from collect.cycles c where c.cycle_id = %(cycle)s;

-- name: slices
-- What each claim of a cycle asked for: one row for each that sent a request.
select f.attempt, count(*) as requests, coalesce(sum(f.tries), 0) as tries, min(f.sent_at) as first_sent_at,
       max(f.received_at) as last_received_at, coalesce(sum(f.size), 0)::bigint as bytes,
       count(*) filter (where f.answer_class in ('error', 'blocked')) as failures, count(f.applied_at) as applied
  from collect.fetches f where f.cycle_id = %(cycle)s group by f.attempt order by f.attempt;

-- name: fetches
-- A page of what a cycle asked for, in order.
select fetch_id, attempt, request_key, unit, page, is_last, session_date, sent_at, received_at, answer_class, http_status,
       encode(sha256, 'hex') as sha256, size, masked, tries, error, applied_at, applied_by, parser_version, rows_read
  from collect.fetches
 where cycle_id = %(cycle)s and (%(after)s::bigint is null or fetch_id > %(after)s)
 order by fetch_id limit %(limit)s;

-- name: history
-- A page of the history of windows that ended well or failed, the newest date first.
select h.* from collect.run_history h
 where h.run_date between %(first)s and %(last)s
   and (%(stream)s::text is null or h.stream = %(stream)s) and (%(status)s::text is null or h.run_status = %(status)s)
   and (%(before)s::bigint is null or (h.run_date, h.cycle_id) < (%(before_date)s::date, %(before)s))
 order by h.run_date desc, h.cycle_id desc limit %(limit)s;
