-- 0023 analysis: who reads which filing and when: slots, claims and every change of state, what came of it, and quotas.
-- Expand-only.
-- Roll-back note: the new tables and columns may be dropped once no release analyses; rows of analysis_history hold what
-- was paid for, and nothing makes them again.

-- what one row says more -----------------------------------------------------------------------------------

alter table dartbrief.analysis_cache
    add column is_backlog     boolean not null default false,
    add column next_try_at    timestamptz(6) default collect.clock(),
    add column is_permanent   boolean not null default false,
    add column attempt        integer not null default 0,
    add column lost_count     integer not null default 0,
    add column empty_count    integer not null default 0,
    add column kind           text,
    add column asked_with     text,
    add column body_reading   text,
    add column body_fetches   bigint[],
    add column completed_at   timestamptz(6);
comment on column dartbrief.analysis_cache.is_backlog is 'Whether an operator asked for it; what comes in goes first';
comment on column dartbrief.analysis_cache.next_try_at is 'From when on it may be claimed; of no meaning while it is claimed or over';
comment on column dartbrief.analysis_cache.is_permanent is 'Whether it failed for good, whatever its counts';
comment on column dartbrief.analysis_cache.attempt is 'How often it was given to the model; with the receipt number it makes the answer''s name';
comment on column dartbrief.analysis_cache.lost_count is 'How often the model forgot what it was given';
comment on column dartbrief.analysis_cache.empty_count is 'How often its document was there and had no text';
comment on column dartbrief.analysis_cache.kind is 'Kind of filing, which chooses the prompt';
comment on column dartbrief.analysis_cache.asked_with is 'Wording with which it was asked for last; prompt_version is that of the analysis it shows';
comment on column dartbrief.analysis_cache.body_reading is 'By which way its text was found';
comment on column dartbrief.analysis_cache.body_fetches is 'Answers that hold its text, so that nobody is asked twice';
comment on column dartbrief.analysis_cache.completed_at is 'When the analysis that it shows was accepted';
comment on column dartbrief.analysis_cache.created_at is 'When it came into the queue: with its filing, or when an operator asked for it';

create index analysis_cache_waiting on dartbrief.analysis_cache (status, is_backlog, created_at, rcept_no)
    where status in ('PENDING', 'BODY_PENDING', 'FAILED') and retry_count < 3 and not is_permanent;
create index analysis_cache_claimed on dartbrief.analysis_cache (rcept_no)
    where status in ('PROCESSING', 'BODY_PROCESSING');

create table dartbrief.analysis_history (
    rcept_no         text not null,
    attempt          integer not null,
    summary          text not null,
    key_points_json  text not null,
    sentiment        text not null,
    model            text not null,
    prompt_version   text not null,
    completed_at     timestamptz(6) not null,
    superseded_at    timestamptz(6) not null,
    primary key (rcept_no, attempt)
);
comment on table dartbrief.analysis_history is 'Analyses in whose place a later one came';
comment on column dartbrief.analysis_history.rcept_no is 'Receipt number of the filing';
comment on column dartbrief.analysis_history.attempt is 'Attempt that the later one was';
comment on column dartbrief.analysis_history.summary is 'One line';
comment on column dartbrief.analysis_history.key_points_json is 'Key points, joined by |||';
comment on column dartbrief.analysis_history.sentiment is 'positive, negative or neutral';
comment on column dartbrief.analysis_history.model is 'Model that said so';
comment on column dartbrief.analysis_history.prompt_version is 'Wording with which it was asked for';
comment on column dartbrief.analysis_history.completed_at is 'When it was accepted';
comment on column dartbrief.analysis_history.superseded_at is 'When the later one was';

-- what an installation permits -----------------------------------------------------------------------------

create table dartbrief.analysis_control (
    only_row       boolean primary key default true check (only_row),
    newest_days    integer not null default 7 check (newest_days >= 0),
    paused_until   timestamptz(6),
    away_since     timestamptz(6),
    updated_at     timestamptz(6) not null default collect.clock()
);
comment on table dartbrief.analysis_control is 'One row: what is analysed by itself, and whether the model answers';
comment on column dartbrief.analysis_control.only_row is 'Always true: there is one row';
comment on column dartbrief.analysis_control.newest_days is 'A filing is analysed by itself where it was found at most so many days after its receipt';
comment on column dartbrief.analysis_control.paused_until is 'Until when nothing is claimed, as the model is away';
comment on column dartbrief.analysis_control.away_since is 'Since when the model is away; null while it answers';
comment on column dartbrief.analysis_control.updated_at is 'Last change';
insert into dartbrief.analysis_control default values;

-- The cap is these rows: a job holds one from its claim to its verdict, and there is no counting.
create table dartbrief.analysis_slots (
    slot         integer primary key,
    is_open      boolean not null default true,
    rcept_no     text,
    claim_token  uuid,
    taken_at     timestamptz(6)
);
comment on table dartbrief.analysis_slots is 'One row for each job that may be under way at once';
comment on column dartbrief.analysis_slots.slot is 'Number, from 1';
comment on column dartbrief.analysis_slots.is_open is 'Whether it may be taken; one above the cap ends with the job that holds it';
comment on column dartbrief.analysis_slots.rcept_no is 'Filing whose job holds it; null while it is free';
comment on column dartbrief.analysis_slots.claim_token is 'Claim that holds it';
comment on column dartbrief.analysis_slots.taken_at is 'Since when';
create unique index analysis_slots_by_job on dartbrief.analysis_slots (rcept_no) where rcept_no is not null;
insert into dartbrief.analysis_slots (slot) select generate_series(1, 60);

create function dartbrief.permit(p_jobs integer, p_newest_days integer) returns void
language plpgsql volatile as $$
begin
    insert into dartbrief.analysis_slots (slot) select generate_series(1, p_jobs) on conflict (slot) do nothing;
    update dartbrief.analysis_slots set is_open = slot <= p_jobs where is_open <> (slot <= p_jobs);
    update dartbrief.analysis_control set newest_days = p_newest_days, updated_at = collect.clock()
     where newest_days <> p_newest_days;
end $$;
comment on function dartbrief.permit(integer, integer) is
    'Set how many jobs may be under way at once, and which filings are analysed by themselves; jobs under way go on';

-- what comes in --------------------------------------------------------------------------------------------
-- A backfill of years must not send the past through the model: what was found long after its receipt gets no row. It is
-- judged by when the filing first appeared, so poll, backfill and replay give the same rows.

create or replace function dartbrief.disclosure_to_be_read() returns trigger language plpgsql as $$
begin
    insert into dartbrief.analysis_cache (rcept_no, status, created_at, updated_at, next_try_at)
    select n.rcept_no, 'PENDING', collect.clock(), collect.clock(), collect.clock()
      from arrived n, dartbrief.analysis_control c
     where n.rcept_dt >= (n.created_at at time zone 'Asia/Seoul')::date - c.newest_days
     order by n.rcept_no
    on conflict (rcept_no) do nothing;
    return null;
end $$;
comment on function dartbrief.disclosure_to_be_read() is
    'Put what came in lately into the queue of the analysis; older filings get a row when an operator asks for them';

create function dartbrief.ask_for(p_start date, p_end date) returns bigint
language plpgsql volatile as $$
declare v_asked bigint; v_again bigint; t timestamptz := collect.clock();
begin
    insert into dartbrief.analysis_cache (rcept_no, status, is_backlog, created_at, updated_at, next_try_at)
    select d.rcept_no, 'PENDING', true, t, t, t from dartbrief.disclosures d
     where d.rcept_dt between p_start and p_end order by d.rcept_no
    on conflict (rcept_no) do nothing;
    get diagnostics v_asked = row_count;
    update dartbrief.analysis_cache a
       set status = 'PENDING', is_backlog = true, is_permanent = false, retry_count = 0, body_retry_count = 0,
           empty_count = 0, lost_count = 0, created_at = t, updated_at = t, next_try_at = t
      from dartbrief.disclosures d
     where d.rcept_dt between p_start and p_end and a.rcept_no = d.rcept_no
       and a.status = 'FAILED' and (a.is_permanent or a.retry_count >= 3);
    get diagnostics v_again = row_count;
    return v_asked + v_again;
end $$;
comment on function dartbrief.ask_for(date, date) is
    'Put filings received in a range into the queue, behind what comes in: those without a row, and those that failed for good';

create function dartbrief.read_again(p_start date, p_end date, p_version text) returns bigint
language plpgsql volatile as $$
declare v_count bigint; t timestamptz := collect.clock();
begin
    update dartbrief.analysis_cache a
       set status = 'PENDING', is_backlog = true, retry_count = 0, body_retry_count = 0, empty_count = 0, lost_count = 0,
           created_at = t, updated_at = t, next_try_at = t
      from dartbrief.disclosures d
     where d.rcept_dt between p_start and p_end and a.rcept_no = d.rcept_no
       and a.status = 'COMPLETED' and split_part(a.prompt_version, '/', 2) <> p_version;
    get diagnostics v_count = row_count;
    return v_count;
end $$;
comment on function dartbrief.read_again(date, date, text) is
    'Put analyses made with other prompts into the queue; each stays as it is until the new one is accepted, and then in the history';

-- claims ---------------------------------------------------------------------------------------------------

create function dartbrief.recover() returns integer
language plpgsql volatile as $$
declare v_dead text[]; v_job record; t timestamptz := collect.clock();
begin
    -- A dead worker's job and its slot come back together. What the model was given keeps both: the poll loop asks for it.
    select array_agg(d.rcept_no) into v_dead
      from (select a.rcept_no from dartbrief.analysis_cache a
             where a.status in ('PROCESSING', 'BODY_PROCESSING') and a.llm_response_id is null
               and coalesce(a.claimed_until, a.updated_at + interval '5 minutes') <= t
               for update skip locked) d;
    if v_dead is not null then
        update dartbrief.analysis_cache a
           set status = case a.status when 'PROCESSING' then 'PENDING' else 'BODY_PENDING' end, claim_token = null,
               claimed_until = null, next_try_at = t, updated_at = t, error = 'its worker vanished'
         where a.rcept_no = any (v_dead);
        update dartbrief.analysis_slots s set rcept_no = null, claim_token = null, taken_at = null
         where s.rcept_no = any (v_dead);
    end if;
    -- What is under way has a slot, whoever wrote its row.
    for v_job in select a.rcept_no, a.claim_token from dartbrief.analysis_cache a
                  where a.status in ('PROCESSING', 'BODY_PROCESSING')
                    and not exists (select 1 from dartbrief.analysis_slots s where s.rcept_no = a.rcept_no)
                  order by a.rcept_no for update skip locked loop
        update dartbrief.analysis_slots s set rcept_no = v_job.rcept_no, claim_token = v_job.claim_token, taken_at = t
         where s.slot = (select f.slot from dartbrief.analysis_slots f where f.is_open and f.rcept_no is null
                          order by f.slot for update skip locked limit 1);
    end loop;
    return coalesce(cardinality(v_dead), 0);
end $$;
comment on function dartbrief.recover() is 'Put the jobs of workers that vanished back into their queues, and free their slots';

create function dartbrief.next_of(p_status text, p_is_backlog boolean) returns text
language plpgsql volatile as $$
declare v_found text; t timestamptz := collect.clock();
begin
    select a.rcept_no into v_found from dartbrief.analysis_cache a
     where a.status = p_status and a.status in ('PENDING', 'BODY_PENDING', 'FAILED') and a.retry_count < 3
       and not a.is_permanent and a.is_backlog = p_is_backlog and coalesce(a.next_try_at, a.updated_at) <= t
     order by a.created_at, a.rcept_no
       for update skip locked limit 1;
    return v_found;
end $$;
comment on function dartbrief.next_of(text, boolean) is
    'Lock the filing that waits longest in one of the queues and may be tried now; null where there is none';

create function dartbrief.claim(p_for interval default interval '5 minutes') returns setof dartbrief.analysis_cache
language plpgsql volatile as $$
declare v_slot integer; v_job text; v_token uuid := gen_random_uuid(); t timestamptz;
begin
    perform dartbrief.recover();
    t := collect.clock();
    if exists (select 1 from dartbrief.analysis_control c where c.paused_until > t) then
        return;
    end if;
    select s.slot into v_slot from dartbrief.analysis_slots s where s.is_open and s.rcept_no is null
     order by s.slot for update skip locked limit 1;
    if not found then
        return;
    end if;
    v_job := coalesce(
        dartbrief.next_of('PENDING', false), dartbrief.next_of('FAILED', false), dartbrief.next_of('BODY_PENDING', false),
        dartbrief.next_of('PENDING', true), dartbrief.next_of('FAILED', true), dartbrief.next_of('BODY_PENDING', true));
    if v_job is null then
        return;
    end if;
    t := collect.clock();
    update dartbrief.analysis_slots s set rcept_no = v_job, claim_token = v_token, taken_at = t where s.slot = v_slot;
    return query
        update dartbrief.analysis_cache a
           set status = case a.status when 'BODY_PENDING' then 'BODY_PROCESSING' else 'PROCESSING' end,
               claim_token = v_token, claimed_until = t + p_for, llm_response_id = null, submitted_at = null, updated_at = t
         where a.rcept_no = v_job
        returning a.*;
end $$;
comment on function dartbrief.claim(interval) is
    'Take the next filing and a slot for it: what is new, what failed and may be tried again, what waited for its document; nothing at the cap';

create function dartbrief.release(p_rcept_no text) returns void
language sql volatile as $$
    update dartbrief.analysis_slots set rcept_no = null, claim_token = null, taken_at = null where rcept_no = p_rcept_no
$$;
comment on function dartbrief.release(text) is 'Free the slot of a job; called by the transition that ends it';

-- what becomes of a claimed job ----------------------------------------------------------------------------
-- Each is an update of one row under its token; false: the claim is over, and nothing was changed.

create function dartbrief.begin_submit(p_rcept_no text, p_token uuid, p_own_id boolean, p_kind text, p_prompt text,
                                       p_length integer, p_reading text, p_fetches bigint[], p_for interval) returns text
language plpgsql volatile as $$
declare v_name text; t timestamptz := collect.clock();
begin
    -- A job that was given to the model once is looked up, not given again: only `lost` or `fail` end that.
    update dartbrief.analysis_cache a
       set status = 'PROCESSING', attempt = a.attempt + 1, claimed_until = t + p_for, updated_at = t, error = null,
           llm_response_id = case when p_own_id then format('resp_%s_%s', a.rcept_no, a.attempt + 1) end,
           kind = p_kind, asked_with = p_prompt,
           doc_length = p_length, body_reading = p_reading, body_fetches = p_fetches
     where a.rcept_no = p_rcept_no and a.claim_token = p_token and a.claimed_until > t and a.llm_response_id is null
       and a.status in ('PROCESSING', 'BODY_PROCESSING')
    returning format('resp_%s_%s', a.rcept_no, a.attempt) into v_name;
    return v_name;
end $$;
comment on function dartbrief.begin_submit(text, uuid, boolean, text, text, integer, text, bigint[], interval) is
    'Renew the claim right before the model is asked and keep the name of the answer; null: the claim is over, ask nobody';

create function dartbrief.submitted(p_rcept_no text, p_token uuid, p_response_id text) returns boolean
language plpgsql volatile as $$
declare t timestamptz := collect.clock();
begin
    update dartbrief.analysis_cache a
       set llm_response_id = p_response_id, submitted_at = t, claimed_until = null, updated_at = t
     where a.rcept_no = p_rcept_no and a.claim_token = p_token and a.status = 'PROCESSING'
       and (a.llm_response_id is null or a.llm_response_id = p_response_id);
    return found;
end $$;
comment on function dartbrief.submitted(text, uuid, text) is 'The model has it; from here on the poll loop asks for the answer';

create function dartbrief.complete(p_rcept_no text, p_token uuid, p_response_id text, p_summary text, p_points text,
                                   p_sentiment text, p_model text) returns boolean
language plpgsql volatile as $$
declare v dartbrief.analysis_cache; t timestamptz := collect.clock();
begin
    select * into v from dartbrief.analysis_cache a
     where a.rcept_no = p_rcept_no and a.claim_token = p_token and a.status = 'PROCESSING'
       and a.llm_response_id = p_response_id for update;
    if not found then
        return false;
    end if;
    if v.summary is not null then
        insert into dartbrief.analysis_history (rcept_no, attempt, summary, key_points_json, sentiment, model, prompt_version,
                                                completed_at, superseded_at)
        values (v.rcept_no, v.attempt, v.summary, coalesce(v.key_points_json, ''), coalesce(v.sentiment, 'neutral'),
                coalesce(v.model, ''), coalesce(v.prompt_version, ''), coalesce(v.completed_at, v.created_at), t);
    end if;
    update dartbrief.analysis_cache a
       set status = 'COMPLETED', summary = p_summary, key_points_json = p_points, sentiment = p_sentiment, model = p_model,
           prompt_version = a.asked_with, claim_token = null, claimed_until = null, error = null, completed_at = t, updated_at = t
     where a.rcept_no = p_rcept_no;
    perform dartbrief.release(p_rcept_no);
    return true;
end $$;
comment on function dartbrief.complete(text, uuid, text, text, text, text, text) is
    'Keep an answer that was found good; what it takes the place of goes into the history';

create function dartbrief.fail(p_rcept_no text, p_token uuid, p_error text, p_for_good boolean) returns boolean
language plpgsql volatile as $$
declare t timestamptz := collect.clock();
begin
    update dartbrief.analysis_cache a
       set status = 'FAILED', retry_count = a.retry_count + 1, is_permanent = p_for_good, error = left(p_error, 1000),
           next_try_at = t + case a.retry_count when 0 then interval '1 minute' when 1 then interval '5 minutes'
                                                else interval '15 minutes' end,
           claim_token = null, claimed_until = null, llm_response_id = null, submitted_at = null, updated_at = t
     where a.rcept_no = p_rcept_no and a.claim_token = p_token and a.status in ('PROCESSING', 'BODY_PROCESSING');
    if not found then
        return false;
    end if;
    perform dartbrief.release(p_rcept_no);
    return true;
end $$;
comment on function dartbrief.fail(text, uuid, text, boolean) is
    'Count a failure: tried again after 1, 5 and 15 minutes; at the third, or where it is for good, it is over';

create function dartbrief.await_body(p_rcept_no text, p_token uuid, p_is_absent boolean, p_error text) returns text
language plpgsql volatile as $$
declare v_status text; t timestamptz := collect.clock();
begin
    update dartbrief.analysis_cache a
       set body_retry_count = a.body_retry_count + 1,
           empty_count = a.empty_count + case when p_is_absent then 0 else 1 end,
           status = case when p_is_absent and t < a.created_at + interval '24 hours' then 'BODY_PENDING'
                         when not p_is_absent and a.empty_count + 1 < 60 then 'PENDING'
                         else 'FAILED' end,
           is_permanent = case when p_is_absent then t >= a.created_at + interval '24 hours' else a.empty_count + 1 >= 60 end,
           next_try_at = t + case when p_is_absent then interval '5 minutes' else interval '60 seconds' end,
           claim_token = null, claimed_until = null, error = left(p_error, 1000), updated_at = t
     where a.rcept_no = p_rcept_no and a.claim_token = p_token and a.llm_response_id is null
       and a.status in ('PROCESSING', 'BODY_PROCESSING')
    returning a.status into v_status;
    if found then
        perform dartbrief.release(p_rcept_no);
    end if;
    return v_status;
end $$;
comment on function dartbrief.await_body(text, uuid, boolean, text) is
    'There is no text yet: a document that is absent is waited for by five minutes for a day, one that is empty by the minute 60 times';

create function dartbrief.put_back(p_rcept_no text, p_token uuid, p_wait interval, p_error text, p_lost integer) returns boolean
language plpgsql volatile as $$
declare t timestamptz := collect.clock();
begin
    update dartbrief.analysis_cache a
       set status = case a.status when 'PROCESSING' then 'PENDING' else 'BODY_PENDING' end, next_try_at = t + p_wait,
           lost_count = a.lost_count + p_lost, claim_token = null, claimed_until = null, llm_response_id = null, submitted_at = null,
           error = left(p_error, 1000), updated_at = t
     where a.rcept_no = p_rcept_no and a.claim_token = p_token and a.status in ('PROCESSING', 'BODY_PROCESSING');
    if not found then
        return false;
    end if;
    perform dartbrief.release(p_rcept_no);
    return true;
end $$;
comment on function dartbrief.put_back(text, uuid, interval, text, integer) is
    'Give a job back without counting a failure: what it needed could not be asked, or its worker stops in good order; a lost answer is counted as such';

create function dartbrief.lose(p_rcept_no text, p_token uuid, p_response_id text, p_submitted_at timestamptz,
                               p_most integer) returns text
language plpgsql volatile as $$
declare v_status text; t timestamptz := collect.clock();
begin
    update dartbrief.analysis_cache a
       set lost_count = a.lost_count + 1,
           status = case when a.lost_count < p_most then 'PENDING' else 'FAILED' end,
           retry_count = a.retry_count + case when a.lost_count < p_most then 0 else 1 end,
           next_try_at = t + case when a.lost_count < p_most then interval '0' else interval '5 minutes' end,
           claim_token = null, claimed_until = null, llm_response_id = null, submitted_at = null, updated_at = t,
           error = format('the model no longer knows %s', p_response_id)
     where a.rcept_no = p_rcept_no and a.claim_token = p_token and a.llm_response_id = p_response_id
       and a.status = 'PROCESSING' and a.submitted_at is not distinct from p_submitted_at
       and (a.submitted_at is not null or a.claimed_until <= t)
    returning a.status into v_status;
    if found then
        perform dartbrief.release(p_rcept_no);
    end if;
    return v_status;
end $$;
comment on function dartbrief.lose(text, uuid, text, timestamptz, integer) is
    'The model forgot it, as one that was restarted does: given to it once more, uncounted so many times; null: it was or is on its way since it was looked at';

-- the model ------------------------------------------------------------------------------------------------

create function dartbrief.model_away(p_pause interval) returns timestamptz
language plpgsql volatile as $$
declare v_since timestamptz; t timestamptz := collect.clock();
begin
    update dartbrief.analysis_control c
       set paused_until = greatest(c.paused_until, t + p_pause), away_since = coalesce(c.away_since, t), updated_at = t
    returning c.away_since into v_since;
    return v_since;
end $$;
comment on function dartbrief.model_away(interval) is 'The model does not answer: nothing is claimed for a while; returns since when';

create function dartbrief.model_back() returns timestamptz
language plpgsql volatile as $$
declare v_since timestamptz;
begin
    select c.away_since into v_since from dartbrief.analysis_control c where c.away_since is not null for update;
    update dartbrief.analysis_control c set paused_until = null, away_since = null, updated_at = collect.clock()
     where c.away_since is not null;
    return v_since;
end $$;
comment on function dartbrief.model_back() is 'The model answers; returns since when it was away, null where it was not';

-- what readers see -----------------------------------------------------------------------------------------

create view dartbrief.analyses as
    select a.rcept_no,
           case when a.status = 'FAILED' and (a.is_permanent or a.retry_count >= 3) then 'UNAVAILABLE' else a.status end as status,
           a.summary, a.key_points_json, a.sentiment, a.model, a.kind, a.prompt_version, a.doc_length, a.completed_at, a.created_at,
           a.updated_at
      from dartbrief.analysis_cache a;
comment on view dartbrief.analyses is 'Analyses as readers see them: what failed for good is UNAVAILABLE, as is a filing without a row';

create table dartbrief.reveals (
    username     text not null,
    reveal_date  date not null,
    rcept_no     text not null,
    is_free      boolean not null,
    revealed_at  timestamptz(6) not null,
    primary key (username, reveal_date, rcept_no)
);
comment on table dartbrief.reveals is 'Which analyses a user has opened on a day in Seoul';
comment on column dartbrief.reveals.username is 'Airflow user';
comment on column dartbrief.reveals.reveal_date is 'Day in Seoul';
comment on column dartbrief.reveals.rcept_no is 'Receipt number of the filing';
comment on column dartbrief.reveals.is_free is 'Whether it took nothing from the quota, as the filing is short';
comment on column dartbrief.reveals.revealed_at is 'When';

create function dartbrief.reveal(p_user text, p_rcept_no text, p_quota integer, p_free_length integer,
                                 out state text, out used integer, out until timestamptz)
language plpgsql volatile as $$
declare v_day date; v_length integer; v_status text; t timestamptz;
begin
    -- One at a time for each user, so that two requests cannot both take the last one.
    perform pg_advisory_xact_lock(hashtextextended('dartbrief.reveal/' || p_user, 0));
    t := collect.clock();
    v_day := (t at time zone 'Asia/Seoul')::date;
    until := (v_day + 1)::timestamp at time zone 'Asia/Seoul';
    select a.status, a.doc_length into v_status, v_length from dartbrief.analyses a where a.rcept_no = p_rcept_no;
    select count(*) into used from dartbrief.reveals r where r.username = p_user and r.reveal_date = v_day and not r.is_free;
    if v_status is distinct from 'COMPLETED' then
        state := 'not_there';
    elsif exists (select 1 from dartbrief.reveals r
                   where r.username = p_user and r.reveal_date = v_day and r.rcept_no = p_rcept_no) then
        state := 'again';
    elsif v_length is not null and v_length <= p_free_length then
        insert into dartbrief.reveals values (p_user, v_day, p_rcept_no, true, t);
        state := 'free';
    elsif used >= p_quota then
        state := 'used_up';
    else
        insert into dartbrief.reveals values (p_user, v_day, p_rcept_no, false, t);
        used := used + 1;
        state := 'taken';
    end if;
end $$;
comment on function dartbrief.reveal(text, text, integer, integer) is
    'Open an analysis for a user: once a day it takes one of the quota, a short filing none; says what happened and what is used';
