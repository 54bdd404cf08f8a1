-- name: propose
-- A day on which the calendar seems to be wrong, for an operator to decide.
insert into collect.calendar_exceptions (calendar, day, state, reason, created_at, updated_at)
values (%(calendar)s, %(day)s, 'proposed', %(reason)s, collect.clock(), collect.clock())
on conflict do nothing;

-- name: decide
-- An operator's word on a day.
insert into collect.calendar_exceptions as e (calendar, day, state, reason, decided_by, created_at, updated_at)
values (%(calendar)s, %(day)s, %(state)s, %(reason)s, %(who)s, collect.clock(), collect.clock())
on conflict (calendar, day) do update
   set state = excluded.state, reason = excluded.reason, decided_by = excluded.decided_by, updated_at = excluded.updated_at;

-- name: list
-- Every exception and proposal, the newest day first.
select calendar, day, state, reason, decided_by from collect.calendar_exceptions order by day desc, calendar;

-- name: filled
-- Those of some sessions for which a stream has ever had data.
select d.day from unnest(%(sessions)s::date[]) as d (day)
 where exists (select 1 from collect.fetches f
                where f.stream = %(stream)s and f.session_date = d.day and f.answer_class = 'data');

-- name: last_answers
-- The last answer to each of some keys.
select distinct on (request_key) request_key, answer_class from collect.fetches
 where stream = %(stream)s and request_key = any(%(keys)s) and head_fetch is null
 order by request_key, fetch_id desc;
