-- 0029 edgar_facts: facts of the companies of a configured tier, as rows beside their files. Expand-only.
-- Roll-back note: the tables may be dropped; all of it can be read again from what is held, and the files have it too.

create table filings.edgar_facts (
    cik             bigint not null,
    taxonomy        text not null,
    concept         text not null,
    measure         text not null,
    end_date        date not null,
    is_instant      boolean not null,
    start_date      date not null,
    accession       text collate "C" not null,
    copy            integer not null,
    value_text      text,
    value           numeric(38, 15),
    fy              integer,
    fp              text,
    form            text,
    filed_date      date not null,
    frame           text,
    unit            text not null,
    fetch_id        bigint not null,
    sent_at         timestamptz(6) not null,
    parser_version  integer not null,
    cycle_id        bigint not null,
    attempt         integer not null,
    extra           jsonb,
    primary key (cik, taxonomy, concept, measure, end_date, is_instant, start_date, accession, copy)
);
comment on table filings.edgar_facts is 'Facts of the companies of the configured tier, every filing''s value of every period';
comment on column filings.edgar_facts.cik is 'Company, by its number at the SEC';
comment on column filings.edgar_facts.taxonomy is 'us-gaap, ifrs-full, dei, srt or any other';
comment on column filings.edgar_facts.concept is 'Name of the concept within the taxonomy';
comment on column filings.edgar_facts.measure is 'Unit as resolved by the SEC: USD, shares, USD/shares, pure or any other';
comment on column filings.edgar_facts.end_date is 'Last day of the period, or the instant';
comment on column filings.edgar_facts.is_instant is 'It is of an instant and not of a period';
comment on column filings.edgar_facts.start_date is 'First day of the period; the same as the last at an instant';
comment on column filings.edgar_facts.accession is 'Filing that reports it';
comment on column filings.edgar_facts.copy is '0; counts on where one filing gives a period of a concept more than once';
comment on column filings.edgar_facts.value_text is 'Value, with the digits as given; null where none is';
comment on column filings.edgar_facts.value is 'The same as a number; null where it has more digits than fit';
comment on column filings.edgar_facts.fy is 'Fiscal year of the filing, not of the fact';
comment on column filings.edgar_facts.fp is 'Fiscal period of the filing';
comment on column filings.edgar_facts.form is 'Form of the filing';
comment on column filings.edgar_facts.filed_date is 'Day on which it was filed';
comment on column filings.edgar_facts.frame is 'Frame of which this is the value now';
comment on column filings.edgar_facts.unit is 'Unit that gave the row';
comment on column filings.edgar_facts.fetch_id is 'Fetch that gave these values first';
comment on column filings.edgar_facts.sent_at is 'When that fetch was sent';
comment on column filings.edgar_facts.parser_version is 'Parser that read it';
comment on column filings.edgar_facts.cycle_id is 'Cycle that wrote it';
comment on column filings.edgar_facts.attempt is 'Claim of that cycle';
comment on column filings.edgar_facts.extra is 'Columns of the upstream that nobody knew yet';
create index edgar_facts_by_unit on filings.edgar_facts (unit);

create table filings.edgar_facts_history (
    like filings.edgar_facts,
    ended_at  timestamptz(6) not null,
    reason    text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (cik, taxonomy, concept, measure, end_date, is_instant, start_date, accession, copy, sent_at, reason, parser_version)
);
comment on table filings.edgar_facts_history is 'What edgar_facts once said otherwise, until when and why no longer';
comment on column filings.edgar_facts_history.cik is 'Company, by its number at the SEC';
comment on column filings.edgar_facts_history.taxonomy is 'us-gaap, ifrs-full, dei, srt or any other';
comment on column filings.edgar_facts_history.concept is 'Name of the concept within the taxonomy';
comment on column filings.edgar_facts_history.measure is 'Unit as resolved by the SEC: USD, shares, USD/shares, pure or any other';
comment on column filings.edgar_facts_history.end_date is 'Last day of the period, or the instant';
comment on column filings.edgar_facts_history.is_instant is 'It is of an instant and not of a period';
comment on column filings.edgar_facts_history.start_date is 'First day of the period; the same as the last at an instant';
comment on column filings.edgar_facts_history.accession is 'Filing that reports it';
comment on column filings.edgar_facts_history.copy is '0; counts on where one filing gives a period of a concept more than once';
comment on column filings.edgar_facts_history.value_text is 'Value, with the digits as given; null where none is';
comment on column filings.edgar_facts_history.value is 'The same as a number; null where it has more digits than fit';
comment on column filings.edgar_facts_history.fy is 'Fiscal year of the filing, not of the fact';
comment on column filings.edgar_facts_history.fp is 'Fiscal period of the filing';
comment on column filings.edgar_facts_history.form is 'Form of the filing';
comment on column filings.edgar_facts_history.filed_date is 'Day on which it was filed';
comment on column filings.edgar_facts_history.frame is 'Frame of which this is the value now';
comment on column filings.edgar_facts_history.unit is 'Unit that gave the row';
comment on column filings.edgar_facts_history.fetch_id is 'Fetch that gave these values first';
comment on column filings.edgar_facts_history.sent_at is 'When that fetch was sent';
comment on column filings.edgar_facts_history.parser_version is 'Parser that read it';
comment on column filings.edgar_facts_history.cycle_id is 'Cycle that wrote it';
comment on column filings.edgar_facts_history.attempt is 'Claim of that cycle';
comment on column filings.edgar_facts_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column filings.edgar_facts_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column filings.edgar_facts_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index edgar_facts_history_by_unit on filings.edgar_facts_history (unit);


create view filings.edgar_due_facts as
    select split_part(m.unit, '/', 1) as subject, true as is_all, coalesce(x.is_nasdaq, false) as is_nasdaq, coalesce(x.is_nyse, false) as is_nyse
      from collect.archive_members m
      left join lateral (select bool_or(t.is_nasdaq) as is_nasdaq, bool_or(t.is_nyse) as is_nyse from filings.sec_tickers t
                          where t.cik = case when m.unit ~ '^[0-9]{10}/' then left(m.unit, 10)::bigint end) x on true
      left join lateral (select f.sha256 from collect.fetches f
                          where f.stream = 'edgar.tier_facts' and f.unit = split_part(m.unit, '/', 1) || '/rows'
                            and f.answer_class in ('data', 'empty')
                          order by f.fetch_id desc limit 1) h on true
     where m.stream = 'edgar.companyfacts' and m.archive = 'companyfacts' and m.sha256 is not null and m.gone_at is null
       and m.sha256 is distinct from h.sha256;
comment on view filings.edgar_due_facts is 'Companies whose document in the bulk file is another than the one that their rows were read from';
