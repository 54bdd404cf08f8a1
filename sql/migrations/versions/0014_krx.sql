-- 0014 krx: prices, issues and indices of the Korean exchange; which sessions are held whole, when an issue was on which
-- market, and closes adjusted for splits, derived when they are asked for and kept nowhere. Expand-only.
-- Roll-back note: the tables may be dropped once no release writes them and their parquet files are kept.

create table market.krx_prices (
    session_date    date not null,
    market          text collate "C" not null,
    code            text collate "C" not null,
    name            text not null,
    market_label    text not null,
    section         text,
    close           bigint,
    change          bigint,
    change_percent  numeric,
    open            bigint,
    high            bigint,
    low             bigint,
    volume          bigint,
    traded_value    bigint,
    market_cap      bigint,
    listed_shares   bigint,
    is_untraded     boolean not null,
    unit            text not null,
    fetch_id        bigint not null,
    sent_at         timestamptz(6) not null,
    parser_version  integer not null,
    cycle_id        bigint not null,
    attempt         integer not null,
    extra           jsonb,
    primary key (session_date, market, code)
);
comment on table market.krx_prices is 'Stocks by session as traded at KRX alone: prices in won, not adjusted, with volume and shares (KRX)';
comment on column market.krx_prices.session_date is 'Session, Seoul';
comment on column market.krx_prices.market is 'KOSPI, KOSDAQ or KONEX, by the service that gave the row and not by its label';
comment on column market.krx_prices.code is 'Short code of six digits and letters, e.g. 005930 or 28513K; leading zeros matter';
comment on column market.krx_prices.name is 'Name on that day; companies rename';
comment on column market.krx_prices.market_label is 'Market as KRX labels the row, e.g. KOSDAQ or KOSDAQ GLOBAL';
comment on column market.krx_prices.section is 'Section of the market, or a class under supervision, e.g. 벤처기업부; null where KRX gives none';
comment on column market.krx_prices.close is 'Closing price, won; the last one where nothing was traded; null where KRX gives none';
comment on column market.krx_prices.change is 'Close less the base price, won; the base price is the close before, but for splits and the like';
comment on column market.krx_prices.change_percent is 'The same in percent of the base price';
comment on column market.krx_prices.open is 'First price, won; null where it was given as 0';
comment on column market.krx_prices.high is 'Highest price, won; null where it was given as 0';
comment on column market.krx_prices.low is 'Lowest price, won; null where it was given as 0';
comment on column market.krx_prices.volume is 'Shares traded';
comment on column market.krx_prices.traded_value is 'Value traded, won';
comment on column market.krx_prices.market_cap is 'Market capitalisation, won';
comment on column market.krx_prices.listed_shares is 'Shares listed; new ones count from the day of their listing';
comment on column market.krx_prices.is_untraded is 'Open, high and low were given as 0: halted, or nobody traded; KRX gives both alike';
comment on column market.krx_prices.unit is 'Unit that gave the row';
comment on column market.krx_prices.fetch_id is 'Fetch that gave these values first';
comment on column market.krx_prices.sent_at is 'When that fetch was sent';
comment on column market.krx_prices.parser_version is 'Parser that read it';
comment on column market.krx_prices.cycle_id is 'Cycle that wrote it';
comment on column market.krx_prices.attempt is 'Claim of that cycle';
comment on column market.krx_prices.extra is 'Columns of the upstream that nobody knew yet';
create index krx_prices_by_code on market.krx_prices (code, session_date);
create index krx_prices_by_unit on market.krx_prices (unit);

create table market.krx_prices_history (
    like market.krx_prices,
    ended_at  timestamptz(6) not null,
    reason    text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (session_date, market, code, sent_at, reason, parser_version)
);
comment on table market.krx_prices_history is 'What krx_prices once said otherwise, until when and why no longer';
comment on column market.krx_prices_history.session_date is 'Session, Seoul';
comment on column market.krx_prices_history.market is 'KOSPI, KOSDAQ or KONEX, by the service that gave the row and not by its label';
comment on column market.krx_prices_history.code is 'Short code of six digits and letters, e.g. 005930 or 28513K; leading zeros matter';
comment on column market.krx_prices_history.name is 'Name on that day; companies rename';
comment on column market.krx_prices_history.market_label is 'Market as KRX labels the row, e.g. KOSDAQ or KOSDAQ GLOBAL';
comment on column market.krx_prices_history.section is 'Section of the market, or a class under supervision, e.g. 벤처기업부; null where KRX gives none';
comment on column market.krx_prices_history.close is 'Closing price, won; the last one where nothing was traded; null where KRX gives none';
comment on column market.krx_prices_history.change is 'Close less the base price, won; the base price is the close before, but for splits and the like';
comment on column market.krx_prices_history.change_percent is 'The same in percent of the base price';
comment on column market.krx_prices_history.open is 'First price, won; null where it was given as 0';
comment on column market.krx_prices_history.high is 'Highest price, won; null where it was given as 0';
comment on column market.krx_prices_history.low is 'Lowest price, won; null where it was given as 0';
comment on column market.krx_prices_history.volume is 'Shares traded';
comment on column market.krx_prices_history.traded_value is 'Value traded, won';
comment on column market.krx_prices_history.market_cap is 'Market capitalisation, won';
comment on column market.krx_prices_history.listed_shares is 'Shares listed; new ones count from the day of their listing';
comment on column market.krx_prices_history.is_untraded is 'Open, high and low were given as 0: halted, or nobody traded; KRX gives both alike';
comment on column market.krx_prices_history.unit is 'Unit that gave the row';
comment on column market.krx_prices_history.fetch_id is 'Fetch that gave these values first';
comment on column market.krx_prices_history.sent_at is 'When that fetch was sent';
comment on column market.krx_prices_history.parser_version is 'Parser that read it';
comment on column market.krx_prices_history.cycle_id is 'Cycle that wrote it';
comment on column market.krx_prices_history.attempt is 'Claim of that cycle';
comment on column market.krx_prices_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column market.krx_prices_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column market.krx_prices_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index krx_prices_history_by_unit on market.krx_prices_history (unit);

create table market.krx_issues (
    session_date    date not null,
    market          text collate "C" not null,
    code            text collate "C" not null,
    isin            text not null,
    name            text not null,
    short_name      text,
    english_name    text,
    listed_on       date,
    market_label    text not null,
    security_group  text not null,
    section         text,
    share_kind      text,
    par_value_text  text not null,
    par_value       numeric,
    listed_shares   bigint,
    unit            text not null,
    fetch_id        bigint not null,
    sent_at         timestamptz(6) not null,
    parser_version  integer not null,
    cycle_id        bigint not null,
    attempt         integer not null,
    extra           jsonb,
    primary key (session_date, market, code)
);
comment on table market.krx_issues is 'Issues listed on each session, with their codes, names and classes (KRX)';
comment on column market.krx_issues.session_date is 'Session, Seoul';
comment on column market.krx_issues.market is 'KOSPI, KOSDAQ or KONEX, by the service that gave the row and not by its label';
comment on column market.krx_issues.code is 'Short code of six digits and letters, e.g. 005930 or 28513K; leading zeros matter';
comment on column market.krx_issues.isin is 'ISIN; it cannot be made from the code';
comment on column market.krx_issues.name is 'Full name in Korean';
comment on column market.krx_issues.short_name is 'Short name in Korean, as daily trade has it';
comment on column market.krx_issues.english_name is 'Name in English';
comment on column market.krx_issues.listed_on is 'Day of the listing';
comment on column market.krx_issues.market_label is 'Market as KRX labels the row, e.g. KOSDAQ or KOSDAQ GLOBAL';
comment on column market.krx_issues.security_group is 'What it is: share, depositary receipt, REIT …, in Korean';
comment on column market.krx_issues.section is 'Section of the market, or a class under supervision, e.g. 벤처기업부; null where KRX gives none';
comment on column market.krx_issues.share_kind is 'Common or preferred share, in Korean';
comment on column market.krx_issues.par_value_text is 'Par value as given; a word for shares without one';
comment on column market.krx_issues.par_value is 'The same as a number; null where there is none';
comment on column market.krx_issues.listed_shares is 'Shares listed';
comment on column market.krx_issues.unit is 'Unit that gave the row';
comment on column market.krx_issues.fetch_id is 'Fetch that gave these values first';
comment on column market.krx_issues.sent_at is 'When that fetch was sent';
comment on column market.krx_issues.parser_version is 'Parser that read it';
comment on column market.krx_issues.cycle_id is 'Cycle that wrote it';
comment on column market.krx_issues.attempt is 'Claim of that cycle';
comment on column market.krx_issues.extra is 'Columns of the upstream that nobody knew yet';
create index krx_issues_by_code on market.krx_issues (code, session_date);
create index krx_issues_by_unit on market.krx_issues (unit);

create table market.krx_issues_history (
    like market.krx_issues,
    ended_at  timestamptz(6) not null,
    reason    text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (session_date, market, code, sent_at, reason, parser_version)
);
comment on table market.krx_issues_history is 'What krx_issues once said otherwise, until when and why no longer';
comment on column market.krx_issues_history.session_date is 'Session, Seoul';
comment on column market.krx_issues_history.market is 'KOSPI, KOSDAQ or KONEX, by the service that gave the row and not by its label';
comment on column market.krx_issues_history.code is 'Short code of six digits and letters, e.g. 005930 or 28513K; leading zeros matter';
comment on column market.krx_issues_history.isin is 'ISIN; it cannot be made from the code';
comment on column market.krx_issues_history.name is 'Full name in Korean';
comment on column market.krx_issues_history.short_name is 'Short name in Korean, as daily trade has it';
comment on column market.krx_issues_history.english_name is 'Name in English';
comment on column market.krx_issues_history.listed_on is 'Day of the listing';
comment on column market.krx_issues_history.market_label is 'Market as KRX labels the row, e.g. KOSDAQ or KOSDAQ GLOBAL';
comment on column market.krx_issues_history.security_group is 'What it is: share, depositary receipt, REIT …, in Korean';
comment on column market.krx_issues_history.section is 'Section of the market, or a class under supervision, e.g. 벤처기업부; null where KRX gives none';
comment on column market.krx_issues_history.share_kind is 'Common or preferred share, in Korean';
comment on column market.krx_issues_history.par_value_text is 'Par value as given; a word for shares without one';
comment on column market.krx_issues_history.par_value is 'The same as a number; null where there is none';
comment on column market.krx_issues_history.listed_shares is 'Shares listed';
comment on column market.krx_issues_history.unit is 'Unit that gave the row';
comment on column market.krx_issues_history.fetch_id is 'Fetch that gave these values first';
comment on column market.krx_issues_history.sent_at is 'When that fetch was sent';
comment on column market.krx_issues_history.parser_version is 'Parser that read it';
comment on column market.krx_issues_history.cycle_id is 'Cycle that wrote it';
comment on column market.krx_issues_history.attempt is 'Claim of that cycle';
comment on column market.krx_issues_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column market.krx_issues_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column market.krx_issues_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index krx_issues_history_by_unit on market.krx_issues_history (unit);

create table market.krx_indices (
    session_date    date not null,
    family          text collate "C" not null,
    index_class     text collate "C" not null,
    name            text collate "C" not null,
    close           numeric,
    change          numeric,
    change_percent  numeric,
    open            numeric,
    high            numeric,
    low             numeric,
    volume          bigint,
    traded_value    bigint,
    market_cap      bigint,
    unit            text not null,
    fetch_id        bigint not null,
    sent_at         timestamptz(6) not null,
    parser_version  integer not null,
    cycle_id        bigint not null,
    attempt         integer not null,
    extra           jsonb,
    primary key (session_date, family, index_class, name)
);
comment on table market.krx_indices is 'Indices of stocks and derivatives by session (KRX)';
comment on column market.krx_indices.session_date is 'Session, Seoul';
comment on column market.krx_indices.family is 'KOSPI, KOSDAQ, KRX or DERIVATIVES, by the service that gave the row';
comment on column market.krx_indices.index_class is 'Class as KRX labels the row';
comment on column market.krx_indices.name is 'Name on that day; KRX gives no code, and has renamed some';
comment on column market.krx_indices.close is 'Closing value';
comment on column market.krx_indices.change is 'Close less that of the session before';
comment on column market.krx_indices.change_percent is 'The same in percent';
comment on column market.krx_indices.open is 'First value; null where none is given';
comment on column market.krx_indices.high is 'Highest value; null where none is given';
comment on column market.krx_indices.low is 'Lowest value; null where none is given';
comment on column market.krx_indices.volume is 'Shares traded; null for derivatives, or where none is given';
comment on column market.krx_indices.traded_value is 'Value traded, won; null likewise';
comment on column market.krx_indices.market_cap is 'Market capitalisation, won; null likewise';
comment on column market.krx_indices.unit is 'Unit that gave the row';
comment on column market.krx_indices.fetch_id is 'Fetch that gave these values first';
comment on column market.krx_indices.sent_at is 'When that fetch was sent';
comment on column market.krx_indices.parser_version is 'Parser that read it';
comment on column market.krx_indices.cycle_id is 'Cycle that wrote it';
comment on column market.krx_indices.attempt is 'Claim of that cycle';
comment on column market.krx_indices.extra is 'Columns of the upstream that nobody knew yet';
create index krx_indices_by_name on market.krx_indices (name, session_date);
create index krx_indices_by_unit on market.krx_indices (unit);

create table market.krx_indices_history (
    like market.krx_indices,
    ended_at  timestamptz(6) not null,
    reason    text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (session_date, family, index_class, name, sent_at, reason, parser_version)
);
comment on table market.krx_indices_history is 'What krx_indices once said otherwise, until when and why no longer';
comment on column market.krx_indices_history.session_date is 'Session, Seoul';
comment on column market.krx_indices_history.family is 'KOSPI, KOSDAQ, KRX or DERIVATIVES, by the service that gave the row';
comment on column market.krx_indices_history.index_class is 'Class as KRX labels the row';
comment on column market.krx_indices_history.name is 'Name on that day; KRX gives no code, and has renamed some';
comment on column market.krx_indices_history.close is 'Closing value';
comment on column market.krx_indices_history.change is 'Close less that of the session before';
comment on column market.krx_indices_history.change_percent is 'The same in percent';
comment on column market.krx_indices_history.open is 'First value; null where none is given';
comment on column market.krx_indices_history.high is 'Highest value; null where none is given';
comment on column market.krx_indices_history.low is 'Lowest value; null where none is given';
comment on column market.krx_indices_history.volume is 'Shares traded; null for derivatives, or where none is given';
comment on column market.krx_indices_history.traded_value is 'Value traded, won; null likewise';
comment on column market.krx_indices_history.market_cap is 'Market capitalisation, won; null likewise';
comment on column market.krx_indices_history.unit is 'Unit that gave the row';
comment on column market.krx_indices_history.fetch_id is 'Fetch that gave these values first';
comment on column market.krx_indices_history.sent_at is 'When that fetch was sent';
comment on column market.krx_indices_history.parser_version is 'Parser that read it';
comment on column market.krx_indices_history.cycle_id is 'Cycle that wrote it';
comment on column market.krx_indices_history.attempt is 'Claim of that cycle';
comment on column market.krx_indices_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column market.krx_indices_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column market.krx_indices_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index krx_indices_history_by_unit on market.krx_indices_history (unit);

create table market.krx_bond_indices (
    session_date              date not null,
    name                      text collate "C" not null,
    total_return              numeric,
    total_return_change       numeric,
    net_price                 numeric,
    net_price_change          numeric,
    zero_reinvestment         numeric,
    zero_reinvestment_change  numeric,
    call_reinvestment         numeric,
    call_reinvestment_change  numeric,
    market_price              numeric,
    market_price_change       numeric,
    average_duration          numeric,
    average_convexity         numeric,
    average_yield             numeric,
    unit                      text not null,
    fetch_id                  bigint not null,
    sent_at                   timestamptz(6) not null,
    parser_version            integer not null,
    cycle_id                  bigint not null,
    attempt                   integer not null,
    extra                     jsonb,
    primary key (session_date, name)
);
comment on table market.krx_bond_indices is 'Indices of bonds by session (KRX)';
comment on column market.krx_bond_indices.session_date is 'Session, Seoul';
comment on column market.krx_bond_indices.name is 'Group of bonds on that day; KRX gives no code';
comment on column market.krx_bond_indices.total_return is 'Total return index';
comment on column market.krx_bond_indices.total_return_change is 'The same less that of the session before';
comment on column market.krx_bond_indices.net_price is 'Net price index';
comment on column market.krx_bond_indices.net_price_change is 'The same less that of the session before';
comment on column market.krx_bond_indices.zero_reinvestment is 'Index without reinvestment';
comment on column market.krx_bond_indices.zero_reinvestment_change is 'The same less that of the session before';
comment on column market.krx_bond_indices.call_reinvestment is 'Index with reinvestment at the call rate';
comment on column market.krx_bond_indices.call_reinvestment_change is 'The same less that of the session before';
comment on column market.krx_bond_indices.market_price is 'Market price index';
comment on column market.krx_bond_indices.market_price_change is 'The same less that of the session before';
comment on column market.krx_bond_indices.average_duration is 'Average duration, years';
comment on column market.krx_bond_indices.average_convexity is 'Average convexity';
comment on column market.krx_bond_indices.average_yield is 'Average yield, percent';
comment on column market.krx_bond_indices.unit is 'Unit that gave the row';
comment on column market.krx_bond_indices.fetch_id is 'Fetch that gave these values first';
comment on column market.krx_bond_indices.sent_at is 'When that fetch was sent';
comment on column market.krx_bond_indices.parser_version is 'Parser that read it';
comment on column market.krx_bond_indices.cycle_id is 'Cycle that wrote it';
comment on column market.krx_bond_indices.attempt is 'Claim of that cycle';
comment on column market.krx_bond_indices.extra is 'Columns of the upstream that nobody knew yet';
create index krx_bond_indices_by_unit on market.krx_bond_indices (unit);

create table market.krx_bond_indices_history (
    like market.krx_bond_indices,
    ended_at  timestamptz(6) not null,
    reason    text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (session_date, name, sent_at, reason, parser_version)
);
comment on table market.krx_bond_indices_history is 'What krx_bond_indices once said otherwise, until when and why no longer';
comment on column market.krx_bond_indices_history.session_date is 'Session, Seoul';
comment on column market.krx_bond_indices_history.name is 'Group of bonds on that day; KRX gives no code';
comment on column market.krx_bond_indices_history.total_return is 'Total return index';
comment on column market.krx_bond_indices_history.total_return_change is 'The same less that of the session before';
comment on column market.krx_bond_indices_history.net_price is 'Net price index';
comment on column market.krx_bond_indices_history.net_price_change is 'The same less that of the session before';
comment on column market.krx_bond_indices_history.zero_reinvestment is 'Index without reinvestment';
comment on column market.krx_bond_indices_history.zero_reinvestment_change is 'The same less that of the session before';
comment on column market.krx_bond_indices_history.call_reinvestment is 'Index with reinvestment at the call rate';
comment on column market.krx_bond_indices_history.call_reinvestment_change is 'The same less that of the session before';
comment on column market.krx_bond_indices_history.market_price is 'Market price index';
comment on column market.krx_bond_indices_history.market_price_change is 'The same less that of the session before';
comment on column market.krx_bond_indices_history.average_duration is 'Average duration, years';
comment on column market.krx_bond_indices_history.average_convexity is 'Average convexity';
comment on column market.krx_bond_indices_history.average_yield is 'Average yield, percent';
comment on column market.krx_bond_indices_history.unit is 'Unit that gave the row';
comment on column market.krx_bond_indices_history.fetch_id is 'Fetch that gave these values first';
comment on column market.krx_bond_indices_history.sent_at is 'When that fetch was sent';
comment on column market.krx_bond_indices_history.parser_version is 'Parser that read it';
comment on column market.krx_bond_indices_history.cycle_id is 'Cycle that wrote it';
comment on column market.krx_bond_indices_history.attempt is 'Claim of that cycle';
comment on column market.krx_bond_indices_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column market.krx_bond_indices_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column market.krx_bond_indices_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index krx_bond_indices_history_by_unit on market.krx_bond_indices_history (unit);
create view market.krx_sessions as
    select session_date,
           count(*) filter (where market = 'KOSPI') as kospi,
           count(*) filter (where market = 'KOSDAQ') as kosdaq,
           count(*) filter (where market = 'KONEX') as konex,
           count(distinct market) = case when session_date < date '2013-07-01' then 2 else 3 end as is_whole
      from market.krx_prices
     group by session_date;
comment on view market.krx_sessions is 'How many stocks of each market are held of each session, and whether no market is missing; far fewer than on the sessions around it is worth a look';

create view market.krx_issue_sessions as
    select session_date, count(distinct market) = case when session_date < date '2013-07-01' then 2 else 3 end as is_whole
      from market.krx_issues
     group by session_date;
comment on view market.krx_issue_sessions is 'Whether the issues of every market are held of each session';

create view market.krx_market_periods as
    select code, market, min(session_date) as first_session, max(session_date) as last_session,
           max(session_date) = max(newest) as is_listed,
           (array_agg(name order by session_date desc))[1] as last_name
      from (select p.code, p.market, p.session_date, p.name,
                   max(p.session_date) over (partition by p.market) as newest,
                   dense_rank() over (partition by p.market order by p.session_date)
                       - row_number() over (partition by p.code, p.market order by p.session_date) as period
              from market.krx_prices p) held
     group by code, market, period;
comment on view market.krx_market_periods is 'When each code was on which market, by the sessions that are held: a change of market ends one period and begins another, and is no delisting';

create aggregate market.product(numeric) (sfunc = numeric_mul, stype = numeric, initcond = '1');
comment on aggregate market.product(numeric) is 'Exact product; nulls are left out';

create view market.krx_adjusted_closes as
with steps as (
    select p.session_date, p.market, p.code, p.close, p.close - p.change as base_price, p.listed_shares,
           lag(p.session_date) over w as previous_session, lag(p.close) over w as previous_close,
           lag(p.listed_shares) over w as previous_shares
      from market.krx_prices p
     where p.close is not null
    window w as (partition by p.code order by p.session_date, p.market)
), judged as (
    select s.session_date, s.market, s.code, s.close,
           case when s.previous_close is null or s.base_price = s.previous_close then 1
                when around.follows
                then case when abs(s.previous_shares::numeric / nullif(s.listed_shares, 0) * s.previous_close - s.base_price) <= s.base_price / 100.0
                          then s.previous_shares::numeric / s.listed_shares
                          else s.base_price::numeric / s.previous_close end
           end as step_factor
      from steps s
      -- A base price that is not the close before is a split or the like, unless the session before is not held: then nobody
      -- else's base price is its close before either.
      left join lateral (
           select count(*) > 0 and count(*) filter (where n.close - n.change = b.close) * 2 >= count(*) as follows
             from (select o.code, o.close, o.change from market.krx_prices o
                    where o.session_date = s.session_date and o.market = s.market and o.code <> s.code
                      and not o.is_untraded
                    order by o.code limit 50) n
             join market.krx_prices b on b.session_date = s.previous_session and b.market = s.market and b.code = n.code
           ) around on s.base_price is distinct from s.previous_close and s.previous_close is not null
)
select session_date, market, code, close, step_factor,
       case when not coalesce(bool_or(step_factor is null) over later, false) then market.product(step_factor) over later end as factor,
       case when not coalesce(bool_or(step_factor is null) over later, false)
            then round(close * market.product(step_factor) over later, 4) end as adjusted_close
  from judged
window later as (partition by code order by session_date desc, market desc rows between unbounded preceding and 1 preceding);
comment on view market.krx_adjusted_closes is 'Closes as they would be after all splits and the like that came later, derived from closes, changes and shares listed, and kept nowhere: each event changes what was before it. Null before a step that cannot be derived, as where a session is missing. Cash dividends are not in it';
