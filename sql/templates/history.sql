-- name: chain
-- Every asking of some units, in order, as the versions that they make: a version starts where a value differs from
-- the one before, ends where the next starts, and is gone where a whole answer no longer gives the row. An asking that shows an
-- older version of the upstream's than one before it says nothing new.
create temporary table {chain} as
with askings as (
    select u.unit, u.fetch_id, u.sent_at, u.whole, row_number() over (partition by u.unit order by u.sent_at, u.fetch_id) as n
      from {units} u
), keys as (
    select distinct s.unit, {s_key} from {stage} s
), grid as (
    select {k_key}, a.unit, a.n, a.fetch_id as a_fetch_id, a.sent_at as a_sent_at, {s_values}, s.extra, s.fetch_id is not null as is_there,
           {is_overtaking} as is_overtaking
      from keys k join askings a on a.unit = k.unit
      left join {stage} s on {k_same_key} and s.fetch_id = a.fetch_id
     where s.fetch_id is not null or a.whole
), steps as (
    select g.*, lag(g.is_there) over w as was_there,
           lag(row({g_values}, g.extra)) over w is distinct from row({g_values}, g.extra) as differs
      from grid g where not g.is_there or g.is_overtaking is not false window w as (partition by {g_key}, g.unit order by g.n)
), starts as (
    select s.* from steps s
     where (s.is_there and (s.was_there is not true or s.differs)) or (not s.is_there and s.was_there is true)
)
select {v_columns}, v.unit, v.a_fetch_id as fetch_id, v.a_sent_at as sent_at, v.extra, v.is_there,
       lead(v.a_sent_at) over w as ended_at,
       case when lead(v.is_there) over w then 'revised' else 'withdrawn' end as reason
  from starts v window w as (partition by {v_key}, v.unit order by v.n);

-- name: keep_greatest
-- Where several units give one key, the row of the greatest (version of the upstream, sent at) stays.
delete from {chain} c
 using (select r.ctid as place, row_number() over (partition by {key_of_r} order by ({r_order}, r.fetch_id) desc) as n
          from {chain} r where r.is_there and r.ended_at is null) d
 where c.ctid = d.place and d.n > 1;

-- name: partitions
-- Parts of the table that a rebuild changes.
select array_agg(distinct d.partition) as partitions from (
    select {c_partition} as partition from {chain} c left join {target} t on {c_same_key}
     where c.is_there and c.ended_at is null
       and (t.unit is null or ({c_values}, c.extra, c.sent_at) is distinct from ({t_values}, t.extra, t.sent_at))
    union all
    select {t_partition} from {chain} c join {target} t on {c_same_key}
     where c.is_there and c.ended_at is null and ({c_values}, c.extra, c.sent_at) is distinct from ({t_values}, t.extra, t.sent_at)
    union all
    select {t_partition} from {target} t
     where t.unit in (select u.unit from {units} u)
       and not exists (select 1 from {chain} c where {c_same_key} and c.is_there and c.ended_at is null)
) d;

-- name: number
-- The versions cut into parts, all versions of a key in one of them.
create temporary table {numbered} as
select d.*, (max(d.place) over (partition by {d_key}) - 1) / {rows} as part
  from (select c.*, row_number() over (order by {c_key}) as place from {chain} c) d;

-- name: number_of_parts
-- How many parts there are.
select coalesce(max(n.part), 0)::int + 1 as parts from {numbered} n;

-- name: part
-- One part of the versions.
create temporary table {part} as select * from {numbered} where part = {number};

-- name: partitions_of_part
-- Parts of the table that a part of a rebuild changes; what it takes away is for the last one to say.
select array_agg(distinct d.partition) as partitions from (
    select {c_partition} as partition from {chain} c left join {target} t on {c_same_key}
     where c.is_there and c.ended_at is null
       and (t.unit is null or ({c_values}, c.extra, c.sent_at) is distinct from ({t_values}, t.extra, t.sent_at))
    union all
    select {t_partition} from {chain} c join {target} t on {c_same_key}
     where c.is_there and c.ended_at is null and ({c_values}, c.extra, c.sent_at) is distinct from ({t_values}, t.extra, t.sent_at)
) d;

-- name: of_whole
-- Every row of the units.
true;

-- name: of_part
-- Rows whose key is in the part.
exists (select 1 from {chain} p where {same});

-- name: drop_part
-- Dropped before the gate, so that the commit stays small.
drop table {part};

-- name: drop_numbered
-- The same, with the last part.
drop table {numbered};

-- name: end_by_parser
-- Values that the stored answers never gave, as this parser reads them: kept in the history as the older parser's.
insert into {history} ({columns}, unit, fetch_id, sent_at, parser_version, cycle_id, attempt, extra, ended_at, reason)
select {t_columns}, t.unit, t.fetch_id, t.sent_at, t.parser_version, t.cycle_id, t.attempt, t.extra, t.sent_at, 'parser'
  from {target} t
 where t.unit in (select u.unit from {units} u) and t.parser_version < %(parser_version)s and {t_of_part}
   and not exists (select 1 from {chain} c where {c_same_key} and c.is_there and c.sent_at = t.sent_at
                      and ({c_values}, c.extra) is not distinct from ({t_values}, t.extra))
on conflict do nothing;

-- name: drop_history
-- Versions that the stored answers do not make; what a parser once read otherwise stays, and so do those of a key that another
-- unit has now, which only both units together could tell.
delete from {history} h
 where h.unit in (select u.unit from {units} u) and h.reason <> 'parser' and {h_of_part}
   and not exists (select 1 from {chain} c where {h_same_key} and c.is_there and c.sent_at = h.sent_at and c.ended_at = h.ended_at
                      and c.reason = h.reason and ({c_values}, c.extra) is not distinct from ({h_values}, h.extra))
   and not exists (select 1 from {target} p where {p_same_h} and p.unit not in (select u.unit from {units} u));

-- name: hand_over
-- Where another unit gave the row that a newer version takes the place of: it was right until the first that differs. One that
-- was asked for after all of them never was: the upstream's own version says that the earlier ones go before it.
insert into {history} ({columns}, unit, fetch_id, sent_at, parser_version, cycle_id, attempt, extra, ended_at, reason)
select {t_columns}, t.unit, t.fetch_id, t.sent_at, t.parser_version, t.cycle_id, t.attempt, t.extra, e.at, 'revised'
  from {chain} c join {target} t on {c_same_key}
 cross join lateral (select min(d.sent_at) as at from {chain} d
                      where {d_same_t} and d.is_there and d.sent_at > t.sent_at
                        and ({d_values}, d.extra) is distinct from ({t_values}, t.extra)) e
 where c.is_there and c.ended_at is null and t.unit not in (select u.unit from {units} u)
   and ({c_order}) > ({t_order}) and ({c_values}, c.extra) is distinct from ({t_values}, t.extra) and e.at is not null
on conflict do nothing;

-- name: add_history
-- Versions that were once right, where the history lacks them; not where another unit's row said the same until then.
insert into {history} ({columns}, unit, fetch_id, sent_at, parser_version, cycle_id, attempt, extra, ended_at, reason)
select {c_columns}, c.unit, c.fetch_id, c.sent_at, %(parser_version)s, %(cycle)s, %(attempt)s, c.extra, c.ended_at, c.reason
  from {chain} c
 where c.is_there and c.ended_at is not null
   and not exists (select 1 from {history} h where {h_same_key} and h.reason <> 'parser'
                      and (h.sent_at = c.sent_at
                           or (h.ended_at = c.ended_at and ({h_values}, h.extra) is not distinct from ({c_values}, c.extra))))
on conflict do nothing;

-- name: withdraw
-- Rows that the newest answers do not give.
with gone as (
    delete from {target} t
     where t.unit in (select u.unit from {units} u)
       and not exists (select 1 from {chain} c where {c_same_key} and c.is_there and c.ended_at is null)
    returning 1
)
select count(*) as withdrawn from gone;

-- name: merge
-- Rows that are new or differ from the newest version, and only these; the row of another unit stays where it says the same.
with written as (
    insert into {target} as t ({columns}, unit, fetch_id, sent_at, parser_version, cycle_id, attempt, extra)
    select {c_columns}, c.unit, c.fetch_id, c.sent_at, %(parser_version)s, %(cycle)s, %(attempt)s, c.extra
      from {chain} c left join {target} t on {c_same_key}
     where c.is_there and c.ended_at is null
       and (t.unit is null or (({c_values}, c.extra, c.sent_at) is distinct from ({t_values}, t.extra, t.sent_at)
                               and (t.unit = c.unit or (({c_order}) > ({t_order})
                                                        and ({c_values}, c.extra) is distinct from ({t_values}, t.extra)))))
    on conflict ({key}) do update set {assignments}, unit = excluded.unit, fetch_id = excluded.fetch_id,
        sent_at = excluded.sent_at, parser_version = excluded.parser_version, cycle_id = excluded.cycle_id,
        attempt = excluded.attempt, extra = excluded.extra
    returning (xmax = 0) as inserted
)
select count(*) filter (where inserted) as new, count(*) filter (where not inserted) as changed from written;

-- name: count_unchanged
-- Rows that the newest answers give and that stay as they are.
select count(*) as unchanged from {chain} c join {target} t on {c_same_key}
 where c.is_there and c.ended_at is null and ({c_values}, c.extra, c.sent_at) is not distinct from ({t_values}, t.extra, t.sent_at);

-- name: drop_chain
-- Dropped before the gate, so that the commit stays small.
drop table {chain};

-- name: is_overtaking
-- Whether a row is of the greatest version of the upstream's that was shown so far; null where it is not there.
{s_version} >= max({s_version}) over (partition by {k_key}, a.unit order by a.n);

-- name: is_always_overtaking
-- The upstream numbers no versions: answers are ordered by when they were asked for.
true;
