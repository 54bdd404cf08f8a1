-- name: going_on
-- Streams with a cycle that is not over: whoever claims it may go on with what was begun.
select s.stream from collect.streams s
 where exists (select from collect.cycles c where c.stream = s.stream and c.finished_at is null);
