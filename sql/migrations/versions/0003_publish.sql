-- 0003 publish: files to be published, and the ledger of commits. Expand-only.
-- Roll-back note: publication records are kept without end; nothing here is ever dropped.

create table publish.files (
    file_id        bigint generated always as identity primary key,
    release        text not null,
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
                   check (state in ('waiting', 'published', 'replaced', 'refused')),
    reason         text,
    commit_id      bigint,
    created_at     timestamptz(6) not null,
    updated_at     timestamptz(6) not null
);
comment on table publish.files is 'Outbox of parquet files: each stays until a commit that contains its hash is confirmed';
comment on column publish.files.file_id is 'Number';
comment on column publish.files.release is 'Release that it belongs to';
comment on column publish.files.path is 'Path in the repository';
comment on column publish.files.content_hash is 'SHA-256 over schema and rows: two files differ when this differs';
comment on column publish.files.sha256 is 'SHA-256 of the bytes, and the file''s name in the outbox';
comment on column publish.files.size is 'Bytes';
comment on column publish.files.rows is 'Rows';
comment on column publish.files.newest_fetch is 'Newest fetch that it contains';
comment on column publish.files.first_session is 'First session date in it';
comment on column publish.files.last_session is 'Last session date in it';
comment on column publish.files.source_run is 'Run that produced it';
comment on column publish.files.state is 'waiting, published, replaced by a newer one before it was sent, or refused by a check';
comment on column publish.files.reason is 'Why it was refused or replaced';
comment on column publish.files.commit_id is 'Commit that contains it';
comment on column publish.files.created_at is 'When it was written';
comment on column publish.files.updated_at is 'Last change of state';
create unique index files_one_waiting on publish.files (release, path) where state = 'waiting';
create index files_by_path on publish.files (release, path, file_id desc);

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

create table publish.leases (
    name         text primary key,
    lease_token  uuid,
    lease_owner  text,
    lease_until  timestamptz(6),
    updated_at   timestamptz(6) not null
);
comment on table publish.leases is 'Who may push to the Hub, or drain an outbox, right now';
comment on column publish.leases.name is 'What is leased';
comment on column publish.leases.lease_token is 'Proof of the right';
comment on column publish.leases.lease_owner is 'Who holds it';
comment on column publish.leases.lease_until is 'When it ends';
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
comment on table publish.stale is 'Parts of tables that changed since a file was last built from them; marked in the transaction that changes them';
comment on column publish.stale.table_name is 'Table, schema.name';
comment on column publish.stale.partition is 'Part of it: a month as YYYY-MM, or all';
comment on column publish.stale.version is 'Grows with every change; a builder removes the row only at the version that it read';
comment on column publish.stale.marked_at is 'Last change';
