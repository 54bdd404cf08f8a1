-- 0006 alerts: incidents that open and close by themselves, silences, signs of life, paused jobs. Expand-only.
-- Roll-back note: silences and signs of life may be dropped with the release that writes them; incidents are kept, and
-- ops.alerts goes on without any of this.
--
-- Something that is wrong and lasts is an incident, known by its key: kind/what, as in failing/finra.short_volume. It is
-- told when it opens, when it gets worse, and once more after a day; that it is over is told once. Whoever knows the fact
-- opens or closes it in the same transaction. Messages have the order of their numbers, which are given when they are put,
-- not when they are committed: who commits late is sent later, and never lost, as each message is marked by itself. That
-- something is over is always numbered after what told of it, and after that was committed: it is put by whoever has
-- locked the incident's row. Rows of incidents are locked in the order of their keys, and before the gate;
-- those that come after it (a verdict, the second failure of a window whose holder vanished, what is told of a window that
-- the next one closes) are touched by nobody else who waits for the gate: one window of a stream is open at a time.

-- what lasts ---------------------------------------------------------------------------------------------

create table ops.incidents (
    incident_id   bigint generated always as identity primary key,
    incident_key  text not null check (incident_key like '%/%'),
    kind          text not null generated always as (split_part(incident_key, '/', 1)) stored,
    stream        text,
    severity      text not null check (severity in ('warning', 'error', 'critical')),
    text          text not null,
    opened_at     timestamptz(6) not null,
    seen_at       timestamptz(6) not null,
    seen_count    integer not null default 1,
    told_at       timestamptz(6) not null,
    told_count    integer not null default 1,
    closed_at     timestamptz(6),
    closed_text   text,
    constraint incidents_closed_says_how check ((closed_at is null) = (closed_text is null))
);
comment on table ops.incidents is 'What is wrong and lasts; it opens and closes by itself, by whoever finds it so';
comment on column ops.incidents.incident_id is 'Number';
comment on column ops.incidents.incident_key is 'What is wrong, of what: kind/what; one of a key is open at a time';
comment on column ops.incidents.kind is 'The part of the key before the first slash';
comment on column ops.incidents.stream is 'Stream that it is about; null where it is about none';
comment on column ops.incidents.severity is 'How bad it has been at worst';
comment on column ops.incidents.text is 'What was last seen, in words';
comment on column ops.incidents.opened_at is 'When it was first seen';
comment on column ops.incidents.seen_at is 'When it was last seen';
comment on column ops.incidents.seen_count is 'How often it was seen';
comment on column ops.incidents.told_at is 'When it was last put into the alert outbox';
comment on column ops.incidents.told_count is 'How often it was told';
comment on column ops.incidents.closed_at is 'When it was over; null while it lasts';
comment on column ops.incidents.closed_text is 'What ended it, in words';
create unique index incidents_one_open on ops.incidents (incident_key) where closed_at is null;
create index incidents_by_time on ops.incidents (opened_at desc);
create index incidents_of_stream on ops.incidents (stream, opened_at desc) where stream is not null;

-- silences -----------------------------------------------------------------------------------------------

create table ops.silences (
    silence_id  bigint generated always as identity primary key,
    pattern     text not null check (length(pattern) between 1 and 500),
    reason      text not null check (reason ~ '\S'),
    made_by     text not null check (made_by ~ '\S'),
    made_at     timestamptz(6) not null,
    ends_at     timestamptz(6) not null,
    lifted_by   text,
    lifted_why  text,
    constraint silences_end check (ends_at >= made_at),
    constraint silences_lifted_says_why check ((lifted_by is null) = (lifted_why is null))
);
comment on table ops.silences is 'Alerts that are not sent for a while, with the reason; they stay in the outbox, marked';
comment on column ops.silences.silence_id is 'Number';
comment on column ops.silences.pattern is 'Key of the alerts; * stands for anything';
comment on column ops.silences.reason is 'Why';
comment on column ops.silences.made_by is 'Who';
comment on column ops.silences.made_at is 'Since when';
comment on column ops.silences.ends_at is 'Until when; earlier than planned where it was lifted';
comment on column ops.silences.lifted_by is 'Who lifted it before its time; null where nobody did';
comment on column ops.silences.lifted_why is 'Why so';

alter table ops.alerts
    add column incident_id bigint,
    add column silence_id bigint,
    add column silenced_at timestamptz(6),
    add column refused_at timestamptz(6),
    add column refused_why text,
    add column settled_by text,
    add column settled_why text,
    add constraint alerts_refused_says_why check ((refused_at is null) = (refused_why is null)),
    add constraint alerts_settled_says_why check ((settled_by is null) = (settled_why is null));
comment on column ops.alerts.incident_id is 'Incident that it tells of; null where it tells of none';
comment on column ops.alerts.silence_id is 'Silence that kept it from being sent';
comment on column ops.alerts.silenced_at is 'When it was so marked; it is not sent afterwards';
comment on column ops.alerts.refused_at is 'When Slack refused it for good and it was put aside, so that those behind it go on; null where it was not';
comment on column ops.alerts.refused_why is 'What Slack said';
comment on column ops.alerts.settled_by is 'Who had it tried again or dropped after that; null while it is put aside and nobody has decided';
comment on column ops.alerts.settled_why is 'Why so';
create index alerts_waiting on ops.alerts (alert_id) where sent_at is null and silenced_at is null and refused_at is null;
create index alerts_put_aside on ops.alerts (alert_id) where refused_at is not null and settled_by is null;
create index alerts_delivered on ops.alerts (sent_at) where sent_at is not null;

create function ops.mark_silenced() returns integer language plpgsql volatile as $$
declare t timestamptz := collect.clock(); v_count integer;
begin
    -- Whatever was put while a silence held, and whatever still waits while one holds.
    update ops.alerts a set silence_id = s.silence_id, silenced_at = t
      from (select w.alert_id, min(q.silence_id) as silence_id
              from ops.alerts w
              join ops.silences q on q.ends_at > greatest(w.created_at, q.made_at)
                                 and (q.ends_at > t or w.created_at >= q.made_at)
                                 and w.alert_key like replace(replace(replace(replace(q.pattern, '\', '\\'), '%', '\%'), '_', '\_'), '*', '%')
             where w.sent_at is null and w.silenced_at is null and w.refused_at is null
             group by w.alert_id) s
     where a.alert_id = s.alert_id;
    get diagnostics v_count = row_count;
    return v_count;
end $$;
comment on function ops.mark_silenced() is 'Mark the waiting alerts that a silence covers, so that they are not sent; how many';

-- signs of life, and what is paused ----------------------------------------------------------------------

create table ops.signs_of_life (
    name     text primary key,
    seen_at  timestamptz(6) not null
);
comment on table ops.signs_of_life is 'When something that must run all the time last did';
comment on column ops.signs_of_life.name is 'Who shows it: upkeep, and so Airflow''s scheduler';
comment on column ops.signs_of_life.seen_at is 'When last';

-- Who paused a DAG stands in Airflow's own audit log alone (include/ops/paused.py reads it for the API, in Airflow's web
-- server). These rows are upkeep's note of the same fact for those who have no Airflow to ask: the watcher above all.
create table ops.paused_jobs (
    job      text primary key,
    since    timestamptz(6) not null,
    seen_at  timestamptz(6) not null
);
comment on table ops.paused_jobs is 'Jobs whose DAG is paused in Airflow, as upkeep last saw it; their windows are late all the same';
comment on column ops.paused_jobs.job is 'Name of the DAG';
comment on column ops.paused_jobs.since is 'When it was first seen paused';
comment on column ops.paused_jobs.seen_at is 'When it was last seen paused';

-- opening and closing ------------------------------------------------------------------------------------

create function ops.open_incident(p_key text, p_severity text, p_text text, p_stream text, p_alert_key text, p_again interval)
returns boolean language plpgsql volatile as $$
declare v ops.incidents; t timestamptz := collect.clock(); v_new boolean := false; v_tell boolean;
        v_ranks constant text[] := array['warning', 'error', 'critical'];
begin
    loop
        select * into v from ops.incidents i where i.incident_key = p_key and i.closed_at is null for update;
        exit when found;
        insert into ops.incidents (incident_key, stream, severity, text, opened_at, seen_at, told_at)
        values (p_key, p_stream, p_severity, p_text, t, t, t)
        on conflict (incident_key) where closed_at is null do nothing
        returning * into v;
        v_new := found;
        exit when found;
    end loop;
    v_tell := v_new or array_position(v_ranks, p_severity) > array_position(v_ranks, v.severity) or v.told_at + p_again <= t;
    if not v_new then
        update ops.incidents i
           set seen_at = t, seen_count = i.seen_count + 1, text = p_text,
               severity = v_ranks[greatest(array_position(v_ranks, p_severity), array_position(v_ranks, i.severity))],
               told_at = case when v_tell then t else i.told_at end,
               told_count = i.told_count + v_tell::integer
         where i.incident_id = v.incident_id;
    end if;
    if v_tell then
        insert into ops.alerts (alert_key, severity, text, incident_id, next_try_at, created_at)
        values (coalesce(p_alert_key, p_key || '/' || v.incident_id || case when v_new then '' else '/' || v.told_count + 1 end),
                p_severity, p_text, v.incident_id, t, t)
        on conflict (alert_key) do nothing;
        if not found then
            -- The fact was told before: it was over meanwhile, or it lasts for a day or got worse.
            insert into ops.alerts (alert_key, severity, text, incident_id, next_try_at, created_at)
            values (p_alert_key || '/' || v.incident_id || '/' || case when v_new then 1 else v.told_count + 1 end,
                    p_severity, p_text, v.incident_id, t, t)
            on conflict (alert_key) do nothing;
        end if;
    end if;
    return v_tell;
end $$;
comment on function ops.open_incident(text, text, text, text, text, interval) is
    'Note that something is wrong: opens an incident, or sees it again; told when it opens, gets worse, or was last told so long ago. Whether it was told';

create function ops.close_incidents(p_keys text[], p_text text, p_mended boolean default true) returns integer language plpgsql volatile as $$
declare v ops.incidents; t timestamptz; v_count integer := 0;
begin
    for v in select * from ops.incidents i where i.incident_key = any(p_keys) and i.closed_at is null order by i.incident_key for update
    loop
        t := collect.clock();
        update ops.incidents set closed_at = greatest(t, opened_at), closed_text = p_text where incident_id = v.incident_id;
        insert into ops.alerts (alert_key, severity, text, incident_id, next_try_at, created_at)
        values (v.incident_key || '/' || v.incident_id || case when p_mended then '/recovered' else '/closed' end, 'info',
                format(case when p_mended then 'RECOVERED' else 'CLOSED, not mended' end || ': %s (It began %s KST: %s)', p_text,
                       to_char(v.opened_at at time zone 'Asia/Seoul', 'YYYY-MM-DD HH24:MI'), left(v.text, 300)),
                v.incident_id, t, t)
        on conflict (alert_key) do nothing;
        v_count := v_count + 1;
    end loop;
    return v_count;
end $$;
comment on function ops.close_incidents(text[], text, boolean) is
    'End the incidents of some keys that are open, and tell that they are over: mended, or only of no concern any more; how many';

-- the verdict of 09:00 -----------------------------------------------------------------------------------

create function collect.tell_verdict(p_date date, p_late integer, p_text text) returns void
language plpgsql volatile as $$
begin
    if p_late > 0 then
        perform ops.open_incident('late/' || p_date, 'error', p_text, null, 'snapshot/' || p_date || '/CAPTURED', interval '1 year');
    else
        insert into ops.alerts (alert_key, severity, text, next_try_at, created_at)
        values ('snapshot/' || p_date || '/CAPTURED', 'info', p_text, collect.clock(), collect.clock())
        on conflict (alert_key) do nothing;
    end if;
    perform ops.close_incidents(array['missed/snapshots'], format('the snapshot of %s was taken', p_date));
end $$;
comment on function collect.tell_verdict(date, integer, text) is
    'Tell a verdict in the transaction that makes it final: all good, or who is late, which lasts until they are complete';

create function collect.tell_missed(p_date date, p_text text) returns void language plpgsql volatile as $$
begin
    perform ops.open_incident('missed/snapshots', 'critical', p_text, null, 'snapshot/' || p_date || '/MISSED', interval '0');
end $$;
comment on function collect.tell_missed(date, text) is 'Tell each date that has no verdict; it lasts until a snapshot is taken again';

create or replace function collect.tell_second_failure(p_cycle bigint) returns void
language sql volatile as $$
    select ops.open_incident('failing/' || c.stream, 'error',
           format('%s failed twice in a row: window %s KST, session %s: %s. %s Nothing stored is lost; the next window asks again.',
                  c.stream, to_char(c.window_start at time zone 'Asia/Seoul', 'YYYY-MM-DD HH24:MI'), c.session_date,
                  c.failure_reason, c.failure_cause_summary),
           c.stream, 'cycle/' || c.cycle_id || '/FAILED', interval '20 hours')
      from collect.cycles c
     where c.cycle_id = p_cycle and c.cycle_status = 'FAILED'
       and (select p.cycle_status = 'FAILED' from collect.cycles p
             where p.stream = c.stream and p.window_start < c.window_start order by p.window_start desc limit 1)
$$;

create function collect.tell_out_of_budget(p_stream text, p_run_date date) returns void
language plpgsql volatile as $$
declare v_since date; v_days integer; v_reached integer;
begin
    -- The polled days in a row, up to this one, whose last window ran out of budget.
    with days as (
        select distinct on (c.run_date) c.run_date, c.cycle_status from collect.cycles c
         where c.stream = p_stream and c.run_date < p_run_date and c.run_date > p_run_date - 90 and c.finished_at is not null
         order by c.run_date desc, c.window_start desc
    )
    select coalesce(min(d.run_date), p_run_date), count(*) + 1 into v_since, v_days from days d
     where d.run_date > coalesce((select max(o.run_date) from days o where o.cycle_status <> 'BUDGET_EXHAUSTED'), '-infinity');
    if v_days < 2 then return; end if;
    v_reached := case when v_days >= 7 then 7 else 2 end;
    perform ops.open_incident('budget/' || p_stream, case v_reached when 7 then 'error' else 'warning' end,
            format('%s has run out of its day''s budget %s days running, since %s. It goes on by itself and nothing is lost, but it '
                   'lags. Raise the stream''s budget, or backfill by hand.', p_stream, v_days, v_since),
            p_stream, format('budget/%s/%s/%s', p_stream, v_since, v_reached), interval '1 year');
end $$;
comment on function collect.tell_out_of_budget(text, date) is
    'Tell of a stream that has run out of budget two polled days running, and again at seven; nothing is switched off by itself';
