-- 0015 kind: the companies listed in Korea, whom the policy leaves out, and who was listed on any day. Expand-only.
-- Roll-back note: the tables may be dropped once no release writes them and their parquet files are kept.

create table market.kind_companies (
    code             text not null,
    name             text not null,
    market           text,
    sector           text,
    products         text,
    listed_on        date,
    closing_month    smallint,
    representatives  text,
    website          text,
    region           text,
    is_spac          boolean not null,
    is_reit          boolean not null,
    unit             text not null,
    fetch_id         bigint not null,
    sent_at          timestamptz(6) not null,
    parser_version   integer not null,
    cycle_id         bigint not null,
    attempt          integer not null,
    extra            jsonb,
    primary key (code)
);
comment on table market.kind_companies is 'Companies as KIND last listed them, those that have departed too; how they were before is in the history (KIND)';
comment on column market.kind_companies.code is 'Code of the common share: six digits or capital letters';
comment on column market.kind_companies.name is 'Short name';
comment on column market.kind_companies.market is 'KOSPI or KOSDAQ; the label as given where it is another one, null where the list has none';
comment on column market.kind_companies.sector is 'Industry in words, as given';
comment on column market.kind_companies.products is 'Main products, as given';
comment on column market.kind_companies.listed_on is 'Day of listing on the market where it is now';
comment on column market.kind_companies.closing_month is 'Month in which the business year ends, 1 to 12';
comment on column market.kind_companies.representatives is 'Representatives, as given';
comment on column market.kind_companies.website is 'Web site, as given: often without a scheme';
comment on column market.kind_companies.region is 'Province, or country of a foreign issuer';
comment on column market.kind_companies.is_spac is 'Whether the name is that of a shell company for a merger (스팩)';
comment on column market.kind_companies.is_reit is 'Whether name and industry are those of a real estate investment trust (리츠)';
comment on column market.kind_companies.unit is 'Unit that gave the row';
comment on column market.kind_companies.fetch_id is 'Fetch that gave these values first';
comment on column market.kind_companies.sent_at is 'When that fetch was sent';
comment on column market.kind_companies.parser_version is 'Parser that read it';
comment on column market.kind_companies.cycle_id is 'Cycle that wrote it';
comment on column market.kind_companies.attempt is 'Claim of that cycle';
comment on column market.kind_companies.extra is 'Columns of the upstream that nobody knew yet';
create index kind_companies_by_unit on market.kind_companies (unit);

create table market.kind_companies_history (
    like market.kind_companies,
    ended_at   timestamptz(6) not null,
    reason     text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (code, sent_at, reason, parser_version)
);
comment on table market.kind_companies_history is 'What kind_companies once said otherwise, until when and why no longer';
comment on column market.kind_companies_history.code is 'Code of the common share: six digits or capital letters';
comment on column market.kind_companies_history.name is 'Short name';
comment on column market.kind_companies_history.market is 'KOSPI or KOSDAQ; the label as given where it is another one, null where the list has none';
comment on column market.kind_companies_history.sector is 'Industry in words, as given';
comment on column market.kind_companies_history.products is 'Main products, as given';
comment on column market.kind_companies_history.listed_on is 'Day of listing on the market where it is now';
comment on column market.kind_companies_history.closing_month is 'Month in which the business year ends, 1 to 12';
comment on column market.kind_companies_history.representatives is 'Representatives, as given';
comment on column market.kind_companies_history.website is 'Web site, as given: often without a scheme';
comment on column market.kind_companies_history.region is 'Province, or country of a foreign issuer';
comment on column market.kind_companies_history.is_spac is 'Whether the name is that of a shell company for a merger (스팩)';
comment on column market.kind_companies_history.is_reit is 'Whether name and industry are those of a real estate investment trust (리츠)';
comment on column market.kind_companies_history.unit is 'Unit that gave the row';
comment on column market.kind_companies_history.fetch_id is 'Fetch that gave these values first';
comment on column market.kind_companies_history.sent_at is 'When that fetch was sent';
comment on column market.kind_companies_history.parser_version is 'Parser that read it';
comment on column market.kind_companies_history.cycle_id is 'Cycle that wrote it';
comment on column market.kind_companies_history.attempt is 'Claim of that cycle';
comment on column market.kind_companies_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column market.kind_companies_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column market.kind_companies_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index kind_companies_history_by_unit on market.kind_companies_history (unit);

create table market.kind_excluded (
    code            text not null,
    name            text not null,
    market          text not null,
    listed_on       date,
    unit            text not null,
    fetch_id        bigint not null,
    sent_at         timestamptz(6) not null,
    parser_version  integer not null,
    cycle_id        bigint not null,
    attempt         integer not null,
    extra           jsonb,
    primary key (code)
);
comment on table market.kind_excluded is 'Companies that the newest list shows and that are left out by policy: those of KONEX (KIND)';
comment on column market.kind_excluded.code is 'Code of the common share';
comment on column market.kind_excluded.name is 'Short name';
comment on column market.kind_excluded.market is 'Market for which it is left out';
comment on column market.kind_excluded.listed_on is 'Day of listing there';
comment on column market.kind_excluded.unit is 'Unit that gave the row';
comment on column market.kind_excluded.fetch_id is 'Fetch that gave these values first';
comment on column market.kind_excluded.sent_at is 'When that fetch was sent';
comment on column market.kind_excluded.parser_version is 'Parser that read it';
comment on column market.kind_excluded.cycle_id is 'Cycle that wrote it';
comment on column market.kind_excluded.attempt is 'Claim of that cycle';
comment on column market.kind_excluded.extra is 'Columns of the upstream that nobody knew yet';
create index kind_excluded_by_unit on market.kind_excluded (unit);

create table market.kind_excluded_history (
    like market.kind_excluded,
    ended_at   timestamptz(6) not null,
    reason     text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (code, sent_at, reason, parser_version)
);
comment on table market.kind_excluded_history is 'What kind_excluded once said otherwise, until when and why no longer';
comment on column market.kind_excluded_history.code is 'Code of the common share';
comment on column market.kind_excluded_history.name is 'Short name';
comment on column market.kind_excluded_history.market is 'Market for which it is left out';
comment on column market.kind_excluded_history.listed_on is 'Day of listing there';
comment on column market.kind_excluded_history.unit is 'Unit that gave the row';
comment on column market.kind_excluded_history.fetch_id is 'Fetch that gave these values first';
comment on column market.kind_excluded_history.sent_at is 'When that fetch was sent';
comment on column market.kind_excluded_history.parser_version is 'Parser that read it';
comment on column market.kind_excluded_history.cycle_id is 'Cycle that wrote it';
comment on column market.kind_excluded_history.attempt is 'Claim of that cycle';
comment on column market.kind_excluded_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column market.kind_excluded_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column market.kind_excluded_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index kind_excluded_history_by_unit on market.kind_excluded_history (unit);

create view market.kind_universe as
    select c.code, c.name, c.market, c.sector, c.products, c.listed_on, c.closing_month, c.representatives, c.website, c.region,
           c.is_spac, c.is_reit, i.first_seen_at, i.last_seen_at
      from market.kind_companies c join collect.items i on i.stream = 'kind.companies' and i.item_key = c.code
     where i.closed_at is null;
comment on view market.kind_universe is
    'Companies that are listed: shown by a list that was believed, and not missed by so many in a row that they count as departed';

create view market.kind_departed as
    select c.code, c.name, c.market, c.listed_on, i.first_seen_at, i.last_seen_at, i.closed_at as departed_at
      from market.kind_companies c join collect.items i on i.stream = 'kind.companies' and i.item_key = c.code
     where i.closed_at is not null;
comment on view market.kind_departed is
    'Companies that have departed, with the last list that showed them and when they were missed often enough; how they were listed last';

create view market.kind_doubts as
    select 'kind.companies' as stream, 'size' as key,
           'it lists ' || u.listed || ' companies of KOSPI and KOSDAQ, where KRX shows common shares of ' || k.traded || ' on '
           || k.session_date as says
      from (select count(*) as listed from market.kind_universe) u
     cross join (select p.session_date, count(*) as traded from market.krx_prices p
                  where p.session_date = (select max(s.session_date) from market.krx_prices s)
                    and p.market in ('KOSPI', 'KOSDAQ') and p.code like '%0'
                  group by p.session_date) k
     where u.listed > 0 and u.listed < 0.8 * k.traded;
comment on view market.kind_doubts is
    'What an operator should look at though every answer was fine: a list far smaller than the market, as the first one there is has no earlier one to be measured by. Codes of common shares end with 0';

create function market.kind_as_of(day date)
    returns table (code text, name text, market text, sector text, listed_on date, closing_month smallint, is_spac boolean, is_reit boolean)
    language sql stable as $$
    select distinct on (v.code) v.code, v.name, v.market, v.sector, v.listed_on, v.closing_month, v.is_spac, v.is_reit
      from (select c.code, c.name, c.market, c.sector, c.listed_on, c.closing_month, c.is_spac, c.is_reit, c.sent_at
              from market.kind_companies c
            union all
            select h.code, h.name, h.market, h.sector, h.listed_on, h.closing_month, h.is_spac, h.is_reit, h.sent_at
              from market.kind_companies_history h where h.reason = 'revised') v
      join collect.items i on i.stream = 'kind.companies' and i.item_key = v.code
     where v.sent_at < (kind_as_of.day + 1)::timestamp at time zone 'Asia/Seoul'
       and i.first_seen_at < (kind_as_of.day + 1)::timestamp at time zone 'Asia/Seoul'
       and (i.closed_at is null or i.closed_at >= (kind_as_of.day + 1)::timestamp at time zone 'Asia/Seoul')
     order by v.code, v.sent_at desc
$$;
comment on function market.kind_as_of(date) is
    'The universe at the end of a day in Seoul, with names and sectors as listed by then, since it is collected; '
    'a gap between a departure and a return under the same code counts as listed';
