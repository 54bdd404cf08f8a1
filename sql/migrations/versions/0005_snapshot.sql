-- 0005 snapshot: the 09:00 gate and its immutable verdict, dispatch, controls, and what the delta needs. Expand-only.
-- Roll-back note: the snapshot tables are kept without end and never dropped; the functions of 0004 that are replaced here
-- keep their signatures, so a release that calls them may still run beside this schema.
--
-- One lock for all dates, (9009, 0), is the gate. Whoever writes the state of a scheduled poll, of a control or of a
-- stream's service takes it shared, reads the clock after it, and holds it until commit; the capture, the making of a
-- header and its end as MISSED take it exclusively. It is the last lock of a transaction that anybody waits for: first
-- the lock of controls (9010, 0) or a cycle's row (who holds the former skips rows that are locked), then the gate. Each
-- function here locks in one statement and reads in the next, is VOLATILE, and insists on READ COMMITTED: any other form
-- reads the state from before its own wait.

-- what a stream and a cycle say besides -----------------------------------------------------------------

alter table collect.streams
    add column job text,
    add column listing boolean not null default false,
    add column empty_can_be_right boolean not null default true,
    add column service_by text,
    add column service_why text,
    add column awaits_connection boolean not null default false;
comment on column collect.streams.job is 'Name of the job that works it: the source, or source_job';
comment on column collect.streams.listing is 'Whether it lists items that are open until they are missed';
comment on column collect.streams.empty_can_be_right is 'Whether a complete answer without items can be right';
comment on column collect.streams.service_by is 'Who last took it out of service, or back; null where nobody did';
comment on column collect.streams.service_why is 'Why so';
comment on column collect.streams.awaits_connection is 'Out of service because its source has never had a connection; it comes into service with one';

alter table collect.cycles
    add column abnormal boolean,
    add column seen_count bigint,
    add column worked_by text;
alter domain collect.sound_cycle add constraint cycles_health_of_windows_only
    check ((value).window_start is not null or num_nonnulls((value).abnormal, (value).seen_count) = 0);
comment on column collect.cycles.abnormal is
    'Health as this window found it: true where it failed, or was complete and empty where that is never right; null sets and clears nothing';
comment on column collect.cycles.seen_count is 'Items that a listing showed; windows of listings only';
comment on column collect.cycles.worked_by is 'Who claimed it last; kept when the lease is over, so that the log of its work is found';
create index seen_items_by_age on collect.seen_items (seen_at);

create table collect.control_defaults (
    scope       text not null check (scope in ('source', 'stream', 'job')),
    name        text not null,
    state       text not null check (state in ('frozen', 'running')),
    updated_at  timestamptz(6) not null,
    primary key (scope, name)
);
comment on table collect.control_defaults is 'What config/controls.yaml says; a row of collect.controls wins over it';
comment on column collect.control_defaults.scope is 'What is controlled';
comment on column collect.control_defaults.name is 'Which one';
comment on column collect.control_defaults.state is 'frozen or running';
comment on column collect.control_defaults.updated_at is 'Since when the file says so';

-- the snapshot ------------------------------------------------------------------------------------------

create function collect.cutoff(p_date date) returns timestamptz language sql immutable as $$
    select (p_date + time '09:00') at time zone 'Asia/Seoul'
$$;
comment on function collect.cutoff(date) is 'The instant that the snapshot of a date is about: 09:00:00 in Seoul';

create table collect.sla_snapshots (
    snapshot_date   date primary key,
    scheduled_at    timestamptz(6) not null,
    capture_status  text not null check (capture_status in ('PENDING', 'CAPTURING', 'CAPTURED', 'MISSED', 'NOT_APPLICABLE')),
    captured_at     timestamptz(6),
    captured_by     text,
    capture_offset  interval,
    expected_count  integer,
    late_count      integer,
    miss_reason     text,
    created_by      text not null,
    created_at      timestamptz(6) not null,
    updated_at      timestamptz(6) not null,
    constraint sla_snapshots_at_nine check (scheduled_at = collect.cutoff(snapshot_date)),
    constraint sla_snapshots_captured_says_how check
        ((capture_status = 'CAPTURED') = (captured_at is not null)
         and (captured_at is null) = (captured_by is null) and (captured_at is null) = (capture_offset is null)
         and (captured_at is null) = (expected_count is null) and (captured_at is null) = (late_count is null)
         and captured_at >= scheduled_at),
    constraint sla_snapshots_missed_says_why check ((capture_status = 'MISSED') = (miss_reason is not null))
);
comment on table collect.sla_snapshots is 'The verdict of each date''s 09:00 in Seoul: its header, final once it is captured, missed or not applicable';
comment on column collect.sla_snapshots.snapshot_date is 'Date in Seoul';
comment on column collect.sla_snapshots.scheduled_at is '09:00:00 in Seoul of that date';
comment on column collect.sla_snapshots.capture_status is 'PENDING until it is final; CAPTURING only inside the transaction that captures';
comment on column collect.sla_snapshots.captured_at is 'When the gate was held for it, by the database clock';
comment on column collect.sla_snapshots.captured_by is 'Who took it: the capturer, or the first writer after the cutoff';
comment on column collect.sla_snapshots.capture_offset is 'How long after the cutoff it was taken; the state is that of the cutoff all the same';
comment on column collect.sla_snapshots.expected_count is 'Items in it';
comment on column collect.sla_snapshots.late_count is 'Items that were not over in good order at the cutoff';
comment on column collect.sla_snapshots.miss_reason is 'Why there is no verdict';
comment on column collect.sla_snapshots.created_by is 'Who made the header';
comment on column collect.sla_snapshots.created_at is 'When it came to be';
comment on column collect.sla_snapshots.updated_at is 'When it became final, or came to be';
create index sla_snapshots_pending on collect.sla_snapshots (scheduled_at) where capture_status = 'PENDING';
create index sla_snapshots_captured on collect.sla_snapshots (captured_at) where captured_at is not null;

create table collect.sla_expectations (
    snapshot_date  date not null,
    stream         text not null,
    slot           text not null,
    run_date       date not null,
    window_start   timestamptz(6) not null,
    due_at         timestamptz(6) not null,
    session_date   date,
    created_at     timestamptz(6) not null,
    primary key (snapshot_date, stream),
    constraint sla_expectations_due_in_time check (due_at <= collect.cutoff(snapshot_date))
);
comment on table collect.sla_expectations is 'The last scheduled window of each eligible stream that is due by a date''s 09:00';
comment on column collect.sla_expectations.snapshot_date is 'Date of the snapshot';
comment on column collect.sla_expectations.stream is 'Stream';
comment on column collect.sla_expectations.slot is 'The window''s slot';
comment on column collect.sla_expectations.run_date is 'KST date of the window';
comment on column collect.sla_expectations.window_start is 'The window''s scheduled instant';
comment on column collect.sla_expectations.due_at is 'When an operator may expect it to be done';
comment on column collect.sla_expectations.session_date is 'Session date that it is responsible for';
comment on column collect.sla_expectations.created_at is 'When it was written';

create table collect.sla_snapshot_sources (
    snapshot_date  date not null,
    stream         text not null,
    source         text not null,
    cycle_id       bigint,
    slot           text not null,
    run_date       date not null,
    window_start   timestamptz(6) not null,
    due_at         timestamptz(6) not null,
    session_date   date,
    cycle_status   text not null
                   check (cycle_status in ('NOT_STARTED', 'PENDING', 'RUNNING', 'SUCCESS', 'FAILED', 'BUDGET_EXHAUSTED')),
    is_late        boolean not null,
    fetched_count  bigint not null,
    is_complete    boolean not null,
    abnormal       boolean not null,
    close_guarded  boolean not null,
    frozen         boolean not null,
    frozen_why     text,
    failure_reason text,
    attempt        integer not null,
    gate_at        timestamptz(6),
    primary key (snapshot_date, stream),
    constraint sla_snapshot_sources_late_is_not_over check (is_late = (cycle_status <> 'SUCCESS')),
    constraint sla_snapshot_sources_frozen_says_why check (frozen = (frozen_why is not null)),
    constraint sla_snapshot_sources_no_cycle_is_not_started check (cycle_id is not null or cycle_status = 'NOT_STARTED')
);
comment on table collect.sla_snapshot_sources is 'The items of a snapshot: how the last window due by 09:00 of each expected stream stood at the cutoff';
comment on column collect.sla_snapshot_sources.snapshot_date is 'Date of the snapshot';
comment on column collect.sla_snapshot_sources.stream is 'Stream';
comment on column collect.sla_snapshot_sources.source is 'Its source';
comment on column collect.sla_snapshot_sources.cycle_id is 'The cycle judged; null where the slot had none';
comment on column collect.sla_snapshot_sources.slot is 'The window judged';
comment on column collect.sla_snapshot_sources.run_date is 'KST date of the window, which may be an earlier one';
comment on column collect.sla_snapshot_sources.window_start is 'The window''s scheduled instant';
comment on column collect.sla_snapshot_sources.due_at is 'When it was due';
comment on column collect.sla_snapshot_sources.session_date is 'Session date that it is responsible for';
comment on column collect.sla_snapshot_sources.cycle_status is 'State at the cutoff';
comment on column collect.sla_snapshot_sources.is_late is 'Whether it counts as late: anything but SUCCESS';
comment on column collect.sla_snapshot_sources.fetched_count is 'Rows read by then';
comment on column collect.sla_snapshot_sources.is_complete is 'Whether all was read and applied, or is pending by key';
comment on column collect.sla_snapshot_sources.abnormal is 'Health of the stream as its last window that said anything left it';
comment on column collect.sla_snapshot_sources.close_guarded is 'Whether this state forbids that items are missed or closed';
comment on column collect.sla_snapshot_sources.frozen is 'Whether its work was frozen or drained at the cutoff';
comment on column collect.sla_snapshot_sources.frozen_why is 'By whom, since when and why';
comment on column collect.sla_snapshot_sources.failure_reason is 'Why it failed, in one line';
comment on column collect.sla_snapshot_sources.attempt is 'Claims of the cycle by then';
comment on column collect.sla_snapshot_sources.gate_at is 'When that state was written, by the gate; null where the slot had no cycle';

create function collect.keep_snapshot() returns trigger language plpgsql set search_path = collect, pg_temp as $$
begin
    if tg_op = 'TRUNCATE' then
        raise exception '% is kept without end and cannot be truncated', tg_table_name;
    end if;
    if tg_table_name = 'sla_snapshots' then
        if tg_op = 'DELETE' then
            raise exception 'the snapshot of % is kept without end and cannot be deleted', old.snapshot_date;
        elsif tg_op = 'INSERT' then
            if new.capture_status not in ('PENDING', 'MISSED', 'NOT_APPLICABLE') then
                raise exception 'the snapshot of % cannot begin as %', new.snapshot_date, new.capture_status;
            end if;
        elsif (old.snapshot_date, old.scheduled_at, old.created_by, old.created_at)
              is distinct from (new.snapshot_date, new.scheduled_at, new.created_by, new.created_at) then
            raise exception 'what the snapshot of % is about cannot be changed', old.snapshot_date;
        elsif not ((old.capture_status = 'PENDING' and new.capture_status in ('CAPTURING', 'MISSED', 'NOT_APPLICABLE'))
                   or (old.capture_status = 'CAPTURING' and new.capture_status = 'CAPTURED')) then
            raise exception 'the snapshot of % is % and cannot become %', old.snapshot_date, old.capture_status, new.capture_status;
        end if;
        return new;
    end if;
    if tg_op <> 'INSERT' then
        raise exception 'rows of % cannot be changed or deleted', tg_table_name;
    end if;
    if not exists (select 1 from collect.sla_snapshots
                    where snapshot_date = new.snapshot_date
                      and capture_status = case tg_table_name when 'sla_expectations' then 'PENDING' else 'CAPTURING' end) then
        raise exception '% of % can be written only while its snapshot is %', tg_table_name, new.snapshot_date,
                        case tg_table_name when 'sla_expectations' then 'pending' else 'being captured' end;
    end if;
    return new;
end $$;
comment on function collect.keep_snapshot() is
    'Trigger: a final header and its rows cannot be changed, and items are written only while their header is being captured';

create function collect.captured_whole() returns trigger language plpgsql set search_path = collect, pg_temp as $$
begin
    if (select capture_status from collect.sla_snapshots where snapshot_date = new.snapshot_date) = 'CAPTURING' then
        raise exception 'the snapshot of % was left half captured', new.snapshot_date;
    end if;
    return null;
end $$;
comment on function collect.captured_whole() is 'Trigger: no transaction ends with a header that is still being captured';

create trigger keep before insert or update or delete on collect.sla_snapshots
    for each row execute function collect.keep_snapshot();
create trigger keep_all before truncate on collect.sla_snapshots
    for each statement execute function collect.keep_snapshot();
create constraint trigger captured_whole after update on collect.sla_snapshots deferrable initially deferred
    for each row when (new.capture_status = 'CAPTURING') execute function collect.captured_whole();
create trigger keep before insert or update or delete on collect.sla_expectations
    for each row execute function collect.keep_snapshot();
create trigger keep_all before truncate on collect.sla_expectations
    for each statement execute function collect.keep_snapshot();
create trigger keep before insert or update or delete on collect.sla_snapshot_sources
    for each row execute function collect.keep_snapshot();
create trigger keep_all before truncate on collect.sla_snapshot_sources
    for each statement execute function collect.keep_snapshot();
-- Also where a session calls itself a replica, in which ordinary triggers sleep.
alter table collect.sla_snapshots enable always trigger keep, enable always trigger keep_all, enable always trigger captured_whole;
alter table collect.sla_expectations enable always trigger keep, enable always trigger keep_all;
alter table collect.sla_snapshot_sources enable always trigger keep, enable always trigger keep_all;

-- controls ----------------------------------------------------------------------------------------------

create function collect.is_under(s collect.streams, p_scope text, p_name text) returns boolean language sql immutable as $$
    select case p_scope when 'all' then true when 'dispatch' then true when 'source' then s.source = p_name when 'stream' then s.stream = p_name
                        when 'job' then p_name in (coalesce(s.job, s.source), replace(s.stream, '.', '_')) else false end
$$;
comment on function collect.is_under(collect.streams, text, text) is
    'Whether a control covers a stream; a job is named after its DAG, or after the stream with an underscore';

create or replace function collect.frozen(p_stream text) returns text
language plpgsql volatile as $$
begin
    -- Mostly nothing is frozen, which is seen at a glance.
    if exists (select 1 from collect.controls k where k.state in ('frozen', 'draining'))
       or exists (select 1 from collect.control_defaults d where d.state = 'frozen')
       or exists (select 1 from collect.streams s where s.stream = p_stream and not s.active) then
        return (
        select w.why
          from (
            select 1 as place, format('stream %s is out of service since %s KST by %s: %s', s.stream,
                                      to_char(s.retired_at at time zone 'Asia/Seoul', 'YYYY-MM-DD HH24:MI'),
                                      s.service_by, s.service_why) as why
              from collect.streams s where s.stream = p_stream and not s.active
            union all
            select 2, format('%s is %s since %s KST by %s: %s', case when k.scope = 'all' then 'everything' else k.scope || ' ' || k.name end,
                             k.state, to_char(k.since at time zone 'Asia/Seoul', 'YYYY-MM-DD HH24:MI'), k.who, k.reason)
              from (select scope, name, state, changed_at as since, changed_by as who, reason from collect.controls
                    union all
                    select d.scope, d.name, d.state, d.updated_at, 'config/controls.yaml', 'the default' from collect.control_defaults d
                     where not exists (select 1 from collect.controls o where o.scope = d.scope and o.name = d.name)) k
             where k.state in ('frozen', 'draining')
               and (k.scope = 'all'
                    or exists (select 1 from collect.streams s where s.stream = p_stream and collect.is_under(s, k.scope, k.name)))
         ) w
         order by w.place, w.why limit 1);
    end if;
    return null;
end $$;
comment on function collect.frozen(text) is
    'Why no new work of a stream may be claimed: by whom, since when and why; null where it may. An operator''s row wins over the file';

create function collect.dispatch_is_off() returns text language sql volatile as $$
    select format('dispatch is off since %s KST by %s: %s', to_char(changed_at at time zone 'Asia/Seoul', 'YYYY-MM-DD HH24:MI'),
                  changed_by, reason)
      from collect.controls where scope = 'dispatch' and state = 'off'
$$;
comment on function collect.dispatch_is_off() is 'Why no windows are opened and no snapshot is expected; null where they are';

-- the gate ----------------------------------------------------------------------------------------------

create function collect.judge(p_date date)
returns table (stream text, source text, cycle_id bigint, slot text, run_date date, window_start timestamptz, due_at timestamptz,
               session_date date, cycle_status text, fetched_count bigint, is_complete boolean, abnormal boolean,
               close_guarded boolean, frozen_why text, failure_reason text, attempt integer, gate_at timestamptz)
language sql volatile set search_path = collect, pg_temp as $$
    select s.stream, s.source, c.cycle_id, coalesce(c.slot, e.slot), coalesce(c.run_date, e.run_date),
           coalesce(c.window_start, e.window_start), coalesce(c.due_at, e.due_at), coalesce(c.session_date, e.session_date),
           coalesce(c.cycle_status, 'NOT_STARTED'), coalesce(c.fetched_count, 0), coalesce(c.is_complete, false),
           coalesce(h.abnormal, false),
           not (coalesce(c.cycle_status, '') = 'SUCCESS' and c.fetched_count > 0 and (not s.listing or c.missed_count is not null)),
           collect.frozen(s.stream), c.failure_reason, coalesce(c.attempt, 0), c.gate_at
      from collect.sla_expectations e
      join collect.streams s on s.stream = e.stream and s.active and s.sla_eligible
      left join lateral (
          select * from collect.cycles k
           where k.stream = s.stream and k.mode = 'poll' and k.run_id is null and k.window_start >= e.window_start
             and k.due_at <= collect.cutoff(p_date)
           order by k.window_start desc limit 1) c on true
      left join lateral (
          select k.abnormal from collect.cycles k
           where k.stream = s.stream and k.window_start <= coalesce(c.window_start, e.window_start) and k.abnormal is not null
           order by k.window_start desc limit 1) h on true
     where e.snapshot_date = p_date and (c.cycle_id is not null or e.window_start >= s.activated_at)
     order by s.stream
$$;
comment on function collect.judge(date) is
    'How the last window of each expected stream that is due by a date''s 09:00 stands now; a slot without a cycle is NOT_STARTED';

create function collect.hold_gate() returns void
language plpgsql volatile set search_path = collect, pg_temp as $$
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'the gate needs READ COMMITTED, this transaction is %', current_setting('transaction_isolation');
    end if;
    if nullif(current_setting('daybook.gate', true), '') is not null then
        raise exception 'this transaction passed the gate as a writer and cannot hold it alone: two of them would wait for each other';
    end if;
    perform set_config('idle_in_transaction_session_timeout', '2s', true);
    perform pg_advisory_xact_lock(9009, 0);
end $$;
comment on function collect.hold_gate() is
    'Hold the gate alone until commit; whoever calls it reads in a later statement, which sees what was committed during the wait';

create function collect.gate_clock() returns timestamptz language plpgsql volatile set search_path = collect, pg_temp as $$
declare v_last timestamptz;
begin
    v_last := (select max(s.captured_at) from collect.sla_snapshots s);
    return greatest(collect.clock(), v_last);
end $$;
comment on function collect.gate_clock() is 'The clock as the gate counts: one that steps back cannot undo a capture';

create function collect.capture_due(who text) returns date[]
language plpgsql volatile security definer set search_path = collect, pg_temp as $$
declare h collect.sla_snapshots; t timestamptz; v_late integer; v_all integer; v_list text; v_done date[] := '{}';
        v_me xid := pg_current_xact_id_if_assigned()::xid;
begin
    -- Waits here; every later statement sees what was committed meanwhile.
    perform collect.hold_gate();
    t := collect.gate_clock();
    for h in select * from collect.sla_snapshots s where s.capture_status = 'PENDING' and s.scheduled_at <= t order by s.scheduled_at
    loop
        v_done := v_done || h.snapshot_date;
        if collect.dispatch_is_off() is not null then
            update collect.sla_snapshots set capture_status = 'NOT_APPLICABLE', updated_at = t where snapshot_date = h.snapshot_date;
            continue;
        end if;
        update collect.sla_snapshots set capture_status = 'CAPTURING', updated_at = t where snapshot_date = h.snapshot_date;
        insert into collect.sla_snapshot_sources
               (snapshot_date, stream, source, cycle_id, slot, run_date, window_start, due_at, session_date, cycle_status, is_late,
                fetched_count, is_complete, abnormal, close_guarded, frozen, frozen_why, failure_reason, attempt, gate_at)
        select h.snapshot_date, j.stream, j.source, j.cycle_id, j.slot, j.run_date, j.window_start, j.due_at, j.session_date,
               j.cycle_status, j.cycle_status <> 'SUCCESS', j.fetched_count, j.is_complete, j.abnormal, j.close_guarded,
               j.frozen_why is not null, j.frozen_why, j.failure_reason, j.attempt, j.gate_at
          from collect.judge(h.snapshot_date) j;
        -- A transaction would see its own uncommitted change in the verdict, and nobody else would.
        if exists (select 1 from collect.sla_snapshot_sources i join collect.cycles c on c.cycle_id = i.cycle_id
                    where i.snapshot_date = h.snapshot_date and c.xmin = v_me)
           or exists (select 1 from collect.streams s where s.xmin = v_me)
           or exists (select 1 from collect.controls k where k.xmin = v_me)
           or exists (select 1 from collect.sla_expectations e where e.snapshot_date = h.snapshot_date and e.xmin = v_me) then
            raise exception 'what the snapshot of % reads was changed by this transaction before it passed the gate', h.snapshot_date;
        end if;
        select count(*), count(*) filter (where i.is_late),
               string_agg(i.stream || ' ' || i.cycle_status || coalesce(' (' || coalesce(i.frozen_why, i.failure_reason) || ')', ''), '; '
                          order by i.stream) filter (where i.is_late)
          into v_all, v_late, v_list from collect.sla_snapshot_sources i where i.snapshot_date = h.snapshot_date;
        update collect.sla_snapshots
           set capture_status = 'CAPTURED', captured_at = t, captured_by = who, capture_offset = t - h.scheduled_at,
               expected_count = v_all, late_count = v_late, updated_at = t
         where snapshot_date = h.snapshot_date;
        perform collect.tell_verdict(h.snapshot_date, v_late,
                format('09:00 of %s: ', h.snapshot_date)
                || case when v_all = 0 then 'no stream had a window that was due.'
                        when v_late = 0 then format('all %s streams were complete.', v_all)
                        else format('%s of %s streams were LATE: %s.', v_late, v_all, v_list) end
                || format(' Taken %s ms after the cutoff by %s.', round(extract(epoch from t - h.scheduled_at) * 1000), who)
                || case when v_late > 0 then ' Look at the runs of their DAGs; resume what is frozen, unpause what is paused, and mend '
                        'the cause of what failed. That all of them are complete will be told.' else '' end);
    end loop;
    return v_done;
end $$;
comment on function collect.capture_due(text) is
    'Under the exclusive gate: make every pending snapshot whose cutoff has passed final, with its items and its alert; their dates';

create function collect.capture(p_date date, who text) returns text
language plpgsql volatile set search_path = collect, pg_temp as $$
declare v_done date[]; v_status text;
begin
    v_done := collect.capture_due(who);
    v_status := (select s.capture_status from collect.sla_snapshots s where s.snapshot_date = p_date);
    return case when v_status is null then 'NO_HEADER'
                when v_status = 'PENDING' then 'EARLY'
                when p_date = any(v_done) then v_status
                else 'ALREADY_' || v_status end;
end $$;
comment on function collect.capture(date, text) is
    'Take the snapshot of a date if its time has come: what this call made of it, EARLY, NO_HEADER, or ALREADY_ and what it was';

create or replace function collect.pass_gate(who text, out at timestamptz, out path text)
language plpgsql volatile as $$
declare v_passed text := nullif(current_setting('daybook.gate', true), ''); v_due timestamptz;
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'the gate needs READ COMMITTED, this transaction is %', current_setting('transaction_isolation');
    end if;
    if v_passed is not null then
        -- One transaction passes once: all that it writes happened when it did.
        at := v_passed::timestamptz;
        path := 'held';
        return;
    end if;
    path := 'shared';
    loop
        begin
            perform pg_advisory_xact_lock_shared(9009, 0);
            -- In the statement after the lock: while it is held nobody makes, takes or ends a header. A clock that steps
            -- back cannot undo a capture.
            select (select min(s.scheduled_at) from collect.sla_snapshots s where s.capture_status = 'PENDING'),
                   greatest(collect.clock(), (select max(s.captured_at) from collect.sla_snapshots s))
              into v_due, at;
            if v_due is null or at < v_due then
                perform set_config('daybook.gate', at::text, true), set_config('idle_in_transaction_session_timeout', '2s', true);
                return;
            end if;
            -- Leaves the block, and with it the shared lock: nobody upgrades a lock that he holds.
            raise exception using errcode = 'DBG01';
        exception when sqlstate 'DBG01' then null;
        end;
        begin
            if cardinality(collect.capture_due(who)) > 0 then
                at := collect.gate_clock();
                path := 'captured';
                perform set_config('daybook.gate', at::text, true);
                return;
            end if;
            -- Somebody was faster: give the exclusive lock back and go again as one of many.
            raise exception using errcode = 'DBG01';
        exception when sqlstate 'DBG01' then path := 'second';
        end;
    end loop;
end $$;
comment on function collect.pass_gate(text) is
    'The one lock that puts every state write before or after a snapshot, and the instant at which it was passed; the first writer after a cutoff takes the snapshot itself';

create function collect.active_day(p_date date) returns boolean language sql volatile as $$
    select exists (select 1 from collect.streams s
                    where s.sla_eligible and s.activated_at <= collect.cutoff(p_date)
                      and (s.active or s.retired_at > collect.cutoff(p_date)))
$$;
comment on function collect.active_day(date) is 'Whether any eligible stream was in service at a date''s 09:00';

create function collect.end_missed(p_date date, t timestamptz, p_why text, p_who text) returns text
language plpgsql volatile security definer set search_path = collect, pg_temp as $$
declare v_status text := 'MISSED';
begin
    if exists (select 1 from collect.controls k where k.scope = 'dispatch' and k.state = 'off' and k.changed_at <= collect.cutoff(p_date)) then
        v_status := 'NOT_APPLICABLE';
    end if;
    if exists (select 1 from collect.sla_snapshots s where s.snapshot_date = p_date) then
        update collect.sla_snapshots
           set capture_status = v_status, miss_reason = case when v_status = 'MISSED' then p_why end, updated_at = t
         where snapshot_date = p_date and capture_status = 'PENDING';
    else
        insert into collect.sla_snapshots (snapshot_date, scheduled_at, capture_status, miss_reason, created_by, created_at, updated_at)
        values (p_date, collect.cutoff(p_date), v_status, case when v_status = 'MISSED' then p_why end, p_who, t, t);
    end if;
    if v_status = 'MISSED' then
        perform collect.tell_missed(p_date, format(
                '09:00 of %s was MISSED: %s. There is no verdict for that date, and none is made up afterwards; what was collected is kept. '
                'Look with `./run status` and at the runs of dispatch and sla_capture why they did not do it, so that tomorrow has one.',
                p_date, p_why));
    end if;
    return v_status;
end $$;
comment on function collect.end_missed(date, timestamptz, text, text) is
    'End a header as MISSED with its reason and its alert, NOT_APPLICABLE where dispatch was off by then, or make it so where there is none; only under the exclusive gate';

create function collect.mark_missed(p_grace interval, who text, out snapshot_date date, out capture_status text)
returns setof record language plpgsql volatile security definer set search_path = collect, pg_temp as $$
declare t timestamptz; v_first date;
begin
    perform collect.hold_gate();
    t := collect.gate_clock();
    for snapshot_date in
        select s.snapshot_date from collect.sla_snapshots s
         where s.capture_status = 'PENDING' and s.scheduled_at + p_grace <= t order by s.scheduled_at
    loop
        capture_status := collect.end_missed(snapshot_date, t, format(
            'nobody took it within %s of the cutoff, neither the capturer nor any writer', p_grace), who);
        return next;
    end loop;
    v_first := (select min((s.activated_at at time zone 'Asia/Seoul')::date) from collect.streams s where s.sla_eligible);
    for snapshot_date in
        select d::date from generate_series(v_first, (t at time zone 'Asia/Seoul')::date, interval '1 day') d
         where collect.cutoff(d::date) + p_grace <= t
           and not exists (select 1 from collect.sla_snapshots s where s.snapshot_date = d::date)
         order by d
    loop
        continue when not collect.active_day(snapshot_date);
        capture_status := collect.end_missed(snapshot_date, t, 'dispatch did not run before the cutoff, so nothing was expected', who);
        return next;
    end loop;
end $$;
comment on function collect.mark_missed(interval, text) is
    'End as MISSED what is still pending so long after its cutoff, and active days that have no header; nothing is read to make up a verdict';

create function collect.dispatch(p_date date, p_windows jsonb, p_expected jsonb, who text,
                                 out capture_status text, out opened integer, out expected integer)
language plpgsql volatile security definer set search_path = collect, pg_temp as $$
declare t timestamptz;
begin
    opened := 0;
    expected := 0;
    -- Exclusively: a header that one writer sees and another does not would put their writes on different sides.
    perform collect.capture_due(who);
    t := collect.gate_clock();
    capture_status := (select s.capture_status from collect.sla_snapshots s where s.snapshot_date = p_date);
    if collect.dispatch_is_off() is not null then
        if capture_status is null and collect.active_day(p_date) then
            insert into collect.sla_snapshots (snapshot_date, scheduled_at, capture_status, created_by, created_at, updated_at)
            values (p_date, collect.cutoff(p_date), 'NOT_APPLICABLE', who, t, t);
            capture_status := 'NOT_APPLICABLE';
        end if;
        return;
    end if;
    if capture_status is null and collect.active_day(p_date) then
        if t < collect.cutoff(p_date) then
            insert into collect.sla_snapshots (snapshot_date, scheduled_at, capture_status, created_by, created_at, updated_at)
            values (p_date, collect.cutoff(p_date), 'PENDING', who, t, t);
            capture_status := 'PENDING';
        else
            capture_status := collect.end_missed(p_date, t, 'dispatch did not run before the cutoff, so nothing was expected', who);
        end if;
    end if;
    if capture_status = 'PENDING' then
        insert into collect.sla_expectations (snapshot_date, stream, slot, run_date, window_start, due_at, session_date, created_at)
        select p_date, w.stream, w.slot, w.run_date, w.window_start, w.due_at, w.session_date, t
          from jsonb_to_recordset(p_expected) as w (stream text, slot text, run_date date, window_start timestamptz, due_at timestamptz,
                                                    session_date date)
          join collect.streams s on s.stream = w.stream and s.active and s.sla_eligible
        on conflict do nothing;
        get diagnostics expected = row_count;
    end if;
    insert into collect.cycles (stream, mode, slot, run_date, window_start, due_at, session_date, kind, cycle_status,
                                created_at, updated_at, gate_at)
    select w.stream, 'poll', w.slot, w.run_date, w.window_start, w.due_at, w.session_date, 'scheduled', 'NOT_STARTED', t, t, t
      from jsonb_to_recordset(p_windows) as w (stream text, slot text, run_date date, window_start timestamptz, due_at timestamptz,
                                               session_date date)
      join collect.streams s on s.stream = w.stream and s.active
     where w.window_start >= t and w.window_start >= s.activated_at
       -- On the day of its activation a stream that already has a finished window gets no second one.
       and not ((s.activated_at at time zone 'Asia/Seoul')::date = p_date
                and exists (select 1 from collect.cycles c where c.stream = s.stream and c.run_date = p_date and c.finished_at is not null))
    on conflict do nothing;
    get diagnostics opened = row_count;
end $$;
comment on function collect.dispatch(date, jsonb, jsonb, text) is
    'The day''s header, expectations and NOT_STARTED windows, each where it is not there yet; off: no windows, NOT_APPLICABLE';

revoke insert, update, delete, truncate on collect.sla_snapshots, collect.sla_expectations, collect.sla_snapshot_sources from public;
revoke execute on function collect.end_missed(date, timestamptz, text, text) from public;

-- state writes that are not a cycle's -------------------------------------------------------------------

create function collect.control(p_scope text, p_name text, p_state text, p_why text, p_who text)
returns table (changed boolean, state text, reason text, changed_by text, changed_at timestamptz)
language plpgsql volatile set search_path = collect, pg_temp as $$
declare t timestamptz; v_changed boolean;
begin
    -- Waits for claims in flight, so that none commits after the freeze has.
    perform pg_advisory_xact_lock(9010, 0);
    t := (select g.at from collect.pass_gate('control by ' || p_who) g);
    insert into collect.controls as k (scope, name, state, reason, changed_by, changed_at)
    values (p_scope, p_name, p_state, p_why, p_who, t)
    on conflict (scope, name) do update
       set state = excluded.state, reason = excluded.reason, changed_by = excluded.changed_by, changed_at = excluded.changed_at
     where k.state <> excluded.state;
    v_changed := found;
    return query select v_changed, k.state, k.reason, k.changed_by, k.changed_at
                   from collect.controls k where k.scope = p_scope and k.name = p_name;
end $$;
comment on function collect.control(text, text, text, text, text) is
    'Write a control under the gate, with who and why; what is in that state already keeps its who, why and since when';

create function collect.control_defaults_are(p_defaults jsonb) returns boolean
language plpgsql volatile set search_path = collect, pg_temp as $$
declare t timestamptz;
begin
    if not exists (
        select 1 from (select scope, name, state from collect.control_defaults) d
          full join (select w.scope, w.name, w.state from jsonb_to_recordset(p_defaults) as w (scope text, name text, state text)) w
            using (scope, name)
         where d.state is distinct from w.state) then
        return false;
    end if;
    perform pg_advisory_xact_lock(9010, 0);
    t := (select g.at from collect.pass_gate('config/controls.yaml') g);
    delete from collect.control_defaults d
     where not exists (select 1 from jsonb_to_recordset(p_defaults) as w (scope text, name text) where w.scope = d.scope and w.name = d.name);
    insert into collect.control_defaults as d (scope, name, state, updated_at)
    select w.scope, w.name, w.state, t from jsonb_to_recordset(p_defaults) as w (scope text, name text, state text)
     order by w.scope, w.name
    on conflict (scope, name) do update set state = excluded.state, updated_at = excluded.updated_at where d.state <> excluded.state;
    return true;
end $$;
comment on function collect.control_defaults_are(jsonb) is 'Make the defaults what the file says, under the gate; false where they are';

create function collect.declare_stream(p_stream text, p_source text, p_title text, p_host_group text, p_calendar text, p_job text,
                                       p_sla_eligible boolean, p_listing boolean, p_empty_can_be_right boolean, p_parser_version integer,
                                       p_lacks text default null)
returns boolean language plpgsql volatile set search_path = collect, pg_temp as $$
declare t timestamptz;
begin
    if exists (select 1 from collect.streams s
                where s.stream = p_stream
                  and (s.source, s.title, s.host_group, s.calendar, s.job, s.sla_eligible, s.listing, s.empty_can_be_right, s.parser_version)
                      is not distinct from (p_source, p_title, p_host_group, p_calendar, p_job, p_sla_eligible, p_listing,
                                            p_empty_can_be_right, p_parser_version)
                  and not (s.awaits_connection and p_lacks is null)) then
        return false;
    end if;
    t := (select g.at from collect.pass_gate('declaration of ' || p_stream) g);
    insert into collect.streams as s (stream, source, title, host_group, calendar, job, sla_eligible, listing, empty_can_be_right,
                                      parser_version, active, activated_at, retired_at, service_by, service_why, awaits_connection,
                                      updated_at)
    values (p_stream, p_source, p_title, p_host_group, p_calendar, p_job, p_sla_eligible, p_listing, p_empty_can_be_right,
            p_parser_version, p_lacks is null, t, case when p_lacks is not null then t end,
            case when p_lacks is not null then 'its installation' end, p_lacks, p_lacks is not null, t)
    on conflict (stream) do update
       set source = excluded.source, title = excluded.title, host_group = excluded.host_group, calendar = excluded.calendar,
           job = excluded.job, sla_eligible = excluded.sla_eligible, listing = excluded.listing,
           empty_can_be_right = excluded.empty_can_be_right, parser_version = excluded.parser_version, updated_at = excluded.updated_at;
    -- The first connection brings it into service. One that is taken away again does not take it out: that is a fault, and late.
    update collect.streams s
       set active = true, activated_at = t, retired_at = null, service_by = null, service_why = null, awaits_connection = false
     where s.stream = p_stream and s.awaits_connection and p_lacks is null;
    return true;
end $$;
comment on function collect.declare_stream(text, text, text, text, text, text, boolean, boolean, boolean, integer, text) is
    'A stream as declared, under the gate: a new one is activated, or waits where it lacks a connection, until it lacks none; what an operator set is kept; false where nothing differs';

create function collect.serve(p_stream text, p_active boolean, p_why text, p_who text) returns timestamptz
language plpgsql volatile set search_path = collect, pg_temp as $$
declare t timestamptz;
begin
    perform pg_advisory_xact_lock(9010, 0);
    t := (select g.at from collect.pass_gate('service of ' || p_stream || ' by ' || p_who) g);
    update collect.streams s
       set active = p_active, activated_at = case when p_active then t else s.activated_at end,
           retired_at = case when p_active then null else t end, service_by = p_who, service_why = p_why,
           awaits_connection = false, updated_at = t
     where s.stream = p_stream and s.active <> p_active;
    return case when found then t end;
end $$;
comment on function collect.serve(text, boolean, text, text) is
    'Take a stream out of service, or back into it, under the gate; null where it is so already or unknown';

-- state writes of cycles, as in 0004 and besides: windows that dispatch made, health, seen items -----------

create function collect.cursor_before(p_stream text, p_start timestamptz) returns jsonb language sql volatile as $$
    select case when c.cycle_status = 'BUDGET_EXHAUSTED' then c.continuation_cursor end
      from collect.cycles c
     where c.stream = p_stream and c.window_start < p_start and c.attempt > 0
     order by c.window_start desc limit 1
$$;
comment on function collect.cursor_before(text, timestamptz) is
    'What a window takes over from the last one that was worked on: its cursor, where it ran out of budget';

create or replace function collect.open_window(p_stream text, p_slot text, p_run_date date, p_start timestamptz, p_due timestamptz,
                                               p_session date, p_kind text)
returns bigint language plpgsql volatile set search_path = collect, pg_temp as $$
declare t timestamptz; v_id bigint; v_old record; v_own bigint; v_stale bigint[]; v_why text;
begin
    -- Rows of cycles are locked first, the gate comes after them, and only then is anything written. Its own row is
    -- waited for, so that a second caller finds the window that the first one opened; the others are not.
    select c.cycle_id into v_own from collect.cycles c
     where c.stream = p_stream and c.mode = 'poll' and c.slot = p_slot and c.cycle_status = 'NOT_STARTED' and c.window_start = p_start
       for update;
    select c.cycle_id, c.mode, c.slot, c.session_date, c.run_date, c.window_start, c.budget_exhausted_reason, c.attempt, c.next_eligible_at
      into v_old from collect.cycles c
     where c.stream = p_stream and c.mode = 'poll' and c.run_id is null and c.cycle_status = 'PENDING'
       and c.window_start < p_start for update skip locked;
    v_stale := array(select c.cycle_id from collect.cycles c
                      where c.stream = p_stream and c.mode = 'poll' and c.run_id is null and c.cycle_status = 'NOT_STARTED'
                        and c.window_start < p_start
                      order by c.window_start for update skip locked);
    t := (select g.at from collect.pass_gate('open ' || p_stream) g);
    if collect.frozen(p_stream) is not null or collect.dispatch_is_off() is not null
       or not exists (select 1 from collect.streams s where s.stream = p_stream and s.active)
       or exists (select 1 from collect.cycles c where c.stream = p_stream and c.mode = 'poll' and c.slot = p_slot
                     and c.cycle_id is distinct from v_own) then
        return null;
    end if;
    if v_old.cycle_id is not null then
        delete from collect.seen_items where cycle_id = v_old.cycle_id;
    end if;
    if v_old.budget_exhausted_reason is not null then
        -- It waits for nothing but its next slice: what it has not done is handed on, and nothing has failed.
        update collect.cycles set cycle_status = 'BUDGET_EXHAUSTED', outcome = 'success', finished_at = t, updated_at = t, gate_at = t
         where cycle_id = v_old.cycle_id and cycle_status = 'PENDING';
        perform collect.tell_out_of_budget(p_stream, v_old.run_date);
    elsif v_old.cycle_id is not null then
        v_why := case when v_old.attempt = 0 then 'never started'
                      when v_old.next_eligible_at is null then 'stopped, and not taken up again'
                      else 'not published by its last try' end;
        update collect.cycles set cycle_status = 'FAILED', failure_kind = 'retriable', outcome = 'failed_retriable', abnormal = true,
               failure_reason = v_why,
               failure_cause_summary = 'The window of ' || p_slot || ' opened while this one still waited; its keys stay pending.',
               finished_at = t, updated_at = t, gate_at = t
         where cycle_id = v_old.cycle_id and cycle_status = 'PENDING';
        perform ops.open_incident('failing/' || p_stream, 'error',
                format('%s: window %s KST, session %s, was %s: the next window opened while it still waited. '
                       'Nothing is lost: its keys stay pending and are asked for again. Look whether %s, or run '
                       'mode=backfill for the session.',
                       p_stream, to_char(v_old.window_start at time zone 'Asia/Seoul', 'YYYY-MM-DD HH24:MI'),
                       coalesce(v_old.session_date::text, 'none'), v_why,
                       case when v_old.attempt > 0 and v_old.next_eligible_at is not null then 'the upstream is late or refuses us'
                            else 'its DAG ran, or it was frozen' end),
                p_stream, 'cycle/' || v_old.cycle_id || '/FAILED', interval '20 hours');
    end if;
    update collect.cycles set cycle_status = 'FAILED', failure_kind = 'retriable', outcome = 'failed_retriable', abnormal = true,
           failure_reason = 'never started',
           failure_cause_summary = 'Nobody opened it before the window of ' || p_slot || ', which asks for what it was responsible for.',
           finished_at = t, updated_at = t, gate_at = t
     where cycle_id = any(v_stale) and cycle_status = 'NOT_STARTED';
    if v_own is not null then
        -- One poll of a stream is open at a time: where another still runs, this one waits for the next call.
        begin
            update collect.cycles c
               set cycle_status = 'PENDING', next_eligible_at = p_start, continuation_cursor = collect.cursor_before(p_stream, p_start),
                   updated_at = t, gate_at = t
             where c.cycle_id = v_own and c.cycle_status = 'NOT_STARTED' returning c.cycle_id into v_id;
        exception when unique_violation then return null;
        end;
        return v_id;
    end if;
    insert into collect.cycles (stream, mode, slot, run_date, window_start, due_at, session_date, kind, cycle_status,
                                next_eligible_at, continuation_cursor, created_at, updated_at, gate_at)
    values (p_stream, 'poll', p_slot, p_run_date, p_start, p_due, p_session, p_kind, 'PENDING', p_start,
            collect.cursor_before(p_stream, p_start), t, t, t)
    on conflict do nothing
    returning cycle_id into v_id;
    return v_id;
end $$;
comment on function collect.open_window(text, text, date, timestamptz, timestamptz, date, text) is
    'Open a poll window, made by dispatch or not, closing older ones that still wait; null where it was opened before, another is being worked on, or the stream is frozen or out of service, or dispatch is off';

create or replace function collect.claim(p_stream text, p_mode text, p_run_id text, p_owner text, p_ttl interval)
returns setof collect.cycles language plpgsql volatile as $$
declare v_id bigint; t timestamptz; v_nothing text;
begin
    -- A freeze waits for this lock, so what is asked after it is asked of what was committed. Nothing after it waits for
    -- a row, so that it comes before the rows here.
    if p_mode <> 'replay' then v_nothing := pg_advisory_xact_lock_shared(9010, 0); end if;
    t := collect.clock();
    -- Mostly nobody has vanished and nothing is frozen, which is seen at a glance.
    if exists (select 1 from collect.cycles c where c.cycle_status = 'RUNNING' and c.lease_until <= t and c.stream = p_stream)
       or (p_mode <> 'replay'
           and (exists (select 1 from collect.controls k where k.state in ('frozen', 'draining'))
                or exists (select 1 from collect.control_defaults d where d.state = 'frozen')
                or exists (select 1 from collect.streams s where s.stream = p_stream and not s.active))) then
        perform collect.recover(p_stream, 20);
        if p_mode <> 'replay' and collect.frozen(p_stream) is not null then return; end if;
    elsif p_run_id is not null then
        -- A chunk's claim that a crash of the server takes back does no harm: its random token is never issued again, so its
        -- holder's next write is refused, and any later durable commit keeps it. What goes through the gate is durable.
        v_nothing := set_config('synchronous_commit', 'off', true);
    end if;
    if p_run_id is not null then
        -- No gate is between the choice and the write here, so that both are one statement; what skips locked rows waits for
        -- none, and the clock stands as it was read. The run is looked for as one of a list, and is the first to be ordered by:
        -- so the index of what waits is the only one in that order. By the cycles' numbers a claim would walk over all that the
        -- run has done, which looks cheap to a planner that takes what waits for evenly spread.
        return query
            update collect.cycles c
               set cycle_status = 'RUNNING', lease_token = gen_random_uuid(), lease_owner = p_owner, lease_until = t + p_ttl,
                   worked_by = p_owner, attempt = c.attempt + 1, started_at = coalesce(c.started_at, t), next_eligible_at = null, budget_exhausted_reason = null,
                   updated_at = t, gate_at = case when p_mode = 'poll' then t end
             where c.cycle_id = (select r.cycle_id from collect.cycles r
                                  where r.stream = p_stream and r.mode = p_mode and r.run_id = any (array[p_run_id])
                                    and r.cycle_status = 'PENDING' and (r.next_eligible_at is null or r.next_eligible_at <= t)
                                  order by r.run_id, r.cycle_id limit 1 for update skip locked)
               and c.cycle_status = 'PENDING'
            returning c.*;
        return;
    end if;
    select c.cycle_id into v_id from collect.cycles c
     where c.stream = p_stream and c.mode = p_mode and c.run_id is null and c.cycle_status = 'PENDING'
       and (c.next_eligible_at is null or c.next_eligible_at <= t)
     order by c.run_date = (t at time zone 'Asia/Seoul')::date desc, c.run_date desc,
              c.next_eligible_at nulls first, c.cycle_id
     limit 1 for update skip locked;
    if not found then return; end if;
    t := collect.gate_for(p_mode, p_run_id, p_owner);
    return query
        update collect.cycles c
           set cycle_status = 'RUNNING', lease_token = gen_random_uuid(), lease_owner = p_owner, lease_until = t + p_ttl,
               worked_by = p_owner, attempt = c.attempt + 1, started_at = coalesce(c.started_at, t), next_eligible_at = null, budget_exhausted_reason = null,
               updated_at = t, gate_at = t
         where c.cycle_id = v_id and c.cycle_status = 'PENDING'
        returning c.*;
end $$;
comment on function collect.claim(text, text, text, text, interval) is
    'End the leases of a stream whose holder vanished, then claim its next eligible cycle: new token, attempt + 1; no row where none is to be had';

create or replace function collect.settle(p_cycle bigint, p_token uuid, p_status text, p_facts jsonb)
returns timestamptz language plpgsql volatile as $$
declare v record; t timestamptz; v_over boolean := p_status in ('SUCCESS', 'FAILED', 'BUDGET_EXHAUSTED');
begin
    select c.mode, c.run_id, c.lease_owner into v from collect.cycles c where c.cycle_id = p_cycle for no key update;
    if v_over and v.mode = 'poll' then
        -- Before the gate, so that it is held for a moment only.
        delete from collect.seen_items where cycle_id = p_cycle;
    end if;
    t := collect.gate_for(v.mode, v.run_id, v.lease_owner);
    update collect.cycles c
       set cycle_status = p_status,
           is_complete = p_status = 'SUCCESS',
           lease_token = case when p_status = 'RUNNING' then c.lease_token end,
           lease_owner = case when p_status = 'RUNNING' then c.lease_owner end,
           lease_until = case when p_status = 'RUNNING' then c.lease_until end,
           next_eligible_at = (p_facts->>'next_eligible_at')::timestamptz,
           continuation_cursor = case when p_facts ? 'cursor' then nullif(p_facts->'cursor', 'null'::jsonb)
                                      else c.continuation_cursor end,
           list_page_count = c.list_page_count + coalesce((p_facts->>'list_pages')::int, 0),
           fetched_count = c.fetched_count + coalesce((p_facts->>'fetched')::bigint, 0),
           new_count = c.new_count + coalesce((p_facts->>'new')::bigint, 0),
           changed_count = c.changed_count + coalesce((p_facts->>'changed')::bigint, 0),
           withdrawn_count = c.withdrawn_count + coalesce((p_facts->>'withdrawn')::bigint, 0),
           quarantined_count = c.quarantined_count + coalesce((p_facts->>'quarantined')::bigint, 0),
           detail_request_count = c.detail_request_count + coalesce((p_facts->>'details')::int, 0),
           detail_failure_count = c.detail_failure_count + coalesce((p_facts->>'detail_failures')::int, 0),
           detail_skipped_count = c.detail_skipped_count + coalesce((p_facts->>'details_skipped')::int, 0),
           missed_count = coalesce((p_facts->>'missed')::bigint, c.missed_count),
           closed_count = coalesce((p_facts->>'closed')::bigint, c.closed_count),
           seen_count = coalesce((p_facts->>'seen')::bigint, c.seen_count),
           abnormal = case when v.mode = 'poll' and v.run_id is null then
               case p_status when 'FAILED' then true when 'SUCCESS' then coalesce((p_facts->>'abnormal')::boolean, false) end end,
           failed_attempts = c.failed_attempts + coalesce((p_facts->>'failed_attempt')::smallint, 0::smallint),
           budget_exhausted_reason = p_facts->>'budget',
           success_reason = p_facts->>'success_reason',
           outcome = case when v_over then coalesce(p_facts->>'outcome', case
               when p_status <> 'FAILED' then 'success'
               when p_facts->>'failure_kind' in ('terminal', 'refused') then 'failed_terminal'
               else 'failed_retriable' end) end,
           failure_reason = left(p_facts->>'failure_reason', 200),
           failure_cause_summary = left(p_facts->>'failure_cause', 1000),
           failure_kind = p_facts->>'failure_kind',
           finished_at = case when v_over then t end,
           updated_at = t,
           gate_at = case when c.mode = 'poll' then t end
     where c.cycle_id = p_cycle and c.lease_token = p_token and c.cycle_status = 'RUNNING' and c.lease_until > t;
    if not found then
        raise exception using errcode = 'DBL01',
            message = format('the lease of cycle %s is over; nothing of this attempt is written', p_cycle);
    end if;
    return t;
end $$;

create or replace function collect.recover(p_stream text, p_limit integer) returns setof collect.cycles
language plpgsql volatile set search_path = collect, pg_temp as $$
declare v collect.cycles; v_now timestamptz := collect.clock(); t timestamptz; v_retry boolean;
begin
    for v in select * from collect.cycles c
              where c.cycle_status = 'RUNNING' and c.lease_until <= v_now
                and (p_stream is null or c.stream = p_stream)
              order by c.lease_until limit p_limit for update skip locked
    loop
        t := collect.gate_for(v.mode, v.run_id, 'recovery');
        if v.mode = 'poll' then delete from collect.seen_items where cycle_id = v.cycle_id; end if;
        v_retry := v.mode <> 'poll' and v.failed_attempts + 1 < 3;
        return query
            update collect.cycles c
               set cycle_status = case when v_retry then 'PENDING' else 'FAILED' end,
                   lease_token = null, lease_owner = null, lease_until = null,
                   failed_attempts = c.failed_attempts + 1,
                   abnormal = case when v.mode = 'poll' and v.run_id is null then true end,
                   next_eligible_at = null,
                   failure_kind = case when not v_retry then 'retriable' end,
                   outcome = case when not v_retry then 'failed_retriable' end,
                   failure_reason = case when not v_retry then 'lease expired' end,
                   failure_cause_summary = case when not v_retry then
                       format('%s held the lease until %s and gave no sign of life; what it had stored is kept and will be applied.',
                              c.lease_owner, c.lease_until) end,
                   finished_at = case when not v_retry then t end,
                   updated_at = t, gate_at = case when c.mode = 'poll' then t end
             where c.cycle_id = v.cycle_id and c.cycle_status = 'RUNNING' and c.lease_until <= t
            returning c.*;
        if found then
            insert into collect.lease_events (at, kind, cycle_id, stream, attempt, holder, words)
            values (t, 'expired', v.cycle_id, v.stream, v.attempt, v.lease_owner,
                    format('held until %s and gave no sign of life', v.lease_until));
        end if;
        if v.mode = 'poll' and v.run_id is null then
            perform collect.tell_second_failure(v.cycle_id);
        end if;
    end loop;
end $$;

-- history -----------------------------------------------------------------------------------------------

create view collect.run_history as
select c.cycle_id, c.stream, split_part(c.stream, '.', 1) as source, c.cycle_status as run_status, c.outcome, c.kind, c.slot, c.run_date,
       c.window_start, c.due_at, c.session_date, c.started_at, c.finished_at, c.attempt, c.list_page_count, c.fetched_count, c.new_count,
       c.changed_count, c.withdrawn_count, c.seen_count, c.missed_count, c.closed_count, c.quarantined_count, c.detail_request_count,
       c.detail_failure_count, c.detail_skipped_count, c.abnormal, c.success_reason, c.failure_kind, c.failure_reason,
       c.failure_cause_summary, c.cycle_status, c.cycle_status = 'BUDGET_EXHAUSTED' as is_budget_exhausted, c.budget_exhausted_reason
  from collect.cycles c
 where c.mode = 'poll' and c.run_id is null and c.cycle_status in ('SUCCESS', 'FAILED');
comment on view collect.run_history is
    'One row for each poll window that ended SUCCESS or FAILED; none for one in progress or out of budget';
