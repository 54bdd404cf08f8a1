-- 0033 dart_unknown: what DART is asked where a company's closing month, or any list of filings, is not known. Expand-only.
-- Roll-back note: the function and the view may be put back as 0018 and 0019 have them; they hold nothing.

-- A company that KIND does not list and whose annual report was never seen may end its year in any month. Its quarter was
-- looked for as that of a year that ends in December alone, and never found where it does not.

create or replace function filings.dart_business_periods(title text, period text, closing_month integer)
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
        -- A quarter is the first or the third, as the company's year ends. Where that is not known all that it can be is
        -- looked for; where the year was moved, one that ends in December is taken for granted.
        select s.code, s.first, s.last,
               case when closing_month is null then true
                    when bool_or(extract(month from s.last) = closing_month) over () then extract(month from s.last) = closing_month
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
    'Business years and report codes under which DART may have a report of a title and period: one for a year that ends in December, all that are possible where the closing month is not known';

-- Before the list of filings was read once nothing can be due, and a window that found nothing due was over in good order.
-- Like those of finance and report it waits for the list.

create or replace view filings.dart_due_docs as
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
     group by d.rcept_date
    union all
    select 'list', true where not exists (select 1 from dartbrief.disclosures);
comment on view filings.dart_due_docs is
    'Documents of the reports of the last 120 days that are not held, with 0 before what a quota cut off; one that DART does not have is asked for half a day later, then less and less often, weekly at last. And which reports are held, by day of receipt; and that no list is known at all';
