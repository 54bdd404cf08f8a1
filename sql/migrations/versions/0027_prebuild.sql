-- 0027 prebuild: files of DART by company and over all companies: what they are read from, and which companies changed.
-- Expand-only.
-- Roll-back note: views hold nothing; triggers and indexes may be dropped once no release is made from these tables.

create index dart_statements_by_corp on filings.dart_statements (corp_code);
create index dart_report_items_by_corp on filings.dart_report_items (corp_code, endpoint);
create index dart_docs_by_corp on filings.dart_docs (corp_code);

-- which companies changed --------------------------------------------------------------------------------

create trigger by_company_insert after insert on filings.dart_statements referencing new table as changed
    for each statement execute function publish.mark_companies();
create trigger by_company_update after update on filings.dart_statements referencing new table as changed
    for each statement execute function publish.mark_companies();
create trigger by_company_delete after delete on filings.dart_statements referencing old table as changed
    for each statement execute function publish.mark_companies();
create trigger by_company_insert after insert on filings.dart_report_items referencing new table as changed
    for each statement execute function publish.mark_companies();
create trigger by_company_update after update on filings.dart_report_items referencing new table as changed
    for each statement execute function publish.mark_companies();
create trigger by_company_delete after delete on filings.dart_report_items referencing old table as changed
    for each statement execute function publish.mark_companies();
create trigger by_company_insert after insert on filings.dart_docs referencing new table as changed
    for each statement execute function publish.mark_companies();
create trigger by_company_update after update on filings.dart_docs referencing new table as changed
    for each statement execute function publish.mark_companies();
create trigger by_company_delete after delete on filings.dart_docs referencing old table as changed
    for each statement execute function publish.mark_companies();

create function publish.mark_known_companies() returns trigger language plpgsql volatile set search_path = publish, pg_temp as $$
begin
    -- Of the many companies without filings nothing is made; names of the others stand in their files.
    insert into publish.stale as p (table_name, partition, marked_at)
    select format('%s.%s:company', tg_table_schema, tg_table_name), c.corp_code, collect.clock()
      from (select distinct n.corp_code from changed n) c
     where exists (select from publish.stale s
                    where s.table_name in ('filings.dart_statements:company', 'filings.dart_report_items:company',
                                           'filings.dart_docs:company')
                      and s.partition = c.corp_code)
     order by c.corp_code
    on conflict (table_name, partition) do update set version = p.version + 1, marked_at = excluded.marked_at;
    return null;
end $$;
comment on function publish.mark_known_companies() is
    'As publish.mark_companies, of companies alone of which filings are held';

create trigger by_company_insert after insert on filings.dart_corps referencing new table as changed
    for each statement execute function publish.mark_known_companies();
create trigger by_company_update after update on filings.dart_corps referencing new table as changed
    for each statement execute function publish.mark_known_companies();
create function publish.mark_reporting_companies() returns trigger language plpgsql volatile set search_path = publish, pg_temp as $$
begin
    -- A correction or a withdrawal changes which of a company's reports holds; of all else that is filed nothing is made.
    insert into publish.stale as p (table_name, partition, marked_at)
    select format('%s.%s:company', tg_table_schema, tg_table_name), c.corp_code, collect.clock()
      from (select distinct n.corp_code from changed n where n.base_title in ('사업보고서', '반기보고서', '분기보고서')) c
     where exists (select from publish.stale s where s.table_name = 'filings.dart_docs:company' and s.partition = c.corp_code)
     order by c.corp_code
    on conflict (table_name, partition) do update set version = p.version + 1, marked_at = excluded.marked_at;
    return null;
end $$;
comment on function publish.mark_reporting_companies() is
    'As publish.mark_companies, of periodic reports of companies of which documents are held';

create trigger by_company_insert after insert on dartbrief.disclosures referencing new table as changed
    for each statement execute function publish.mark_reporting_companies();
create trigger by_company_update after update on dartbrief.disclosures referencing new table as changed
    for each statement execute function publish.mark_reporting_companies();

-- what files are read from -------------------------------------------------------------------------------

create function publish.dart_period_name(reprt_code text) returns text language sql immutable as $$
    select case reprt_code when '11013' then '1분기' when '11012' then '2분기' when '11014' then '3분기' when '11011' then '4분기' end
$$;
comment on function publish.dart_period_name(text) is 'What readers call the period of a report code';

create view publish.dart_finance as
    select s.corp_code, s.bsns_year, s.reprt_code, publish.dart_period_name(s.reprt_code) as reprt_nm, s.fs_div,
           case s.fs_div when 'CFS' then '연결재무제표' when 'OFS' then '재무제표' end as fs_nm, s.rcept_no, s.number, n.next_no is null as is_current,
           c.stock_code, c.corp_name, s.period_end, s.sj_div, s.sj_nm, s.account_id, s.account_nm, s.account_detail, s.thstrm_nm,
           s.thstrm_amount, s.thstrm_add_amount, s.frmtrm_nm, s.frmtrm_amount, s.frmtrm_q_nm, s.frmtrm_q_amount, s.frmtrm_add_amount,
           s.bfefrmtrm_nm, s.bfefrmtrm_amount, s.ord, s.currency, s.fetch_id, s.sent_at
      from filings.dart_statements s
      join (select f.corp_code, f.bsns_year, f.reprt_code, f.fs_div, f.rcept_no,
                   lead(f.rcept_no) over (partition by f.corp_code, f.bsns_year, f.reprt_code, f.fs_div order by f.rcept_no) as next_no
              from filings.dart_finance_sets f where f.rcept_no <> '') n
           using (corp_code, bsns_year, reprt_code, fs_div, rcept_no)
      left join filings.dart_corps c on c.corp_code = s.corp_code;
comment on view publish.dart_finance is 'Statements as reported by every report, and whether a later one took its place';

create view publish.dart_scan_finance as
    select f.* from publish.dart_finance f where f.is_current and f.bsns_year >= 2021;
comment on view publish.dart_scan_finance is 'What dart/scan/finance is read from: statements that hold, since 2021';

create view publish.dart_report as
    select i.corp_code, i.bsns_year, i.reprt_code, publish.dart_period_name(i.reprt_code) as reprt_nm, i.endpoint, i.rcept_no, i.number,
           n.next_no is null as is_current, c.stock_code, c.corp_name, i.period_end, i.stlm_dt, i.item_group, i.item_values, i.fetch_id,
           i.sent_at
      from filings.dart_report_items i
      join (select r.corp_code, r.bsns_year, r.reprt_code, r.endpoint, r.rcept_no,
                   lead(r.rcept_no) over (partition by r.corp_code, r.bsns_year, r.reprt_code, r.endpoint order by r.rcept_no) as next_no
              from filings.dart_report_sets r where r.rcept_no <> '') n
           using (corp_code, bsns_year, reprt_code, endpoint, rcept_no)
      left join filings.dart_corps c on c.corp_code = i.corp_code;
comment on view publish.dart_report is 'Items of periodic reports as given by every report, and whether a later one took its place';

create view publish.dart_scan_report as
    select r.* from publish.dart_report r where r.is_current;
comment on view publish.dart_scan_report is 'What dart/scan/report is read from: items that hold';

create view publish.dart_docs as
    select d.corp_code, d.rcept_no, d.section_order, d.corp_name, d.stock_code, d.year, d.rcept_date, d.report_type, d.section_level,
           d.section_title, d.section_path, d.section_content, d.fetch_id, d.sent_at
      from filings.dart_docs d;
comment on view publish.dart_docs is 'Chapters of periodic reports of a company, in order';

create view publish.dart_scan_changes as
    select r.corp_code, r.report_type, r.from_period, r.to_period, x.section_path, x.nth::integer as nth, x.section_title,
           case when x.before is null then 'appeared'
                when x.after is null then 'disappeared'
                when regexp_replace(x.before, '[0-9.,]', '', 'g') = regexp_replace(x.after, '[0-9.,]', '', 'g') then 'numeric'
                when abs(length(x.after) - length(x.before)) * 2 > length(x.before) then 'structural'
                else 'wording' end as change_type,
           left(coalesce(x.after, x.before), 200) as preview, x.stock_code,
           coalesce(length(x.before), 0) as size_a, coalesce(length(x.after), 0) as size_b,
           coalesce(length(x.after), 0) - coalesce(length(x.before), 0) as size_delta,
           r.from_no as from_rcept_no, r.rcept_no as to_rcept_no, x.fetch_id, x.sent_at
      from (select v.corp_code, v.rcept_no, v.base_title as report_type, v.report_period as to_period,
                   lag(v.rcept_no) over w as from_no, lag(v.report_period) over w as from_period
              from filings.dart_document_versions v
             where v.is_current and v.state = 'held'
            -- Comparable are reports of one kind on the same part of the year.
            window w as (partition by v.corp_code, v.base_title, right(v.report_period, 2) order by v.report_period, v.rcept_no)) r
     cross join lateral (
        select coalesce(a.section_path, b.section_path) as section_path, coalesce(a.nth, b.nth) as nth,
               coalesce(a.section_title, b.section_title) as section_title, b.section_content as before, a.section_content as after,
               coalesce(a.stock_code, b.stock_code) as stock_code, greatest(a.fetch_id, b.fetch_id) as fetch_id,
               greatest(a.sent_at, b.sent_at) as sent_at
          from (select d.*, row_number() over (partition by d.section_path order by d.section_order) as nth
                  from filings.dart_docs d where d.rcept_no = r.from_no) b
          full join (select d.*, row_number() over (partition by d.section_path order by d.section_order) as nth
                       from filings.dart_docs d where d.rcept_no = r.rcept_no) a
               on a.section_path = b.section_path and a.nth = b.nth
         where a.section_content is distinct from b.section_content) x
     where r.from_no is not null;
comment on view publish.dart_scan_changes is
    'What dart/scan/changes is read from: chapters that appeared, disappeared or changed between a company''s consecutive reports of one kind on the same part of the year';
