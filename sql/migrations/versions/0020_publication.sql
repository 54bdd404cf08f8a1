-- 0020 publication: views from which published files are read, in the columns that readers know. Expand-only.
-- Roll-back note: views hold nothing; they can be made anew at any time.

create view publish.macro_fred_observations as
    select p.series_id, p.observation_date as date, p.value, p.value_text, p.realtime_start, p.realtime_end, p.fetch_id, p.sent_at
      from (select v.series_id, v.observation_date, v.realtime_start, v.value_text, v.value, v.is_withdrawn, v.fetch_id, v.sent_at,
                   coalesce(lead(v.realtime_start) over w - 1, date '9999-12-31') as realtime_end
              from market.fred_vintages v
            window w as (partition by v.series_id, v.observation_date order by v.realtime_start)) p
     where not p.is_withdrawn;
comment on view publish.macro_fred_observations is 'What the files of macro/fred/observations are read from: market.fred_observations, with the fetch';

create view publish.macro_fred_series as
    select 'fred'::text as source, d.series_id, d.title as label, d.frequency, d.units as unit, d.notes as description,
           coalesce(o.row_count, 0) as row_count, o.start_date, o.latest_date, o.first_vintage, o.latest_vintage,
           case when o.row_count is null then 'empty' when d.title like '%(DISCONTINUED)%' then 'discontinued' else 'ok' end as status,
           greatest(d.fetch_id, o.fetch_id) as fetch_id, greatest(d.sent_at, o.sent_at) as sent_at
      from (select distinct on (s.series_id) s.* from market.fred_series s order by s.series_id, s.realtime_start desc) d
      left join (select v.series_id, count(distinct v.date) as row_count, min(v.date) as start_date, max(v.date) as latest_date,
                        nullif(min(v.realtime_start), date '1776-07-04') as first_vintage,
                        nullif(max(v.realtime_start), date '1776-07-04') as latest_vintage,
                        max(v.fetch_id) as fetch_id, max(v.sent_at) as sent_at
                   from (select c.*, c.observation_date as date from market.fred_vintages c where not c.is_withdrawn) v
                  group by v.series_id) o on o.series_id = d.series_id;
comment on view publish.macro_fred_series is 'What the file of macro/fred/series is read from';

create view publish.macro_ecos_observations as
    select e.series_id, e.date, e.value, e.value_text, e.realtime_start, e.realtime_end, e.period, e.unit, e.fetch_id, e.sent_at
      from (select v.series_id, v.period_start as date, v.value, v.value_text, (v.sent_at at time zone 'Asia/Seoul')::date as realtime_start,
                   date '9999-12-31' as realtime_end, v.period, v.unit_name as unit, v.fetch_id, v.sent_at
              from market.ecos_values v
            union all
            -- What was replaced within a day was not the shown one at the end of any.
            select h.series_id, h.period_start, h.value, h.value_text, (h.sent_at at time zone 'Asia/Seoul')::date,
                   (h.ended_at at time zone 'Asia/Seoul')::date - 1, h.period, h.unit_name, h.fetch_id, h.sent_at
              from market.ecos_values_history h
             where h.reason <> 'parser'
               and (h.sent_at at time zone 'Asia/Seoul')::date < (h.ended_at at time zone 'Asia/Seoul')::date) e;
comment on view publish.macro_ecos_observations is 'What the files of macro/ecos/observations are read from: values now and before, by the days in Seoul on which they were seen';

create view publish.macro_ecos_series as
    select 'ecos'::text as source, d.series_id, d.statistic_name || ': ' || i.names as label, d.cycle as frequency, d.unit_name as unit,
           null::text as description, coalesce(o.row_count, 0) as row_count, o.start_date, o.latest_date, o.first_vintage,
           o.latest_vintage, case when o.row_count is null then 'empty' else 'ok' end as status,
           greatest(d.fetch_id, o.fetch_id) as fetch_id, greatest(d.sent_at, o.sent_at) as sent_at
      from (select distinct on (s.series_id) s.* from market.ecos_series s order by s.series_id, s.sent_at desc, s.stretch desc) d
     cross join lateral (select string_agg(n.name, ', ' order by n.place) as names
                           from jsonb_array_elements_text(d.item_names) with ordinality as n (name, place)) i
      left join (select v.series_id, count(*) as row_count, min(v.period_start) as start_date, max(v.period_start) as latest_date,
                        min((v.sent_at at time zone 'Asia/Seoul')::date) as first_vintage,
                        max((v.sent_at at time zone 'Asia/Seoul')::date) as latest_vintage,
                        max(v.fetch_id) as fetch_id, max(v.sent_at) as sent_at
                   from market.ecos_values v group by v.series_id) o on o.series_id = d.series_id;
comment on view publish.macro_ecos_series is 'What the file of macro/ecos/series is read from';
