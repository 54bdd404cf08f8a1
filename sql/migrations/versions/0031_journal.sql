-- 0031 journal: how far the ledger of requests was written beside the raw objects, so that a lost database can be told again.
-- Expand-only. Roll-back note: both tables may be dropped once no release writes the journal; what was written stays readable.

create table collect.journal (
    only_row      boolean primary key default true check (only_row),
    fetches_to    bigint not null default 0,
    changes_to    timestamptz(6),
    is_restoring  boolean not null default false,
    written_at    timestamptz(6)
);
comment on table collect.journal is 'One row: how far the journal beside the raw objects goes';
comment on column collect.journal.only_row is 'Always true: there is one row';
comment on column collect.journal.fetches_to is 'Greatest number of a fetch that was written down';
comment on column collect.journal.changes_to is 'Instant up to which what changes was looked at; null before the first look';
comment on column collect.journal.is_restoring is 'Whether a journal is being read into this database, and not all of it is yet';
comment on column collect.journal.written_at is 'When the last part of it was written';
insert into collect.journal default values;

create table collect.journal_gaps (
    fetch_id   bigint primary key,
    missed_at  timestamptz(6) not null
);
comment on table collect.journal_gaps is 'Numbers of fetches that were passed over, as their transactions were open: looked for again for an hour';
comment on column collect.journal_gaps.fetch_id is 'Number of the fetch';
comment on column collect.journal_gaps.missed_at is 'When it was passed over first';
