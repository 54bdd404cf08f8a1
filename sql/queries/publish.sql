-- name: stale
-- Parts of a release that changed since its newest file was built, newest part first.
select s.partition
  from publish.stale s
  left join publish.built b on b.release = %(release)s and b.partition = s.partition
 where s.table_name = any(%(tables)s)
 group by s.partition, b.version
having sum(s.version) > coalesce(b.version, 0)
 order by s.partition desc;

-- name: stale_whole
-- The one part of a release that is not divided, where any part of its tables changed since its newest file was built.
select 'all' as partition
 where (select sum(s.version) from publish.stale s where s.table_name = any(%(tables)s))
     > coalesce((select b.version from publish.built b where b.release = %(release)s and b.partition = 'all'), 0);

-- name: version
-- The version of a part, read in the same snapshot as its rows; of all parts together where it is `all`.
select coalesce(sum(version), 0)::bigint as version
  from publish.stale
 where table_name = any(%(tables)s) and (partition = %(partition)s or %(partition)s = 'all');

-- name: text_form
-- The form of dates and times that exported rows are written in, whatever the server is set to.
select set_config('datestyle', 'ISO, YMD', true), set_config('intervalstyle', 'iso_8601', true),
       set_config('timezone', 'UTC', true);

-- name: newest
-- What the newest file of a path holds: published, waiting or held by a check.
select content_hash
  from publish.files
 where release = %(release)s and path = %(path)s and state in ('waiting', 'published', 'held')
 order by file_id desc
 limit 1;

-- name: built
-- Note the version that a part was built from; no row where somebody built it from this version or a later one.
insert into publish.built (release, partition, tables, version, built_at)
values (%(release)s, %(partition)s, %(tables)s, %(version)s, collect.clock())
on conflict (release, partition) do update
   set tables = excluded.tables, version = excluded.version, built_at = excluded.built_at
 where built.version < excluded.version
returning version;

-- name: alone
-- Nobody else puts a file into the queue until the end of this transaction.
select pg_advisory_xact_lock(9009, 3);

-- name: replace
-- Take an unsent file out of the queue, in favour of a newer one; one that a check held is out of date as well.
update publish.files
   set state = 'replaced', reason = 'a newer file took its place', updated_at = collect.clock()
 where release = %(release)s and path = %(path)s and state in ('waiting', 'held');

-- name: put
-- Put a file that is safely in the outbox into the queue.
insert into publish.files (release, partition, path, content_hash, sha256, size, rows, newest_fetch, first_session,
                           last_session, source_run, state, created_at, updated_at)
select %(release)s, %(partition)s, %(path)s, %(content_hash)s, %(sha256)s, %(size)s, %(rows)s, %(newest_fetch)s,
       %(first_session)s, %(last_session)s, %(source_run)s, 'waiting', t, t
  from collect.clock() t
returning file_id;

-- name: waiting
-- How many files of each release wait.
select release, count(*) as files, min(file_id) as first_file, max(file_id) as last_file
  from publish.files
 where state = 'waiting'
 group by release
 order by min(file_id);

-- name: batch
-- The next waiting files of a release, oldest first.
select file_id, release, partition, path, sha256, content_hash, size, rows, first_session, last_session, source_run, let_by
  from publish.files
 where state = 'waiting' and release = %(release)s and file_id > %(after)s
 order by file_id
 limit %(limit)s;

-- name: claim
-- Claim a lease.
select token, holder, until, put_off_until, put_off_reason
  from publish.claim(%(name)s, %(owner)s, %(ttl)s);

-- name: renew
-- Prolong a lease.
select publish.renew(%(name)s, %(token)s, %(ttl)s) as until;

-- name: guard
-- Prove a lease, first of all in a transaction that writes under it.
select publish.guard(%(name)s, %(token)s) as at;

-- name: give_back
-- End a lease of one's own, and learn until when it is put off.
select publish.give_back(%(name)s, %(token)s, %(rest)s, %(reason)s) as put_off_until;

-- name: spend
-- Enter requests and commits in the ledger, or learn how long to wait.
select extract(epoch from publish.spend(%(repository)s, %(requests)s, %(commits)s, %(request_limit)s,
                                        %(commit_limit)s, %(request_window)s, %(commit_window)s))::float8 as wait;

-- name: open_commits
-- Commits of which nobody knows yet whether the Hub has them, oldest first.
select commit_id, release
  from publish.commits
 where repository = %(repository)s and state in ('sending', 'unknown')
 order by commit_id;

-- name: files_of
-- The files of a commit that are not known to be published, and those that were replaced meanwhile.
select file_id, release, partition, path, sha256, content_hash, size, rows, first_session, last_session, source_run
  from publish.files
 where commit_id = %(commit)s and state in ('waiting', 'replaced')
 order by file_id;

-- name: open_commit
-- Write down a commit before it is sent.
insert into publish.commits (release, repository, files, bytes, state, created_by, created_at)
values (%(release)s, %(repository)s, %(files)s, %(bytes)s, 'sending', %(owner)s, collect.clock())
returning commit_id;

-- name: join_commit
-- Note on files which commit may contain them, and return those that still wait.
update publish.files
   set commit_id = %(commit)s, updated_at = collect.clock()
 where file_id = any(%(files)s) and state = 'waiting'
returning file_id;

-- name: doubt_commit
-- Note why the last try of a commit did not come to a good end.
update publish.commits
   set state = %(state)s, error = left(%(error)s, 1000)
 where commit_id = %(commit)s;

-- name: retry_commit
-- One try more.
update publish.commits
   set state = 'sending', attempts = attempts + 1
 where commit_id = %(commit)s;

-- name: publish_files
-- Files whose hash is known to be in a commit: a file that was replaced while it was sent is published all the same.
update publish.files
   set state = 'published', reason = null, commit_id = %(commit)s, updated_at = collect.clock()
 where file_id = any(%(files)s) and state in ('waiting', 'replaced');

-- name: confirm_commit
-- The Hub has it.
update publish.commits
   set state = 'confirmed', commit_oid = %(oid)s, commit_url = %(url)s, error = null, confirmed_at = collect.clock()
 where commit_id = %(commit)s;

-- name: refuse_file
-- A file that cannot be sent: why.
update publish.files
   set state = 'refused', reason = left(%(reason)s, 1000), updated_at = collect.clock()
 where file_id = %(file)s and state = 'waiting';

-- name: build_again
-- Make a part stale once more, so that the next build makes its file anew; files over all companies are built together.
update publish.built
   set version = 0
 where release = %(release)s and partition in (%(partition)s, 'all');

-- name: last_published
-- The last published file of each path, beside which a new one is held.
select distinct on (f.path) f.path, f.rows, f.size, f.columns, f.sessions, f.sha256
  from publish.files f
 where f.release = %(release)s and f.path = any(%(paths)s) and f.state = 'published'
 order by f.path, f.file_id desc;

-- name: unbuilt
-- Parts of a release that changed and that no file was ever made of.
select s.partition
  from publish.stale s
 where s.table_name = any(%(tables)s) and %(by_part)s
   and not exists (select from publish.built b where b.release = %(release)s and b.partition = s.partition)
 order by s.partition;

-- name: folders
-- How many published files each folder holds.
select regexp_replace(p.path, '/?[^/]*$', '') as folder, count(*) as files
  from (select distinct f.path from publish.files f where f.state = 'published') p
 group by 1;

-- name: note_facts
-- What the bytes of files hold, as the gate read them.
update publish.files f
   set columns = n.columns, sessions = n.sessions
  from jsonb_to_recordset(%(facts)s) as n (file_id bigint, columns jsonb, sessions date[])
 where f.file_id = n.file_id;

-- name: note_checks
-- What was looked at, and what came of it.
insert into publish.checks (file_id, name, passed, blocks, numbers, words, at)
select n.file_id, n.name, n.passed, n.blocks, n.numbers, n.words, t
  from jsonb_to_recordset(%(checks)s) as n (file_id bigint, name text, passed boolean, blocks boolean, numbers jsonb, words text),
       collect.clock() t
on conflict (file_id, name) do update
   set passed = excluded.passed, blocks = excluded.blocks, numbers = excluded.numbers, words = excluded.words, at = excluded.at;

-- name: hold_file
-- A check holds a file; it stays in the outbox with the reason.
update publish.files
   set state = 'held', reason = left(%(reason)s, 1000), updated_at = collect.clock()
 where file_id = %(file)s and state = 'waiting';

-- name: held
-- Files that a check holds, oldest first.
select file_id, release, path, rows, size, reason, source_run, updated_at
  from publish.files
 where state = 'held' and (%(release)s::text is null or release = %(release)s)
 order by file_id;

-- name: held_of
-- The held files that are meant by a number or path, and those that go in one commit with it.
select file_id
  from publish.files
 where state = 'held'
   and (%(name)s in (path, file_id::text)
        or release = any(%(together)s)
           and release in (select h.release from publish.files h where h.state = 'held' and %(name)s in (h.path, h.file_id::text)));

-- name: make_way
-- What waits in the place of a held file, as the Hub had lost it, goes no more where the held one is to go.
update publish.files w
   set state = 'replaced', reason = 'a newer file took its place', updated_at = collect.clock()
 where w.state = 'waiting'
   and exists (select from publish.files h
                where h.file_id = any(%(files)s) and h.release = w.release and h.path = w.path);

-- name: judge_again
-- Held files wait once more, to be judged together with those that are new.
update publish.files set state = 'waiting', reason = null, updated_at = collect.clock() where file_id = any(%(files)s);

-- name: let_pass
-- Somebody lets held files pass.
update publish.files
   set state = 'waiting', let_by = %(who)s, let_why = %(why)s, let_at = collect.clock(), updated_at = collect.clock()
 where file_id = any(%(files)s)
returning file_id, release, path, reason;

-- name: manifest
-- The published files of a release, the newest of each path.
select distinct on (f.path) f.path, f.rows, f.size, f.sha256, f.content_hash, f.first_session, f.last_session, f.source_run
  from publish.files f
 where f.release = %(release)s and f.state = 'published'
 order by f.path, f.file_id desc;

-- name: sent_texts
-- Card and manifests as the Hub has them.
select path, sha256 from publish.texts where repository = %(repository)s and path = any(%(paths)s);

-- name: note_text
-- The Hub has a text.
insert into publish.texts (repository, path, sha256, git_name, commit_id, sent_at)
values (%(repository)s, %(path)s, %(sha256)s, %(git_name)s, %(commit)s, collect.clock())
on conflict (repository, path) do update
   set sha256 = excluded.sha256, git_name = excluded.git_name, commit_id = excluded.commit_id, sent_at = excluded.sent_at;

-- name: known_head
-- The newest commit at which a repository is known to hold what is published, and whether a head that the Hub shows is an
-- older one of ours, so shortly after that the Hub may not have caught up.
select h.commit_oid,
       h.at > collect.clock() - interval '10 minutes'
       and exists (select from publish.commits c
                    where c.repository = h.repository and c.commit_oid = %(head)s and c.confirmed_at <= h.at) as lags
  from publish.heads h
 where h.repository = %(repository)s;

-- name: note_head
-- At this commit it does.
insert into publish.heads (repository, commit_oid, at) values (%(repository)s, %(oid)s, collect.clock())
on conflict (repository) do update set commit_oid = excluded.commit_oid, at = excluded.at;

-- name: promised
-- The newest file of each part of some releases, where it is published.
select n.file_id, n.release, n.path, n.sha256
  from (select distinct on (f.release, f.partition) f.file_id, f.release, f.path, f.sha256, f.state
          from publish.files f
         where f.release = any(%(releases)s) and f.state in ('published', 'waiting')
         order by f.release, f.partition, f.file_id desc) n
 where n.state = 'published';

-- name: texts_of
-- Card and manifests as the Hub is thought to have them.
select path, git_name from publish.texts where repository = %(repository)s;

-- name: forget_text
-- The Hub has it no more, or has another one.
delete from publish.texts where repository = %(repository)s and path = any(%(paths)s);

-- name: send_again
-- Published files that the Hub has no more, or has other bytes of, wait once more; where nothing newer does already.
update publish.files f
   set state = 'waiting', reason = 'the Hub has it no more', updated_at = collect.clock()
 where f.file_id = any(%(files)s) and f.state = 'published'
   and not exists (select from publish.files w where w.release = f.release and w.path = f.path and w.state = 'waiting')
returning path;

-- name: releases_held
-- Releases of which some file was published.
select distinct release from publish.files where state = 'published';

-- name: made
-- Files that a stream has made and that differ from the newest of their path; an empty one only where something was there.
select m.path, m.sha256, m.size, m.rows, m.source_fetch
  from collect.made_files m
  left join lateral (select f.sha256 from publish.files f
                      where f.release = %(release)s and f.path = m.path and f.state in ('waiting', 'published', 'held')
                      order by f.file_id desc limit 1) n on true
 where m.stream = %(stream)s and m.sha256 is not null and m.path > %(after)s
   and m.sha256 is distinct from n.sha256 and (m.rows > 0 or n.sha256 is not null)
 order by m.path
 limit %(limit)s;
