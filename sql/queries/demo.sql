-- name: stream
-- What was collected of a stream in a mode: its newest cycle, one that is not good before one that is, and raw objects;
-- whether the upstream has said that it is not there yet and nothing else.
-- A window that dispatch wrote down for later in the day is not looked at.
with newest as (
    select c.cycle_status, c.failure_reason
      from collect.cycles c
     where c.stream = %(stream)s and c.mode = %(mode)s
       and (c.cycle_status <> 'NOT_STARTED' or c.window_start <= collect.clock())
     order by c.cycle_status = 'SUCCESS', c.cycle_id desc
     limit 1
)
select (select cycle_status from newest) as cycle_status,
       (select failure_reason from newest) as failure_reason,
       (select count(distinct f.sha256) from collect.fetches f where f.stream = %(stream)s) as raw_objects,
       (select coalesce(bool_and(f.answer_class in ('not_yet', 'absent')), false) from collect.fetches f
         where f.stream = %(stream)s) as is_not_yet,
       (select count(*) from collect.quarantine q where q.stream = %(stream)s and q.state = 'open') as quarantined;

-- name: files
-- Files of these releases, with their commits; of one that was sent twice the newer.
select distinct on (f.path) f.path, f.sha256, f.rows, f.state, c.commit_oid, c.repository
  from publish.files f left join publish.commits c on c.commit_id = f.commit_id
 where f.state in ('published', 'waiting', 'refused') and f.release = any(%(releases)s)
 order by f.path, f.file_id desc;

-- name: waiting
-- Parts and files that still have to be built or sent.
select (select count(*) from publish.behind) + (select count(*) from publish.files where state = 'waiting') as waiting;

-- name: unit
-- What became of one recorded answer: rows read, rows and units refused.
select f.answer_class, f.rows_read, f.applied_at is not null as is_applied,
       (select count(*) from collect.quarantine q where q.fetch_id = f.fetch_id and q.scope = 'row') as rows_refused,
       (select min(q.reason) from collect.quarantine q where q.fetch_id = f.fetch_id and q.scope = 'unit') as unit_refused
  from collect.fetches f
 where f.stream = %(stream)s and f.unit = %(unit)s and f.answer_class in ('data', 'empty')
 order by f.fetch_id desc limit 1;

-- name: let_time_pass
-- Put the simulated clock so long before nine in Seoul, unless it is later already; who runs goes on running meanwhile.
with jump as (
    select greatest(collect.cutoff((t at time zone 'Asia/Seoul')::date) - %(before)s::interval - t, interval '0') as by
      from collect.clock() t
), alive as (
    update ops.signs_of_life l set seen_at = l.seen_at + j.by from jump j returning 1
)
update collect.installation i set clock_offset = i.clock_offset + j.by from jump j where i.is_sandbox;

-- name: ask_again_now
-- Let the windows of streams that wait for a later try be claimed at once.
update collect.cycles c set next_eligible_at = collect.clock()
  from collect.installation i
 where i.is_sandbox and c.stream = any(%(streams)s) and c.mode = 'poll' and c.cycle_status = 'PENDING'
   and c.next_eligible_at > collect.clock();

-- name: snapshot
-- The snapshot of today in Seoul, and who was late.
select s.*, extract(epoch from s.capture_offset) * 1000 as milliseconds,
       (select string_agg(i.stream || ' ' || i.cycle_status, ', ' order by i.stream) from collect.sla_snapshot_sources i
         where i.snapshot_date = s.snapshot_date and i.is_late) as late
  from collect.sla_snapshots s where s.snapshot_date = (collect.clock() at time zone 'Asia/Seoul')::date;

-- name: made
-- The rows of the files that a stream has made.
select coalesce(sum(rows), 0)::bigint as rows from collect.made_files where stream = %(stream)s;

-- name: analyses
-- How many filings are in each state of the analysis.
select count(*) filter (where status = 'COMPLETED') as completed,
       count(*) filter (where status in ('PENDING', 'PROCESSING', 'BODY_PROCESSING')
                           or status = 'FAILED' and retry_count < 3 and not is_permanent) as under_way,
       count(*) filter (where status = 'BODY_PENDING') as without_text,
       count(*) filter (where status = 'FAILED' and (retry_count >= 3 or is_permanent)) as failed
  from dartbrief.analysis_cache;
