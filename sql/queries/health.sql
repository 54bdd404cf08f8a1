-- name: out_of_budget_since
-- The first of the polled days in a row, up to a window's own, whose last window ran out of budget, and how many there are.
with days as (
    select distinct on (c.run_date) c.run_date, c.cycle_status from collect.cycles c
     where c.stream = %(stream)s and c.run_date < %(run_date)s and c.run_date > %(run_date)s::date - 90 and c.finished_at is not null
     order by c.run_date desc, c.window_start desc
)
select coalesce(min(d.run_date), %(run_date)s) as since, count(*) + 1 as days from days d
 where d.run_date > coalesce((select max(o.run_date) from days o where o.cycle_status <> 'BUDGET_EXHAUSTED'), '-infinity');
