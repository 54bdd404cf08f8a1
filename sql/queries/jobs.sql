-- name: create
-- A run as asked for; nothing where one of this name is there.
insert into collect.job_runs (run_id, mode, streams, range_start, range_end, keys, force, forced_by, replay_into, reason,
                              parser_versions, requested_by, created_at, updated_at)
values (%(run_id)s, %(mode)s, %(streams)s, %(start)s, %(end)s, %(keys)s, %(force)s, case when %(force)s then %(asking)s::text end,
        %(replay_into)s, %(reason)s, %(parsers)s, %(who)s, collect.clock(), collect.clock())
on conflict do nothing
returning run_id;

-- name: find
-- A run by its name.
select * from collect.job_runs where run_id = %(run_id)s;

-- name: reopen
-- Chunks that failed or ran out of budget are opened again; with force, those that are done too, which then begin anew. One
-- asking forces once: its second attempt finds its own name in forced_by, whose row is locked first, and only joins.
with asked as (
    select run_id, %(force)s and (%(asking)s::text is null or forced_by is distinct from %(asking)s::text) as forces
      from collect.job_runs where run_id = %(run_id)s for no key update
), opened as (
    update collect.cycles c
       set cycle_status = 'PENDING', is_complete = false, finished_at = null, failure_reason = null, failure_cause_summary = null,
           failure_kind = null, outcome = null, budget_exhausted_reason = null, success_reason = null, next_eligible_at = null,
           failed_attempts = 0, started_at = case when cycle_status <> 'SUCCESS' then started_at end, updated_at = collect.clock()
      from asked a
     where c.run_id = a.run_id and c.cycle_status in ('SUCCESS', 'FAILED', 'BUDGET_EXHAUSTED')
       and (c.cycle_status in ('FAILED', 'BUDGET_EXHAUSTED') or (a.forces and c.cycle_status = 'SUCCESS'))
    returning 1
), noted as (
    update collect.job_runs r
       set reopened_count = r.reopened_count + o.some::int, reopened_by = case when o.some then %(who)s else r.reopened_by end,
           outcome = case when not o.some then r.outcome end, finished_at = case when not o.some then r.finished_at end,
           forced_by = case when a.forces then %(asking)s::text else r.forced_by end, updated_at = collect.clock()
      from asked a, (select exists (select 1 from opened) as some) o
     where r.run_id = a.run_id and (o.some or a.forces)
)
select 1 from opened;

-- name: write_chunks
-- Chunks of a run, or their parts, newest first; those that are there already stay as they are. Wholes are counted.
with written as (
    insert into collect.cycles (stream, mode, slot, run_id, session_date, kind, chunk, created_at, updated_at)
    select %(stream)s, %(mode)s, c.slot, %(run_id)s, c.day, c.kind, c.chunk, collect.clock(), collect.clock()
      from unnest(%(slots)s::text[], %(kinds)s::text[], %(days)s::date[], %(chunks)s::jsonb[]) with ordinality as c (slot, kind, day, chunk, n)
     order by c.n
    on conflict do nothing
    returning slot
)
select count(distinct split_part(slot, '#', 1)) as wholes from written;

-- name: planned
-- How far the chunks of a run's stream have been written.
update collect.job_runs
   set planned_to = coalesce(planned_to, '{}') || jsonb_build_object(%(stream)s::text, %(to)s::text),
       total_chunks = total_chunks + %(written)s, updated_at = collect.clock()
 where run_id = %(run_id)s;

-- name: progress
-- How far a run is, or one of its streams: what is over is counted in cycles_by_run alone, what waits in
-- cycles_ready_of_stream, and the first and last of each are looked up, so that a run of millions is counted at once. Parts of
-- a chunk are counted as the one whole that they are.
with parts as (
    select count(*) as n, count(*) filter (where cycle_status = 'SUCCESS') as done, count(*) filter (where cycle_status = 'FAILED') as failed,
           count(*) filter (where outcome = 'failed_terminal') as failed_terminal,
           count(*) filter (where cycle_status = 'BUDGET_EXHAUSTED') as out_of_budget, count(*) filter (where outcome = 'partial') as partial,
           count(*) filter (where cycle_status = 'RUNNING') as running,
           count(*) filter (where cycle_status in ('NOT_STARTED', 'PENDING')) as open
      from collect.cycles
     where run_id = %(run_id)s and kind = 'part' and (%(stream)s::text is null or stream = %(stream)s)
     group by stream, split_part(slot, '#', 1)
), wholes as (
    -- By how much the counts of cycles are more than those of wholes.
    select coalesce(sum(done - (done = n)::int), 0) as done,
           coalesce(sum(failed - (failed > 0 and running = 0 and open = 0)::int), 0) as failed,
           coalesce(sum(failed_terminal - (failed_terminal > 0)::int), 0) as failed_terminal,
           coalesce(sum(out_of_budget - (out_of_budget > 0 and failed = 0 and running = 0 and open = 0)::int), 0) as out_of_budget,
           coalesce(sum(partial - (partial > 0)::int), 0) as partial,
           coalesce(sum(running - (running > 0)::int), 0) as running,
           coalesce(sum(open - (open > 0 and running = 0)::int), 0) as open
      from parts
), over as (
    select count(*) filter (where cycle_status = 'SUCCESS') as done,
           count(*) filter (where cycle_status = 'FAILED') as failed,
           count(*) filter (where outcome = 'failed_terminal') as failed_terminal,
           count(*) filter (where cycle_status = 'BUDGET_EXHAUSTED') as out_of_budget,
           count(*) filter (where outcome = 'partial') as partial,
           coalesce(sum(new_count), 0)::bigint as rows_new,
           coalesce(sum(changed_count), 0)::bigint as rows_changed,
           coalesce(sum(withdrawn_count), 0)::bigint as rows_withdrawn,
           coalesce(sum(fetched_count), 0)::bigint as rows_read
      from collect.cycles
     where run_id = %(run_id)s and cycle_status in ('SUCCESS', 'FAILED', 'BUDGET_EXHAUSTED')
       and (%(stream)s::text is null or stream = %(stream)s)
), running as (
    select count(*) as running, min(cycle_id) as first from collect.cycles
     where cycle_status = 'RUNNING' and run_id = %(run_id)s and (%(stream)s::text is null or stream = %(stream)s)
), waiting as (
    select count(*) as open from collect.cycles
     where run_id = %(run_id)s and cycle_status in ('NOT_STARTED', 'PENDING') and (%(stream)s::text is null or stream = %(stream)s)
), ends as (
    select min(w.cycle_id) as waiting, max(g.cycle_id) as good, min(f.cycle_id) as failed
      from collect.job_runs r
     cross join unnest(r.streams) as s (stream)
      left join lateral (
          select c.cycle_id from collect.cycles c
           where c.run_id = r.run_id and c.stream = s.stream and c.mode = r.mode and c.cycle_status in ('NOT_STARTED', 'PENDING')
           order by c.cycle_id limit 1) w on true
      left join lateral (
          select c.cycle_id from collect.cycles c
           where c.run_id = r.run_id and c.stream = s.stream and c.cycle_status = 'SUCCESS' order by c.cycle_id desc limit 1) g on true
      left join lateral (
          select c.cycle_id from collect.cycles c
           where c.run_id = r.run_id and c.stream = s.stream and c.cycle_status = 'FAILED' order by c.cycle_id limit 1) f on true
     where r.run_id = %(run_id)s and (%(stream)s::text is null or s.stream = %(stream)s)
)
select (o.done - p.done + o.failed - p.failed + o.out_of_budget - p.out_of_budget + n.running - p.running + w.open - p.open)::bigint as total,
       (o.done - p.done)::bigint as done, (o.failed - p.failed)::bigint as failed,
       (o.failed_terminal - p.failed_terminal)::bigint as failed_terminal, (o.out_of_budget - p.out_of_budget)::bigint as out_of_budget,
       (n.running - p.running)::bigint as running, (w.open - p.open)::bigint as open, (o.partial - p.partial)::bigint as partial, o.rows_new, o.rows_changed, o.rows_withdrawn, o.rows_read,
       (select c.slot from collect.cycles c where c.cycle_id = e.good) as last_good,
       (select c.slot from collect.cycles c where c.cycle_id = least(e.waiting, n.first)) as restart_at,
       (select c.slot || ': ' || c.failure_reason from collect.cycles c where c.cycle_id = e.failed) as first_failure,
       (select coalesce(bool_and(coalesce(r.planned_to ->> s.stream = 'all', false)), false)
          from collect.job_runs r, unnest(r.streams) as s (stream) where r.run_id = %(run_id)s) as is_planned
  from over o, running n, waiting w, ends e, wholes p;

-- name: next_eligible
-- When the next chunk of a run's stream can be claimed; a running one may come back when its lease ends.
select case when exists (select 1 from collect.cycles c
                          where c.run_id = %(run_id)s and c.stream = %(stream)s and c.cycle_status = 'PENDING' and c.next_eligible_at is null)
            then collect.clock()
            else least((select min(c.next_eligible_at) from collect.cycles c
                         where c.run_id = %(run_id)s and c.stream = %(stream)s and c.cycle_status = 'PENDING'),
                       (select min(c.lease_until) from collect.cycles c
                         where c.cycle_status = 'RUNNING' and c.run_id = %(run_id)s and c.stream = %(stream)s)) end as at;

-- name: conclude
-- What a run came to.
update collect.job_runs set outcome = %(outcome)s, finished_at = coalesce(finished_at, collect.clock()), updated_at = collect.clock()
 where run_id = %(run_id)s and outcome is distinct from %(outcome)s;
