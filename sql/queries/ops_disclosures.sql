-- name: feed
-- Filings of a range of days of receipt, newest first, after a place in that order.
select d.rcept_no, d.corp_code, d.corp_name, d.stock_code, d.corp_type, d.report_name, d.submitter, d.rcept_dt, d.remark,
       d.is_correction, d.created_at, coalesce(a.status, 'UNAVAILABLE') as analysis_status, a.summary
  from dartbrief.disclosures d left join dartbrief.analyses a using (rcept_no)
 where d.rcept_dt >= %(first)s and d.rcept_dt <= %(last)s
   and (d.rcept_dt, d.created_at, d.rcept_no) < (%(day)s, %(at)s, %(number)s)
 order by d.rcept_dt desc, d.created_at desc, d.rcept_no desc
 limit %(limit)s;

-- name: of_company
-- Filings of a company, newest first, after a place in that order.
select d.rcept_no, d.corp_code, d.corp_name, d.stock_code, d.corp_type, d.report_name, d.submitter, d.rcept_dt, d.remark,
       d.is_correction, d.created_at, coalesce(a.status, 'UNAVAILABLE') as analysis_status, a.summary
  from dartbrief.disclosures d left join dartbrief.analyses a using (rcept_no)
 where d.corp_code = %(corp_code)s and d.rcept_dt >= %(first)s and d.rcept_dt <= %(last)s
   and (d.rcept_dt, d.created_at, d.rcept_no) < (%(day)s, %(at)s, %(number)s)
 order by d.rcept_dt desc, d.created_at desc, d.rcept_no desc
 limit %(limit)s;

-- name: one
-- One filing.
select d.rcept_no, d.corp_code, d.corp_name, d.stock_code, d.corp_type, d.report_name, d.submitter, d.rcept_dt, d.remark,
       d.is_correction, d.created_at, coalesce(a.status, 'UNAVAILABLE') as analysis_status, a.summary
  from dartbrief.disclosures d left join dartbrief.analyses a using (rcept_no)
 where d.rcept_no = %(rcept_no)s;

-- name: company
-- One company, as DART's list of all companies has it, or as its last filing does.
select c.corp_code, c.corp_name, c.corp_eng_name, c.stock_code, c.modify_date
  from filings.dart_corps c where c.corp_code = %(corp_code)s
 union all
select d.corp_code, d.corp_name, null, d.stock_code, null
  from (select * from dartbrief.disclosures where corp_code = %(corp_code)s
         order by rcept_dt desc, created_at desc, rcept_no desc limit 1) d
 where not exists (select 1 from filings.dart_corps c where c.corp_code = %(corp_code)s);

-- name: analysis
-- One analysis with what is known of its filing, and whether a user has opened it today in Seoul, which ends when.
select n.rcept_no, coalesce(a.status, 'UNAVAILABLE') as status, a.summary, a.key_points_json, a.sentiment, a.model, a.kind,
       a.prompt_version, a.doc_length, a.completed_at, a.updated_at, d.corp_name, d.report_name, d.rcept_dt,
       exists (select 1 from dartbrief.reveals r
                where r.username = %(user)s and r.rcept_no = n.rcept_no
                  and r.reveal_date = (collect.clock() at time zone 'Asia/Seoul')::date) as is_revealed,
       ((collect.clock() at time zone 'Asia/Seoul')::date + 1)::timestamp at time zone 'Asia/Seoul' - collect.clock() as day_left
  from (select %(rcept_no)s::text as rcept_no) n
  left join dartbrief.analyses a using (rcept_no) left join dartbrief.disclosures d using (rcept_no);

-- name: is_revealed
-- Whether a user has opened an analysis today in Seoul, and how long that day lasts.
select exists (select 1 from dartbrief.reveals r
                where r.username = %(user)s and r.rcept_no = %(rcept_no)s
                  and r.reveal_date = (collect.clock() at time zone 'Asia/Seoul')::date) as is_revealed,
       ((collect.clock() at time zone 'Asia/Seoul')::date + 1)::timestamp at time zone 'Asia/Seoul' - collect.clock() as day_left;

-- name: reveal
-- Open an analysis for a user.
select * from dartbrief.reveal(%(user)s, %(rcept_no)s, %(quota)s, %(free_length)s);
