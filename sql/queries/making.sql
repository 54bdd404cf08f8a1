-- name: due
-- Units whose file is not made of the newest bytes that are held, or by an older parser, or that are gone; the largest first.
select m.unit, case when m.gone_at is null then m.size else 0 end as size
  from collect.archive_members m
  left join collect.made_files f on f.stream = %(stream)s and f.unit = m.unit
 where m.stream = %(of)s and m.sha256 is not null
   and case when m.gone_at is not null then f.source_sha256 is not null
            else f.unit is null or f.source_sha256 is null or f.parser_version < %(parser_version)s
                 or (f.source_sha256 <> m.sha256 and m.fetch_id > coalesce(f.source_fetch, 0)) end
 order by 2 desc, 1;

-- name: held
-- Units that are held, the largest first.
select m.unit from collect.archive_members m
 where m.stream = %(of)s and m.sha256 is not null
 order by m.size desc, m.unit;

-- name: sources
-- Of some units: the newest bytes that are held, and what their file was made of.
select u.unit, case when m.gone_at is null then n.fetch_id end as fetch_id, case when m.gone_at is null then n.sha256 end as sha256,
       n.session_date, f.source_sha256, f.parser_version, f.sha256 as made_sha256
  from unnest(%(units)s::text[]) with ordinality as u (unit, place)
  left join collect.archive_members m on m.stream = %(of)s and m.unit = u.unit
  left join lateral (select x.fetch_id, x.sha256, x.session_date from collect.fetches x
                      where x.stream = %(of)s and x.unit = u.unit and x.answer_class = 'data' and x.sha256 is not null
                      order by x.fetch_id desc limit 1) n on true
  left join collect.made_files f on f.stream = %(stream)s and f.unit = u.unit
 order by u.place;

-- name: files_of
-- The files that a stream has made, in the order of their units.
select f.unit, f.path, f.size, f.sha256, f.source_fetch from collect.made_files f
 where f.stream = %(of)s and f.sha256 is not null
 order by f.unit collate "C";

-- name: gathered
-- What one file of many was last made of.
select f.source_sha256, f.parser_version, f.sha256 from collect.made_files f where f.stream = %(stream)s and f.unit = %(unit)s;

-- name: made
-- Files that were made, or made again.
insert into collect.made_files (stream, unit, path, source_fetch, source_sha256, parser_version, rows, size, sha256, cycle_id, attempt, made_at)
select %(stream)s, g.unit, g.path, g.fetch_id, g.source, %(parser_version)s, g.rows, g.size, g.sha256, %(cycle)s, %(attempt)s, collect.clock()
  from unnest(%(units)s::text[], %(paths)s::text[], %(fetches)s::bigint[], %(sources)s::bytea[], %(rows)s::bigint[],
              %(sizes)s::bigint[], %(hashes)s::bytea[]) as g (unit, path, fetch_id, source, rows, size, sha256)
on conflict (stream, unit) do update
   set path = excluded.path, source_fetch = excluded.source_fetch, source_sha256 = excluded.source_sha256,
       parser_version = excluded.parser_version, rows = excluded.rows, size = excluded.size, sha256 = excluded.sha256, refused = null,
       cycle_id = excluded.cycle_id, attempt = excluded.attempt, made_at = excluded.made_at;

-- name: refused
-- A unit whose newest bytes could not be read; its file stays as it was.
insert into collect.made_files (stream, unit, path, source_fetch, source_sha256, parser_version, refused, cycle_id, attempt, made_at)
values (%(stream)s, %(unit)s, %(path)s, %(fetch)s, %(source)s, %(parser_version)s, %(refused)s, %(cycle)s, %(attempt)s, collect.clock())
on conflict (stream, unit) do update
   set source_fetch = excluded.source_fetch, source_sha256 = excluded.source_sha256, parser_version = excluded.parser_version,
       refused = excluded.refused, cycle_id = excluded.cycle_id, attempt = excluded.attempt, made_at = excluded.made_at;

-- name: open_runs
-- Runs that windows of a stream have cut their work into and that are not over, oldest first.
select r.run_id from collect.job_runs r
 where r.streams = array[%(stream)s::text] and r.requested_by = %(who)s and r.outcome is null
 order by r.created_at;

-- name: refused_in
-- How many units of a run could not be read.
select count(*) as units, min(q.unit) as first_unit, min(q.reason) as reason
  from collect.quarantine q join collect.cycles c on c.cycle_id = q.cycle_id
 where c.run_id = any(%(runs)s) and q.scope = 'unit' and q.state = 'open';
