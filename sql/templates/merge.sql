-- name: lock
-- One writer at a time per table (or part of it); released with the transaction.
select pg_advisory_xact_lock(hashtextextended(%(name)s, 9010));

-- name: differences
-- How many rows are new or differ, and in which parts of the table, those that a row leaves among them; a row gives way only
-- to a greater (version of the upstream, sent at, parser version).
select coalesce(sum(g.rows) filter (where g.is_new), 0)::bigint as new,
       coalesce(sum(g.rows) filter (where not g.is_new), 0)::bigint as changed,
       array_agg(distinct {day_partition}) || array_agg(distinct {old_day_partition}) filter (where not g.is_new) as partitions
  from (select t.unit is null as is_new, {s_day} as day, {t_day} as old_day, count(*) as rows
          from {stage} s left join {target} t on {same_key}
         where t.unit is null
            or (({t_values}, t.extra) is distinct from ({s_values}, s.extra)
                and ({s_order}, %(parser_version)s) > ({t_order}, t.parser_version))
         group by 1, 2, 3) g;

-- name: is_fresh
-- Whether the table has no row of any of the units: mostly what is read for the first time.
select not exists (select 1 from {target} t join {units} u on t.unit = u.unit) as is_fresh;

-- name: add
-- Rows of units of which the table has none, without a look at what is there: a key that another unit gave stays as it is,
-- and then fewer are new than are staged.
with added as (
    insert into {target} ({columns}, unit, fetch_id, sent_at, parser_version, cycle_id, attempt, extra)
    select {s_columns}, s.unit, s.fetch_id, s.sent_at, %(parser_version)s, %(cycle)s, %(attempt)s, s.extra from {stage} s
    on conflict ({key}) do nothing
    returning {returned_day} as day
), days as (
    select a.day, count(*) as rows from added a group by 1
)
select coalesce(sum(g.rows), 0)::bigint as new, 0::bigint as changed, array_agg(distinct {day_partition}) as partitions,
       (select count(*) from {stage}) as staged
  from days g;

-- name: end_changed
-- Values that are about to be replaced go to the history, until when and why.
insert into {history} ({columns}, unit, fetch_id, sent_at, parser_version, cycle_id, attempt, extra, ended_at, reason)
select {t_columns}, t.unit, t.fetch_id, t.sent_at, t.parser_version, t.cycle_id, t.attempt, t.extra, s.sent_at,
       case when s.sent_at = t.sent_at then 'parser' else 'revised' end
  from {stage} s join {target} t on {same_key}
 where ({t_values}, t.extra) is distinct from ({s_values}, s.extra)
   and ({s_order}, %(parser_version)s) > ({t_order}, t.parser_version)
on conflict do nothing;

-- name: withdraw
-- Rows of a unit that its newer whole answer, or a newer parser, no longer gives.
with gone as (
    delete from {target} t using {units} u
     where t.unit = u.unit and u.whole and (u.sent_at, %(parser_version)s) > (t.sent_at, t.parser_version)
       and not exists (select 1 from {stage} s where {same_key})
    returning t.*, u.sent_at as u_sent_at
), kept as (
    insert into {history} ({columns}, unit, fetch_id, sent_at, parser_version, cycle_id, attempt, extra, ended_at, reason)
    select {g_columns}, g.unit, g.fetch_id, g.sent_at, g.parser_version, g.cycle_id, g.attempt, g.extra, g.u_sent_at,
           case when g.u_sent_at = g.sent_at then 'parser' else 'withdrawn' end
      from gone g
    on conflict do nothing
)
select count(*) as withdrawn, array_agg(distinct {g_partition}) as partitions from gone g;

-- name: merge
-- Rows that are new or differ, and only these. Under the table's lock no other writer can add a key meanwhile.
merge into {target} as t
using {stage} as s on {same_key}
when matched and ({t_values}, t.extra) is distinct from ({s_values}, s.extra)
             and ({s_order}, %(parser_version)s) > ({t_order}, t.parser_version) then
    update set {s_assignments}, unit = s.unit, fetch_id = s.fetch_id, sent_at = s.sent_at,
               parser_version = %(parser_version)s, cycle_id = %(cycle)s, attempt = %(attempt)s, extra = s.extra
when not matched then
    insert ({columns}, unit, fetch_id, sent_at, parser_version, cycle_id, attempt, extra)
    values ({s_columns}, s.unit, s.fetch_id, s.sent_at, %(parser_version)s, %(cycle)s, %(attempt)s, s.extra);

-- name: mark_stale
-- Parts of the table that changed, for the files that are built from it.
insert into publish.stale as p (table_name, partition, marked_at)
select %(table)s, partition, collect.clock() from unnest(%(partitions)s::text[]) as partition order by partition
on conflict (table_name, partition) do update set version = p.version + 1, marked_at = excluded.marked_at;

-- name: partition_month
-- The month of a row.
to_char({row}.{column}, 'YYYY-MM')

-- name: partition_all
-- Tables without a session date are one part.
'all'::text
