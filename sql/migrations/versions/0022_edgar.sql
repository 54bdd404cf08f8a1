-- 0022 edgar: archives of which only what changed is kept, and files that are made of what is held. Expand-only.
-- Roll-back note: the tables may be dropped once no release takes archives in or makes files; what was kept of an archive is in
-- collect.fetches, and files can be made anew from it.

create table collect.archives (
    stream         text not null,
    archive        text not null,
    etag           text,
    last_modified  text,
    length         bigint not null check (length >= 0),
    members        integer not null check (members >= 0),
    fetch_id       bigint not null,
    taken_at       timestamptz(6) not null,
    checked_at     timestamptz(6) not null,
    verified_at    timestamptz(6),
    primary key (stream, archive)
);
comment on table collect.archives is 'Archives as last taken in: their validators, and when all of their content was last compared';
comment on column collect.archives.stream is 'Stream that takes it in';
comment on column collect.archives.archive is 'Name of the archive within the stream';
comment on column collect.archives.etag is 'Its ETag, where the upstream gives one';
comment on column collect.archives.last_modified is 'Its Last-Modified, where the upstream gives one';
comment on column collect.archives.length is 'Its size in bytes';
comment on column collect.archives.members is 'How many members its directory has';
comment on column collect.archives.fetch_id is 'Fetch whose raw object is its directory';
comment on column collect.archives.taken_at is 'When it was taken in';
comment on column collect.archives.checked_at is 'When the upstream last said that it is still this one';
comment on column collect.archives.verified_at is 'When all of its members were last compared by content';

create table collect.archive_members (
    stream     text not null,
    archive    text not null,
    unit       text not null,
    name       text not null,
    crc32      bigint not null,
    size       bigint not null,
    fetch_id   bigint,
    sha256     bytea,
    refused    text check (length(refused) <= 1000),
    gone_at    timestamptz(6),
    updated_at timestamptz(6) not null,
    primary key (stream, archive, unit),
    constraint archive_members_held_or_refused check (num_nonnulls(sha256, refused) >= 1 and (sha256 is null) = (fetch_id is null))
);
comment on table collect.archive_members is 'What is held of an archive''s members, by unit: the newest state of each that was taken in';
comment on column collect.archive_members.stream is 'Stream that takes the archive in';
comment on column collect.archive_members.archive is 'Archive';
comment on column collect.archive_members.unit is 'Unit that the member is an answer to';
comment on column collect.archive_members.name is 'Its name in the archive';
comment on column collect.archive_members.crc32 is 'Its checksum by the directory; with the size it tells whether it changed';
comment on column collect.archive_members.size is 'Its unpacked size by the directory';
comment on column collect.archive_members.fetch_id is 'Fetch whose raw object it is, the last good one; null where none was';
comment on column collect.archive_members.sha256 is 'Hash of that raw object';
comment on column collect.archive_members.refused is 'Why its newest state was not kept, null where it was';
comment on column collect.archive_members.gone_at is 'When an archive first lacked it, null while it is there';
comment on column collect.archive_members.updated_at is 'When this was last written';

create table collect.made_files (
    stream          text not null,
    unit            text not null,
    path            text not null,
    source_fetch    bigint,
    source_sha256   bytea,
    parser_version  integer not null,
    rows            bigint,
    size            bigint,
    sha256          bytea,
    refused         text check (length(refused) <= 2000),
    cycle_id        bigint not null,
    attempt         integer not null,
    made_at         timestamptz(6) not null,
    primary key (stream, unit),
    constraint made_files_whole check (num_nonnulls(rows, size, sha256) in (0, 3))
);
comment on table collect.made_files is 'Files that streams make of what others hold: of which bytes, by which parser, and what is in them';
comment on column collect.made_files.stream is 'Stream that makes them';
comment on column collect.made_files.unit is 'Unit';
comment on column collect.made_files.path is 'Where the file lies under the root of files';
comment on column collect.made_files.source_fetch is 'Fetch that it was last made of, null where the upstream no longer has the unit';
comment on column collect.made_files.source_sha256 is 'Hash of the raw object that it was last made of, null likewise';
comment on column collect.made_files.parser_version is 'Parser that read it';
comment on column collect.made_files.rows is 'Rows of the file, null where there never was one';
comment on column collect.made_files.size is 'Its size in bytes';
comment on column collect.made_files.sha256 is 'Hash of its bytes';
comment on column collect.made_files.refused is 'Why the newest bytes could not be read, null where they could; the file is then the one before';
comment on column collect.made_files.cycle_id is 'Cycle that wrote this';
comment on column collect.made_files.attempt is 'Claim of that cycle';
comment on column collect.made_files.made_at is 'When';
