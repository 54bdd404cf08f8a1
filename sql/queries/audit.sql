-- name: begin
-- Begin an audit, in the place of one that still runs.
select ops.begin_audit(%(owner)s) as audit_id;

-- name: hold
-- The audit that writes, while no other has taken its place; locked, so that none does before the write is committed.
select audit_id from ops.audits where audit_id = %(audit)s and replaced_by is null for share;

-- name: end
-- It has looked at everything.
update ops.audits set ended_at = collect.clock() where audit_id = %(audit)s and replaced_by is null;

-- name: repositories
-- How many commits of ours each repository on the Hub holds.
select repository, commits from publish.repositories order by repository;

-- name: publication
-- What waits to be sent, why the publisher rests, and since when its DAG is paused.
select (select string_agg(format('%%s of %%s', w.files, w.release), ', ' order by w.files desc, w.release)
          from (select f.release, count(*) as files from publish.files f where f.state = 'waiting' group by f.release) w) as waits,
       (select l.put_off_reason from publish.leases l
         where l.name = %(lease)s and l.put_off_until > collect.clock()) as put_off_reason,
       (select p.since from ops.paused_jobs p where p.job = %(job)s) as paused_since;

-- name: scan_behind
-- Since when what files over all companies are made from is ahead of them: the oldest change that is older than the grace.
select b.since, (select p.since from ops.paused_jobs p where p.job = %(job)s) as paused_since
  from (select coalesce(min(s.marked_at) filter (where u.built_at is null or s.marked_at > u.built_at), max(u.built_at)) as since
          from publish.stale s
          left join publish.built u on u.release = %(release)s and u.partition = 'all'
         where s.table_name = any(%(marks)s) and (u.built_at is null or s.marked_at > u.built_at or u.version = 0)) b
 where b.since < collect.clock() - %(grace)s::interval;

-- name: squashed
-- Somebody squashed a repository's history.
insert into publish.squashes (repository, at, who)
select %(repository)s, collect.clock(), %(who)s
 where exists (select 1 from publish.commits c where c.repository = %(repository)s)
returning repository;

-- name: quota
-- What is left today of each key's requests, by the upstream's own day, and of the Hub's hour and five minutes.
select h.host_group || ', key ' || u.key_fingerprint as what, u.used, h.quota::bigint as allowed
  from collect.key_usage u join collect.host_groups h on h.host_group = u.host_group
 where h.quota is not null and u.usage_date = (collect.clock() at time zone h.quota_zone)::date
union all
select 'Hub, commits in an hour', count(*), %(commits)s
  from publish.requests r where r.kind = 'commit' and r.at > collect.clock() - interval '1 hour'
union all
select 'Hub, requests in five minutes', count(*), %(requests)s
  from publish.requests r where r.kind = 'request' and r.at > collect.clock() - interval '5 minutes'
order by 1;

-- name: quiet
-- Streams whose windows end well and bring nothing: none of the last days with a good window had a new or changed row, where
-- nearly all of the twenty before had some.
with days as (
    select c.stream, c.run_date, sum(c.new_count + c.changed_count) as news,
           row_number() over (partition by c.stream order by c.run_date desc) as back
      from collect.cycles c
     where c.stream = any(%(streams)s) and c.window_start is not null and c.cycle_status in ('SUCCESS', 'BUDGET_EXHAUSTED')
       and c.success_reason is distinct from 'nothing_due' and c.run_date > (collect.clock() at time zone 'Asia/Seoul')::date - 60
     group by c.stream, c.run_date
)
select d.stream, min(d.run_date) filter (where d.back <= %(days)s) as since,
       max(d.run_date) filter (where d.back > %(days)s and d.news > 0) as last
  from days d where d.back <= %(days)s + 20
 group by d.stream
having count(*) filter (where d.back > %(days)s) = 20 and sum(d.news) filter (where d.back <= %(days)s) = 0
   and count(*) filter (where d.back > %(days)s and d.news > 0) >= 18
 order by d.stream;
