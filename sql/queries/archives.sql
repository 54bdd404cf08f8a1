-- name: known
-- An archive as last taken in, and the time.
select a.*, collect.clock() as now from (select 1) one
  left join collect.archives a on a.stream = %(stream)s and a.archive = %(archive)s;

-- name: held
-- What is held of the members of an archive, with what was refused.
select unit, name, crc32, size, sha256, refused, gone_at is not null as is_gone from collect.archive_members
 where stream = %(stream)s and archive = %(archive)s;

-- name: checked
-- The upstream says that an archive is still the one that was taken in.
update collect.archives set checked_at = collect.clock() where stream = %(stream)s and archive = %(archive)s;

-- name: objects
-- Bytes that were stored; equal bytes share an object.
insert into collect.raw_objects (sha256, size, stored_size, created_at)
select distinct on (o.sha256) o.sha256, o.size, o.stored_size, collect.clock()
  from unnest(%(hashes)s::bytea[], %(sizes)s::bigint[], %(stored_sizes)s::bigint[]) as o (sha256, size, stored_size)
on conflict do nothing;

-- name: keep
-- Members that were kept: an answer each, which nobody has to read before it counts, and the newest state of the member.
with given as (
    select * from unnest(%(units)s::text[], %(names)s::text[], %(crcs)s::bigint[], %(sizes)s::bigint[], %(hashes)s::bytea[])
        as g (unit, name, crc32, size, sha256)
), written as (
    insert into collect.fetches (stream, cycle_id, attempt, request_key, unit, session_date, sent_at, received_at, answer_class,
                                 http_status, sha256, size, applied_at, applied_by, parser_version, rows_read, about)
    select %(stream)s, %(cycle)s, %(attempt)s, g.unit, g.unit, %(session_date)s, %(sent_at)s, collect.clock(), 'data', 200, g.sha256, g.size,
           collect.clock(), %(cycle)s, %(parser_version)s, 0, jsonb_build_object('archive', %(archive)s::text, 'crc32', g.crc32)
      from given g
    returning fetch_id, unit
)
insert into collect.archive_members as m (stream, archive, unit, name, crc32, size, fetch_id, sha256, updated_at)
select %(stream)s, %(archive)s, g.unit, g.name, g.crc32, g.size, w.fetch_id, g.sha256, collect.clock()
  from given g join written w using (unit)
on conflict (stream, archive, unit) do update
   set name = excluded.name, crc32 = excluded.crc32, size = excluded.size, fetch_id = excluded.fetch_id, sha256 = excluded.sha256,
       refused = null, gone_at = null, updated_at = excluded.updated_at;

-- name: refuse
-- A member whose newest state could not be kept; the one before stays.
insert into collect.archive_members as m (stream, archive, unit, name, crc32, size, refused, updated_at)
values (%(stream)s, %(archive)s, %(unit)s, %(name)s, %(crc32)s, %(size)s, %(refused)s, collect.clock())
on conflict (stream, archive, unit) do update
   set name = excluded.name, crc32 = excluded.crc32, size = excluded.size, refused = excluded.refused, gone_at = null,
       updated_at = excluded.updated_at;

-- name: seen
-- Members that came back as they had been.
update collect.archive_members set gone_at = null, updated_at = collect.clock()
 where stream = %(stream)s and archive = %(archive)s and unit = any(%(units)s) and gone_at is not null;

-- name: gone
-- Members that the newest archive lacks.
update collect.archive_members set gone_at = collect.clock(), updated_at = collect.clock()
 where stream = %(stream)s and archive = %(archive)s and unit = any(%(units)s) and gone_at is null;

-- name: taken
-- An archive that was taken in whole.
insert into collect.archives as a (stream, archive, etag, last_modified, length, members, fetch_id, taken_at, checked_at, verified_at)
values (%(stream)s, %(archive)s, %(etag)s, %(last_modified)s, %(length)s, %(members)s, %(fetch)s, collect.clock(), collect.clock(),
        case when %(verified)s then collect.clock() end)
on conflict (stream, archive) do update
   set etag = excluded.etag, last_modified = excluded.last_modified, length = excluded.length, members = excluded.members,
       fetch_id = excluded.fetch_id, taken_at = excluded.taken_at, checked_at = excluded.checked_at,
       verified_at = coalesce(excluded.verified_at, a.verified_at);

-- name: guard
-- The proof that a cycle is still worked by this claim, which a write commits with; no row where it is not.
select cycle_id from collect.cycles
 where cycle_id = %(cycle)s and attempt = %(attempt)s and cycle_status = 'RUNNING' and lease_until > collect.clock()
   for no key update;
