-- 0010 fred: economic series with every revision, what each one is, and how they stood on any day. Expand-only.
-- Roll-back note: the tables may be dropped once no release writes them and their parquet files are kept.

create table market.fred_series (
    series_id                  text not null,
    realtime_start             date not null,
    is_carried                 boolean not null,
    title                      text not null,
    frequency                  text not null,
    frequency_short            text not null,
    units                      text not null,
    units_short                text not null,
    seasonal_adjustment        text not null,
    seasonal_adjustment_short  text not null,
    notes                      text,
    has_observations           boolean not null,
    unit                       text not null,
    fetch_id                   bigint not null,
    sent_at                    timestamptz(6) not null,
    parser_version             integer not null,
    cycle_id                   bigint not null,
    attempt                    integer not null,
    extra                      jsonb,
    primary key (series_id, realtime_start)
);
comment on table market.fred_series is 'What each series is, from the day on which the description came into force (FRED)';
comment on column market.fred_series.series_id is 'Series as FRED names it';
comment on column market.fred_series.realtime_start is 'Day in St. Louis from which the description held; the first of a year where it held before';
comment on column market.fred_series.is_carried is 'It held before that day already: realtime_start is no change';
comment on column market.fred_series.title is 'Title; dead series end with (DISCONTINUED)';
comment on column market.fred_series.frequency is 'Frequency in words, e.g. Weekly, Ending Friday';
comment on column market.fred_series.frequency_short is 'D, W, BW, M, Q, SA, A or NA';
comment on column market.fred_series.units is 'Unit of the values, e.g. Billions of Chained 2017 Dollars';
comment on column market.fred_series.units_short is 'The same, short';
comment on column market.fred_series.seasonal_adjustment is 'Seasonal adjustment in words';
comment on column market.fred_series.seasonal_adjustment_short is 'SA, NSA, SAAR …';
comment on column market.fred_series.notes is 'Notes as given, with their line breaks';
comment on column market.fred_series.has_observations is 'False where FRED does not give the values through its interface';
comment on column market.fred_series.unit is 'Unit that gave the row';
comment on column market.fred_series.fetch_id is 'Fetch that gave these values first';
comment on column market.fred_series.sent_at is 'When that fetch was sent';
comment on column market.fred_series.parser_version is 'Parser that read it';
comment on column market.fred_series.cycle_id is 'Cycle that wrote it';
comment on column market.fred_series.attempt is 'Claim of that cycle';
comment on column market.fred_series.extra is 'Columns of the upstream that nobody knew yet';
create index fred_series_by_unit on market.fred_series (unit);

create table market.fred_series_history (
    like market.fred_series,
    ended_at   timestamptz(6) not null,
    reason     text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (series_id, realtime_start, sent_at, reason, parser_version)
);
comment on table market.fred_series_history is 'What fred_series once said otherwise, until when and why no longer';
comment on column market.fred_series_history.series_id is 'Series as FRED names it';
comment on column market.fred_series_history.realtime_start is 'Day in St. Louis from which the description held; the first of a year where it held before';
comment on column market.fred_series_history.is_carried is 'It held before that day already: realtime_start is no change';
comment on column market.fred_series_history.title is 'Title; dead series end with (DISCONTINUED)';
comment on column market.fred_series_history.frequency is 'Frequency in words, e.g. Weekly, Ending Friday';
comment on column market.fred_series_history.frequency_short is 'D, W, BW, M, Q, SA, A or NA';
comment on column market.fred_series_history.units is 'Unit of the values, e.g. Billions of Chained 2017 Dollars';
comment on column market.fred_series_history.units_short is 'The same, short';
comment on column market.fred_series_history.seasonal_adjustment is 'Seasonal adjustment in words';
comment on column market.fred_series_history.seasonal_adjustment_short is 'SA, NSA, SAAR …';
comment on column market.fred_series_history.notes is 'Notes as given, with their line breaks';
comment on column market.fred_series_history.has_observations is 'False where FRED does not give the values through its interface';
comment on column market.fred_series_history.unit is 'Unit that gave the row';
comment on column market.fred_series_history.fetch_id is 'Fetch that gave these values first';
comment on column market.fred_series_history.sent_at is 'When that fetch was sent';
comment on column market.fred_series_history.parser_version is 'Parser that read it';
comment on column market.fred_series_history.cycle_id is 'Cycle that wrote it';
comment on column market.fred_series_history.attempt is 'Claim of that cycle';
comment on column market.fred_series_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column market.fred_series_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column market.fred_series_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index fred_series_history_by_unit on market.fred_series_history (unit);

create table market.fred_vintages (
    series_id                  text not null,
    observation_date           date not null,
    realtime_start             date not null,
    value_text                 text,
    value                      numeric(38, 15),
    is_withdrawn               boolean not null,
    unit                       text not null,
    fetch_id                   bigint not null,
    sent_at                    timestamptz(6) not null,
    parser_version             integer not null,
    cycle_id                   bigint not null,
    attempt                    integer not null,
    extra                      jsonb,
    primary key (series_id, observation_date, realtime_start)
);
comment on table market.fred_vintages is 'Values of economic series, each from the day in St. Louis on which it became the published one (FRED)';
comment on column market.fred_vintages.series_id is 'Series as FRED names it';
comment on column market.fred_vintages.observation_date is 'First day of the period that it is for; of a week the day that FRED names';
comment on column market.fred_vintages.realtime_start is 'Day in St. Louis at whose end this was the published value; 1776-07-04 where FRED keeps no vintages';
comment on column market.fred_vintages.value_text is 'Value as given, with its digits; ''.'' is published as missing';
comment on column market.fred_vintages.value is 'The same as a number; null where it is missing or withdrawn';
comment on column market.fred_vintages.is_withdrawn is 'From this day on the observation was not published any more';
comment on column market.fred_vintages.unit is 'Unit that gave the row';
comment on column market.fred_vintages.fetch_id is 'Fetch that gave these values first';
comment on column market.fred_vintages.sent_at is 'When that fetch was sent';
comment on column market.fred_vintages.parser_version is 'Parser that read it';
comment on column market.fred_vintages.cycle_id is 'Cycle that wrote it';
comment on column market.fred_vintages.attempt is 'Claim of that cycle';
comment on column market.fred_vintages.extra is 'Columns of the upstream that nobody knew yet';
create index fred_vintages_by_unit on market.fred_vintages (unit);

create table market.fred_vintages_history (
    like market.fred_vintages,
    ended_at   timestamptz(6) not null,
    reason     text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (series_id, observation_date, realtime_start, sent_at, reason, parser_version)
);
comment on table market.fred_vintages_history is 'What fred_vintages once said otherwise, until when and why no longer';
comment on column market.fred_vintages_history.series_id is 'Series as FRED names it';
comment on column market.fred_vintages_history.observation_date is 'First day of the period that it is for; of a week the day that FRED names';
comment on column market.fred_vintages_history.realtime_start is 'Day in St. Louis at whose end this was the published value; 1776-07-04 where FRED keeps no vintages';
comment on column market.fred_vintages_history.value_text is 'Value as given, with its digits; ''.'' is published as missing';
comment on column market.fred_vintages_history.value is 'The same as a number; null where it is missing or withdrawn';
comment on column market.fred_vintages_history.is_withdrawn is 'From this day on the observation was not published any more';
comment on column market.fred_vintages_history.unit is 'Unit that gave the row';
comment on column market.fred_vintages_history.fetch_id is 'Fetch that gave these values first';
comment on column market.fred_vintages_history.sent_at is 'When that fetch was sent';
comment on column market.fred_vintages_history.parser_version is 'Parser that read it';
comment on column market.fred_vintages_history.cycle_id is 'Cycle that wrote it';
comment on column market.fred_vintages_history.attempt is 'Claim of that cycle';
comment on column market.fred_vintages_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column market.fred_vintages_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column market.fred_vintages_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index fred_vintages_history_by_unit on market.fred_vintages_history (unit);

create index fred_vintages_by_start on market.fred_vintages (realtime_start);

create view market.fred_observations as
    select p.series_id, p.observation_date, p.realtime_start, p.realtime_end, p.value_text, p.value
      from (select v.series_id, v.observation_date, v.realtime_start, v.value_text, v.value, v.is_withdrawn,
                   coalesce(lead(v.realtime_start) over w - 1, date '9999-12-31') as realtime_end
              from market.fred_vintages v
            window w as (partition by v.series_id, v.observation_date order by v.realtime_start)) p
     where not p.is_withdrawn;
comment on view market.fred_observations is
    'Every value with the days in St. Louis, both inclusive, on which it was the published one; 9999-12-31: it still is';

create view market.fred_first_releases as
    select distinct on (v.series_id, v.observation_date)
           v.series_id, v.observation_date, v.realtime_start, v.value_text, v.value
      from market.fred_vintages v
     where not v.is_withdrawn
     order by v.series_id, v.observation_date, v.realtime_start;
comment on view market.fred_first_releases is
    'First value of each observation that is held; of those before the first vintage of a series that is no first publication';

create function market.fred_as_of(day date)
    returns table (series_id text, observation_date date, realtime_start date, value_text text, value numeric)
    language sql stable as $$
    select n.series_id, n.observation_date, n.realtime_start, n.value_text, n.value
      from (select distinct on (k.series_id, k.observation_date) k.*
              from (select v.series_id, v.observation_date, v.realtime_start, v.value_text, v.value, v.is_withdrawn,
                           v.realtime_start as known_from, v.sent_at
                      from market.fred_vintages v where v.realtime_start > date '1776-07-04'
                    union all
                    select u.series_id, u.observation_date, u.realtime_start, u.value_text, u.value, u.is_withdrawn,
                           (u.sent_at at time zone 'America/Chicago')::date, u.sent_at
                      from market.fred_vintages u where u.realtime_start = date '1776-07-04'
                    union all
                    select h.series_id, h.observation_date, h.realtime_start, h.value_text, h.value, h.is_withdrawn,
                           (h.sent_at at time zone 'America/Chicago')::date, h.sent_at
                      from market.fred_vintages_history h
                     where h.realtime_start = date '1776-07-04' and h.reason = 'revised') k
             where k.known_from <= fred_as_of.day
             order by k.series_id, k.observation_date, k.known_from desc, k.sent_at desc) n
     where not n.is_withdrawn
$$;
comment on function market.fred_as_of(date) is
    'Every series as it stood in St. Louis at the end of a day, as far as market.fred_coverage says that it is whole; where FRED keeps no vintages, as it had been collected by then';

create view market.fred_series_current as
    select d.series_id, d.title, d.frequency, d.frequency_short, d.units, d.units_short, d.seasonal_adjustment,
           d.seasonal_adjustment_short, d.has_observations, d.title like '%(DISCONTINUED)%' as is_discontinued,
           o.first_observation, o.last_observation, o.last_release
      from (select distinct on (s.series_id) s.* from market.fred_series s order by s.series_id, s.realtime_start desc) d
      left join (select v.series_id, min(v.observation_date) as first_observation, max(v.observation_date) as last_observation,
                        nullif(max(v.realtime_start), date '1776-07-04') as last_release
                   from market.fred_vintages v group by v.series_id) o on o.series_id = d.series_id;
comment on view market.fred_series_current is
    'Each series as last described, with the first and last observation that is held and the newest day on which a value changed';

create view market.fred_coverage as
    select u.series_id, make_date(min(u.first_year), 1, 1) as collected_from, make_date(max(u.last_year), 12, 31) as collected_to,
           max(u.last_year) - min(u.first_year) + 1 - sum(u.last_year - u.first_year + 1)::int as missing_years,
           (array_agg(u.is_carried order by u.first_year))[1] as was_there_before, coalesce(bool_or(n.series_id is not null), false) as has_no_vintages,
           not (array_agg(u.is_carried order by u.first_year))[1] and bool_and(n.series_id is null)
               and max(u.last_year) - min(u.first_year) + 1 = sum(u.last_year - u.first_year + 1) as is_whole
      from (select s.series_id, left(split_part(s.unit, '/', 2), 4)::int as first_year, right(s.unit, 4)::int as last_year,
                   bool_and(s.is_carried) filter (where s.is_first) as is_carried
              from (select f.*, f.realtime_start = min(f.realtime_start) over (partition by f.series_id, f.unit) as is_first
                      from market.fred_series f) s
             group by s.series_id, s.unit) u
      left join (select distinct v.series_id from market.fred_vintages v where v.realtime_start = date '1776-07-04') n using (series_id)
     group by u.series_id;
comment on view market.fred_coverage is
    'Of which years each series was collected. fred_as_of and fred_observations tell all of a series where is_whole: from its first vintage on, without a gap. Else values that were published before collected_from, or in missing_years, and are the same since, are not held: mode=backfill collects them; has_no_vintages: FRED keeps none, known is only what was collected';

create view market.fred_overdue as
    select c.series_id, c.title, c.frequency, c.last_observation, c.last_release, r.today - c.last_release as days_since,
           case c.frequency_short when 'D' then 10 when 'W' then 21 when 'BW' then 35 when 'M' then 75 when 'Q' then 200
                                  when 'SA' then 400 when 'A' then 800 end as usual_days
      from market.fred_series_current c
     cross join (select (collect.clock() at time zone 'America/Chicago')::date as today) r
     where not c.is_discontinued and c.has_observations
       and r.today - c.last_release > case c.frequency_short when 'D' then 10 when 'W' then 21 when 'BW' then 35 when 'M' then 75
                                                            when 'Q' then 200 when 'SA' then 400 when 'A' then 800 end;
comment on view market.fred_overdue is
    'Series of which nothing new was published for longer than is usual for their frequency; copies of other publishers'' series lag by a period';

create view market.fred_doubts as
    select 'fred.observations' as stream, o.series_id as key,
           o.series_id || ' (' || o.frequency || ') had nothing new since ' || o.last_release || ', ' || o.days_since || ' days; usual are '
           || o.usual_days || ' at most' as says
      from market.fred_overdue o;
comment on view market.fred_doubts is 'What an operator should look at though every answer was fine: series of which nothing new comes';
