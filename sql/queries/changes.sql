-- name: untold
-- What changed in cycles of a stream that are over and nobody was told of; copies that a replay wrote are nobody's business.
with u as (
    select c.cycle_id, c.run_id, c.run_date, c.session_date, c.finished_at, c.told_count,
           c.new_count + c.changed_count + c.withdrawn_count as touched
      from collect.cycles c
     where c.stream = %(stream)s and c.new_count + c.changed_count + c.withdrawn_count > c.told_count
       and c.cycle_status in ('SUCCESS', 'FAILED', 'BUDGET_EXHAUSTED')
       and not exists (select 1 from collect.job_runs r where r.run_id = c.run_id and r.replay_into = 'versioned')
     order by c.cycle_id desc limit 100000
)
select coalesce(sum(touched - told_count), 0)::bigint as changed,
       coalesce(max(run_date), (collect.clock() at time zone 'Asia/Seoul')::date) as kst_day, max(session_date) as session_date,
       (array_agg(cycle_id order by finished_at desc))[1] as cycle_id, (array_agg(run_id order by finished_at desc))[1] as run_id,
       coalesce(array_agg(cycle_id order by cycle_id), '{}') as cycles, coalesce(array_agg(touched order by cycle_id), '{}') as counts
  from u;

-- name: confirm
-- The word is out. A cycle that somebody works on is left alone: it is told once more when it is over.
with told as (
    select t.cycle_id, t.told from unnest(%(cycles)s::bigint[], %(counts)s::bigint[]) as t (cycle_id, told)
), free as (
    select c.cycle_id from collect.cycles c where c.cycle_id = any(%(cycles)s) order by c.cycle_id for no key update skip locked
)
update collect.cycles c set told_count = greatest(c.told_count, t.told)
  from told t join free f using (cycle_id)
 where c.cycle_id = t.cycle_id;
