-- 0018 dart_sync: statements and report items of Korean companies by period, which reports there are, and what is due.
-- Expand-only.
-- Roll-back note: tables and views may be dropped once no stream of dart's sync writes or asks them and what is wanted is
-- exported.

create table filings.dart_finance_sets (
    corp_code       text collate "C" not null,
    bsns_year       smallint not null,
    reprt_code      text collate "C" not null,
    period_end      date not null,
    fs_div          text collate "C" not null,
    rcept_no        text collate "C" not null,
    rows            integer not null,
    unit            text not null,
    fetch_id        bigint not null,
    sent_at         timestamptz(6) not null,
    parser_version  integer not null,
    cycle_id        bigint not null,
    attempt         integer not null,
    extra           jsonb,
    primary key (corp_code, bsns_year, reprt_code, fs_div, rcept_no)
);
comment on table filings.dart_finance_sets is 'Statements that DART was asked for, by company, period and basis: of which report, or none';
comment on column filings.dart_finance_sets.corp_code is 'Company as DART numbers it: eight digits';
comment on column filings.dart_finance_sets.bsns_year is 'Business year, as asked for';
comment on column filings.dart_finance_sets.reprt_code is '11013 first quarter, 11012 half year, 11014 third quarter, 11011 whole year';
comment on column filings.dart_finance_sets.period_end is 'Day on which the period ends where the year ends in December';
comment on column filings.dart_finance_sets.fs_div is 'CFS consolidated, OFS separate';
comment on column filings.dart_finance_sets.rcept_no is 'Receipt number of the report; empty where DART had no data of the period';
comment on column filings.dart_finance_sets.rows is 'Rows of the answer';
comment on column filings.dart_finance_sets.unit is 'Unit that gave the row';
comment on column filings.dart_finance_sets.fetch_id is 'Fetch that gave these values first';
comment on column filings.dart_finance_sets.sent_at is 'When that fetch was sent';
comment on column filings.dart_finance_sets.parser_version is 'Parser that read it';
comment on column filings.dart_finance_sets.cycle_id is 'Cycle that wrote it';
comment on column filings.dart_finance_sets.attempt is 'Claim of that cycle';
comment on column filings.dart_finance_sets.extra is 'Columns of the upstream that nobody knew yet';
create index dart_finance_sets_by_unit on filings.dart_finance_sets (unit);

create table filings.dart_finance_sets_history (
    like filings.dart_finance_sets,
    ended_at  timestamptz(6) not null,
    reason    text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (corp_code, bsns_year, reprt_code, fs_div, rcept_no, sent_at, reason, parser_version)
);
comment on table filings.dart_finance_sets_history is 'What dart_finance_sets once said otherwise, until when and why no longer';
comment on column filings.dart_finance_sets_history.corp_code is 'Company as DART numbers it: eight digits';
comment on column filings.dart_finance_sets_history.bsns_year is 'Business year, as asked for';
comment on column filings.dart_finance_sets_history.reprt_code is '11013 first quarter, 11012 half year, 11014 third quarter, 11011 whole year';
comment on column filings.dart_finance_sets_history.period_end is 'Day on which the period ends where the year ends in December';
comment on column filings.dart_finance_sets_history.fs_div is 'CFS consolidated, OFS separate';
comment on column filings.dart_finance_sets_history.rcept_no is 'Receipt number of the report; empty where DART had no data of the period';
comment on column filings.dart_finance_sets_history.rows is 'Rows of the answer';
comment on column filings.dart_finance_sets_history.unit is 'Unit that gave the row';
comment on column filings.dart_finance_sets_history.fetch_id is 'Fetch that gave these values first';
comment on column filings.dart_finance_sets_history.sent_at is 'When that fetch was sent';
comment on column filings.dart_finance_sets_history.parser_version is 'Parser that read it';
comment on column filings.dart_finance_sets_history.cycle_id is 'Cycle that wrote it';
comment on column filings.dart_finance_sets_history.attempt is 'Claim of that cycle';
comment on column filings.dart_finance_sets_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column filings.dart_finance_sets_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column filings.dart_finance_sets_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index dart_finance_sets_history_by_unit on filings.dart_finance_sets_history (unit);

create table filings.dart_statements (
    rcept_no           text collate "C" not null,
    fs_div             text collate "C" not null,
    number             integer not null,
    corp_code          text not null,
    bsns_year          smallint not null,
    reprt_code         text not null,
    period_end         date not null,
    sj_div             text not null,
    sj_nm              text,
    account_id         text,
    account_nm         text not null,
    account_detail     text,
    thstrm_nm          text,
    thstrm_amount      numeric,
    thstrm_add_amount  numeric,
    frmtrm_nm          text,
    frmtrm_amount      numeric,
    frmtrm_q_nm        text,
    frmtrm_q_amount    numeric,
    frmtrm_add_amount  numeric,
    bfefrmtrm_nm       text,
    bfefrmtrm_amount   numeric,
    ord                text,
    currency           text,
    odd_amounts        text,
    amounts_as_given   jsonb,
    unit               text not null,
    fetch_id           bigint not null,
    sent_at            timestamptz(6) not null,
    parser_version     integer not null,
    cycle_id           bigint not null,
    attempt            integer not null,
    extra              jsonb,
    primary key (rcept_no, fs_div, number)
);
comment on table filings.dart_statements is 'Statements as reported, row by row, of every report that they were restated in';
comment on column filings.dart_statements.rcept_no is 'Receipt number of the report';
comment on column filings.dart_statements.fs_div is 'CFS consolidated, OFS separate: as asked for, the answer does not say';
comment on column filings.dart_statements.number is 'Place in the answer, from 1';
comment on column filings.dart_statements.corp_code is 'Company as DART numbers it: eight digits';
comment on column filings.dart_statements.bsns_year is 'Business year, as asked for';
comment on column filings.dart_statements.reprt_code is '11013 first quarter, 11012 half year, 11014 third quarter, 11011 whole year';
comment on column filings.dart_statements.period_end is 'Day on which the period ends where the year ends in December';
comment on column filings.dart_statements.sj_div is 'BS balance sheet, IS income, CIS comprehensive income, CF cash flow, SCE equity';
comment on column filings.dart_statements.sj_nm is 'Name of the statement';
comment on column filings.dart_statements.account_id is 'Element of the account; -표준계정코드 미사용- without a standard code';
comment on column filings.dart_statements.account_nm is 'Name of the account';
comment on column filings.dart_statements.account_detail is 'Component of equity, with | between its steps; - elsewhere';
comment on column filings.dart_statements.thstrm_nm is 'Name of the period';
comment on column filings.dart_statements.thstrm_amount is 'Amount; of a quarter''s income its three months';
comment on column filings.dart_statements.thstrm_add_amount is 'Amount since the year began';
comment on column filings.dart_statements.frmtrm_nm is 'Name of the period before';
comment on column filings.dart_statements.frmtrm_amount is 'Amount of the period before; of a balance the end of last year';
comment on column filings.dart_statements.frmtrm_q_nm is 'Name of the same quarter of last year';
comment on column filings.dart_statements.frmtrm_q_amount is 'Amount of the same quarter of last year';
comment on column filings.dart_statements.frmtrm_add_amount is 'Amount of last year until the same day';
comment on column filings.dart_statements.bfefrmtrm_nm is 'Name of the period before that';
comment on column filings.dart_statements.bfefrmtrm_amount is 'Amount of the period before that; of whole years only';
comment on column filings.dart_statements.ord is 'Order that DART gives, as text';
comment on column filings.dart_statements.currency is 'Currency of the amounts';
comment on column filings.dart_statements.odd_amounts is 'Names of the amounts whose text is no number, with commas between them';
comment on column filings.dart_statements.amounts_as_given is 'Texts of amounts that are not simply the number';
comment on column filings.dart_statements.unit is 'Unit that gave the row';
comment on column filings.dart_statements.fetch_id is 'Fetch that gave these values first';
comment on column filings.dart_statements.sent_at is 'When that fetch was sent';
comment on column filings.dart_statements.parser_version is 'Parser that read it';
comment on column filings.dart_statements.cycle_id is 'Cycle that wrote it';
comment on column filings.dart_statements.attempt is 'Claim of that cycle';
comment on column filings.dart_statements.extra is 'Columns of the upstream that nobody knew yet';
create index dart_statements_by_unit on filings.dart_statements (unit);

create table filings.dart_statements_history (
    like filings.dart_statements,
    ended_at  timestamptz(6) not null,
    reason    text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (rcept_no, fs_div, number, sent_at, reason, parser_version)
);
comment on table filings.dart_statements_history is 'What dart_statements once said otherwise, until when and why no longer';
comment on column filings.dart_statements_history.rcept_no is 'Receipt number of the report';
comment on column filings.dart_statements_history.fs_div is 'CFS consolidated, OFS separate: as asked for, the answer does not say';
comment on column filings.dart_statements_history.number is 'Place in the answer, from 1';
comment on column filings.dart_statements_history.corp_code is 'Company as DART numbers it: eight digits';
comment on column filings.dart_statements_history.bsns_year is 'Business year, as asked for';
comment on column filings.dart_statements_history.reprt_code is '11013 first quarter, 11012 half year, 11014 third quarter, 11011 whole year';
comment on column filings.dart_statements_history.period_end is 'Day on which the period ends where the year ends in December';
comment on column filings.dart_statements_history.sj_div is 'BS balance sheet, IS income, CIS comprehensive income, CF cash flow, SCE equity';
comment on column filings.dart_statements_history.sj_nm is 'Name of the statement';
comment on column filings.dart_statements_history.account_id is 'Element of the account; -표준계정코드 미사용- without a standard code';
comment on column filings.dart_statements_history.account_nm is 'Name of the account';
comment on column filings.dart_statements_history.account_detail is 'Component of equity, with | between its steps; - elsewhere';
comment on column filings.dart_statements_history.thstrm_nm is 'Name of the period';
comment on column filings.dart_statements_history.thstrm_amount is 'Amount; of a quarter''s income its three months';
comment on column filings.dart_statements_history.thstrm_add_amount is 'Amount since the year began';
comment on column filings.dart_statements_history.frmtrm_nm is 'Name of the period before';
comment on column filings.dart_statements_history.frmtrm_amount is 'Amount of the period before; of a balance the end of last year';
comment on column filings.dart_statements_history.frmtrm_q_nm is 'Name of the same quarter of last year';
comment on column filings.dart_statements_history.frmtrm_q_amount is 'Amount of the same quarter of last year';
comment on column filings.dart_statements_history.frmtrm_add_amount is 'Amount of last year until the same day';
comment on column filings.dart_statements_history.bfefrmtrm_nm is 'Name of the period before that';
comment on column filings.dart_statements_history.bfefrmtrm_amount is 'Amount of the period before that; of whole years only';
comment on column filings.dart_statements_history.ord is 'Order that DART gives, as text';
comment on column filings.dart_statements_history.currency is 'Currency of the amounts';
comment on column filings.dart_statements_history.odd_amounts is 'Names of the amounts whose text is no number, with commas between them';
comment on column filings.dart_statements_history.amounts_as_given is 'Texts of amounts that are not simply the number';
comment on column filings.dart_statements_history.unit is 'Unit that gave the row';
comment on column filings.dart_statements_history.fetch_id is 'Fetch that gave these values first';
comment on column filings.dart_statements_history.sent_at is 'When that fetch was sent';
comment on column filings.dart_statements_history.parser_version is 'Parser that read it';
comment on column filings.dart_statements_history.cycle_id is 'Cycle that wrote it';
comment on column filings.dart_statements_history.attempt is 'Claim of that cycle';
comment on column filings.dart_statements_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column filings.dart_statements_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column filings.dart_statements_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index dart_statements_history_by_unit on filings.dart_statements_history (unit);

create table filings.dart_report_sets (
    corp_code       text collate "C" not null,
    bsns_year       smallint not null,
    reprt_code      text collate "C" not null,
    period_end      date not null,
    endpoint        text collate "C" not null,
    rcept_no        text collate "C" not null,
    rows            integer not null,
    unit            text not null,
    fetch_id        bigint not null,
    sent_at         timestamptz(6) not null,
    parser_version  integer not null,
    cycle_id        bigint not null,
    attempt         integer not null,
    extra           jsonb,
    primary key (corp_code, bsns_year, reprt_code, endpoint, rcept_no)
);
comment on table filings.dart_report_sets is 'Items of reports that DART was asked for, by company, period and endpoint: of which report, or none';
comment on column filings.dart_report_sets.corp_code is 'Company as DART numbers it: eight digits';
comment on column filings.dart_report_sets.bsns_year is 'Business year, as asked for';
comment on column filings.dart_report_sets.reprt_code is '11013 first quarter, 11012 half year, 11014 third quarter, 11011 whole year';
comment on column filings.dart_report_sets.period_end is 'Day on which the period ends where the year ends in December';
comment on column filings.dart_report_sets.endpoint is 'Endpoint of the item, by its official name';
comment on column filings.dart_report_sets.rcept_no is 'Receipt number of the report; empty where DART had no data of the period';
comment on column filings.dart_report_sets.rows is 'Rows of the answer';
comment on column filings.dart_report_sets.unit is 'Unit that gave the row';
comment on column filings.dart_report_sets.fetch_id is 'Fetch that gave these values first';
comment on column filings.dart_report_sets.sent_at is 'When that fetch was sent';
comment on column filings.dart_report_sets.parser_version is 'Parser that read it';
comment on column filings.dart_report_sets.cycle_id is 'Cycle that wrote it';
comment on column filings.dart_report_sets.attempt is 'Claim of that cycle';
comment on column filings.dart_report_sets.extra is 'Columns of the upstream that nobody knew yet';
create index dart_report_sets_by_unit on filings.dart_report_sets (unit);

create table filings.dart_report_sets_history (
    like filings.dart_report_sets,
    ended_at  timestamptz(6) not null,
    reason    text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (corp_code, bsns_year, reprt_code, endpoint, rcept_no, sent_at, reason, parser_version)
);
comment on table filings.dart_report_sets_history is 'What dart_report_sets once said otherwise, until when and why no longer';
comment on column filings.dart_report_sets_history.corp_code is 'Company as DART numbers it: eight digits';
comment on column filings.dart_report_sets_history.bsns_year is 'Business year, as asked for';
comment on column filings.dart_report_sets_history.reprt_code is '11013 first quarter, 11012 half year, 11014 third quarter, 11011 whole year';
comment on column filings.dart_report_sets_history.period_end is 'Day on which the period ends where the year ends in December';
comment on column filings.dart_report_sets_history.endpoint is 'Endpoint of the item, by its official name';
comment on column filings.dart_report_sets_history.rcept_no is 'Receipt number of the report; empty where DART had no data of the period';
comment on column filings.dart_report_sets_history.rows is 'Rows of the answer';
comment on column filings.dart_report_sets_history.unit is 'Unit that gave the row';
comment on column filings.dart_report_sets_history.fetch_id is 'Fetch that gave these values first';
comment on column filings.dart_report_sets_history.sent_at is 'When that fetch was sent';
comment on column filings.dart_report_sets_history.parser_version is 'Parser that read it';
comment on column filings.dart_report_sets_history.cycle_id is 'Cycle that wrote it';
comment on column filings.dart_report_sets_history.attempt is 'Claim of that cycle';
comment on column filings.dart_report_sets_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column filings.dart_report_sets_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column filings.dart_report_sets_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index dart_report_sets_history_by_unit on filings.dart_report_sets_history (unit);

create table filings.dart_report_items (
    rcept_no        text collate "C" not null,
    endpoint        text collate "C" not null,
    number          integer not null,
    corp_code       text not null,
    bsns_year       smallint not null,
    reprt_code      text not null,
    period_end      date not null,
    stlm_dt         text,
    item_group      text,
    item_values     jsonb not null,
    unit            text not null,
    fetch_id        bigint not null,
    sent_at         timestamptz(6) not null,
    parser_version  integer not null,
    cycle_id        bigint not null,
    attempt         integer not null,
    extra           jsonb,
    primary key (rcept_no, endpoint, number)
);
comment on table filings.dart_report_items is 'Items of periodic reports as given, row by row, of every report that they were restated in';
comment on column filings.dart_report_items.rcept_no is 'Receipt number of the report';
comment on column filings.dart_report_items.endpoint is 'Endpoint of the item, by its official name';
comment on column filings.dart_report_items.number is 'Place in the answer, from 1; rows without a name of their own go on the one before';
comment on column filings.dart_report_items.corp_code is 'Company as DART numbers it: eight digits';
comment on column filings.dart_report_items.bsns_year is 'Business year, as asked for';
comment on column filings.dart_report_items.reprt_code is '11013 first quarter, 11012 half year, 11014 third quarter, 11011 whole year';
comment on column filings.dart_report_items.period_end is 'Day on which the period ends where the year ends in December';
comment on column filings.dart_report_items.stlm_dt is 'Day of settlement, as given';
comment on column filings.dart_report_items.item_group is 'Title of the group that the row stands in, where the item has groups';
comment on column filings.dart_report_items.item_values is 'Fields of the item by their official names, as given';
comment on column filings.dart_report_items.unit is 'Unit that gave the row';
comment on column filings.dart_report_items.fetch_id is 'Fetch that gave these values first';
comment on column filings.dart_report_items.sent_at is 'When that fetch was sent';
comment on column filings.dart_report_items.parser_version is 'Parser that read it';
comment on column filings.dart_report_items.cycle_id is 'Cycle that wrote it';
comment on column filings.dart_report_items.attempt is 'Claim of that cycle';
comment on column filings.dart_report_items.extra is 'Columns of the upstream that nobody knew yet';
create index dart_report_items_by_unit on filings.dart_report_items (unit);

create table filings.dart_report_items_history (
    like filings.dart_report_items,
    ended_at  timestamptz(6) not null,
    reason    text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (rcept_no, endpoint, number, sent_at, reason, parser_version)
);
comment on table filings.dart_report_items_history is 'What dart_report_items once said otherwise, until when and why no longer';
comment on column filings.dart_report_items_history.rcept_no is 'Receipt number of the report';
comment on column filings.dart_report_items_history.endpoint is 'Endpoint of the item, by its official name';
comment on column filings.dart_report_items_history.number is 'Place in the answer, from 1; rows without a name of their own go on the one before';
comment on column filings.dart_report_items_history.corp_code is 'Company as DART numbers it: eight digits';
comment on column filings.dart_report_items_history.bsns_year is 'Business year, as asked for';
comment on column filings.dart_report_items_history.reprt_code is '11013 first quarter, 11012 half year, 11014 third quarter, 11011 whole year';
comment on column filings.dart_report_items_history.period_end is 'Day on which the period ends where the year ends in December';
comment on column filings.dart_report_items_history.stlm_dt is 'Day of settlement, as given';
comment on column filings.dart_report_items_history.item_group is 'Title of the group that the row stands in, where the item has groups';
comment on column filings.dart_report_items_history.item_values is 'Fields of the item by their official names, as given';
comment on column filings.dart_report_items_history.unit is 'Unit that gave the row';
comment on column filings.dart_report_items_history.fetch_id is 'Fetch that gave these values first';
comment on column filings.dart_report_items_history.sent_at is 'When that fetch was sent';
comment on column filings.dart_report_items_history.parser_version is 'Parser that read it';
comment on column filings.dart_report_items_history.cycle_id is 'Cycle that wrote it';
comment on column filings.dart_report_items_history.attempt is 'Claim of that cycle';
comment on column filings.dart_report_items_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column filings.dart_report_items_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column filings.dart_report_items_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index dart_report_items_history_by_unit on filings.dart_report_items_history (unit);

-- which reports there are --------------------------------------------------------------------------------

create function filings.dart_business_periods(title text, period text, closing_month integer)
    returns table (bsns_year smallint, reprt_code text) language sql immutable as $$
    with given as (
        select title as kind, to_date(period, 'YYYY.MM') as ends, substr(period, 6)::integer as month
    ), spans as (
        -- The first and the last month of the business year that a report of this title and period can be of.
        select '11011' as code, g.ends - interval '11 months' as first, g.ends::timestamp as last, true as is_usual
          from given g where g.kind = '사업보고서'
        union all
        select '11012', g.ends - interval '5 months', g.ends + interval '6 months', true from given g where g.kind = '반기보고서'
        union all
        select '11013', g.ends - interval '2 months', g.ends + interval '9 months', g.month = 3 from given g where g.kind = '분기보고서'
        union all
        select '11014', g.ends - interval '8 months', g.ends + interval '3 months', g.month = 9 from given g where g.kind = '분기보고서'
    ), fitting as (
        -- A quarter is the first or the third, as the company's year ends; where that is not known, or it was moved, a year
        -- that ends in December is taken for granted, and where it cannot be, both may be meant.
        select s.code, s.first, s.last,
               case when bool_or(extract(month from s.last) = closing_month) over () then extract(month from s.last) = closing_month
                    when bool_or(s.is_usual) over () then s.is_usual
                    else true end as fits
          from spans s
    )
    -- DART does not say after which of its two calendar years a business year is called that does not end in December.
    select distinct extract(year from y.day)::smallint, f.code
      from fitting f cross join lateral (values (f.first), (f.last)) as y (day)
     where f.fits
$$;
comment on function filings.dart_business_periods(text, text, integer) is
    'Business years and report codes under which DART may have a report of a title and period: one for a year that ends in December';

create index disclosures_of_periods on dartbrief.disclosures (rcept_dt) where base_title in ('사업보고서', '반기보고서', '분기보고서');

create view filings.dart_periodics as
    select d.rcept_no, d.corp_code, d.stock_code, d.corp_type, d.base_title, d.report_period, d.rcept_dt, d.created_at, d.is_correction,
           position('철' in d.remark) > 0 as is_withdrawn
      from dartbrief.disclosures d
     where d.base_title in ('사업보고서', '반기보고서', '분기보고서') and d.report_period is not null and d.stock_code is not null;
comment on view filings.dart_periodics is
    'Periodic reports of companies with a stock code, as the list shows them, with every correction; a notice that one is late has another title, and one whose title names no period is of none';

create view filings.dart_newest_periodics as
    select distinct on (p.corp_code, p.base_title, p.report_period) p.*
      from filings.dart_periodics p
     where not p.is_withdrawn and p.rcept_dt >= (select collect.clock() at time zone 'Asia/Seoul')::date - 120
     order by p.corp_code, p.base_title, p.report_period, p.rcept_dt desc, p.rcept_no desc;
comment on view filings.dart_newest_periodics is
    'Of each company, title and period of the last 120 days the report that holds: the newest that was not withdrawn';

create view filings.dart_closing_months as
    select c.corp_code, k.closing_month::integer
      from filings.dart_corps c join market.kind_companies k on k.code = c.stock_code
     where k.closing_month is not null
    union all
    select a.corp_code, a.month from (
        select distinct on (p.corp_code) p.corp_code, substr(p.report_period, 6)::integer as month
          from filings.dart_periodics p where p.base_title = '사업보고서'
         order by p.corp_code, p.rcept_dt desc, p.rcept_no desc) a
     where not exists (select 1 from filings.dart_corps c join market.kind_companies k on k.code = c.stock_code
                        where c.corp_code = a.corp_code and k.closing_month is not null);
comment on view filings.dart_closing_months is
    'Month in which the business year of a company ends: as KIND lists it, or as its last annual report says';

create view filings.dart_wanted_sets as
    select n.corp_code, b.bsns_year, b.reprt_code, n.rcept_no, n.rcept_dt, n.created_at
      from filings.dart_newest_periodics n
      left join (select m.corp_code, min(m.closing_month) as month from filings.dart_closing_months m group by 1) m
        on m.corp_code = n.corp_code
     cross join lateral filings.dart_business_periods(n.base_title, n.report_period, m.month) b;
comment on view filings.dart_wanted_sets is
    'Company and period of every report that holds, with the report: what finance and report should have data of; of a year that does not end in December there are two, one of which DART knows';

create view filings.dart_listed_corps as
    select distinct on (c.stock_code) c.corp_code, c.stock_code, u.name, u.market, u.listed_on
      from market.kind_universe u join filings.dart_corps c on c.stock_code = u.code
     order by c.stock_code, c.modify_date desc, c.corp_code;
comment on view filings.dart_listed_corps is
    'Companies that are listed, by their number at DART: of several with one code the one that changed last';

-- what is due --------------------------------------------------------------------------------------------

create view filings.dart_due_finance as
    with cut as (
        select max(c.window_start) as at from collect.cycles c
         where c.stream = 'dart.finance' and c.window_start is not null and c.cycle_status = 'BUDGET_EXHAUSTED'
    ), clock as (
        select collect.clock() as now
    ), probes as (
        select w.*, w.corp_code || '/' || w.bsns_year || '.' || w.reprt_code || '/' as place, h.held_at, f.first_at, f.last_at,
               (select p.why from collect.pending p where p.stream = 'dart.finance'
                   and p.key = w.corp_code || '/' || w.bsns_year || '.' || w.reprt_code || '/OFS/' || w.rcept_no) as pending
          from filings.dart_wanted_sets w
          left join lateral (select min(s.sent_at) as held_at from filings.dart_finance_sets s
                              where s.corp_code = w.corp_code and s.bsns_year = w.bsns_year and s.reprt_code = w.reprt_code
                                and s.fs_div = 'OFS' and s.rcept_no >= w.rcept_no) h on true
          left join lateral (select min(a.sent_at) as first_at, max(a.sent_at) as last_at from collect.fetches a
                              where a.stream = 'dart.finance' and a.sent_at >= w.created_at and a.answer_class in ('data', 'empty')
                                and a.unit = w.corp_code || '/' || w.bsns_year || '.' || w.reprt_code || '/OFS') f on true
    ), sets as (
        select p.*, bool_or(p.held_at is not null) over (partition by p.rcept_no) as is_there from probes p
    ), due as (
        select s.place || 'OFS/' || s.rcept_no as key, s.rcept_dt, s.created_at from sets s, clock c
         where not s.is_there and s.pending is null
           and (s.last_at is null or s.last_at < c.now - greatest((s.last_at - s.first_at) / 2, interval '11 hours'))
        union all
        select s.place || u.part || '/' || s.rcept_no, s.rcept_dt, s.created_at
          from sets s cross join clock c
         cross join (values ('CFS')) as u (part)
          left join lateral (select min(a.sent_at) as first_at, max(a.sent_at) as last_at from collect.fetches a
                              where a.stream = 'dart.finance' and a.sent_at >= s.created_at and a.answer_class in ('data', 'empty')
                                and a.unit = s.place || u.part) f on true
         where (s.held_at is not null or (not s.is_there and (s.pending = 'failed' or s.first_at < c.now - interval '3 days')))
           and not exists (select 1 from filings.dart_finance_sets h
                            where h.corp_code = s.corp_code and h.bsns_year = s.bsns_year and h.reprt_code = s.reprt_code
                              and h.fs_div = u.part and h.rcept_no >= s.rcept_no)
           and not exists (select 1 from collect.pending p
                            where p.stream = 'dart.finance' and p.key = s.place || u.part || '/' || s.rcept_no)
           and case when f.last_at is null then true
                    when s.held_at is not null
                    then f.last_at < s.held_at
                         or (f.last_at < s.held_at + interval '7 days' and c.now >= s.held_at + interval '7 days')
                    else f.last_at < c.now - greatest((f.last_at - f.first_at) / 2, interval '3 days') end
    ), held as (
        select e.corp_code, string_agg(e.period, ' ' order by e.period) as periods from (
            select s.corp_code, s.bsns_year || '.' || s.reprt_code as period
              from filings.dart_finance_sets s
             where s.fs_div in ('OFS', 'CFS')
             group by s.corp_code, s.bsns_year, s.reprt_code
            having (bool_or(s.fs_div = 'OFS' and s.rcept_no <> '') and bool_or(s.fs_div = 'CFS'))
                or (bool_and(s.rcept_no = '') and max(s.period_end) < (select (c.now at time zone 'Asia/Seoul')::date - 400 from clock c))) e
         group by e.corp_code
    )
    select 'due ' || case when d.created_at <= cut.at then '0' else '1' end || ' ' || d.rcept_dt || ' ' || d.key as subject,
           true as is_wanted
      from due d, cut
    union all
    select 'list', true where not exists (select 1 from dartbrief.disclosures)
    union all
    select concat_ws(' ', case when l.corp_code is null then 'other' else 'listed' end, coalesce(l.corp_code, h.corp_code), h.periods), true
      from filings.dart_listed_corps l full join held h on h.corp_code = l.corp_code;
comment on view filings.dart_due_finance is
    'Statements that reports of the last 120 days should have and that are not held as of them, with 0 before what a quota cut off: separate ones until they are there, less and less often; then consolidated ones, where there are none once more after a week. And of every company the periods that are held to their end; and that no list is known at all';

create index dart_report_sets_ends on filings.dart_report_sets (corp_code, bsns_year, reprt_code, endpoint, rcept_no, period_end)
    where endpoint in ('stockTotqySttus', 'unrstExctvMendngSttus');

create view filings.dart_due_report as
    with cut as (
        select max(c.window_start) as at from collect.cycles c
         where c.stream = 'dart.report' and c.window_start is not null and c.cycle_status = 'BUDGET_EXHAUSTED'
    ), clock as (
        select collect.clock() as now
    ), probes as (
        select w.*, w.corp_code || '/' || w.bsns_year || '.' || w.reprt_code || '/' as place, h.held_at, f.first_at, f.last_at,
               (select p.why from collect.pending p where p.stream = 'dart.report'
                   and p.key = w.corp_code || '/' || w.bsns_year || '.' || w.reprt_code || '/stockTotqySttus/' || w.rcept_no) as pending
          from filings.dart_wanted_sets w
          left join lateral (select min(s.sent_at) as held_at from filings.dart_report_sets s
                              where s.corp_code = w.corp_code and s.bsns_year = w.bsns_year and s.reprt_code = w.reprt_code
                                and s.endpoint = 'stockTotqySttus' and s.rcept_no >= w.rcept_no) h on true
          left join lateral (select min(a.sent_at) as first_at, max(a.sent_at) as last_at from collect.fetches a
                              where a.stream = 'dart.report' and a.sent_at >= w.created_at and a.answer_class in ('data', 'empty')
                                and a.unit = w.corp_code || '/' || w.bsns_year || '.' || w.reprt_code || '/stockTotqySttus') f on true
    ), sets as (
        select p.*, bool_or(p.held_at is not null) over (partition by p.rcept_no) as is_there from probes p
    ), due as (
        select s.place || 'stockTotqySttus/' || s.rcept_no as key, s.rcept_dt, s.created_at from sets s, clock c
         where not s.is_there and s.pending is null
           and (s.last_at is null or s.last_at < c.now - greatest((s.last_at - s.first_at) / 2, interval '11 hours'))
        union all
        select s.place || u.part || '/' || s.rcept_no, s.rcept_dt, s.created_at
          from sets s cross join clock c
         cross join unnest(array[
                'accnutAdtorNmNdAdtOpinion', 'accnutAdtorNonAdtServcCnclsSttus', 'adtServcCnclsSttus',
                'alotMatter', 'cndlCaplScritsNrdmpBlce', 'cprndNrdmpBlce', 'detScritsIsuAcmslt',
                'drctrAdtAllMendngSttusGmtsckConfmAmount', 'drctrAdtAllMendngSttusMendngPymntamtTyCl', 'empSttus',
                'entrprsBilScritsNrdmpBlce', 'exctvSttus', 'hmvAuditAllSttus', 'hmvAuditIndvdlBySttus',
                'hmvAuditIndvdlBySttusV2', 'hyslrChgSttus', 'hyslrSttus', 'indvdlByPay', 'indvdlByPayV2',
                'irdsSttus', 'mrhlSttus', 'newCaplScritsNrdmpBlce', 'otrCprInvstmntSttus',
                'outcmpnyDrctrNdChangeSttus', 'prvsrpCptalUseDtls', 'pssrpCptalUseDtls', 'srtpdPsndbtNrdmpBlce',
                'tesstkAcqsDspsSttus', 'unrstExctvMendngSttus']) as u (part)
          left join lateral (select min(a.sent_at) as first_at, max(a.sent_at) as last_at from collect.fetches a
                              where a.stream = 'dart.report' and a.sent_at >= s.created_at and a.answer_class in ('data', 'empty')
                                and a.unit = s.place || u.part) f on true
         where (s.held_at is not null or (not s.is_there and (s.pending = 'failed' or s.first_at < c.now - interval '3 days')))
           and not exists (select 1 from filings.dart_report_sets h
                            where h.corp_code = s.corp_code and h.bsns_year = s.bsns_year and h.reprt_code = s.reprt_code
                              and h.endpoint = u.part and h.rcept_no >= s.rcept_no)
           and not exists (select 1 from collect.pending p
                            where p.stream = 'dart.report' and p.key = s.place || u.part || '/' || s.rcept_no)
           and case when f.last_at is null then true
                    when s.held_at is not null
                    then f.last_at < s.held_at
                         or (f.last_at < s.held_at + interval '7 days' and c.now >= s.held_at + interval '7 days')
                    else f.last_at < c.now - greatest((f.last_at - f.first_at) / 2, interval '3 days') end
    ), held as (
        select e.corp_code, string_agg(e.period, ' ' order by e.period) as periods from (
            select s.corp_code, s.bsns_year || '.' || s.reprt_code as period
              from filings.dart_report_sets s
             where s.endpoint in ('stockTotqySttus', 'unrstExctvMendngSttus')
             group by s.corp_code, s.bsns_year, s.reprt_code
            having (bool_or(s.endpoint = 'stockTotqySttus' and s.rcept_no <> '') and bool_or(s.endpoint = 'unrstExctvMendngSttus'))
                or (bool_and(s.rcept_no = '') and max(s.period_end) < (select (c.now at time zone 'Asia/Seoul')::date - 400 from clock c))) e
         group by e.corp_code
    )
    select 'due ' || case when d.created_at <= cut.at then '0' else '1' end || ' ' || d.rcept_dt || ' ' || d.key as subject,
           true as is_wanted
      from due d, cut
    union all
    select 'list', true where not exists (select 1 from dartbrief.disclosures)
    union all
    select concat_ws(' ', case when l.corp_code is null then 'other' else 'listed' end, coalesce(l.corp_code, h.corp_code), h.periods), true
      from filings.dart_listed_corps l full join held h on h.corp_code = l.corp_code;
comment on view filings.dart_due_report is
    'Items that reports of the last 120 days should have and that are not held as of them, with 0 before what a quota cut off: the number of shares until it is there, less and less often; then the others, those that are not in the report once more after a week. And of every company the periods that are held to their end; and that no list is known at all';

create view filings.newcomers as
    select 'dart.finance' as stream, l.corp_code as key, l.name, l.listed_on from filings.dart_listed_corps l
     where not exists (select 1 from filings.dart_finance_sets s
                        where s.corp_code = l.corp_code and s.bsns_year = 2016 and s.reprt_code = '11013' and s.fs_div = 'OFS')
    union all
    select 'dart.report', l.corp_code, l.name, l.listed_on from filings.dart_listed_corps l
     where not exists (select 1 from filings.dart_report_sets s
                        where s.corp_code = l.corp_code and s.bsns_year = 2016 and s.reprt_code = '11013'
                          and s.endpoint = 'stockTotqySttus');
comment on view filings.newcomers is
    'Listed companies of which a stream does not hold the past: the oldest period, which is asked for last, was never answered';
