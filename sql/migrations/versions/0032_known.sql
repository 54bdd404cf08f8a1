-- 0032 known: what was known on a day, of facts, macro series and disclosures. Expand-only.
-- Roll-back note: the functions hold nothing and may be dropped once nobody asks them.

-- A filing is known when it is public, whenever we collected it. Where an answer to us changed later, the version counts
-- that was held at the time; of what was collected only afterwards, the first one. What a newer parser reads otherwise
-- ('parser') was never otherwise: the upstream said it all the time.

create function filings.edgar_facts_as_of(as_of date)
    returns table (cik bigint, taxonomy text, concept text, measure text, start_date date, end_date date, is_instant boolean,
                   value_text text, value numeric, accession text, form text, fy integer, fp text, filed_date date)
    language sql stable as $$
    select distinct on (k.cik, k.taxonomy, k.concept, k.measure, k.start_date, k.end_date, k.is_instant)
           k.cik, k.taxonomy, k.concept, k.measure, k.start_date, k.end_date, k.is_instant,
           k.value_text, k.value, k.accession, k.form, k.fy, k.fp, k.filed_date
      from (select distinct on (v.cik, v.taxonomy, v.concept, v.measure, v.end_date, v.is_instant, v.start_date, v.accession, v.copy) v.*
              from (select f.cik, f.taxonomy, f.concept, f.measure, f.start_date, f.end_date, f.is_instant, f.accession, f.copy,
                           f.value_text, f.value, f.form, f.fy, f.fp, f.filed_date, f.sent_at,
                           null::timestamptz as ended_at, null::text as reason
                      from filings.edgar_facts f
                    union all
                    select h.cik, h.taxonomy, h.concept, h.measure, h.start_date, h.end_date, h.is_instant, h.accession, h.copy,
                           h.value_text, h.value, h.form, h.fy, h.fp, h.filed_date, h.sent_at, h.ended_at, h.reason
                      from filings.edgar_facts_history h where h.reason <> 'parser') v
             where v.filed_date <= edgar_facts_as_of.as_of
             order by v.cik, v.taxonomy, v.concept, v.measure, v.end_date, v.is_instant, v.start_date, v.accession, v.copy,
                      case when v.sent_at < (edgar_facts_as_of.as_of + 1)::timestamp at time zone 'America/New_York'
                           then v.sent_at end desc nulls last, v.sent_at) k
     where k.reason is distinct from 'withdrawn'
        or k.ended_at >= (edgar_facts_as_of.as_of + 1)::timestamp at time zone 'America/New_York'
     order by k.cik, k.taxonomy, k.concept, k.measure, k.start_date, k.end_date, k.is_instant, k.filed_date desc, k.accession desc, k.copy
$$;
comment on function filings.edgar_facts_as_of(date) is
    'Each fact of the tier''s companies as the newest filing of a day or before gives it (day of filing in New York). Name a cik, and only that company is read';

create function filings.sec_facts_as_of(as_of timestamptz)
    returns table (entity text, taxonomy text, concept text, period_start date, period_end date, measure text, dimensions jsonb,
                   language text, is_nil boolean, value_text text, value numeric, accession text, known_at timestamptz)
    language sql stable as $$
    select distinct on (k.entity, k.taxonomy, k.concept, k.period_start, k.period_end, k.measure, k.dimensions, k.language)
           k.entity, k.taxonomy, k.concept, k.period_start, k.period_end, k.measure, k.dimensions, k.language,
           k.is_nil, k.value_text, k.value, k.accession, k.known_at
      from (select f.entity, regexp_replace(f.namespace, '[/-]?[0-9]{4}(-?[0-9]{2}){0,2}$', '') as taxonomy, f.concept,
                   f.period_start, f.period_end, f.measure, f.dimensions, f.language, f.is_nil, f.value_text, f.value,
                   f.accession, f.instance, f.number,
                   coalesce(d.accepted_at, (f.filed_date + 1)::timestamp at time zone 'America/New_York') as known_at
              from filings.sec_xbrl_facts f
              left join filings.sec_headers d on d.accession = f.accession) k
     where k.known_at <= sec_facts_as_of.as_of
     order by k.entity, k.taxonomy, k.concept, k.period_start, k.period_end, k.measure, k.dimensions, k.language,
              k.known_at desc, k.accession desc, k.instance, k.number
$$;
comment on function filings.sec_facts_as_of(timestamptz) is
    'Each XBRL fact of a company as the newest filing gives it that was accepted by an instant; the year is taken out of the taxonomy''s name. A filing without a header is known when the day of its filing ends in New York';

create function filings.dart_statements_as_of(as_of date)
    returns table (corp_code text, bsns_year smallint, reprt_code text, fs_div text, period_end date, rcept_no text, received_on date,
                   number integer, sj_div text, account_id text, account_nm text, account_detail text, thstrm_amount numeric,
                   thstrm_add_amount numeric, frmtrm_amount numeric, bfefrmtrm_amount numeric, currency text)
    language sql stable as $$
    select n.corp_code, n.bsns_year, n.reprt_code, n.fs_div, n.period_end, n.rcept_no, n.received_on, n.number, n.sj_div,
           n.account_id, n.account_nm, n.account_detail, n.thstrm_amount, n.thstrm_add_amount, n.frmtrm_amount,
           n.bfefrmtrm_amount, n.currency
      from (select k.*, rank() over (partition by k.corp_code, k.bsns_year, k.reprt_code, k.fs_div order by k.rcept_no desc) as place
              from (select distinct on (v.corp_code, v.rcept_no, v.fs_div, v.number)
                           v.*, to_date(left(v.rcept_no, 8), 'YYYYMMDD') as received_on
                      from (select s.corp_code, s.bsns_year, s.reprt_code, s.fs_div, s.period_end, s.rcept_no, s.number, s.sj_div,
                                   s.account_id, s.account_nm, s.account_detail, s.thstrm_amount, s.thstrm_add_amount,
                                   s.frmtrm_amount, s.bfefrmtrm_amount, s.currency, s.sent_at,
                                   null::timestamptz as ended_at, null::text as reason
                              from filings.dart_statements s
                            union all
                            select h.corp_code, h.bsns_year, h.reprt_code, h.fs_div, h.period_end, h.rcept_no, h.number, h.sj_div,
                                   h.account_id, h.account_nm, h.account_detail, h.thstrm_amount, h.thstrm_add_amount,
                                   h.frmtrm_amount, h.bfefrmtrm_amount, h.currency, h.sent_at, h.ended_at, h.reason
                              from filings.dart_statements_history h where h.reason <> 'parser') v
                     where left(v.rcept_no, 8) <= to_char(dart_statements_as_of.as_of, 'YYYYMMDD')
                     order by v.corp_code, v.rcept_no, v.fs_div, v.number,
                              case when v.sent_at < (dart_statements_as_of.as_of + 1)::timestamp at time zone 'Asia/Seoul'
                                   then v.sent_at end desc nulls last, v.sent_at) k
             where (k.reason is distinct from 'withdrawn'
                    or k.ended_at >= (dart_statements_as_of.as_of + 1)::timestamp at time zone 'Asia/Seoul')
               and not exists (select from dartbrief.disclosures d
                                where d.rcept_no = k.rcept_no and position('철' in d.remark) > 0
                                  and d.sent_at < (dart_statements_as_of.as_of + 1)::timestamp at time zone 'Asia/Seoul')
               and not exists (select from dartbrief.disclosures_history d
                                where d.rcept_no = k.rcept_no and position('철' in d.remark) > 0 and d.reason <> 'parser'
                                  and d.sent_at < (dart_statements_as_of.as_of + 1)::timestamp at time zone 'Asia/Seoul')) n
     where n.place = 1
$$;
comment on function filings.dart_statements_as_of(date) is
    'Statements of each company, period and basis as the newest report has them that was received by the end of a day in Seoul and that the list did not show as withdrawn by then. Of a report that was corrected before it was collected DART gives none: its period is then missing until the correction';

create function dartbrief.disclosures_as_of(as_of timestamptz)
    returns table (rcept_no text, corp_code text, corp_name text, stock_code text, report_name text, submitter text, rcept_dt date,
                   remark text, base_title text, report_period text, is_correction boolean, is_corrected boolean,
                   is_withdrawn boolean, superseded_by text, was_seen boolean)
    language sql stable as $$
    select k.rcept_no, k.corp_code, k.corp_name, k.stock_code, k.report_name, k.submitter, k.rcept_dt, k.remark, k.base_title,
           k.report_period, k.is_correction,
           -- A mark never goes away again: who does not have it later did not have it before.
           case when position('정' in k.remark) = 0 then false when k.was_seen then true end,
           case when position('철' in k.remark) = 0 then false when k.was_seen then true end,
           case when lead(k.is_correction) over same then lead(k.rcept_no) over same end, k.was_seen
      from (select distinct on (v.rcept_no) v.*, v.sent_at <= disclosures_as_of.as_of as was_seen
              from (select d.rcept_no, d.corp_code, d.corp_name, d.stock_code, d.report_name, d.submitter, d.rcept_dt, d.remark,
                           d.base_title, d.report_period, d.is_correction, d.sent_at,
                           null::timestamptz as ended_at, null::text as reason
                      from dartbrief.disclosures d
                    union all
                    select h.rcept_no, h.corp_code, h.corp_name, h.stock_code, h.report_name, h.submitter, h.rcept_dt, h.remark,
                           h.base_title, h.report_period, h.is_correction, h.sent_at, h.ended_at, h.reason
                      from dartbrief.disclosures_history h where h.reason <> 'parser') v
             where v.sent_at <= disclosures_as_of.as_of
                or v.rcept_dt < (disclosures_as_of.as_of at time zone 'Asia/Seoul')::date
             order by v.rcept_no, case when v.sent_at <= disclosures_as_of.as_of then v.sent_at end desc nulls last, v.sent_at) k
     where k.reason is distinct from 'withdrawn' or k.ended_at > disclosures_as_of.as_of
    window same as (partition by k.corp_code, k.base_title, k.report_period,
                                 case when k.report_period is null then k.submitter end
                        order by k.rcept_dt, k.rcept_no)
$$;
comment on function dartbrief.disclosures_as_of(timestamptz) is
    'DART''s list as it stood at an instant: filings, marks and corrections that were there then. What was collected afterwards counts from the end of its day of receipt, with was_seen false, and null where the list shows a mark of which nobody knows when it came';

create function market.macro_as_of(as_of date)
    returns table (source text, series_id text, period_start date, value_text text, value numeric)
    language sql stable as $$
    select 'fred', f.series_id, f.observation_date, f.value_text, f.value from market.fred_as_of(macro_as_of.as_of) f
    union all
    select 'ecos', e.series_id, e.period_start, e.value_text, e.value from market.ecos_as_of(macro_as_of.as_of) e
$$;
comment on function market.macro_as_of(date) is
    'All macro series as known at the end of a day: those of FRED by its vintages (market.fred_coverage says which are whole), those of ECOS as collected by then';
