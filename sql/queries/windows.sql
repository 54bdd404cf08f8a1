-- name: declare
-- A stream as declared, under the gate where anything differs; what an operator set (in or out of service) is kept. A new one
-- that lacks a connection, as `lacks` says in words, waits for one out of service.
select collect.declare_stream(%(stream)s, %(source)s, %(title)s, %(host_group)s, %(calendar)s, %(job)s, %(sla_eligible)s, %(listing)s,
                              %(empty_can_be_right)s, %(parser_version)s, %(lacks)s);

-- name: exceptions
-- Days that an operator decided against the calendar.
select day, state from collect.calendar_exceptions where calendar = %(calendar)s and state in ('open', 'closed');

-- name: newest
-- The newest window of a stream that was opened; dispatch makes others ahead of their time.
select * from collect.cycles where stream = %(stream)s and window_start is not null and cycle_status <> 'NOT_STARTED'
 order by window_start desc limit 1;

-- name: newest_scheduled
-- The newest window of a stream that was opened and is no make-up window.
select * from collect.cycles
 where stream = %(stream)s and window_start is not null and kind = 'scheduled' and cycle_status <> 'NOT_STARTED'
 order by window_start desc limit 1;

-- name: of_slot
-- The window of a stream that was scheduled at an instant.
select * from collect.cycles where stream = %(stream)s and mode = 'poll' and slot = %(slot)s;

-- name: of_numbers
-- Cycles by their numbers.
select * from collect.cycles where cycle_id = any(%(cycles)s);

-- name: held
-- Why nothing of a stream may be claimed, and why no windows are opened at all; null where they are.
select collect.frozen(%(stream)s) as frozen, collect.dispatch_is_off() as off;

-- name: off
-- Why no windows are opened at all; null where they are.
select collect.dispatch_is_off() as off;
