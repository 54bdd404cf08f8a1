-- 0021 github: what is to be said of incidents on GitHub, and which audit is in force. Expand-only.
-- Roll-back note: these tables may be dropped with the release that writes them; then nobody closes the issues that are
-- open on GitHub.
--
-- An issue is a row before it is anything on GitHub: what it is to say (wanted), which version of that GitHub has
-- confirmed (told), and whether the request that makes it may have arrived unseen (sending). Rows are written in the
-- audit's transaction and marked by the one sender, under its lease; no request is sent in either.

create table ops.issues (
    incident_id   bigint primary key references ops.incidents (incident_id),
    marker        uuid not null default gen_random_uuid(),
    title         text not null check (length(title) between 1 and 256),
    body          text not null check (length(body) <= 60000),
    ends_as       text check (ends_as in ('completed', 'not_planned')),
    version       integer not null default 1,
    told_version  integer not null default 0,
    state         text not null default 'wanted' check (state in ('wanted', 'sending', 'known', 'needless', 'given_up')),
    repository    text,
    number        bigint,
    url           text,
    first_sent_at timestamptz(6),
    attempts      integer not null default 0,
    next_try_at   timestamptz(6) not null,
    last_error    text,
    wanted_at     timestamptz(6) not null,
    told_at       timestamptz(6),
    constraint issues_known_by_number check ((state = 'known') <= (number is not null and repository is not null)),
    constraint issues_told_no_more_than_wanted check (told_version <= version)
);
comment on table ops.issues is 'Issues on GitHub, one for each incident that an audit found open: what is wanted there, and what GitHub has confirmed';
comment on column ops.issues.incident_id is 'Incident';
comment on column ops.issues.marker is 'What its body carries, so that it is found again when the answer to its making was lost';
comment on column ops.issues.title is 'Title that is wanted';
comment on column ops.issues.body is 'Text that is wanted, without the marker';
comment on column ops.issues.ends_as is 'As what it is to be closed: completed, or not_planned where nothing was mended; null while the incident lasts';
comment on column ops.issues.version is 'Grows by one with every change of what is wanted';
comment on column ops.issues.told_version is 'The version that GitHub has confirmed; 0 for none';
comment on column ops.issues.state is 'wanted; sending: its making was sent and not answered, so that it is looked for first; known; needless: over before it was made; given_up';
comment on column ops.issues.repository is 'owner/name that it was sent to; null before that';
comment on column ops.issues.number is 'Its number on GitHub; null before it is known';
comment on column ops.issues.url is 'Its page; null before it is known';
comment on column ops.issues.first_sent_at is 'When its making was first sent: it can be no older';
comment on column ops.issues.attempts is 'Tries since something was last confirmed';
comment on column ops.issues.next_try_at is 'Not to be sent before this instant';
comment on column ops.issues.last_error is 'Why the last try did not succeed, or why it was given up';
comment on column ops.issues.wanted_at is 'Since when GitHub lacks what is wanted, or last did';
comment on column ops.issues.told_at is 'When GitHub last confirmed something';
create index issues_to_send on ops.issues (incident_id) where told_version < version and state <> 'given_up';

create table ops.audits (
    audit_id     bigint generated always as identity primary key,
    owner        text not null,
    begun_at     timestamptz(6) not null,
    ended_at     timestamptz(6),
    replaced_by  bigint,
    constraint audits_end_once check (num_nonnulls(ended_at, replaced_by) <= 1)
);
comment on table ops.audits is 'Audits; a new one replaces one that still runs';
comment on column ops.audits.audit_id is 'Number';
comment on column ops.audits.owner is 'Task and run';
comment on column ops.audits.begun_at is 'When it began';
comment on column ops.audits.ended_at is 'When it had looked at everything; null while it runs, and where it died or was replaced';
comment on column ops.audits.replaced_by is 'The audit that took its place; null where none did';
create index audits_running on ops.audits (audit_id) where ended_at is null and replaced_by is null;

create function ops.begin_audit(p_owner text) returns bigint language plpgsql volatile as $$
declare v_audit bigint;
begin
    insert into ops.audits (owner, begun_at) values (p_owner, collect.clock()) returning audit_id into v_audit;
    -- Waits for what an older one is just writing: each of its writes locks its row.
    update ops.audits set replaced_by = v_audit where ended_at is null and replaced_by is null and audit_id < v_audit;
    return v_audit;
end $$;
comment on function ops.begin_audit(text) is 'Begin an audit and take the place of every one that still runs; its number';
