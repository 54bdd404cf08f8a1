-- 0030 edgar_doubts: a quarter's statement data set that does not come. Expand-only.
-- Roll-back note: the view holds nothing.

create view filings.edgar_doubts as
    select 'edgar.statement_sets' as stream, n.quarter as key,
           'the statement data set of ' || n.quarter || ' is not there, and the quarter ended on ' || n.last_day
           || ': it usually comes within weeks. Look at the SEC''s page of the sets, whose address may have moved' as says
      from (select to_char(d.last_day, 'YYYY"Q"Q') as quarter, d.last_day
              from (select date_trunc('quarter', collect.clock() at time zone 'America/New_York')::date - 1 as last_day) d
             where (collect.clock() at time zone 'America/New_York')::date - d.last_day > 45) n
     where exists (select from collect.archives a where a.stream = 'edgar.statement_sets')
       and not exists (select from collect.archives a where a.stream = 'edgar.statement_sets' and a.archive = n.quarter);
comment on view filings.edgar_doubts is 'What an operator should look at though every answer was fine: a statement data set that is late';
