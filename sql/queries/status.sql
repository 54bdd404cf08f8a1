-- name: streams
-- The newest window of every stream, its checkpoint, what waits, and why it is out of service.
select s.stream, s.active, s.service_why, c.cycle_status, c.window_start, c.session_date, c.failure_reason, c.failure_cause_summary,
       k.session_date as checkpoint,
       (select count(*) from collect.pending p where p.stream = s.stream and p.given_up_at is null and p.why <> 'recheck') as pending,
       (select count(*) from collect.quarantine q where q.stream = s.stream and q.state = 'open') as quarantined
  from collect.streams s
  left join collect.checkpoints k on k.stream = s.stream
  left join lateral (select * from collect.cycles c where c.stream = s.stream and c.window_start is not null
                        and (c.cycle_status <> 'NOT_STARTED' or c.window_start <= collect.clock())
                      order by c.window_start desc limit 1) c on true
 order by s.stream;

-- name: runs
-- The newest job runs.
select run_id, mode, outcome, requested_by, created_at from collect.job_runs order by created_at desc limit %(limit)s;

-- name: pending
-- Keys that are still to be fetched of some streams, the next to be tried first; those that were given up last.
select stream, key, why, session_date, attempts, next_try_at, given_up_at, last_error from collect.pending
 where stream = any(%(streams)s) and (%(rechecks)s or why <> 'recheck')
 order by given_up_at is not null, next_try_at, stream, key limit %(limit)s;
