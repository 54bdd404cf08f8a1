-- 0001 collect: the ledger of collecting: cycles and their leases, fetches, raw objects, pending keys, quarantine.
-- Expand-only. Roll-back note: nothing here may be dropped while any release reads it; the first release has no
-- predecessor, so rolling back means restoring the database from its backup.

create schema collect;
comment on schema collect is 'Collecting: what was asked, under which lease, what came back and what is still to do';
create schema market;
comment on schema market is 'Market data by session date';
create schema filings;
comment on schema filings is 'Company filings and facts';
create schema dartbrief;
comment on schema dartbrief is 'Korean disclosures and their analyses';
create schema publish;
comment on schema publish is 'What is and was published to the Hub';
create schema ops;
comment on schema ops is 'Alerts and incidents';

-- installation and clock ---------------------------------------------------------------------------------

create table collect.installation (
    only_row       boolean primary key default true check (only_row),
    is_sandbox     boolean not null default false,
    clock_offset   interval not null default interval '0',
    activated_at   timestamptz(6) not null default clock_timestamp(),
    check (is_sandbox or clock_offset = interval '0')
);
comment on table collect.installation is 'One row: what kind of installation this database serves';
comment on column collect.installation.only_row is 'Always true: there is one row';
comment on column collect.installation.is_sandbox is 'True where stand-ins answer for the upstreams and time is simulated';
comment on column collect.installation.clock_offset is 'What the simulated clock adds to the server''s; zero unless sandbox';
comment on column collect.installation.activated_at is 'When the database was made ready';
insert into collect.installation default values;

create function collect.clock() returns timestamptz language plpgsql volatile as $$
begin
    return clock_timestamp() + coalesce((select clock_offset from collect.installation where is_sandbox), interval '0');
end $$;
comment on function collect.clock() is 'The only clock: the server''s time of this very moment, plus the simulated offset of a sandbox';

-- streams ------------------------------------------------------------------------------------------------

create table collect.streams (
    stream          text primary key,
    source          text not null,
    title           text not null,
    host_group      text not null,
    calendar        text not null,
    sla_eligible    boolean not null,
    parser_version  integer not null,
    active          boolean not null default true,
    activated_at    timestamptz(6) not null,
    retired_at      timestamptz(6),
    updated_at      timestamptz(6) not null
);
comment on table collect.streams is 'Every stream that was ever declared, as last declared';
comment on column collect.streams.stream is 'Name, source.stream';
comment on column collect.streams.source is 'The upstream that it belongs to';
comment on column collect.streams.title is 'What a person calls it';
comment on column collect.streams.host_group is 'The group of requests that its upstream counts together';
comment on column collect.streams.calendar is 'The calendar that says which days have data';
comment on column collect.streams.sla_eligible is 'Whether the 09:00 snapshot expects it';
comment on column collect.streams.parser_version is 'Version of the parser as deployed';
comment on column collect.streams.active is 'Whether windows are opened for it';
comment on column collect.streams.activated_at is 'When its first window could be opened';
comment on column collect.streams.retired_at is 'When it was taken out of service; null while it is in service';
comment on column collect.streams.updated_at is 'When the declaration last changed';

-- job runs -----------------------------------------------------------------------------------------------

create table collect.job_runs (
    run_id           text primary key check (run_id ~ '^[A-Za-z0-9_.~:+-]{1,200}$'),
    mode             text not null check (mode in ('poll', 'backfill', 'replay')),
    streams          text[] not null,
    range_start      date,
    range_end        date,
    keys             text[] not null default '{}',
    force            boolean not null default false,
    forced_by        text,
    replay_into      text check (replay_into in ('overwrite', 'versioned')),
    reason           text,
    parser_versions  jsonb not null default '{}',
    planned_to       jsonb,
    total_chunks     bigint not null default 0,
    outcome          text check (outcome in ('success', 'partial', 'failed_retriable', 'failed_terminal')),
    requested_by     text not null,
    reopened_count   integer not null default 0,
    reopened_by      text,
    created_at       timestamptz(6) not null,
    updated_at       timestamptz(6) not null,
    finished_at      timestamptz(6)
);
comment on table collect.job_runs is 'One thing asked for: a backfill, a replay, or a poll of named keys; its chunks are cycles';
comment on column collect.job_runs.run_id is 'Name of the run; made from its content where none was given, so the same request joins it';
comment on column collect.job_runs.mode is 'poll, backfill or replay';
comment on column collect.job_runs.streams is 'Streams it covers, in order';
comment on column collect.job_runs.range_start is 'First session date, inclusive';
comment on column collect.job_runs.range_end is 'Last session date, inclusive';
comment on column collect.job_runs.keys is 'Keys it is limited to; empty for all';
comment on column collect.job_runs.force is 'Whether chunks that are done are done once more';
comment on column collect.job_runs.forced_by is 'Which asking forced it last, so that a second attempt of the same asking does not force it again';
comment on column collect.job_runs.replay_into is 'overwrite: the tables; versioned: a copy beside them';
comment on column collect.job_runs.reason is 'Why, in the words of who asked';
comment on column collect.job_runs.parser_versions is 'Parser version of each stream when a replay was asked for';
comment on column collect.job_runs.planned_to is 'How far its chunks have been written, per stream';
comment on column collect.job_runs.total_chunks is 'Chunks written so far';
comment on column collect.job_runs.outcome is 'What it came to; null while it is not over';
comment on column collect.job_runs.requested_by is 'Who asked';
comment on column collect.job_runs.reopened_count is 'How often its failed chunks were opened again';
comment on column collect.job_runs.reopened_by is 'Who opened them last';
comment on column collect.job_runs.created_at is 'When it was asked for';
comment on column collect.job_runs.updated_at is 'When it last changed';
comment on column collect.job_runs.finished_at is 'When its last chunk ended';

-- cycles -------------------------------------------------------------------------------------------------

-- Every statement that writes a table reads the table's own checks anew and plans them, which for a cycle took a quarter of
-- claiming; a session keeps those of a domain. So the words of a cycle are domains, and what holds of a whole cycle is a
-- domain over its row (collect.sound_cycle), which the only check of the table names.
create domain collect.job_mode as text check (value in ('poll', 'backfill', 'replay'));
comment on domain collect.job_mode is 'Mode of a run or a cycle';
create domain collect.cycle_kind as text check (value in ('scheduled', 'make_up', 'chunk', 'part'));
comment on domain collect.cycle_kind is 'Kind of a cycle';
create domain collect.cycle_state as text
    check (value in ('NOT_STARTED', 'PENDING', 'RUNNING', 'SUCCESS', 'FAILED', 'BUDGET_EXHAUSTED'));
comment on domain collect.cycle_state is 'State of a cycle';
create domain collect.budget_reason as text
    check (value in ('LIST_PAGE_LIMIT', 'ITEM_LIMIT', 'DETAIL_LIMIT', 'SLICE_TIME_LIMIT', 'QUOTA'));
comment on domain collect.budget_reason is 'Budget that ended a cycle';
create domain collect.failure_kind as text check (value in ('retriable', 'terminal', 'refused'));
comment on domain collect.failure_kind is 'What a failure asks for';
create domain collect.success_reason as text check (value in ('nothing_due'));
comment on domain collect.success_reason is 'Why nothing had to be done';
create domain collect.job_outcome as text check (value in ('success', 'partial', 'failed_retriable', 'failed_terminal'));
comment on domain collect.job_outcome is 'What a run or a cycle came to';
create domain collect.one_line as text check (length(value) <= 200);
comment on domain collect.one_line is 'A reason, in at most 200 characters';
create domain collect.summary as text check (length(value) <= 1000);
comment on domain collect.summary is 'What was seen, in at most 1000 characters';

create table collect.cycles (
    cycle_id                 bigint generated always as identity primary key,
    stream                   text not null,
    mode                     collect.job_mode not null,
    slot                     text not null,
    run_id                   text,
    run_date                 date,
    window_start             timestamptz(6),
    due_at                   timestamptz(6),
    session_date             date,
    kind                     collect.cycle_kind not null default 'scheduled',
    chunk                    jsonb not null default '{}',
    cycle_status             collect.cycle_state not null default 'PENDING',
    continuation_cursor      jsonb,
    is_complete              boolean not null default false,
    lease_token              uuid,
    lease_owner              text,
    lease_until              timestamptz(6),
    next_eligible_at         timestamptz(6),
    attempt                  integer not null default 0,
    failed_attempts          smallint not null default 0,
    list_page_count          integer not null default 0,
    fetched_count            bigint not null default 0,
    new_count                bigint not null default 0,
    changed_count            bigint not null default 0,
    withdrawn_count          bigint not null default 0,
    told_count               bigint not null default 0,
    missed_count             bigint,
    closed_count             bigint,
    quarantined_count        bigint not null default 0,
    detail_request_count     integer not null default 0,
    detail_failure_count     integer not null default 0,
    detail_skipped_count     integer not null default 0,
    budget_exhausted_reason  collect.budget_reason,
    failure_reason           collect.one_line,
    failure_cause_summary    collect.summary,
    failure_kind             collect.failure_kind,
    success_reason           collect.success_reason,
    outcome                  collect.job_outcome,
    gate_at                  timestamptz(6),
    started_at               timestamptz(6),
    finished_at              timestamptz(6),
    created_at               timestamptz(6) not null,
    updated_at               timestamptz(6) not null,
    constraint cycles_one_slot unique (stream, mode, slot)
) with (fillfactor = 70);
create domain collect.sound_cycle as collect.cycles
    constraint cycles_lease_only_while_running check
        (num_nonnulls((value).lease_token, (value).lease_owner, (value).lease_until)
         = case (value).cycle_status when 'RUNNING' then 3 else 0 end)
    constraint cycles_end_and_outcome_only_when_over check
        (num_nonnulls((value).finished_at, (value).outcome)
         = case when (value).cycle_status in ('SUCCESS', 'FAILED', 'BUDGET_EXHAUSTED') then 2 else 0 end)
    constraint cycles_over_says_how check
        (case (value).cycle_status
             when 'SUCCESS' then (value).is_complete
             when 'FAILED' then (value).failure_reason is not null
             when 'BUDGET_EXHAUSTED' then not (value).is_complete and (value).budget_exhausted_reason is not null
             else true end)
    constraint cycles_window_or_run check
        (num_nonnulls((value).run_date, (value).window_start, (value).due_at)
         = case when (value).mode = 'poll' and (value).run_id is null then 3 else 0 end
         and ((value).mode = 'poll'
              or ((value).run_id is not null and num_nonnulls((value).missed_count, (value).closed_count) = 0)));
comment on domain collect.sound_cycle is
    'A cycle that can be: a lease while it runs, an end and an outcome once it is over, and what only windows have nowhere else';
alter table collect.cycles add constraint cycles_are_sound check (cycles::collect.sound_cycle is distinct from null);
comment on table collect.cycles is 'One leased unit of collecting work: a poll window, a backfill chunk or a replay batch';
comment on column collect.cycles.cycle_id is 'Number of the cycle';
comment on column collect.cycles.stream is 'Stream that it works for';
comment on column collect.cycles.mode is 'poll, backfill or replay';
comment on column collect.cycles.slot is 'A poll''s scheduled instant in UTC, or run_id/chunk; with #k for a part';
comment on column collect.cycles.run_id is 'Job run that it is a chunk of; null for a scheduled window';
comment on column collect.cycles.run_date is 'KST date of the scheduled instant; polls of a window only';
comment on column collect.cycles.window_start is 'The scheduled instant; polls of a window only';
comment on column collect.cycles.due_at is 'When an operator may expect it to be done; polls of a window only';
comment on column collect.cycles.session_date is 'Session date that it is responsible for';
comment on column collect.cycles.kind is 'scheduled or make_up window, chunk of a run, or part of a cycle';
comment on column collect.cycles.chunk is 'What a chunk covers: dates, keys, fetches';
comment on column collect.cycles.cycle_status is 'State';
comment on column collect.cycles.continuation_cursor is 'Where the next slice goes on';
comment on column collect.cycles.is_complete is 'Whether all that it was responsible for was read and applied, or is pending by key';
comment on column collect.cycles.lease_token is 'Proof of the right to work on it; void once the lease is over';
comment on column collect.cycles.lease_owner is 'Who holds the lease';
comment on column collect.cycles.lease_until is 'When the lease ends unless it is renewed';
comment on column collect.cycles.next_eligible_at is 'Not to be claimed before this instant';
comment on column collect.cycles.attempt is 'Successful claims so far; orders them';
comment on column collect.cycles.failed_attempts is 'Claims that ended in a lost lease or a retriable failure; a chunk fails at the third';
comment on column collect.cycles.list_page_count is 'List pages read';
comment on column collect.cycles.fetched_count is 'Rows read from answers';
comment on column collect.cycles.new_count is 'Rows that were not there before';
comment on column collect.cycles.changed_count is 'Rows whose values changed';
comment on column collect.cycles.withdrawn_count is 'Rows that their unit no longer gives';
comment on column collect.cycles.told_count is 'How many of the new, changed and withdrawn rows others were told of by an event';
comment on column collect.cycles.missed_count is 'Open items that a complete listing did not show; polls only';
comment on column collect.cycles.closed_count is 'Items closed by it; polls only';
comment on column collect.cycles.quarantined_count is 'Rows and units put to quarantine';
comment on column collect.cycles.detail_request_count is 'Details asked for';
comment on column collect.cycles.detail_failure_count is 'Details that failed and are pending by key';
comment on column collect.cycles.detail_skipped_count is 'Details left out for a budget';
comment on column collect.cycles.budget_exhausted_reason is 'Which budget ended it; while it waits to go on, which of its last slice''s budgets was used';
comment on column collect.cycles.failure_reason is 'Why it failed, in one line';
comment on column collect.cycles.failure_cause_summary is 'What was seen, longer';
comment on column collect.cycles.failure_kind is 'retriable: a later window may do it; terminal: needs a person; refused: the upstream said no';
comment on column collect.cycles.success_reason is 'Why nothing had to be done';
comment on column collect.cycles.outcome is 'What it came to; null while it is not over';
comment on column collect.cycles.gate_at is 'When its last state was written, by the gate';
comment on column collect.cycles.started_at is 'First claim';
comment on column collect.cycles.finished_at is 'End';
comment on column collect.cycles.created_at is 'When it came to be';
comment on column collect.cycles.updated_at is 'Last change of state';

create index cycles_ready on collect.cycles (cycle_status, next_eligible_at, run_date, cycle_id)
    where cycle_status in ('NOT_STARTED', 'PENDING');
create index cycles_ready_of_stream on collect.cycles (run_id, stream, mode, cycle_id)
    where cycle_status in ('NOT_STARTED', 'PENDING');
create index cycles_leased on collect.cycles (lease_until) where cycle_status = 'RUNNING';
create index cycles_parts on collect.cycles (run_id, stream) where kind = 'part';
create index cycles_untold on collect.cycles (stream, cycle_id) where new_count + changed_count + withdrawn_count > told_count;
create index cycles_over on collect.cycles (finished_at, cycle_id)
    where cycle_status in ('SUCCESS', 'FAILED', 'BUDGET_EXHAUSTED');
create index cycles_by_window on collect.cycles (stream, window_start desc) where window_start is not null;
create index cycles_by_run on collect.cycles (run_id, stream, cycle_status, cycle_id)
    include (outcome, fetched_count, new_count, changed_count, withdrawn_count)
    where run_id is not null and cycle_status in ('SUCCESS', 'FAILED', 'BUDGET_EXHAUSTED');
create index cycles_day_budget on collect.cycles (stream, run_date, cycle_id) where run_date is not null;
create index cycles_by_date on collect.cycles (run_date, cycle_id) include (stream, cycle_status) where run_date is not null;
create index cycles_not_well on collect.cycles (cycle_id) where cycle_status in ('FAILED', 'BUDGET_EXHAUSTED');
create unique index cycles_one_open_poll on collect.cycles (stream)
    where mode = 'poll' and run_id is null and cycle_status in ('PENDING', 'RUNNING');

-- raw objects and fetches --------------------------------------------------------------------------------

create table collect.raw_objects (
    sha256        bytea primary key check (octet_length(sha256) = 32),
    size          bigint not null check (size >= 0),
    stored_size   bigint not null check (stored_size >= 0),
    created_at    timestamptz(6) not null
);
comment on table collect.raw_objects is 'Bytes of answers under their hash, never changed; equal bytes share an object';
comment on column collect.raw_objects.sha256 is 'SHA-256 of the decoded body';
comment on column collect.raw_objects.size is 'Bytes of the decoded body';
comment on column collect.raw_objects.stored_size is 'Bytes as compressed in the raw store';
comment on column collect.raw_objects.created_at is 'When it was first stored';

create table collect.fetches (
    fetch_id       bigint generated always as identity primary key,
    stream         text not null,
    cycle_id       bigint not null,
    attempt        integer not null,
    request_key    text not null,
    unit           text not null,
    page           integer not null default 0,
    head_fetch     bigint,
    is_last        boolean not null default true,
    session_date   date,
    sent_at        timestamptz(6) not null,
    received_at    timestamptz(6) not null,
    answer_class   text not null
                   check (answer_class in ('data', 'empty', 'absent', 'not_yet', 'unchanged', 'blocked', 'error')),
    http_status    integer,
    etag           text,
    last_modified  text,
    headers        jsonb not null default '{}',
    sha256         bytea,
    size           bigint,
    masked         boolean not null default false,
    tries          integer not null default 1,
    goes_on        boolean not null default false,
    left_out       jsonb,
    error          text check (length(error) <= 1000),
    applied_at     timestamptz(6),
    applied_by     bigint,
    parser_version integer,
    rows_read      bigint,
    about          jsonb,
    constraint fetches_parsed_answers_have_bytes check (answer_class not in ('data', 'empty') or sha256 is not null)
);
comment on table collect.fetches is 'One request sent and what came back; append-only but for when it was applied';
comment on column collect.fetches.fetch_id is 'Number of the fetch';
comment on column collect.fetches.stream is 'Stream that asked';
comment on column collect.fetches.cycle_id is 'Cycle that asked';
comment on column collect.fetches.attempt is 'Claim of the cycle that asked';
comment on column collect.fetches.request_key is 'Stable name of the request, without secrets';
comment on column collect.fetches.unit is 'Logical request that it is a page of';
comment on column collect.fetches.page is 'Order within the unit, from 0';
comment on column collect.fetches.head_fetch is 'Fetch of page 0 of the same asking; null on page 0 itself';
comment on column collect.fetches.is_last is 'Whether no further page follows; an asking without its last page is not applied';
comment on column collect.fetches.about is 'What its parser must know beside the answer, as the source said it; null where nothing';
comment on column collect.fetches.session_date is 'Session date that it asks for';
comment on column collect.fetches.sent_at is 'When the request that was answered was sent, by the database clock';
comment on column collect.fetches.received_at is 'When the answer was stored, by the database clock';
comment on column collect.fetches.answer_class is 'What the answer is';
comment on column collect.fetches.http_status is 'HTTP status; null where no answer came';
comment on column collect.fetches.etag is 'Validator of the answer';
comment on column collect.fetches.last_modified is 'Validator of the answer';
comment on column collect.fetches.headers is 'Answer headers worth keeping, without cookies';
comment on column collect.fetches.sha256 is 'Raw object of the answer';
comment on column collect.fetches.size is 'Bytes of the decoded body';
comment on column collect.fetches.masked is 'True where one of our own secrets was masked in the body';
comment on column collect.fetches.tries is 'Requests sent until this answer';
comment on column collect.fetches.goes_on is 'Whether the same is asked for once more at once: a fault that may pass, a key without requests left, a part to be left out';
comment on column collect.fetches.left_out is 'The part that was refused and is asked for by itself: its key, and why; applied once the key is pending';
comment on column collect.fetches.error is 'What went wrong, without secrets';
comment on column collect.fetches.applied_at is 'When its unit was last applied';
comment on column collect.fetches.applied_by is 'Cycle that applied it last';
comment on column collect.fetches.parser_version is 'Parser that read it last';
comment on column collect.fetches.rows_read is 'Rows that the parser gave';
create index fetches_by_unit on collect.fetches (stream, unit, sent_at desc);
create index fetches_by_key on collect.fetches (stream, request_key, fetch_id desc);
create index fetches_by_cycle on collect.fetches (cycle_id);
create index fetches_pages on collect.fetches (head_fetch) where head_fetch is not null;
create index fetches_to_apply on collect.fetches (stream, cycle_id)
    where applied_at is null and answer_class in ('data', 'empty');
create index fetches_left_out on collect.fetches (stream) where left_out is not null and applied_at is null;
create index fetches_by_time on collect.fetches using brin (sent_at) with (pages_per_range = 32, autosummarize = on);
create index fetches_by_session on collect.fetches (stream, session_date, fetch_id)
    where answer_class in ('data', 'empty');

-- what is still to be done -------------------------------------------------------------------------------

create table collect.checkpoints (
    stream       text primary key,
    session_date date,
    position     jsonb not null default '{}',
    cycle_id     bigint not null,
    updated_at   timestamptz(6) not null
);
comment on table collect.checkpoints is 'Up to where everything of a stream is held or explained; moves only over ground without holes';
comment on column collect.checkpoints.stream is 'Stream';
comment on column collect.checkpoints.session_date is 'Last session of the ground without holes';
comment on column collect.checkpoints.position is 'The same for streams that do not go by sessions';
comment on column collect.checkpoints.cycle_id is 'Cycle that moved it last';
comment on column collect.checkpoints.updated_at is 'When it moved last';

create table collect.pending (
    stream        text not null,
    key           text not null,
    why           text not null check (why in ('discovered', 'failed', 'not_published', 'asked_none', 'recheck')),
    session_date  date,
    attempts      integer not null default 0,
    next_try_at   timestamptz(6),
    give_up_at    timestamptz(6),
    given_up_at   timestamptz(6),
    last_error    text check (length(last_error) <= 1000),
    cycle_id      bigint,
    created_at    timestamptz(6) not null,
    updated_at    timestamptz(6) not null,
    primary key (stream, key)
);
comment on table collect.pending is 'Keys still to be fetched, or fetched again';
comment on column collect.pending.stream is 'Stream';
comment on column collect.pending.key is 'Request key';
comment on column collect.pending.why is 'Why it is here';
comment on column collect.pending.session_date is 'Session date of the key';
comment on column collect.pending.attempts is 'How often it was tried since it is here';
comment on column collect.pending.next_try_at is 'Not before this instant; null once it was given up';
comment on column collect.pending.give_up_at is 'After this instant it is given up and told';
comment on column collect.pending.given_up_at is 'When it was given up; only keys or force ask again';
comment on column collect.pending.last_error is 'What the last try came to';
comment on column collect.pending.cycle_id is 'Cycle that last touched it';
comment on column collect.pending.created_at is 'Since when';
comment on column collect.pending.updated_at is 'Last change';
create index pending_due on collect.pending (stream, next_try_at) where next_try_at is not null;

create table collect.quarantine (
    quarantine_id   bigint generated always as identity primary key,
    stream          text not null,
    unit            text not null,
    fetch_id        bigint,
    cycle_id        bigint not null,
    scope           text not null check (scope in ('unit', 'row')),
    position        text,
    rule            text not null,
    reason          text not null,
    content         text check (length(content) <= 2000),
    parser_version  integer not null,
    state           text not null default 'open' check (state in ('open', 'accepted', 'dropped', 'resolved')),
    resolved_by     text,
    resolved_why    text,
    resolved_at     timestamptz(6),
    created_at      timestamptz(6) not null
);
comment on table collect.quarantine is 'Rows and units that could not be read or broke a rule, with the reason and a way out';
comment on column collect.quarantine.quarantine_id is 'Number';
comment on column collect.quarantine.stream is 'Stream';
comment on column collect.quarantine.unit is 'Unit';
comment on column collect.quarantine.fetch_id is 'Fetch whose answer it was in';
comment on column collect.quarantine.cycle_id is 'Cycle that put it here';
comment on column collect.quarantine.scope is 'The whole unit, or one row';
comment on column collect.quarantine.position is 'Line or item within the answer';
comment on column collect.quarantine.rule is 'Name of the rule, or parse';
comment on column collect.quarantine.reason is 'Why, in words';
comment on column collect.quarantine.content is 'The row as it was, at most 2,000 characters';
comment on column collect.quarantine.parser_version is 'Parser that refused it';
comment on column collect.quarantine.state is 'open, or how it was resolved';
comment on column collect.quarantine.resolved_by is 'Who resolved it';
comment on column collect.quarantine.resolved_why is 'Why so';
comment on column collect.quarantine.resolved_at is 'When';
comment on column collect.quarantine.created_at is 'When it came here';
create index quarantine_open on collect.quarantine (stream, unit) where state = 'open';
create unique index quarantine_once on collect.quarantine (stream, unit, scope, rule, coalesce(position, ''), coalesce(fetch_id, 0), parser_version)
    where state = 'open';

create table collect.seen_items (
    cycle_id   bigint not null,
    item_key   text not null,
    seen_at    timestamptz(6) not null,
    primary key (cycle_id, item_key)
);
comment on table collect.seen_items is 'Item keys that a cycle of a listing really found';
comment on column collect.seen_items.cycle_id is 'Cycle';
comment on column collect.seen_items.item_key is 'Item';
comment on column collect.seen_items.seen_at is 'When it was seen';

create table collect.items (
    stream         text not null,
    item_key       text not null,
    first_seen_at  timestamptz(6) not null,
    last_seen_at   timestamptz(6) not null,
    missed         integer not null default 0,
    closed_at      timestamptz(6),
    primary key (stream, item_key)
);
comment on table collect.items is 'Items of listings, open until they were missed often enough';
comment on column collect.items.stream is 'Stream';
comment on column collect.items.item_key is 'Item';
comment on column collect.items.first_seen_at is 'First seen';
comment on column collect.items.last_seen_at is 'Last seen';
comment on column collect.items.missed is 'Complete listings in a row that did not show it';
comment on column collect.items.closed_at is 'When it was closed; null while open';

create function collect.pending_gap(why text, attempts integer) returns interval language sql immutable as $$
    select case
        when why = 'not_published' then case when attempts < 10 then interval '20 hours' else interval '6 days 20 hours' end
        when why = 'asked_none' then interval '6 days 20 hours'
        else least(interval '15 minutes' * power(3, least(attempts, 6) - 1), interval '20 hours')
    end
$$;
comment on function collect.pending_gap(text, integer) is
    'How long to wait before a pending key is tried again: unpublished daily for ten tries, then weekly; failures with growing gaps. A few hours short of a day or week, so that the next window finds it due though it comes seconds earlier';

create function collect.pending_patience(why text) returns interval language sql immutable as $$
    select case when why in ('not_published', 'asked_none') then interval '1 year' else interval '7 days' end
$$;
comment on function collect.pending_patience(text) is 'How long a pending key is tried before it is given up and told';

-- upstream limits ----------------------------------------------------------------------------------------

create table collect.host_groups (
    host_group       text primary key,
    interval         interval not null check (interval >= interval '0'),
    next_allowed_at  timestamptz(6) not null,
    blocked_until    timestamptz(6),
    blocked_reason   text,
    penalty          interval not null,
    quota            bigint check (quota >= 0),
    quota_zone       text check ((quota is null) = (quota_zone is null)),
    epoch            bigint not null default 0,
    updated_at       timestamptz(6) not null
);
comment on table collect.host_groups is 'Requests that an upstream counts together: one interval for all workers and machines';
comment on column collect.host_groups.host_group is 'Name';
comment on column collect.host_groups.interval is 'Least time between two requests';
comment on column collect.host_groups.next_allowed_at is 'When the next request may be sent';
comment on column collect.host_groups.blocked_until is 'No request before this instant, after a block page or a refusal';
comment on column collect.host_groups.blocked_reason is 'What was seen';
comment on column collect.host_groups.penalty is 'How long a block page stops the group';
comment on column collect.host_groups.quota is 'Requests that each key has a day; null where nobody counts';
comment on column collect.host_groups.quota_zone is 'Where the upstream''s day begins at midnight';
comment on column collect.host_groups.epoch is 'Grows with every block; a reservation of an older epoch is void';
comment on column collect.host_groups.updated_at is 'Last change';

create table collect.key_usage (
    host_group       text not null,
    key_fingerprint  text not null,
    usage_date       date not null,
    used             bigint not null default 0,
    parked_until     timestamptz(6),
    updated_at       timestamptz(6) not null,
    primary key (host_group, key_fingerprint, usage_date)
);
comment on table collect.key_usage is 'Daily quota used, by key';
comment on column collect.key_usage.host_group is 'Host group';
comment on column collect.key_usage.key_fingerprint is 'First 12 hex digits of the key''s SHA-256, never the key; none where requests are counted without one';
comment on column collect.key_usage.usage_date is 'The day that the upstream counts by';
comment on column collect.key_usage.used is 'Requests that were given out, whether or not they were sent in the end';
comment on column collect.key_usage.parked_until is 'Not to be used before this instant';
comment on column collect.key_usage.updated_at is 'Last change';

create table collect.calendar_exceptions (
    calendar     text not null,
    day          date not null,
    state        text not null check (state in ('proposed', 'closed', 'open', 'rejected')),
    reason       text not null,
    decided_by   text,
    created_at   timestamptz(6) not null,
    updated_at   timestamptz(6) not null,
    primary key (calendar, day)
);
comment on table collect.calendar_exceptions is 'Days on which a calendar is known, or thought, to be wrong';
comment on column collect.calendar_exceptions.calendar is 'Calendar, e.g. XNYS';
comment on column collect.calendar_exceptions.day is 'Day';
comment on column collect.calendar_exceptions.state is 'proposed by what was seen; closed or open as decided; rejected';
comment on column collect.calendar_exceptions.reason is 'Why';
comment on column collect.calendar_exceptions.decided_by is 'Who decided';
comment on column collect.calendar_exceptions.created_at is 'When it was first noted';
comment on column collect.calendar_exceptions.updated_at is 'Last change';

create table collect.controls (
    scope        text not null check (scope in ('all', 'source', 'stream', 'job', 'dispatch')),
    name         text not null,
    state        text not null check (state in ('frozen', 'draining', 'running', 'off', 'on')),
    reason       text not null,
    changed_by   text not null,
    changed_at   timestamptz(6) not null,
    primary key (scope, name)
);
comment on table collect.controls is 'What an operator has frozen or drained';
comment on column collect.controls.scope is 'What is controlled';
comment on column collect.controls.name is 'Which one; * for all';
comment on column collect.controls.state is 'frozen, draining or running; off or on for dispatch';
comment on column collect.controls.reason is 'Why';
comment on column collect.controls.changed_by is 'Who';
comment on column collect.controls.changed_at is 'Since when';

-- alerts and incidents -----------------------------------------------------------------------------------

create table ops.alerts (
    alert_id      bigint generated always as identity primary key,
    alert_key     text not null unique,
    severity      text not null check (severity in ('info', 'warning', 'error', 'critical')),
    text          text not null,
    blocks        jsonb,
    attempts      integer not null default 0,
    next_try_at   timestamptz(6) not null,
    last_error    text,
    created_at    timestamptz(6) not null,
    sent_at       timestamptz(6)
);
comment on table ops.alerts is 'Outbox of messages to Slack, written in the transaction that knows the fact';
comment on column ops.alerts.alert_id is 'Number; they are sent in this order';
comment on column ops.alerts.alert_key is 'The fact, so that it is told once';
comment on column ops.alerts.severity is 'How bad';
comment on column ops.alerts.text is 'Message';
comment on column ops.alerts.blocks is 'Message as Slack blocks';
comment on column ops.alerts.attempts is 'Tries so far';
comment on column ops.alerts.next_try_at is 'Not before';
comment on column ops.alerts.last_error is 'Why the last try failed';
comment on column ops.alerts.created_at is 'When the fact was known';
comment on column ops.alerts.sent_at is 'When it was delivered';
create index alerts_unsent on ops.alerts (alert_id) where sent_at is null;
