-- name: declare
-- A stream as declared; what an operator set (active, retired) is kept.
insert into collect.streams as s (stream, source, title, host_group, calendar, sla_eligible, parser_version, activated_at, updated_at)
values (%(stream)s, %(source)s, %(title)s, %(host_group)s, %(calendar)s, %(sla_eligible)s, %(parser_version)s,
        collect.clock(), collect.clock())
on conflict (stream) do update
   set title = excluded.title, host_group = excluded.host_group, calendar = excluded.calendar,
       sla_eligible = excluded.sla_eligible, parser_version = excluded.parser_version, updated_at = excluded.updated_at
 where (s.title, s.host_group, s.calendar, s.sla_eligible, s.parser_version)
       is distinct from (excluded.title, excluded.host_group, excluded.calendar, excluded.sla_eligible, excluded.parser_version);

-- name: exceptions
-- Days that an operator decided against the calendar.
select day, state from collect.calendar_exceptions where calendar = %(calendar)s and state in ('open', 'closed');

-- name: newest
-- The newest window of a stream.
select * from collect.cycles where stream = %(stream)s and window_start is not null
 order by window_start desc limit 1;

-- name: newest_scheduled
-- The newest window of a stream that is no make-up window.
select * from collect.cycles where stream = %(stream)s and window_start is not null and kind = 'scheduled'
 order by window_start desc limit 1;

-- name: of_slot
-- The window of a stream that was scheduled at an instant.
select * from collect.cycles where stream = %(stream)s and mode = 'poll' and slot = %(slot)s;

-- name: of_numbers
-- Cycles by their numbers.
select * from collect.cycles where cycle_id = any(%(cycles)s);

-- name: frozen
-- Why nothing of a stream may be claimed; null where it may.
select collect.frozen(%(stream)s) as why;
