-- 0004 lease: the server functions that change the state of a cycle, and those that ration an upstream. Expand-only.
-- Roll-back note: functions are replaced, never dropped, while a release that calls them may still run.
--
-- Every function here is VOLATILE, reads the clock after the locks it waits for, and is sent together with its
-- COMMIT, so that no paused client holds the gate. The order of locks is cycle row, then gate, everywhere.
--
-- What every claim and settlement calls (clock, pass_gate, gate_for, claim, settle) names every object with its schema and
-- sets no search_path: a function that changes it makes whatever is called within and without it be planned anew each time.

create table collect.lease_events (
    event_id  bigint generated always as identity primary key,
    at        timestamptz(6) not null,
    kind      text not null check (kind in ('expired', 'refused')),
    cycle_id  bigint not null,
    stream    text not null,
    attempt   integer not null,
    holder    text,
    words     text not null
);
comment on table collect.lease_events is 'Leases that ended because their holder vanished, and writes refused to holders whose lease was over';
comment on column collect.lease_events.event_id is 'Number';
comment on column collect.lease_events.at is 'When it was ended, or the write refused';
comment on column collect.lease_events.kind is 'expired: ended by recovery; refused: a write came after the end, and nothing of it was kept';
comment on column collect.lease_events.cycle_id is 'Cycle';
comment on column collect.lease_events.stream is 'Its stream';
comment on column collect.lease_events.attempt is 'The claim that it was';
comment on column collect.lease_events.holder is 'Who held it';
comment on column collect.lease_events.words is 'What was seen';
create index lease_events_by_time on collect.lease_events (at, kind);

create function collect.pass_gate(who text, out at timestamptz, out path text)
language plpgsql volatile as $$
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'the gate needs READ COMMITTED, this transaction is %', current_setting('transaction_isolation');
    end if;
    perform set_config('idle_in_transaction_session_timeout', '2s', true);
    perform pg_advisory_xact_lock_shared(9009, 0);
    at := collect.clock();
    path := 'shared';
end $$;
comment on function collect.pass_gate(text) is 'The one lock that puts every state write before or after a snapshot; the last lock of a transaction';

create function collect.gate_for(p_mode text, p_run_id text, who text) returns timestamptz
language plpgsql volatile as $$
declare v record;
begin
    if p_mode = 'poll' and p_run_id is null then
        v := collect.pass_gate(who);
        return v.at;
    end if;
    return collect.clock();
end $$;
comment on function collect.gate_for(text, text, text) is 'The clock, after the gate where the cycle is a scheduled poll; other cycles pass no gate';

create function collect.frozen(p_stream text) returns text
language sql volatile as $$
    select format('%s %s is %s since %s by %s: %s', scope, name, state, changed_at, changed_by, reason)
      from collect.controls
     where state in ('frozen', 'draining')
       and (scope = 'all' or (scope = 'source' and name = split_part(p_stream, '.', 1))
            or (scope = 'stream' and name = p_stream))
     limit 1
$$;
comment on function collect.frozen(text) is 'Why no new work of a stream may be claimed; null where it may';

create function collect.open_window(p_stream text, p_slot text, p_run_date date, p_start timestamptz, p_due timestamptz,
                                    p_session date, p_kind text)
returns bigint language plpgsql volatile set search_path = collect, pg_temp as $$
declare t timestamptz; v_id bigint; v_old record;
begin
    -- The window that still waits is locked first, the gate comes after it, and only then is anything written.
    select c.cycle_id, c.mode, c.slot, c.session_date into v_old from collect.cycles c
     where c.stream = p_stream and c.mode = 'poll' and c.run_id is null and c.cycle_status = 'PENDING'
       and c.window_start < p_start for update skip locked;
    t := (select g.at from collect.pass_gate('open ' || p_stream) g);
    if collect.frozen(p_stream) is not null
       or not exists (select 1 from collect.streams s where s.stream = p_stream and s.active)
       or exists (select 1 from collect.cycles c where c.stream = p_stream and c.mode = 'poll' and c.slot = p_slot) then
        return null;
    end if;
    if v_old.cycle_id is not null then
        update collect.cycles set cycle_status = 'FAILED', failure_kind = 'retriable', outcome = 'failed_retriable',
               failure_reason = 'not published by its last try',
               failure_cause_summary = 'The window of ' || p_slot || ' opened while this one still waited; its keys stay pending.',
               finished_at = t, updated_at = t, gate_at = t
         where cycle_id = v_old.cycle_id and cycle_status = 'PENDING';
    end if;
    insert into collect.cycles (stream, mode, slot, run_date, window_start, due_at, session_date, kind, cycle_status,
                                next_eligible_at, continuation_cursor, created_at, updated_at, gate_at)
    values (p_stream, 'poll', p_slot, p_run_date, p_start, p_due, p_session, p_kind, 'PENDING', p_start,
            (select case when n.cycle_status = 'BUDGET_EXHAUSTED' then n.continuation_cursor end from collect.cycles n
              where n.stream = p_stream and n.window_start < p_start order by n.window_start desc limit 1), t, t, t)
    on conflict do nothing
    returning cycle_id into v_id;
    return v_id;
end $$;
comment on function collect.open_window(text, text, date, timestamptz, timestamptz, date, text) is
    'Open a poll window, closing an older one that still waits; null where it exists, another is being worked on, or the stream is frozen or out of service';

create function collect.claim(p_stream text, p_mode text, p_run_id text, p_owner text, p_ttl interval)
returns setof collect.cycles language plpgsql volatile as $$
declare v collect.cycles; t timestamptz;
begin
    if p_mode <> 'replay' and collect.frozen(p_stream) is not null then return; end if;
    if p_run_id is null then
        select * into v from collect.cycles c
         where c.stream = p_stream and c.mode = p_mode and c.run_id is null and c.cycle_status = 'PENDING'
           and (c.next_eligible_at is null or c.next_eligible_at <= collect.clock())
         order by c.run_date = (collect.clock() at time zone 'Asia/Seoul')::date desc, c.run_date desc,
                  c.next_eligible_at nulls first, c.cycle_id
         limit 1 for update skip locked;
    else
        select * into v from collect.cycles c
         where c.stream = p_stream and c.mode = p_mode and c.run_id = p_run_id and c.cycle_status = 'PENDING'
           and (c.next_eligible_at is null or c.next_eligible_at <= collect.clock())
         order by c.cycle_id
         limit 1 for update skip locked;
    end if;
    if not found then return; end if;
    t := collect.gate_for(v.mode, v.run_id, p_owner);
    return query
        update collect.cycles c
           set cycle_status = 'RUNNING', lease_token = gen_random_uuid(), lease_owner = p_owner, lease_until = t + p_ttl,
               attempt = c.attempt + 1, started_at = coalesce(c.started_at, t), next_eligible_at = null, updated_at = t,
               gate_at = case when v.mode = 'poll' then t end
         where c.cycle_id = v.cycle_id and c.cycle_status = 'PENDING'
        returning c.*;
end $$;
comment on function collect.claim(text, text, text, text, interval) is
    'Claim the next eligible cycle of a stream: new token, attempt + 1; no row where none is to be had';

create function collect.renew(p_cycle bigint, p_token uuid, p_ttl interval) returns timestamptz
language sql volatile as $$
    update collect.cycles set lease_until = collect.clock() + p_ttl
     where cycle_id = p_cycle and lease_token = p_token and cycle_status = 'RUNNING' and lease_until > collect.clock()
    returning lease_until
$$;
comment on function collect.renew(bigint, uuid, interval) is 'Prolong a lease that is not over; null where it is';

create function collect.settle(p_cycle bigint, p_token uuid, p_status text, p_facts jsonb)
returns timestamptz language plpgsql volatile as $$
declare v collect.cycles; t timestamptz; v_over boolean := p_status in ('SUCCESS', 'FAILED', 'BUDGET_EXHAUSTED');
begin
    select * into v from collect.cycles where cycle_id = p_cycle for update;
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
comment on function collect.settle(bigint, uuid, text, jsonb) is
    'Write a cycle''s state, cursor and counters under its token, after the gate; raises DBL01 where the lease is over';

create function collect.tell_second_failure(p_cycle bigint) returns void
language sql volatile as $$
    insert into ops.alerts (alert_key, severity, text, next_try_at, created_at)
    select 'cycle/' || c.cycle_id || '/FAILED', 'error',
           format('%s failed twice in a row: window %s KST, session %s: %s. %s Nothing stored is lost; the next window asks again.',
                  c.stream, to_char(c.window_start at time zone 'Asia/Seoul', 'YYYY-MM-DD HH24:MI'), c.session_date,
                  c.failure_reason, c.failure_cause_summary),
           collect.clock(), collect.clock()
      from collect.cycles c
     where c.cycle_id = p_cycle and c.cycle_status = 'FAILED'
       and (select p.cycle_status = 'FAILED' from collect.cycles p
             where p.stream = c.stream and p.window_start < c.window_start order by p.window_start desc limit 1)
    on conflict (alert_key) do nothing
$$;
comment on function collect.tell_second_failure(bigint) is
    'Put an alert where a window failed like the one before it; a single failure that a retry repairs is not told';

create function collect.recover(p_stream text, p_limit integer) returns setof collect.cycles
language plpgsql volatile set search_path = collect, pg_temp as $$
declare v collect.cycles; t timestamptz; v_retry boolean;
begin
    for v in select * from collect.cycles c
              where c.cycle_status = 'RUNNING' and c.lease_until <= collect.clock()
                and (p_stream is null or c.stream = p_stream)
              order by c.lease_until limit p_limit for update skip locked
    loop
        t := collect.gate_for(v.mode, v.run_id, 'recovery');
        v_retry := v.mode <> 'poll' and v.failed_attempts + 1 < 3;
        return query
            update collect.cycles c
               set cycle_status = case when v_retry then 'PENDING' else 'FAILED' end,
                   lease_token = null, lease_owner = null, lease_until = null,
                   failed_attempts = c.failed_attempts + 1,
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
        if v.mode = 'poll' and v.run_id is null then
            perform collect.tell_second_failure(v.cycle_id);
        end if;
    end loop;
end $$;
comment on function collect.recover(text, integer) is
    'End the leases whose holder vanished: polls fail, chunks wait again until the third time; a locked row is alive';

-- host groups --------------------------------------------------------------------------------------------

create function collect.reserve(p_group text, p_patient boolean, p_keys text[], p_leaves bigint,
                                out wait interval, out epoch bigint, out blocked_until timestamptz,
                                out key_fingerprint text, out used_up_until timestamptz)
language plpgsql volatile set search_path = collect, pg_temp as $$
declare v collect.host_groups; t timestamptz; v_day date;
begin
    select * into v from collect.host_groups where host_group = p_group for update;
    if not found then raise exception 'host group % is not declared', p_group; end if;
    t := collect.clock();
    epoch := v.epoch;
    if v.blocked_until > t then
        blocked_until := v.blocked_until;
        return;
    end if;
    if v.quota is not null or cardinality(p_keys) > 0 then
        -- Under the group's row, so that workers side by side cannot spend the last request twice.
        v_day := (t at time zone coalesce(v.quota_zone, 'UTC'))::date;
        select k.fingerprint into key_fingerprint
          from unnest(case when cardinality(p_keys) > 0 then p_keys else array['none'] end) with ordinality as k (fingerprint, n)
          left join collect.key_usage u
            on u.host_group = p_group and u.key_fingerprint = k.fingerprint and u.usage_date = v_day
         where (v.quota is null or coalesce(u.used, 0) < v.quota - p_leaves) and (u.parked_until is null or u.parked_until <= t)
         order by k.n limit 1;
        if not found then
            used_up_until := (v_day + 1)::timestamp at time zone coalesce(v.quota_zone, 'UTC');
            return;
        end if;
    end if;
    -- Polls queue for a slot; backfills and replays take one only when nobody queues, so they never delay a poll
    -- by more than one interval.
    if p_patient and v.next_allowed_at > t then
        wait := v.next_allowed_at - t;
        epoch := null;
        return;
    end if;
    wait := greatest(v.next_allowed_at - t, interval '0');
    update collect.host_groups set next_allowed_at = greatest(t, v.next_allowed_at) + v.interval, updated_at = t
     where host_group = p_group;
    if key_fingerprint is not null then
        insert into collect.key_usage as u (host_group, key_fingerprint, usage_date, used, updated_at)
        values (p_group, reserve.key_fingerprint, v_day, 1, t)
        on conflict on constraint key_usage_pkey do update set used = u.used + 1, updated_at = t;
    end if;
end $$;
comment on function collect.reserve(text, boolean, text[], bigint) is
    'Reserve the next request of a host group, and one of a key that has some left today: how long to wait, or until when it is blocked or all keys are used up; epoch null: ask again after the wait';

create function collect.use_up(p_group text, p_key text) returns timestamptz
language plpgsql volatile set search_path = collect, pg_temp as $$
declare v collect.host_groups; t timestamptz; v_day date; v_until timestamptz;
begin
    select * into v from collect.host_groups where host_group = p_group for update;
    t := collect.clock();
    v_day := (t at time zone coalesce(v.quota_zone, 'UTC'))::date;
    v_until := (v_day + 1)::timestamp at time zone coalesce(v.quota_zone, 'UTC');
    insert into collect.key_usage as u (host_group, key_fingerprint, usage_date, used, parked_until, updated_at)
    values (p_group, p_key, v_day, coalesce(v.quota, 0), v_until, t)
    on conflict on constraint key_usage_pkey do update
       set used = greatest(u.used, excluded.used), parked_until = excluded.parked_until, updated_at = t;
    return v_until;
end $$;
comment on function collect.use_up(text, text) is
    'The upstream says that a key has no requests left today: its ledger is full, whatever we counted; until when';

create function collect.confirm(p_group text, p_epoch bigint, out sent_at timestamptz, out blocked_until timestamptz)
language sql volatile as $$
    select case when h.epoch = p_epoch then collect.clock() end,
           case when h.epoch <> p_epoch then greatest(h.blocked_until, collect.clock()) end
      from collect.host_groups h where h.host_group = p_group
$$;
comment on function collect.confirm(text, bigint) is
    'After the wait: the instant of sending, or until when the group has been blocked since the reservation';

create function collect.block(p_group text, p_for interval, p_reason text) returns timestamptz
language sql volatile as $$
    update collect.host_groups
       set blocked_until = greatest(blocked_until, collect.clock() + coalesce(p_for, penalty)), blocked_reason = left(p_reason, 1000),
           epoch = epoch + 1, next_allowed_at = greatest(next_allowed_at, collect.clock() + coalesce(p_for, penalty)),
           updated_at = collect.clock()
     where host_group = p_group
    returning blocked_until
$$;
comment on function collect.block(text, interval, text) is
    'Stop a host group for its penalty time and void every reservation made before';
