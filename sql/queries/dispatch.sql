-- name: day
-- The day's snapshot header, expectations and windows, each where it is not there yet.
select * from collect.dispatch(%(date)s, %(windows)s, %(expected)s, %(who)s);
