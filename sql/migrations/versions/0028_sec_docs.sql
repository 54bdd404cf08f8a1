-- 0028 sec_docs: annual and quarterly reports cut into their items. Expand-only.
-- Roll-back note: the tables may be dropped once no release cuts reports; all of it can be cut again from what is stored.

create table filings.sec_sections (
    accession         text collate "C" not null,
    number            integer not null,
    cik               bigint not null,
    company_name      text,
    form              text not null,
    filed_date        date not null,
    period_of_report  date,
    part              text,
    item              text,
    title             text not null,
    content           text not null,
    unit              text not null,
    fetch_id          bigint not null,
    sent_at           timestamptz(6) not null,
    parser_version    integer not null,
    cycle_id          bigint not null,
    attempt           integer not null,
    extra             jsonb,
    primary key (accession, number)
);
comment on table filings.sec_sections is 'Annual and quarterly reports cut into their items, in order';
comment on column filings.sec_sections.accession is 'Number of the filing, with its dashes';
comment on column filings.sec_sections.number is 'Place in the report, from 0; 0 is what stands before the first item';
comment on column filings.sec_sections.cik is 'First filer, by the SEC''s number';
comment on column filings.sec_sections.company_name is 'Its name in the header';
comment on column filings.sec_sections.form is 'Form of the report, e.g. 10-K or 10-Q/A';
comment on column filings.sec_sections.filed_date is 'Filing date as the header says, or the index where it has none';
comment on column filings.sec_sections.period_of_report is 'Period that it reports on, as the header says';
comment on column filings.sec_sections.part is 'Part of the form, I to IV';
comment on column filings.sec_sections.item is 'Item of the form, e.g. 1A; null before the first';
comment on column filings.sec_sections.title is 'Heading of the item as given, empty where it has none';
comment on column filings.sec_sections.content is 'Its text: a line for a paragraph, and for a row with tabs between cells';
comment on column filings.sec_sections.unit is 'Unit that gave the row';
comment on column filings.sec_sections.fetch_id is 'Fetch that gave these values first';
comment on column filings.sec_sections.sent_at is 'When that fetch was sent';
comment on column filings.sec_sections.parser_version is 'Parser that read it';
comment on column filings.sec_sections.cycle_id is 'Cycle that wrote it';
comment on column filings.sec_sections.attempt is 'Claim of that cycle';
comment on column filings.sec_sections.extra is 'Columns of the upstream that nobody knew yet';
create index sec_sections_by_unit on filings.sec_sections (unit);

create table filings.sec_sections_history (
    like filings.sec_sections,
    ended_at  timestamptz(6) not null,
    reason    text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (accession, number, sent_at, reason, parser_version)
);
comment on table filings.sec_sections_history is 'What sec_sections once said otherwise, until when and why no longer';
comment on column filings.sec_sections_history.accession is 'Number of the filing, with its dashes';
comment on column filings.sec_sections_history.number is 'Place in the report, from 0; 0 is what stands before the first item';
comment on column filings.sec_sections_history.cik is 'First filer, by the SEC''s number';
comment on column filings.sec_sections_history.company_name is 'Its name in the header';
comment on column filings.sec_sections_history.form is 'Form of the report, e.g. 10-K or 10-Q/A';
comment on column filings.sec_sections_history.filed_date is 'Filing date as the header says, or the index where it has none';
comment on column filings.sec_sections_history.period_of_report is 'Period that it reports on, as the header says';
comment on column filings.sec_sections_history.part is 'Part of the form, I to IV';
comment on column filings.sec_sections_history.item is 'Item of the form, e.g. 1A; null before the first';
comment on column filings.sec_sections_history.title is 'Heading of the item as given, empty where it has none';
comment on column filings.sec_sections_history.content is 'Its text: a line for a paragraph, and for a row with tabs between cells';
comment on column filings.sec_sections_history.unit is 'Unit that gave the row';
comment on column filings.sec_sections_history.fetch_id is 'Fetch that gave these values first';
comment on column filings.sec_sections_history.sent_at is 'When that fetch was sent';
comment on column filings.sec_sections_history.parser_version is 'Parser that read it';
comment on column filings.sec_sections_history.cycle_id is 'Cycle that wrote it';
comment on column filings.sec_sections_history.attempt is 'Claim of that cycle';
comment on column filings.sec_sections_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column filings.sec_sections_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column filings.sec_sections_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index sec_sections_history_by_unit on filings.sec_sections_history (unit);


create view filings.sec_due_docs as
    select f.request_key || ' ' || d.type as subject, true as is_all, coalesce(x.is_nasdaq, false) as is_nasdaq,
           coalesce(x.is_nyse, false) as is_nyse
      from collect.fetches f
      join filings.sec_documents d on d.accession = split_part(f.unit, '/', 1) collate "C" and d.number = 1
      left join lateral (select bool_or(t.is_nasdaq) as is_nasdaq, bool_or(t.is_nyse) as is_nyse from filings.sec_tickers t
                          where t.cik = case when split_part(f.request_key, '/', 2) ~ '^[0-9]+$'
                                             then split_part(f.request_key, '/', 2)::bigint end) x on true
     where f.stream = 'sec.filings' and f.unit not like 'index/%' and f.answer_class = 'data' and f.applied_at is not null
       and f.sent_at >= (select collect.clock() - interval '60 days')
       and regexp_replace(d.type, '/A$', '')
           in ('10-K', '10-K405', '10-KSB', '10-KT', '10-Q', '10-QSB', '10-QT', '20-F', '40-F')
       and not exists (select from collect.fetches h
                        where h.stream = 'sec.docs' and h.unit = split_part(f.unit, '/', 1) || '/sections'
                          and h.answer_class in ('data', 'empty') and h.sent_at >= f.sent_at)
       and split_part(f.unit, '/', 1) not in (select split_part(p.key, '/', 1) from collect.pending p where p.stream = 'sec.docs')
    union all
    select 'list', true, true, true where not exists (select from filings.sec_texts);
comment on view filings.sec_due_docs is
    'Annual and quarterly reports of the last sixty days whose submission was read and that were not cut, as key and form; and that no submission is known at all';

create function publish.mark_filers() returns trigger language plpgsql volatile set search_path = publish, pg_temp as $$
begin
    insert into publish.stale as p (table_name, partition, marked_at)
    select format('%s.%s:company', tg_table_schema, tg_table_name), c.company, collect.clock()
      from (select distinct lpad(n.cik::text, 10, '0') as company from changed n) c
     order by c.company
    on conflict (table_name, partition) do update set version = p.version + 1, marked_at = excluded.marked_at;
    return null;
end $$;
comment on function publish.mark_filers() is
    'As publish.mark_companies, of rows whose company is the SEC''s number';

create trigger by_company_insert after insert on filings.sec_sections referencing new table as changed
    for each statement execute function publish.mark_filers();
create trigger by_company_update after update on filings.sec_sections referencing new table as changed
    for each statement execute function publish.mark_filers();
create trigger by_company_delete after delete on filings.sec_sections referencing old table as changed
    for each statement execute function publish.mark_filers();
create index sec_sections_by_company on filings.sec_sections (cik);

create view publish.sec_sections as
    select lpad(s.cik::text, 10, '0') as company, s.accession, s.number, s.company_name, s.form, s.filed_date, s.period_of_report,
           s.part, s.item, s.title, s.content, s.fetch_id, s.sent_at
      from filings.sec_sections s;
comment on view publish.sec_sections is 'Items of annual and quarterly reports of a company, in order';
