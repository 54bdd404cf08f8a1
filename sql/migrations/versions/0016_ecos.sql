-- 0016 ecos: Korean economic series by period, what each one is, and how they stood on any day. Expand-only.
-- Roll-back note: the tables may be dropped once no release writes them and their parquet files are kept.

create table market.ecos_series (
    series_id       text not null,
    stretch         text not null,
    statistic       text not null,
    statistic_name  text not null,
    cycle           text not null,
    item_codes      jsonb not null,
    item_names      jsonb not null,
    unit_name       text,
    begins          text,
    unit            text not null,
    fetch_id        bigint not null,
    sent_at         timestamptz(6) not null,
    parser_version  integer not null,
    cycle_id        bigint not null,
    attempt         integer not null,
    extra           jsonb,
    primary key (series_id, stretch)
);
comment on table market.ecos_series is 'What each series is, as ECOS''s list of items described it when a stretch of it was read (ECOS)';
comment on column market.ecos_series.series_id is 'Series: statistic, cycle and item codes, e.g. 722Y001.D.0101000';
comment on column market.ecos_series.stretch is 'What was read with it: a year of a daily series, all of any other';
comment on column market.ecos_series.statistic is 'Code of the statistic';
comment on column market.ecos_series.statistic_name is 'Its name';
comment on column market.ecos_series.cycle is 'A, S, Q, M, SM or D: by year, half-year, quarter, month, half-month or day';
comment on column market.ecos_series.item_codes is 'Item codes, one for each level';
comment on column market.ecos_series.item_names is 'Their names';
comment on column market.ecos_series.unit_name is 'Unit of the values, null where it is not said';
comment on column market.ecos_series.begins is 'First period that ECOS has, null where it is not said';
comment on column market.ecos_series.unit is 'Unit that gave the row';
comment on column market.ecos_series.fetch_id is 'Fetch that gave these values first';
comment on column market.ecos_series.sent_at is 'When that fetch was sent';
comment on column market.ecos_series.parser_version is 'Parser that read it';
comment on column market.ecos_series.cycle_id is 'Cycle that wrote it';
comment on column market.ecos_series.attempt is 'Claim of that cycle';
comment on column market.ecos_series.extra is 'Columns of the upstream that nobody knew yet';
create index ecos_series_by_unit on market.ecos_series (unit);

create table market.ecos_series_history (
    like market.ecos_series,
    ended_at   timestamptz(6) not null,
    reason     text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (series_id, stretch, sent_at, reason, parser_version)
);
comment on table market.ecos_series_history is 'What ecos_series once said otherwise, until when and why no longer';
comment on column market.ecos_series_history.series_id is 'Series: statistic, cycle and item codes, e.g. 722Y001.D.0101000';
comment on column market.ecos_series_history.stretch is 'What was read with it: a year of a daily series, all of any other';
comment on column market.ecos_series_history.statistic is 'Code of the statistic';
comment on column market.ecos_series_history.statistic_name is 'Its name';
comment on column market.ecos_series_history.cycle is 'A, S, Q, M, SM or D: by year, half-year, quarter, month, half-month or day';
comment on column market.ecos_series_history.item_codes is 'Item codes, one for each level';
comment on column market.ecos_series_history.item_names is 'Their names';
comment on column market.ecos_series_history.unit_name is 'Unit of the values, null where it is not said';
comment on column market.ecos_series_history.begins is 'First period that ECOS has, null where it is not said';
comment on column market.ecos_series_history.unit is 'Unit that gave the row';
comment on column market.ecos_series_history.fetch_id is 'Fetch that gave these values first';
comment on column market.ecos_series_history.sent_at is 'When that fetch was sent';
comment on column market.ecos_series_history.parser_version is 'Parser that read it';
comment on column market.ecos_series_history.cycle_id is 'Cycle that wrote it';
comment on column market.ecos_series_history.attempt is 'Claim of that cycle';
comment on column market.ecos_series_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column market.ecos_series_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column market.ecos_series_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index ecos_series_history_by_unit on market.ecos_series_history (unit);

create table market.ecos_values (
    series_id       text not null,
    period          text not null,
    period_start    date not null,
    value_text      text,
    value           numeric(38, 15),
    unit_name       text,
    weight          text,
    unit            text not null,
    fetch_id        bigint not null,
    sent_at         timestamptz(6) not null,
    parser_version  integer not null,
    cycle_id        bigint not null,
    attempt         integer not null,
    extra           jsonb,
    primary key (series_id, period)
);
comment on table market.ecos_values is 'Values of Korean economic series by period, as shown now; what they were is in the history (ECOS)';
comment on column market.ecos_values.series_id is 'Series: statistic, cycle and item codes, e.g. 722Y001.D.0101000';
comment on column market.ecos_values.period is 'Period as ECOS writes it for the cycle, e.g. 2026Q3';
comment on column market.ecos_values.period_start is 'First day of the period; of the second half of a month the 16th';
comment on column market.ecos_values.value_text is 'Value as given, with its digits; null where it is missing';
comment on column market.ecos_values.value is 'The same as a number; null where it is missing';
comment on column market.ecos_values.unit_name is 'Unit of the value, e.g. 연% or 2020=100; a new base year is a new unit';
comment on column market.ecos_values.weight is 'Weight as given, null where there is none';
comment on column market.ecos_values.unit is 'Unit that gave the row';
comment on column market.ecos_values.fetch_id is 'Fetch that gave these values first';
comment on column market.ecos_values.sent_at is 'When that fetch was sent';
comment on column market.ecos_values.parser_version is 'Parser that read it';
comment on column market.ecos_values.cycle_id is 'Cycle that wrote it';
comment on column market.ecos_values.attempt is 'Claim of that cycle';
comment on column market.ecos_values.extra is 'Columns of the upstream that nobody knew yet';
create index ecos_values_by_unit on market.ecos_values (unit);

create table market.ecos_values_history (
    like market.ecos_values,
    ended_at   timestamptz(6) not null,
    reason     text not null check (reason in ('revised', 'withdrawn', 'parser')),
    primary key (series_id, period, sent_at, reason, parser_version)
);
comment on table market.ecos_values_history is 'What ecos_values once said otherwise, until when and why no longer';
comment on column market.ecos_values_history.series_id is 'Series: statistic, cycle and item codes, e.g. 722Y001.D.0101000';
comment on column market.ecos_values_history.period is 'Period as ECOS writes it for the cycle, e.g. 2026Q3';
comment on column market.ecos_values_history.period_start is 'First day of the period; of the second half of a month the 16th';
comment on column market.ecos_values_history.value_text is 'Value as given, with its digits; null where it is missing';
comment on column market.ecos_values_history.value is 'The same as a number; null where it is missing';
comment on column market.ecos_values_history.unit_name is 'Unit of the value, e.g. 연% or 2020=100; a new base year is a new unit';
comment on column market.ecos_values_history.weight is 'Weight as given, null where there is none';
comment on column market.ecos_values_history.unit is 'Unit that gave the row';
comment on column market.ecos_values_history.fetch_id is 'Fetch that gave these values first';
comment on column market.ecos_values_history.sent_at is 'When that fetch was sent';
comment on column market.ecos_values_history.parser_version is 'Parser that read it';
comment on column market.ecos_values_history.cycle_id is 'Cycle that wrote it';
comment on column market.ecos_values_history.attempt is 'Claim of that cycle';
comment on column market.ecos_values_history.extra is 'Columns of the upstream that nobody knew yet';
comment on column market.ecos_values_history.ended_at is 'When the fetch was sent that says otherwise';
comment on column market.ecos_values_history.reason is 'revised by a newer answer, withdrawn from it, or read otherwise by a newer parser';
create index ecos_values_history_by_unit on market.ecos_values_history (unit);

create function market.ecos_as_of(day date)
    returns table (series_id text, period text, period_start date, value_text text, value numeric, unit_name text)
    language sql stable as $$
    select n.series_id, n.period, n.period_start, n.value_text, n.value, n.unit_name
      from (select distinct on (k.series_id, k.period) k.*
              from (select v.series_id, v.period, v.period_start, v.value_text, v.value, v.unit_name, v.sent_at,
                           null::timestamptz as ended_at, null::text as reason
                      from market.ecos_values v
                    union all
                    select h.series_id, h.period, h.period_start, h.value_text, h.value, h.unit_name, h.sent_at, h.ended_at, h.reason
                      from market.ecos_values_history h where h.reason <> 'parser') k
             where k.sent_at < (ecos_as_of.day + 1)::timestamp at time zone 'Asia/Seoul'
             order by k.series_id, k.period, k.sent_at desc) n
     where n.reason is distinct from 'withdrawn' or n.ended_at >= (ecos_as_of.day + 1)::timestamp at time zone 'Asia/Seoul'
$$;
comment on function market.ecos_as_of(date) is
    'Every value as it had been collected by the end of a day in Seoul: ECOS itself shows the newest alone and keeps no vintages';

create view market.ecos_series_current as
    select distinct on (s.series_id) s.series_id, s.statistic, s.statistic_name, s.cycle, s.item_codes, s.item_names, s.unit_name,
           s.begins, o.first_period, o.last_period, o.values_held
      from market.ecos_series s
      left join (select v.series_id, min(v.period) as first_period, max(v.period) as last_period, count(v.value) as values_held
                   from market.ecos_values v group by v.series_id) o on o.series_id = s.series_id
     order by s.series_id, s.sent_at desc;
comment on view market.ecos_series_current is
    'Each series as last described, with the first and last period that is held and how many have a value';
