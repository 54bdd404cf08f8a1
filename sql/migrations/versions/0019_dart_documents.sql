-- 0019 dart_documents: documents of Korean companies' periodic reports as chapters and tables, how each stands, which holds,
-- and which periods were restated. Expand-only.
-- Roll-back note: tables and views may be dropped once no stream of dart's sync writes or asks them and what is wanted is
-- exported.

create table filings.dart_documents (
    rcept_no        text collate "C" not null,
    corp_code       text not null,
    corp_name       text,
    stock_code      text,
    year            text not null,
    rcept_date      date not null,
    report_type     text not null,
    report_period   text not null,
    is_correction   boolean not null,
    main_file       text not null,
    other_files     jsonb,
    encoding        text not null,
    replaced_bytes  integer not null,
    sections        integer not null,
    tables          integer not null,
    characters      integer not null,
    unit            text not null,
    fetch_id        bigint not null,
    sent_at         timestamptz(6) not null,
    parser_version  integer not null,
    cycle_id        bigint not null,
    attempt         integer not null,
    extra           jsonb,
    primary key (rcept_no)
);
comment on table filings.dart_documents is 'Documents of periodic reports as they were read: which file of the archive, in which encoding, how much';
comment on column filings.dart_documents.rcept_no is 'Receipt number of the report';
comment on column filings.dart_documents.corp_code is 'Company as DART numbers it: eight digits';
comment on column filings.dart_documents.corp_name is 'Company''s name as the document has it';
comment on column filings.dart_documents.stock_code is 'Stock code of six characters; null where it had none';
comment on column filings.dart_documents.year is 'Year of the period that the title names';
comment on column filings.dart_documents.rcept_date is 'Day of receipt in Seoul';
comment on column filings.dart_documents.report_type is 'Title with its period and without its marks, e.g. 사업보고서 (2025.12)';
comment on column filings.dart_documents.report_period is 'Period that the title names, as YYYY.MM';
comment on column filings.dart_documents.is_correction is 'Whether its title says that it takes the place of an earlier report';
comment on column filings.dart_documents.main_file is 'File of the archive that is the report itself';
comment on column filings.dart_documents.other_files is 'The archive''s other documents: name and what each calls itself';
comment on column filings.dart_documents.encoding is 'How its bytes were read: utf-8 or cp949';
comment on column filings.dart_documents.replaced_bytes is 'Places that are no text in it and stand as U+FFFD; 0 in nearly all';
comment on column filings.dart_documents.sections is 'Chapters';
comment on column filings.dart_documents.tables is 'Tables';
comment on column filings.dart_documents.characters is 'Characters of all chapters; 0 where it has no text, as of pictures alone';
comment on column filings.dart_documents.unit is 'Unit that gave the row';
comment on column filings.dart_documents.fetch_id is 'Fetch that gave these values first';
comment on column filings.dart_documents.sent_at is 'When that fetch was sent';
comment on column filings.dart_documents.parser_version is 'Parser that read it';
comment on column filings.dart_documents.cycle_id is 'Cycle that wrote it';
comment on column filings.dart_documents.attempt is 'Claim of that cycle';
comment on column filings.dart_documents.extra is 'Columns of the upstream that nobody knew yet';
create index dart_documents_by_unit on filings.dart_documents (unit);

create table filings.dart_documents_history (
    like filings.dart_documents,
    ended_at  timestamptz(6) not null,
    reason    text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (rcept_no, sent_at, reason, parser_version)
);
comment on table filings.dart_documents_history is 'What dart_documents once said otherwise, until when and why no longer';
comment on column filings.dart_documents_history.rcept_no is 'Receipt number of the report';
comment on column filings.dart_documents_history.corp_code is 'Company as DART numbers it: eight digits';
comment on column filings.dart_documents_history.corp_name is 'Company''s name as the document has it';
comment on column filings.dart_documents_history.stock_code is 'Stock code of six characters; null where it had none';
comment on column filings.dart_documents_history.year is 'Year of the period that the title names';
comment on column filings.dart_documents_history.rcept_date is 'Day of receipt in Seoul';
comment on column filings.dart_documents_history.report_type is 'Title with its period and without its marks, e.g. 사업보고서 (2025.12)';
comment on column filings.dart_documents_history.report_period is 'Period that the title names, as YYYY.MM';
comment on column filings.dart_documents_history.is_correction is 'Whether its title says that it takes the place of an earlier report';
comment on column filings.dart_documents_history.main_file is 'File of the archive that is the report itself';
comment on column filings.dart_documents_history.other_files is 'The archive''s other documents: name and what each calls itself';
comment on column filings.dart_documents_history.encoding is 'How its bytes were read: utf-8 or cp949';
comment on column filings.dart_documents_history.replaced_bytes is 'Places that are no text in it and stand as U+FFFD; 0 in nearly all';
comment on column filings.dart_documents_history.sections is 'Chapters';
comment on column filings.dart_documents_history.tables is 'Tables';
comment on column filings.dart_documents_history.characters is 'Characters of all chapters; 0 where it has no text, as of pictures alone';
comment on column filings.dart_documents_history.unit is 'Unit that gave the row';
comment on column filings.dart_documents_history.fetch_id is 'Fetch that gave these values first';
comment on column filings.dart_documents_history.sent_at is 'When that fetch was sent';
comment on column filings.dart_documents_history.parser_version is 'Parser that read it';
comment on column filings.dart_documents_history.cycle_id is 'Cycle that wrote it';
comment on column filings.dart_documents_history.attempt is 'Claim of that cycle';
comment on column filings.dart_documents_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column filings.dart_documents_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column filings.dart_documents_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index dart_documents_history_by_unit on filings.dart_documents_history (unit);

create table filings.dart_docs (
    rcept_no         text collate "C" not null,
    section_order    integer not null,
    corp_code        text not null,
    corp_name        text,
    stock_code       text,
    year             text not null,
    rcept_date       date not null,
    report_type      text not null,
    section_level    smallint not null,
    section_parent   integer,
    section_title    text not null,
    section_path     text not null,
    section_slot     text,
    section_content  text not null,
    section_tables   integer not null,
    unit             text not null,
    fetch_id         bigint not null,
    sent_at          timestamptz(6) not null,
    parser_version   integer not null,
    cycle_id         bigint not null,
    attempt          integer not null,
    extra            jsonb,
    primary key (rcept_no, section_order)
);
comment on table filings.dart_docs is 'Chapters of periodic reports in order: text without that of the chapters within them, tables as lines';
comment on column filings.dart_docs.rcept_no is 'Receipt number of the report';
comment on column filings.dart_docs.section_order is 'Place among the chapters of the report, from 0';
comment on column filings.dart_docs.corp_code is 'Company as DART numbers it: eight digits';
comment on column filings.dart_docs.corp_name is 'Company''s name as the document has it';
comment on column filings.dart_docs.stock_code is 'Stock code of six characters; null where it had none';
comment on column filings.dart_docs.year is 'Year of the period that the title names';
comment on column filings.dart_docs.rcept_date is 'Day of receipt in Seoul';
comment on column filings.dart_docs.report_type is 'Title with its period and without its marks, e.g. 사업보고서 (2025.12)';
comment on column filings.dart_docs.section_level is '1 for a chapter, 2 and 3 within it; 0 for what stands before the first';
comment on column filings.dart_docs.section_parent is 'Place of the chapter that it is in';
comment on column filings.dart_docs.section_title is 'Heading';
comment on column filings.dart_docs.section_path is 'Headings from the outermost chapter to this one, with > between them';
comment on column filings.dart_docs.section_slot is 'Official place of the chapter in the form (AASSOCNOTE), steadier than its heading';
comment on column filings.dart_docs.section_content is 'Its own text: a line for a paragraph, and for a row with tabs between cells';
comment on column filings.dart_docs.section_tables is 'Tables in its own text';
comment on column filings.dart_docs.unit is 'Unit that gave the row';
comment on column filings.dart_docs.fetch_id is 'Fetch that gave these values first';
comment on column filings.dart_docs.sent_at is 'When that fetch was sent';
comment on column filings.dart_docs.parser_version is 'Parser that read it';
comment on column filings.dart_docs.cycle_id is 'Cycle that wrote it';
comment on column filings.dart_docs.attempt is 'Claim of that cycle';
comment on column filings.dart_docs.extra is 'Columns of the upstream that nobody knew yet';
create index dart_docs_by_unit on filings.dart_docs (unit);

create table filings.dart_docs_history (
    like filings.dart_docs,
    ended_at  timestamptz(6) not null,
    reason    text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (rcept_no, section_order, sent_at, reason, parser_version)
);
comment on table filings.dart_docs_history is 'What dart_docs once said otherwise, until when and why no longer';
comment on column filings.dart_docs_history.rcept_no is 'Receipt number of the report';
comment on column filings.dart_docs_history.section_order is 'Place among the chapters of the report, from 0';
comment on column filings.dart_docs_history.corp_code is 'Company as DART numbers it: eight digits';
comment on column filings.dart_docs_history.corp_name is 'Company''s name as the document has it';
comment on column filings.dart_docs_history.stock_code is 'Stock code of six characters; null where it had none';
comment on column filings.dart_docs_history.year is 'Year of the period that the title names';
comment on column filings.dart_docs_history.rcept_date is 'Day of receipt in Seoul';
comment on column filings.dart_docs_history.report_type is 'Title with its period and without its marks, e.g. 사업보고서 (2025.12)';
comment on column filings.dart_docs_history.section_level is '1 for a chapter, 2 and 3 within it; 0 for what stands before the first';
comment on column filings.dart_docs_history.section_parent is 'Place of the chapter that it is in';
comment on column filings.dart_docs_history.section_title is 'Heading';
comment on column filings.dart_docs_history.section_path is 'Headings from the outermost chapter to this one, with > between them';
comment on column filings.dart_docs_history.section_slot is 'Official place of the chapter in the form (AASSOCNOTE), steadier than its heading';
comment on column filings.dart_docs_history.section_content is 'Its own text: a line for a paragraph, and for a row with tabs between cells';
comment on column filings.dart_docs_history.section_tables is 'Tables in its own text';
comment on column filings.dart_docs_history.unit is 'Unit that gave the row';
comment on column filings.dart_docs_history.fetch_id is 'Fetch that gave these values first';
comment on column filings.dart_docs_history.sent_at is 'When that fetch was sent';
comment on column filings.dart_docs_history.parser_version is 'Parser that read it';
comment on column filings.dart_docs_history.cycle_id is 'Cycle that wrote it';
comment on column filings.dart_docs_history.attempt is 'Claim of that cycle';
comment on column filings.dart_docs_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column filings.dart_docs_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column filings.dart_docs_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index dart_docs_history_by_unit on filings.dart_docs_history (unit);

create table filings.dart_doc_tables (
    rcept_no         text collate "C" not null,
    table_order      integer not null,
    corp_code        text not null,
    rcept_date       date not null,
    section_order    integer not null,
    table_group      text,
    amounts_in       text,
    is_unstructured  boolean not null,
    cells            jsonb not null,
    fields           jsonb,
    unit             text not null,
    fetch_id         bigint not null,
    sent_at          timestamptz(6) not null,
    parser_version   integer not null,
    cycle_id         bigint not null,
    attempt          integer not null,
    extra            jsonb,
    primary key (rcept_no, table_order)
);
comment on table filings.dart_doc_tables is 'Tables of periodic reports as they would be seen, with the fields that standard forms name';
comment on column filings.dart_doc_tables.rcept_no is 'Receipt number of the report';
comment on column filings.dart_doc_tables.table_order is 'Place among the tables of the report, from 0';
comment on column filings.dart_doc_tables.corp_code is 'Company as DART numbers it: eight digits';
comment on column filings.dart_doc_tables.rcept_date is 'Day of receipt in Seoul';
comment on column filings.dart_doc_tables.section_order is 'Chapter that it is in';
comment on column filings.dart_doc_tables.table_group is 'Statement or note that it belongs to, as the form names it';
comment on column filings.dart_doc_tables.amounts_in is 'Unit of its amounts as written before it, e.g. 백만원';
comment on column filings.dart_doc_tables.is_unstructured is 'Whether one cell holds all of it line by line: it has no columns';
comment on column filings.dart_doc_tables.cells is 'Rows of texts; what a cell spans beside its first place is empty';
comment on column filings.dart_doc_tables.fields is 'Cells that the form names: row and column from 0, name, value behind a choice or day, XBRL context';
comment on column filings.dart_doc_tables.unit is 'Unit that gave the row';
comment on column filings.dart_doc_tables.fetch_id is 'Fetch that gave these values first';
comment on column filings.dart_doc_tables.sent_at is 'When that fetch was sent';
comment on column filings.dart_doc_tables.parser_version is 'Parser that read it';
comment on column filings.dart_doc_tables.cycle_id is 'Cycle that wrote it';
comment on column filings.dart_doc_tables.attempt is 'Claim of that cycle';
comment on column filings.dart_doc_tables.extra is 'Columns of the upstream that nobody knew yet';
create index dart_doc_tables_by_unit on filings.dart_doc_tables (unit);

create table filings.dart_doc_tables_history (
    like filings.dart_doc_tables,
    ended_at  timestamptz(6) not null,
    reason    text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (rcept_no, table_order, sent_at, reason, parser_version)
);
comment on table filings.dart_doc_tables_history is 'What dart_doc_tables once said otherwise, until when and why no longer';
comment on column filings.dart_doc_tables_history.rcept_no is 'Receipt number of the report';
comment on column filings.dart_doc_tables_history.table_order is 'Place among the tables of the report, from 0';
comment on column filings.dart_doc_tables_history.corp_code is 'Company as DART numbers it: eight digits';
comment on column filings.dart_doc_tables_history.rcept_date is 'Day of receipt in Seoul';
comment on column filings.dart_doc_tables_history.section_order is 'Chapter that it is in';
comment on column filings.dart_doc_tables_history.table_group is 'Statement or note that it belongs to, as the form names it';
comment on column filings.dart_doc_tables_history.amounts_in is 'Unit of its amounts as written before it, e.g. 백만원';
comment on column filings.dart_doc_tables_history.is_unstructured is 'Whether one cell holds all of it line by line: it has no columns';
comment on column filings.dart_doc_tables_history.cells is 'Rows of texts; what a cell spans beside its first place is empty';
comment on column filings.dart_doc_tables_history.fields is 'Cells that the form names: row and column from 0, name, value behind a choice or day, XBRL context';
comment on column filings.dart_doc_tables_history.unit is 'Unit that gave the row';
comment on column filings.dart_doc_tables_history.fetch_id is 'Fetch that gave these values first';
comment on column filings.dart_doc_tables_history.sent_at is 'When that fetch was sent';
comment on column filings.dart_doc_tables_history.parser_version is 'Parser that read it';
comment on column filings.dart_doc_tables_history.cycle_id is 'Cycle that wrote it';
comment on column filings.dart_doc_tables_history.attempt is 'Claim of that cycle';
comment on column filings.dart_doc_tables_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column filings.dart_doc_tables_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column filings.dart_doc_tables_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index dart_doc_tables_history_by_unit on filings.dart_doc_tables_history (unit);

create index dart_documents_by_corp on filings.dart_documents (corp_code, report_period);

-- how each report stands ---------------------------------------------------------------------------------
-- A report is known from the list of disclosures, or from the quarter's list that a range of the past reads.

create view filings.dart_document_versions as
    with known as (
        select coalesce(p.rcept_no, d.rcept_no) as rcept_no, coalesce(p.corp_code, d.corp_code) as corp_code,
               coalesce(p.stock_code, d.stock_code) as stock_code,
               coalesce(p.base_title, split_part(d.report_type, ' ', 1)) as base_title,
               coalesce(p.report_period, d.report_period) as report_period, coalesce(p.rcept_dt, d.rcept_date) as rcept_date,
               coalesce(p.is_correction, d.is_correction) as is_correction, coalesce(p.is_withdrawn, false) as is_withdrawn,
               d.characters
          from filings.dart_periodics p
          full join filings.dart_documents d on d.rcept_no = p.rcept_no
    ), ordered as (
        select k.*,
               lead(k.rcept_no) over (partition by k.corp_code, k.base_title, k.report_period, k.is_withdrawn
                                          order by k.rcept_date, k.rcept_no) as next_no
          from known k
    )
    select o.rcept_no, o.corp_code, o.stock_code, o.base_title, o.report_period, o.rcept_date, o.is_correction, o.is_withdrawn,
           case when not o.is_withdrawn then o.next_no end as superseded_by,
           not o.is_withdrawn and o.next_no is null as is_current,
           case when o.characters > 0 then 'held'
                when o.characters = 0 then 'no_text'
                when q.is_open then 'broken'
                when f.why is not null then f.why
                when a.is_absent then 'no_file'
                else 'due' end as state,
           a.tries, a.last_at as asked_at
      from ordered o
      left join lateral (select true as is_open from collect.quarantine q
                          where o.characters is null and q.stream = 'dart.docs' and q.scope = 'unit' and q.state = 'open'
                            and q.unit = o.corp_code || '/' || o.rcept_no || '/document' limit 1) q on true
      left join lateral (select case when p.given_up_at is null then 'failed' else 'given_up' end as why from collect.pending p
                          where o.characters is null and p.stream = 'dart.docs' and p.key ^@ (o.corp_code || '/' || o.rcept_no || '/')
                          limit 1) f on true
      left join lateral (select count(*)::integer as tries, max(f.sent_at) as last_at,
                                bool_or(f.answer_class = 'absent') as is_absent
                           from collect.fetches f
                          where o.characters is null and f.stream = 'dart.docs'
                            and f.unit = o.corp_code || '/' || o.rcept_no || '/document') a on true;
comment on view filings.dart_document_versions is
    'Every periodic report that is known, with the later one of the same company, title and period that took its place, and how its document stands: held, no_text (pictures alone), broken (in quarantine), failed or given_up (no answer), no_file (DART has none), due';

create view filings.dart_current_docs as
    with held as (
        select distinct on (v.corp_code, v.base_title, v.report_period) v.corp_code, v.rcept_no, v.is_current
          from filings.dart_document_versions v
         where v.state in ('held', 'no_text') and not v.is_withdrawn
         order by v.corp_code, v.base_title, v.report_period, v.rcept_date desc, v.rcept_no desc
    )
    select s.*, h.is_current
      from filings.dart_docs s join held h on h.corp_code = s.corp_code and h.rcept_no = s.rcept_no;
comment on view filings.dart_current_docs is
    'Chapters of the report that holds, of each company, title and period; is_current is false where a later one exists whose document is not held yet';

-- what is due --------------------------------------------------------------------------------------------

create view filings.dart_due_docs as
    with cut as (
        select max(c.window_start) as at from collect.cycles c
         where c.stream = 'dart.docs' and c.window_start is not null and c.cycle_status = 'BUDGET_EXHAUSTED'
    ), clock as (
        select collect.clock() as now
    )
    select 'due ' || case when p.created_at <= cut.at then '0' else '1' end || ' '
           || p.corp_code || '/' || p.rcept_no || '/' || p.stock_code || '/' || p.rcept_dt || '/'
           || case p.base_title when '사업보고서' then 'annual' when '반기보고서' then 'half' else 'quarter' end || '-' || p.report_period
           || case when p.is_correction then '-correction' else '' end as subject,
           true as is_wanted
      from filings.dart_periodics p cross join clock c cross join cut
      left join lateral (select min(f.sent_at) as first_at, max(f.sent_at) as last_at from collect.fetches f
                          where f.stream = 'dart.docs' and f.unit = p.corp_code || '/' || p.rcept_no || '/document'
                            and f.answer_class in ('data', 'absent')) a on true
     where not p.is_withdrawn and p.rcept_dt >= (c.now at time zone 'Asia/Seoul')::date - 120
       and not exists (select 1 from filings.dart_documents d where d.rcept_no = p.rcept_no)
       and not exists (select 1 from collect.pending w
                        where w.stream = 'dart.docs' and w.key ^@ (p.corp_code || '/' || p.rcept_no || '/'))
       and (a.last_at is null
            or a.last_at < c.now - least(greatest((a.last_at - a.first_at) / 2, interval '11 hours'), interval '7 days'))
    union all
    select 'held ' || d.rcept_date || ' ' || string_agg(d.corp_code || '-' || d.rcept_no, ' ' order by d.rcept_no), true
      from filings.dart_documents d
     group by d.rcept_date;
comment on view filings.dart_due_docs is
    'Documents of the reports of the last 120 days that are not held, with 0 before what a quota cut off; one that DART does not have is asked for half a day later, then less and less often, weekly at last. And which reports are held, by day of receipt';

-- which periods were restated ----------------------------------------------------------------------------
-- By a correction, whose rows stand beside those of the report that it corrects; or by what a later report gives of the
-- year before. Only accounts that both name once are compared, and amounts that both have.

create view filings.dart_comparable_reports as
    select b.corp_code, b.bsns_year, b.reprt_code, b.fs_div, 'correction' as how, a.rcept_no as reported_in,
           b.rcept_no as restated_in, b.reprt_code as restated_code, b.sent_at as known_at
      from filings.dart_finance_sets b
     cross join lateral (select max(s.rcept_no) as rcept_no from filings.dart_finance_sets s
                          where s.corp_code = b.corp_code and s.bsns_year = b.bsns_year and s.reprt_code = b.reprt_code
                            and s.fs_div = b.fs_div and s.rcept_no <> '' and s.rcept_no < b.rcept_no) a
     where b.rcept_no <> '' and a.rcept_no is not null
    union all
    select b.corp_code, (b.bsns_year - 1)::smallint, k.code, b.fs_div, 'comparative', a.rcept_no, b.rcept_no, b.reprt_code, b.sent_at
      from filings.dart_finance_sets b
     cross join lateral (select distinct unnest(array[b.reprt_code, '11011']) as code) k
     cross join lateral (select max(s.rcept_no) as rcept_no from filings.dart_finance_sets s
                          where s.corp_code = b.corp_code and s.bsns_year = b.bsns_year - 1 and s.reprt_code = k.code
                            and s.fs_div = b.fs_div and s.rcept_no <> '' and s.rcept_no < b.rcept_no) a
     where b.rcept_no <> '' and a.rcept_no is not null;
comment on view filings.dart_comparable_reports is
    'Statements that can be held beside each other: those of a report beside what a correction of it, or a report of the year after, gives of the same period';

-- Both reports are read in one pass: comparing each account of one with each of the other takes many times as long.
create function filings.dart_accounts_restated(same filings.dart_comparable_reports)
    returns table (accounts integer, first_account text) language sql stable as $$
    select count(*)::integer, min(e.account_nm)
      from (select s.sj_div, s.account_nm,
                   min(s.thstrm_amount) filter (where s.rcept_no = same.reported_in) as amount,
                   min(s.thstrm_add_amount) filter (where s.rcept_no = same.reported_in) as since_year_began,
                   min(s.thstrm_amount) filter (where s.rcept_no = same.restated_in) as later,
                   min(s.thstrm_add_amount) filter (where s.rcept_no = same.restated_in) as later_since_year_began,
                   min(s.frmtrm_amount) filter (where s.rcept_no = same.restated_in) as before,
                   min(s.frmtrm_add_amount) filter (where s.rcept_no = same.restated_in) as before_since_year_began
              from filings.dart_statements s
             where s.rcept_no in (same.reported_in, same.restated_in) and s.fs_div = same.fs_div
             group by s.sj_div, s.account_id, s.account_nm, s.account_detail
            having count(*) filter (where s.rcept_no = same.reported_in) = 1
               and count(*) filter (where s.rcept_no = same.restated_in) = 1) e
     where case when same.how = 'correction' then e.amount <> e.later or e.since_year_began <> e.later_since_year_began
                -- A balance is compared with the end of the year before, a whole year with the one before it.
                when same.reprt_code = '11011' and (same.restated_code = '11011' or e.sj_div = 'BS')
                then e.sj_div <> 'SCE' and e.amount <> e.before
                else e.sj_div in ('IS', 'CIS') and same.reprt_code = same.restated_code
                     and e.since_year_began <> e.before_since_year_began end
$$;
comment on function filings.dart_accounts_restated(filings.dart_comparable_reports) is
    'How many accounts of two reports that can be held beside each other have other amounts, and the first of them by name';

create view filings.dart_restated_periods as
    select p.corp_code, p.bsns_year, p.reprt_code, p.fs_div, p.how, p.reported_in, p.restated_in, p.known_at, c.accounts, c.first_account
      from filings.dart_comparable_reports p cross join lateral filings.dart_accounts_restated(p) c
     where c.accounts > 0;
comment on view filings.dart_restated_periods is
    'Periods of which a later report gives other amounts: by a correction, or as what it gives of the year before; with how many accounts differ';

create view filings.dart_doubts as
    -- What a backfill of years brings was restated long ago, and is no news.
    with lately as materialized (
        select p.* from filings.dart_comparable_reports p join dartbrief.disclosures d on d.rcept_no = p.restated_in
         where p.known_at >= (select collect.clock() - interval '7 days')
           and d.rcept_dt >= (select (collect.clock() at time zone 'Asia/Seoul')::date - 120)
    )
    select 'dart.finance' as stream, 'restated' as key,
           count(*) || ' statements of ' || count(distinct r.corp_code) || ' companies were restated within the last week, first '
           || min(r.corp_code || '/' || r.bsns_year || '.' || r.reprt_code || '/' || r.fs_div || ' (' || r.how || ' in ' || r.restated_in || ')')
           || '; filings.dart_restated_periods lists them. Both versions are kept.' as says
      from lately r cross join lateral filings.dart_accounts_restated(row(r.*)::filings.dart_comparable_reports) c
     where c.accounts > 0
    having count(*) > 0;
comment on view filings.dart_doubts is
    'What an operator should look at though every answer was fine: statements that a report of the last 120 days restates, for a week';

create or replace view filings.newcomers as
    select 'dart.finance' as stream, l.corp_code as key, l.name, l.listed_on from filings.dart_listed_corps l
     where not exists (select 1 from filings.dart_finance_sets s
                        where s.corp_code = l.corp_code and s.bsns_year = 2016 and s.reprt_code = '11013' and s.fs_div = 'OFS')
    union all
    select 'dart.report', l.corp_code, l.name, l.listed_on from filings.dart_listed_corps l
     where not exists (select 1 from filings.dart_report_sets s
                        where s.corp_code = l.corp_code and s.bsns_year = 2016 and s.reprt_code = '11013'
                          and s.endpoint = 'stockTotqySttus')
    union all
    select 'dart.docs', l.corp_code, l.name, l.listed_on from filings.dart_listed_corps l
     where not exists (select 1 from filings.dart_documents d where d.corp_code = l.corp_code)
       and not exists (select 1 from collect.fetches f
                        where f.stream = 'dart.docs' and f.unit = l.corp_code || '/list/2016.11013'
                          and f.answer_class in ('data', 'empty'));
comment on view filings.newcomers is
    'Listed companies of which a stream does not hold the past: the oldest period, which is asked for last, was never answered; of documents, that has none of them either';
