-- name: lock
-- One writer at a time per table (or part of it); released with the transaction.
select pg_advisory_xact_lock(hashtextextended(%(name)s, 9010));

-- name: end_changed
-- Values that are about to be replaced go to the history, until when and why.
insert into {history} ({columns}, unit, fetch_id, sent_at, parser_version, cycle_id, attempt, extra, ended_at, reason)
select {t_columns}, t.unit, t.fetch_id, t.sent_at, t.parser_version, t.cycle_id, t.attempt, t.extra, s.sent_at,
       case when s.sent_at = t.sent_at then 'parser' else 'revised' end
  from {stage} s join {target} t on {same_key}
 where ({t_values}, t.extra) is distinct from ({s_values}, s.extra)
   and (s.sent_at, %(parser_version)s) > (t.sent_at, t.parser_version)
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
-- Rows that are new or differ, and only these; a row is replaced only by a greater (sent at, parser version).
with written as (
    insert into {target} as t ({columns}, unit, fetch_id, sent_at, parser_version, cycle_id, attempt, extra)
    select {s_columns}, s.unit, s.fetch_id, s.sent_at, %(parser_version)s, %(cycle)s, %(attempt)s, s.extra
      from {stage} s left join {target} t on {same_key}
     where t.unit is null
        or (({t_values}, t.extra) is distinct from ({s_values}, s.extra)
            and (s.sent_at, %(parser_version)s) > (t.sent_at, t.parser_version))
    on conflict ({key}) do update set {assignments}, unit = excluded.unit, fetch_id = excluded.fetch_id,
        sent_at = excluded.sent_at, parser_version = excluded.parser_version, cycle_id = excluded.cycle_id,
        attempt = excluded.attempt, extra = excluded.extra
    where (excluded.sent_at, excluded.parser_version) > (t.sent_at, t.parser_version)
    returning (xmax = 0) as inserted, {w_partition} as partition
)
select count(*) filter (where inserted) as new, count(*) filter (where not inserted) as changed,
       array_agg(distinct partition) as partitions
  from written;

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
'all'
