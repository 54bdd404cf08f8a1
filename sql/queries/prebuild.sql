-- name: versions
-- How often what is known of each company changed, over the tables that a release is made from.
select s.partition as company, sum(s.version)::bigint as version
  from publish.stale s
 where s.table_name = any(%(marks)s)
 group by s.partition
 order by s.partition collate "C";

-- name: pieces
-- What was built of each company before.
select company, version, shape, sha256, row_group, rows, digest, newest_fetch
  from publish.pieces
 where release = %(release)s and part = %(part)s;

-- name: keep_pieces
-- Keep what was built of some companies.
insert into publish.pieces (release, part, company, version, shape, sha256, row_group, rows, digest, newest_fetch, built_at)
select %(release)s, %(part)s, n.company, n.version, %(shape)s, decode(n.sha256, 'hex'), n.row_group, n.rows, decode(n.digest, 'hex'),
       n.newest_fetch, t
  from jsonb_to_recordset(%(pieces)s) as n (company text, version bigint, sha256 text, row_group integer, rows bigint, digest text,
                                            newest_fetch bigint), collect.clock() t
on conflict (release, part, company) do update
   set version = excluded.version, shape = excluded.shape, sha256 = excluded.sha256, row_group = excluded.row_group,
       rows = excluded.rows, digest = excluded.digest, newest_fetch = excluded.newest_fetch, built_at = excluded.built_at;

-- name: used
-- The files of pieces that are still needed.
select distinct sha256 from publish.pieces where release = %(release)s and sha256 is not null;

-- name: kinds
-- The types of report items that are held, each with all fields that its rows have.
select i.endpoint, array_agg(distinct f.name order by f.name) as fields
  from filings.dart_report_items i cross join lateral jsonb_object_keys(i.item_values) as f (name)
 group by i.endpoint
 order by i.endpoint;

-- name: unready
-- Streams whose newest window is not over, or failed.
select n.stream, n.cycle_status, coalesce(n.failure_cause_summary, n.failure_reason, 'without a word') as failure_reason
  from (select distinct on (c.stream) c.stream, c.cycle_status, c.failure_reason, c.failure_cause_summary
          from collect.cycles c
         where c.stream = any(%(streams)s) and c.window_start is not null and c.cycle_status <> 'NOT_STARTED'
         order by c.stream, c.window_start desc) n
 where n.cycle_status in ('FAILED', 'PENDING', 'RUNNING')
 order by n.cycle_status, n.stream;
