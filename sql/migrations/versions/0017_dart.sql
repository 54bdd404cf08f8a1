-- 0017 dart: filings of Korean companies as they appear, what the analysis is to read, and the list of all companies.
-- Expand-only.
-- Roll-back note: the tables may be dropped once no release writes them and their parquet files are kept; the rows of
-- dartbrief.analysis_cache hold what was paid for, and nothing makes them again.

create table dartbrief.disclosures (
    rcept_no        text not null,
    corp_code       text not null,
    corp_name       text not null,
    stock_code      text,
    corp_type       text not null,
    report_name     text not null,
    submitter       text not null,
    rcept_dt        date not null,
    remark          text not null,
    base_title      text not null,
    report_period   text,
    is_correction   boolean not null,
    unit            text not null,
    fetch_id        bigint not null,
    sent_at         timestamptz(6) not null,
    parser_version  integer not null,
    cycle_id        bigint not null,
    attempt         integer not null,
    extra           jsonb,
    primary key (rcept_no)
);
comment on table dartbrief.disclosures is 'Filings of Korean companies as DART''s list shows them, corrections and withdrawn ones too';
comment on column dartbrief.disclosures.rcept_no is 'Receipt number: fourteen digits; not in order of time within a day';
comment on column dartbrief.disclosures.corp_code is 'Company as DART numbers it: eight digits';
comment on column dartbrief.disclosures.corp_name is 'Company''s name; of a listed one its short name';
comment on column dartbrief.disclosures.stock_code is 'Stock code of six characters; null where it has none';
comment on column dartbrief.disclosures.corp_type is 'Market as the list says it now: Y KOSPI, K KOSDAQ, N KONEX, E other';
comment on column dartbrief.disclosures.report_name is 'Title as given, with its marks and period';
comment on column dartbrief.disclosures.submitter is 'Who filed it; often not the company itself';
comment on column dartbrief.disclosures.rcept_dt is 'Day of receipt in Seoul; what comes after 18:00 may have the next one';
comment on column dartbrief.disclosures.remark is 'Letters as given: 유 코 채 넥 공 연, 정 was corrected later, 철 was withdrawn';
comment on column dartbrief.disclosures.base_title is 'Title without marks and period: what a correction and its original share';
comment on column dartbrief.disclosures.report_period is 'Period that the title names, as YYYY.MM';
comment on column dartbrief.disclosures.is_correction is 'Whether its title says that it takes the place of an earlier filing';
comment on column dartbrief.disclosures.unit is 'Unit that gave the row';
comment on column dartbrief.disclosures.fetch_id is 'Fetch that gave these values first';
comment on column dartbrief.disclosures.sent_at is 'When that fetch was sent';
comment on column dartbrief.disclosures.parser_version is 'Parser that read it';
comment on column dartbrief.disclosures.cycle_id is 'Cycle that wrote it';
comment on column dartbrief.disclosures.attempt is 'Claim of that cycle';
comment on column dartbrief.disclosures.extra is 'Columns of the upstream that nobody knew yet';
create index disclosures_by_unit on dartbrief.disclosures (unit);

create table dartbrief.disclosures_history (
    like dartbrief.disclosures,
    ended_at   timestamptz(6) not null,
    reason     text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (rcept_no, sent_at, reason, parser_version)
);
comment on table dartbrief.disclosures_history is 'What disclosures once said otherwise, until when and why no longer';
comment on column dartbrief.disclosures_history.rcept_no is 'Receipt number: fourteen digits; not in order of time within a day';
comment on column dartbrief.disclosures_history.corp_code is 'Company as DART numbers it: eight digits';
comment on column dartbrief.disclosures_history.corp_name is 'Company''s name; of a listed one its short name';
comment on column dartbrief.disclosures_history.stock_code is 'Stock code of six characters; null where it has none';
comment on column dartbrief.disclosures_history.corp_type is 'Market as the list says it now: Y KOSPI, K KOSDAQ, N KONEX, E other';
comment on column dartbrief.disclosures_history.report_name is 'Title as given, with its marks and period';
comment on column dartbrief.disclosures_history.submitter is 'Who filed it; often not the company itself';
comment on column dartbrief.disclosures_history.rcept_dt is 'Day of receipt in Seoul; what comes after 18:00 may have the next one';
comment on column dartbrief.disclosures_history.remark is 'Letters as given: 유 코 채 넥 공 연, 정 was corrected later, 철 was withdrawn';
comment on column dartbrief.disclosures_history.base_title is 'Title without marks and period: what a correction and its original share';
comment on column dartbrief.disclosures_history.report_period is 'Period that the title names, as YYYY.MM';
comment on column dartbrief.disclosures_history.is_correction is 'Whether its title says that it takes the place of an earlier filing';
comment on column dartbrief.disclosures_history.unit is 'Unit that gave the row';
comment on column dartbrief.disclosures_history.fetch_id is 'Fetch that gave these values first';
comment on column dartbrief.disclosures_history.sent_at is 'When that fetch was sent';
comment on column dartbrief.disclosures_history.parser_version is 'Parser that read it';
comment on column dartbrief.disclosures_history.cycle_id is 'Cycle that wrote it';
comment on column dartbrief.disclosures_history.attempt is 'Claim of that cycle';
comment on column dartbrief.disclosures_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column dartbrief.disclosures_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column dartbrief.disclosures_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index disclosures_history_by_unit on dartbrief.disclosures_history (unit);

create index disclosures_by_day on dartbrief.disclosures (rcept_dt);

-- when a filing first appeared ---------------------------------------------------------------------------
-- Kept by the database: the instant of the first answer that showed it, which is that of its first version, whatever was
-- told of it later and in whichever order answers are applied.

alter table dartbrief.disclosures add column created_at timestamptz(6) not null default collect.clock();
comment on column dartbrief.disclosures.created_at is 'When the request was sent whose answer first showed it';
create index disclosures_by_appearance on dartbrief.disclosures (rcept_dt desc, created_at desc, rcept_no desc);
create index disclosures_by_corp on dartbrief.disclosures (corp_code, rcept_dt desc, created_at desc, rcept_no desc);

create function dartbrief.disclosure_appeared() returns trigger language plpgsql as $$
begin
    if tg_op = 'UPDATE' then
        new.created_at := least(old.created_at, new.sent_at);
    else
        new.created_at := least(new.sent_at, (select min(h.sent_at) from dartbrief.disclosures_history h
                                               where h.rcept_no = new.rcept_no));
    end if;
    return new;
end $$;
comment on function dartbrief.disclosure_appeared() is
    'Keep when a filing first appeared; a rebuild writes its earlier versions into the history first';
create trigger disclosure_appeared before insert or update on dartbrief.disclosures
    for each row execute function dartbrief.disclosure_appeared();

-- what the analysis is to read ---------------------------------------------------------------------------

create table dartbrief.analysis_cache (
    rcept_no          text not null,
    summary           text,
    key_points_json   text,
    sentiment         text check (sentiment in ('positive', 'negative', 'neutral')),
    model             text,
    status            text not null default 'PENDING'
                      check (status in ('PENDING', 'PROCESSING', 'BODY_PENDING', 'BODY_PROCESSING', 'COMPLETED', 'FAILED')),
    body_retry_count  integer not null default 0,
    retry_count       integer not null default 0,
    doc_length        integer,
    claim_token       uuid,
    claimed_until     timestamptz(6),
    llm_response_id   text,
    submitted_at      timestamptz(6),
    prompt_version    text,
    error             text,
    created_at        timestamptz(6) not null,
    updated_at        timestamptz(6) not null,
    primary key (rcept_no)
);
comment on table dartbrief.analysis_cache is 'What the analysis made of each filing, and what it is still to read; it outlives the filing''s row';
comment on column dartbrief.analysis_cache.rcept_no is 'Receipt number of the filing';
comment on column dartbrief.analysis_cache.summary is 'One line';
comment on column dartbrief.analysis_cache.key_points_json is 'Key points, joined by |||';
comment on column dartbrief.analysis_cache.sentiment is 'positive, negative or neutral';
comment on column dartbrief.analysis_cache.model is 'Model that said so';
comment on column dartbrief.analysis_cache.status is 'Where it stands';
comment on column dartbrief.analysis_cache.body_retry_count is 'How often the document was waited for';
comment on column dartbrief.analysis_cache.retry_count is 'How often it failed';
comment on column dartbrief.analysis_cache.doc_length is 'Characters of the document''s text';
comment on column dartbrief.analysis_cache.claim_token is 'Proof of the right to change the row';
comment on column dartbrief.analysis_cache.claimed_until is 'Until when that right holds';
comment on column dartbrief.analysis_cache.llm_response_id is 'The model''s answer that is waited for';
comment on column dartbrief.analysis_cache.submitted_at is 'When it was asked for';
comment on column dartbrief.analysis_cache.prompt_version is 'Wording with which it was asked for';
comment on column dartbrief.analysis_cache.error is 'What went wrong last, in words';
comment on column dartbrief.analysis_cache.created_at is 'When the filing came in';
comment on column dartbrief.analysis_cache.updated_at is 'Last change';
create index analysis_cache_by_status on dartbrief.analysis_cache (status);

-- In the very transaction that brings a filing in, whoever writes it: no filing is ever without its row, and one that was
-- read before is not read again because its filing is written anew.
create function dartbrief.disclosure_to_be_read() returns trigger language plpgsql as $$
begin
    insert into dartbrief.analysis_cache (rcept_no, status, created_at, updated_at)
    select n.rcept_no, 'PENDING', collect.clock(), collect.clock() from arrived n order by n.rcept_no
    on conflict (rcept_no) do nothing;
    return null;
end $$;
comment on function dartbrief.disclosure_to_be_read() is 'Put what came in into the queue of the analysis';
create trigger disclosure_to_be_read after insert on dartbrief.disclosures
    referencing new table as arrived for each statement execute function dartbrief.disclosure_to_be_read();

-- which filings hold ------------------------------------------------------------------------------------

create view dartbrief.disclosure_versions as
    select d.*,
           position('정' in d.remark) > 0 as is_corrected,
           position('철' in d.remark) > 0 as is_withdrawn,
           case when lead(d.is_correction) over same then lead(d.rcept_no) over same end as superseded_by
      from dartbrief.disclosures d
    window same as (partition by d.corp_code, d.base_title, d.report_period,
                                 case when d.report_period is null then d.submitter end
                        order by d.rcept_dt, d.rcept_no);
comment on view dartbrief.disclosure_versions is
    'Every filing with the correction that took its place, by company, title and period; without a period by who filed it too, as many file under one title';

create view dartbrief.current_disclosures as
    select v.* from dartbrief.disclosure_versions v where v.superseded_by is null and not v.is_withdrawn;
comment on view dartbrief.current_disclosures is 'Filings that hold: neither withdrawn, nor with a later correction in their place';

create table filings.dart_corps (
    corp_code       text not null,
    corp_name       text not null,
    corp_eng_name   text,
    stock_code      text,
    modify_date     date not null,
    unit            text not null,
    fetch_id        bigint not null,
    sent_at         timestamptz(6) not null,
    parser_version  integer not null,
    cycle_id        bigint not null,
    attempt         integer not null,
    extra           jsonb,
    primary key (corp_code)
);
comment on table filings.dart_corps is 'Every company that DART numbers, listed or not, as its list shows them now';
comment on column filings.dart_corps.corp_code is 'Company as DART numbers it: eight digits';
comment on column filings.dart_corps.corp_name is 'Name; several companies may have the same';
comment on column filings.dart_corps.corp_eng_name is 'Name in English as given';
comment on column filings.dart_corps.stock_code is 'Stock code; delisted ones keep it, null where it never had one';
comment on column filings.dart_corps.modify_date is 'Day on which DART last changed these data';
comment on column filings.dart_corps.unit is 'Unit that gave the row';
comment on column filings.dart_corps.fetch_id is 'Fetch that gave these values first';
comment on column filings.dart_corps.sent_at is 'When that fetch was sent';
comment on column filings.dart_corps.parser_version is 'Parser that read it';
comment on column filings.dart_corps.cycle_id is 'Cycle that wrote it';
comment on column filings.dart_corps.attempt is 'Claim of that cycle';
comment on column filings.dart_corps.extra is 'Columns of the upstream that nobody knew yet';
create index dart_corps_by_unit on filings.dart_corps (unit);

create table filings.dart_corps_history (
    like filings.dart_corps,
    ended_at   timestamptz(6) not null,
    reason     text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (corp_code, sent_at, reason, parser_version)
);
comment on table filings.dart_corps_history is 'What dart_corps once said otherwise, until when and why no longer';
comment on column filings.dart_corps_history.corp_code is 'Company as DART numbers it: eight digits';
comment on column filings.dart_corps_history.corp_name is 'Name; several companies may have the same';
comment on column filings.dart_corps_history.corp_eng_name is 'Name in English as given';
comment on column filings.dart_corps_history.stock_code is 'Stock code; delisted ones keep it, null where it never had one';
comment on column filings.dart_corps_history.modify_date is 'Day on which DART last changed these data';
comment on column filings.dart_corps_history.unit is 'Unit that gave the row';
comment on column filings.dart_corps_history.fetch_id is 'Fetch that gave these values first';
comment on column filings.dart_corps_history.sent_at is 'When that fetch was sent';
comment on column filings.dart_corps_history.parser_version is 'Parser that read it';
comment on column filings.dart_corps_history.cycle_id is 'Cycle that wrote it';
comment on column filings.dart_corps_history.attempt is 'Claim of that cycle';
comment on column filings.dart_corps_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column filings.dart_corps_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column filings.dart_corps_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index dart_corps_history_by_unit on filings.dart_corps_history (unit);

create index dart_corps_by_stock on filings.dart_corps (stock_code) where stock_code is not null;
