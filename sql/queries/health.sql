-- name: tell_out_of_budget
-- Tell where a stream has run out of budget two polled days running, up to a window's own, and again at seven.
select collect.tell_out_of_budget(%(stream)s, %(run_date)s);
