-- 0003 publish: files to be published, and the ledger of commits. Expand-only.
-- Roll-back note: publication records are kept without end; nothing here is ever dropped.

create table publish.files (
    file_id        bigint generated always as identity primary key,
    release        text not null,
    partition      text not null,
    path           text not null,
    content_hash   bytea not null check (octet_length(content_hash) = 32),
    sha256         bytea not null check (octet_length(sha256) = 32),
    size           bigint not null,
    rows           bigint not null,
    newest_fetch   bigint,
    first_session  date,
    last_session   date,
    source_run     text not null,
    state          text not null default 'waiting'
                   check (state in ('waiting', 'published', 'replaced', 'refused', 'held')),
    reason         text,
    commit_id      bigint,
    columns        jsonb,
    sessions       date[],
    let_by         text,
    let_why        text,
    let_at         timestamptz(6),
    created_at     timestamptz(6) not null,
    updated_at     timestamptz(6) not null
);
comment on table publish.files is 'Outbox of parquet files: each stays until a commit that contains its hash is confirmed';
comment on column publish.files.file_id is 'Number';
comment on column publish.files.release is 'Release that it belongs to';
comment on column publish.files.partition is 'Part of the release that it holds: a month as YYYY-MM, or all';
comment on column publish.files.path is 'Path in the repository';
comment on column publish.files.content_hash is 'SHA-256 over schema and rows: two files differ when this differs';
comment on column publish.files.sha256 is 'SHA-256 of the bytes, and the file''s name in the outbox';
comment on column publish.files.size is 'Bytes';
comment on column publish.files.rows is 'Rows';
comment on column publish.files.newest_fetch is 'Newest fetch that it contains';
comment on column publish.files.first_session is 'First session date in it';
comment on column publish.files.last_session is 'Last session date in it';
comment on column publish.files.source_run is 'Run that produced it';
comment on column publish.files.state is 'waiting, published, replaced by a newer one before it was sent, refused as its bytes are gone, or held by a check';
comment on column publish.files.reason is 'Why it was held, refused or replaced';
comment on column publish.files.commit_id is 'Commit that contains it; of a waiting file, the commit that may contain it';
comment on column publish.files.columns is 'Its columns with their types, as the check before the commit read them from the bytes';
comment on column publish.files.sessions is 'The session dates in it, where it is one month; read the same way';
comment on column publish.files.let_by is 'Who let it pass although a check held it';
comment on column publish.files.let_why is 'Why';
comment on column publish.files.let_at is 'When';
comment on column publish.files.created_at is 'When it was written';
comment on column publish.files.updated_at is 'Last change of state';
alter table publish.files add constraint files_let_as_a_whole
    check ((let_by is null) = (let_why is null) and (let_by is null) = (let_at is null));
create unique index files_one_waiting on publish.files (release, path) where state = 'waiting';
create index files_by_path on publish.files (release, path, file_id desc);
create index files_by_commit on publish.files (commit_id) where commit_id is not null;
create index files_held on publish.files (release, path) where state = 'held';

create table publish.checks (
    file_id  bigint not null,
    name     text not null,
    passed   boolean not null,
    blocks   boolean not null,
    numbers  jsonb not null,
    words    text not null,
    at       timestamptz(6) not null,
    primary key (file_id, name)
);
comment on table publish.checks is 'What was looked at before a file was sent, against the last published one of its path; kept without end';
comment on column publish.checks.file_id is 'File';
comment on column publish.checks.name is 'What was looked at: missing_file, rows, size, schema, duplicate_key, dates, entries';
comment on column publish.checks.passed is 'Whether it was in order';
comment on column publish.checks.blocks is 'Whether the file is held where it was not';
comment on column publish.checks.numbers is 'What was counted';
comment on column publish.checks.words is 'The same for a person';
comment on column publish.checks.at is 'When it was last looked at';

create table publish.texts (
    repository  text not null,
    path        text not null,
    sha256      bytea not null check (octet_length(sha256) = 32),
    git_name    text not null check (git_name ~ '^[0-9a-f]{40}$'),
    commit_id   bigint not null,
    sent_at     timestamptz(6) not null,
    primary key (repository, path)
);
comment on table publish.texts is 'Card and manifests as the Hub has them: one whose bytes are the same is not sent again';
comment on column publish.texts.repository is 'Repository on the Hub';
comment on column publish.texts.path is 'Path in it';
comment on column publish.texts.sha256 is 'SHA-256 of the bytes of its confirmed version';
comment on column publish.texts.git_name is 'The same bytes as git names them, which is what the Hub lists';
comment on column publish.texts.commit_id is 'Commit that brought it';
comment on column publish.texts.sent_at is 'When that was confirmed';

create table publish.heads (
    repository  text primary key,
    commit_oid  text not null,
    at          timestamptz(6) not null
);
comment on table publish.heads is 'The newest commit of each repository at which the Hub is known to hold what is published: another one is compared';
comment on column publish.heads.repository is 'Repository on the Hub';
comment on column publish.heads.commit_oid is 'The Hub''s name of the commit';
comment on column publish.heads.at is 'When that was found, or made so by a commit of ours';

create table publish.commits (
    commit_id     bigint generated always as identity primary key,
    release       text not null,
    repository    text not null,
    commit_oid    text,
    commit_url    text,
    files         integer not null,
    bytes         bigint not null,
    state         text not null check (state in ('sending', 'confirmed', 'failed', 'unknown')),
    attempts      integer not null default 1,
    error         text,
    created_by    text not null,
    created_at    timestamptz(6) not null,
    confirmed_at  timestamptz(6)
);
comment on table publish.commits is 'Commits to the Hub, written before they are sent and confirmed after';
comment on column publish.commits.commit_id is 'Number';
comment on column publish.commits.release is 'Release';
comment on column publish.commits.repository is 'Repository on the Hub';
comment on column publish.commits.commit_oid is 'The Hub''s name of the commit';
comment on column publish.commits.commit_url is 'Address of the commit';
comment on column publish.commits.files is 'Files in it';
comment on column publish.commits.bytes is 'Bytes in it';
comment on column publish.commits.state is 'sending, confirmed, failed, or unknown where the answer was lost';
comment on column publish.commits.attempts is 'Tries';
comment on column publish.commits.error is 'Why the last try failed';
comment on column publish.commits.created_by is 'Run that sent it';
comment on column publish.commits.created_at is 'When it was first sent';
comment on column publish.commits.confirmed_at is 'When the Hub confirmed it';
create index commits_open on publish.commits (repository, commit_id) where state in ('sending', 'unknown');

create table publish.squashes (
    repository  text not null,
    at          timestamptz(6) not null,
    who         text not null check (who ~ '\S'),
    primary key (repository, at)
);
comment on table publish.squashes is 'Repositories whose history somebody squashed on the Hub; commits are counted from the last time on';
comment on column publish.squashes.repository is 'Repository';
comment on column publish.squashes.at is 'When somebody said so';
comment on column publish.squashes.who is 'Who';

create view publish.repositories as
    select c.repository, count(*) filter (where c.confirmed_at > coalesce(q.at, '-infinity')) as commits
      from publish.commits c
      left join (select s.repository, max(s.at) as at from publish.squashes s group by s.repository) q
             on q.repository = c.repository
     where c.state = 'confirmed'
     group by c.repository;
comment on view publish.repositories is
    'How many commits of ours each repository holds since its last squash: past 3,000 its history is slow, and it is to be squashed';

create table publish.leases (
    name            text primary key,
    lease_token     uuid,
    lease_owner     text,
    lease_until     timestamptz(6),
    put_off_until   timestamptz(6),
    put_off_reason  text,
    updated_at      timestamptz(6) not null
);
comment on table publish.leases is 'Who may push to the Hub, or drain an outbox, right now';
comment on column publish.leases.name is 'What is leased';
comment on column publish.leases.lease_token is 'Proof of the right';
comment on column publish.leases.lease_owner is 'Who holds it';
comment on column publish.leases.lease_until is 'When it ends';
comment on column publish.leases.put_off_until is 'Not to be claimed before this instant: the other side asked for a rest';
comment on column publish.leases.put_off_reason is 'What it said';
comment on column publish.leases.updated_at is 'Last change';

create table publish.requests (
    request_id   bigint generated always as identity primary key,
    kind         text not null check (kind in ('request', 'commit')),
    repository   text not null,
    at           timestamptz(6) not null
);
comment on table publish.requests is 'Ledger of requests and commits to the Hub, over all processes';
comment on column publish.requests.request_id is 'Number';
comment on column publish.requests.kind is 'A request, or a commit';
comment on column publish.requests.repository is 'Repository';
comment on column publish.requests.at is 'When it was sent';
create index requests_recent on publish.requests (kind, at);

create table publish.stale (
    table_name  text not null,
    partition   text not null,
    version     bigint not null default 1,
    marked_at   timestamptz(6) not null,
    primary key (table_name, partition)
);
comment on table publish.stale is 'Parts of tables and how often they changed; counted in the transaction that changes them, never removed';
comment on column publish.stale.table_name is 'Table, schema.name';
comment on column publish.stale.partition is 'Part of it: a month as YYYY-MM, or all';
comment on column publish.stale.version is 'Grows by one with every change';
comment on column publish.stale.marked_at is 'Last change';

create table publish.built (
    release     text not null,
    partition   text not null,
    tables      text[] not null,
    version     bigint not null,
    built_at    timestamptz(6) not null,
    primary key (release, partition)
);
comment on table publish.built is 'Up to which version of a part each release was built; behind publish.stale means stale';
comment on column publish.built.release is 'Release';
comment on column publish.built.partition is 'Part of its table';
comment on column publish.built.tables is 'Tables that it is made from, schema.name';
comment on column publish.built.version is 'Version of the part that its newest file was built from; 0 where it must be built again';
comment on column publish.built.built_at is 'When';

create table publish.pieces (
    release       text not null,
    part          text not null,
    company       text not null,
    version       bigint not null,
    shape         bytea not null,
    sha256        bytea check (octet_length(sha256) = 32),
    row_group     integer not null,
    rows          bigint not null,
    digest        bytea not null check (octet_length(digest) = 32),
    newest_fetch  bigint,
    built_at      timestamptz(6) not null,
    primary key (release, part, company)
);
comment on table publish.pieces is 'What was built of each company for files over all of them, so that only what changed is read again; made anew where it is lost';
comment on column publish.pieces.release is 'Release';
comment on column publish.pieces.part is 'Part of it';
comment on column publish.pieces.company is 'Company';
comment on column publish.pieces.version is 'Version of what is known of the company that it was built from; behind publish.stale means out of date';
comment on column publish.pieces.shape is 'Fingerprint of the columns that it was built with';
comment on column publish.pieces.sha256 is 'File beside the outbox that holds it; null where the company has no rows';
comment on column publish.pieces.row_group is 'Row group of that file';
comment on column publish.pieces.rows is 'Rows';
comment on column publish.pieces.digest is 'SHA-256 of its rows as the database writes them';
comment on column publish.pieces.newest_fetch is 'Newest fetch that it contains';
comment on column publish.pieces.built_at is 'When';

create view publish.behind as
    select s.table_name, s.partition, s.version, s.marked_at
      from publish.stale s
     where not exists (select from publish.built b
                        where s.table_name = any(b.tables) and b.partition = s.partition
                          and b.version >= (select sum(t.version) from publish.stale t
                                             where t.table_name = any(b.tables) and t.partition = s.partition))
       -- A release that is not divided is built from all parts of its tables together.
       and not exists (select from publish.built b
                        where s.table_name = any(b.tables) and b.partition = 'all'
                          and b.version >= (select sum(t.version) from publish.stale t where t.table_name = any(b.tables)))
       -- A table whose files are by company is behind by company: nothing is built from its months.
       and not exists (select from publish.stale t where t.table_name = s.table_name || ':company');
comment on view publish.behind is 'Parts of tables that changed and that no release was built from since';

-- Functions lock in one statement and read the clock in the next, so that a wait for the lock cannot make a lease
-- that ended look alive.

create function publish.claim(p_name text, p_owner text, p_ttl interval, out token uuid, out holder text,
                              out until timestamptz, out put_off_until timestamptz, out put_off_reason text)
language plpgsql volatile set search_path = publish, pg_temp as $$
declare v publish.leases; t timestamptz;
begin
    insert into publish.leases (name, updated_at) values (p_name, collect.clock()) on conflict do nothing;
    select * into v from publish.leases l where l.name = p_name for no key update;
    t := collect.clock();
    if v.lease_until > t then
        holder := v.lease_owner;
        until := v.lease_until;
    elsif v.put_off_until > t then
        put_off_until := v.put_off_until;
        put_off_reason := v.put_off_reason;
    else
        token := gen_random_uuid();
        holder := p_owner;
        until := t + p_ttl;
        update publish.leases l
           set lease_token = token, lease_owner = p_owner, lease_until = until, put_off_until = null,
               put_off_reason = null, updated_at = t
         where l.name = p_name;
    end if;
end $$;
comment on function publish.claim(text, text, interval) is
    'Claim a lease: a new token; without one, who holds it until when, or until when it is put off and why';

create function publish.guard(p_name text, p_token uuid) returns timestamptz
language plpgsql volatile set search_path = publish, pg_temp as $$
declare v publish.leases; t timestamptz;
begin
    select * into v from publish.leases l where l.name = p_name for no key update;
    t := collect.clock();
    if v.lease_token is distinct from p_token or v.lease_until <= t then
        raise exception using errcode = 'DBL01', message = format('the lease %s is over; nothing is written', p_name);
    end if;
    return t;
end $$;
comment on function publish.guard(text, uuid) is
    'The proof of a lease that a write commits with: locks it, gives the clock, raises DBL01 where it is over';

create function publish.renew(p_name text, p_token uuid, p_ttl interval) returns timestamptz
language plpgsql volatile set search_path = publish, pg_temp as $$
declare t timestamptz := publish.guard(p_name, p_token);
begin
    update publish.leases set lease_until = t + p_ttl, updated_at = t where name = p_name;
    return t + p_ttl;
end $$;
comment on function publish.renew(text, uuid, interval) is 'Prolong a lease; raises DBL01 where it is over';

create function publish.give_back(p_name text, p_token uuid, p_rest interval, p_reason text) returns timestamptz
language plpgsql volatile set search_path = publish, pg_temp as $$
declare t timestamptz := publish.guard(p_name, p_token);
begin
    update publish.leases
       set lease_token = null, lease_owner = null, lease_until = null, put_off_until = t + p_rest,
           put_off_reason = left(p_reason, 1000), updated_at = t
     where name = p_name;
    return t + p_rest;
end $$;
comment on function publish.give_back(text, uuid, interval, text) is
    'End a lease of one''s own; with a rest, nobody claims it before that is over; raises DBL01 where it is over already';

create function publish.spend(p_repository text, p_requests integer, p_commits integer, p_request_limit integer,
                              p_commit_limit integer, p_request_window interval, p_commit_window interval)
returns interval language plpgsql volatile set search_path = publish, pg_temp as $$
declare t timestamptz; v_wait interval := interval '0'; v_oldest timestamptz;
begin
    -- One at a time over all processes: what is counted here must be what was spent.
    perform pg_advisory_xact_lock(9009, 2);
    t := collect.clock();
    if p_requests > 0 then
        select r.at into v_oldest from publish.requests r
         where r.kind = 'request' and r.at > t - p_request_window
         order by r.at desc offset greatest(p_request_limit - p_requests, 0) limit 1;
        if found then v_wait := greatest(v_wait, v_oldest + p_request_window - t); end if;
    end if;
    if p_commits > 0 then
        select r.at into v_oldest from publish.requests r
         where r.kind = 'commit' and r.at > t - p_commit_window
         order by r.at desc offset greatest(p_commit_limit - p_commits, 0) limit 1;
        if found then v_wait := greatest(v_wait, v_oldest + p_commit_window - t); end if;
    end if;
    if v_wait = interval '0' then
        insert into publish.requests (kind, repository, at)
        select 'request', p_repository, t from generate_series(1, p_requests)
        union all
        select 'commit', p_repository, t from generate_series(1, p_commits);
    end if;
    return v_wait;
end $$;
comment on function publish.spend(text, integer, integer, integer, integer, interval, interval) is
    'Enter requests and commits in the ledger before they are sent; where a limit is reached, enter nothing and say how long to wait';

create function publish.mark_companies() returns trigger language plpgsql volatile set search_path = publish, pg_temp as $$
begin
    insert into publish.stale as p (table_name, partition, marked_at)
    select format('%s.%s:company', tg_table_schema, tg_table_name), c.corp_code, collect.clock()
      from (select distinct n.corp_code from changed n) c
     order by c.corp_code
    on conflict (table_name, partition) do update set version = p.version + 1, marked_at = excluded.marked_at;
    return null;
end $$;
comment on function publish.mark_companies() is
    'Trigger of a statement whose changed rows have a corp_code: these companies changed, for files that are made by company';
