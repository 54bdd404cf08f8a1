-- name: create
-- A staging table like the target, without its constraints, so that bad rows come in and can be named.
create temporary table {stage} as
select {columns}, unit, fetch_id, sent_at, extra, null::date as unit_session, null::integer as position from {target} with no data;

-- name: create_units
-- The askings that are being applied, with those that gave no rows too.
create temporary table {units} (
    unit text not null, fetch_id bigint not null, sent_at timestamptz(6) not null, session_date date, whole boolean not null
);

-- name: copy
-- Rows as they were read.
copy {stage} ({columns}, unit, fetch_id, sent_at, extra, unit_session, position) from stdin with (format binary);

-- name: copy_units
-- Askings as they were read.
copy {units} (unit, fetch_id, sent_at, session_date, whole) from stdin with (format binary);

-- name: part
-- One part of the rows of an asking.
create temporary table {part} as select * from {stage} where position > {after} and position <= {upto};

-- name: drop_part
-- Dropped before the gate, so that the commit stays small.
drop table {part};

-- name: take_for_parts
-- Askings that are not believed to give all that there is.
update {units} set whole = false where fetch_id = any(%(fetches)s);

-- name: missing
-- How many rows there are, and how many have nothing in a column.
select count(*) as rows, count(*) - count({column}) as missing from {stage};

-- name: rule_not_null
-- A column that must have a value has none.
s.{column} is null

-- name: rule_not_blank
-- A text with nothing in it.
coalesce(btrim(s.{column}), '') = ''

-- name: rule_not_negative
-- A number below zero.
s.{column} < 0

-- name: rule_at_most
-- The first number is greater than the second.
s.{column} > s.{other}

-- name: rule_in_unit
-- The day is another than the unit's.
s.{column} is distinct from s.unit_session

-- name: rule_repeated
-- The key stands more than once in one asking.
(s.fetch_id, {key_of_s}) in (select r.fetch_id, {key_of_r} from {stage} r group by r.fetch_id, {key_of_r} having count(*) > 1)

-- name: is_broken
-- Whether any row breaks any rule, or a key stands more than once: mostly none does, and one look at the rows is enough.
select exists (select 1 from {stage} s where {condition}) as is_broken,
       exists (select 1 from {stage} s group by {once} having count(*) > 1) as is_repeated;

-- name: keep_greatest
-- Where several units give one key, the row of the greatest (version of the upstream, sent at) stays.
delete from {stage} s
 using (select r.ctid as place, row_number() over (partition by {key_of_r} order by ({r_order}, r.fetch_id) desc) as n
          from {stage} r) d
 where s.ctid = d.place and d.n > 1;

-- name: reject
-- Rows that break a rule go to quarantine, with the rule and the row as it was read; once, whatever became of the entry.
with broken as (
    delete from {stage} s
     where ({condition})
       and not exists (select 1 from collect.quarantine a
                        where a.stream = %(stream)s and a.unit = s.unit and a.fetch_id = s.fetch_id
                          and a.position = 'row ' || s.position and a.rule = %(rule)s and a.state = 'accepted'
                          and a.content = left((to_jsonb(s) - array['unit', 'fetch_id', 'sent_at', 'position', 'unit_session'])::text, 2000))
    returning s.*
),
     spoiled as (update {units} u set whole = false where u.fetch_id in (select b.fetch_id from broken b)),
     put as (
    insert into collect.quarantine (stream, unit, fetch_id, cycle_id, scope, position, rule, reason, content, parser_version, created_at)
    select %(stream)s, b.unit, b.fetch_id, %(cycle)s, 'row', 'row ' || b.position, %(rule)s, %(reason)s,
           left((to_jsonb(b) - array['unit', 'fetch_id', 'sent_at', 'position', 'unit_session'])::text, 2000),
           %(parser_version)s, collect.clock()
      from broken b
     where not %(is_copy)s
       and not exists (select 1 from collect.quarantine q
                        where q.stream = %(stream)s and q.unit = b.unit and q.fetch_id = b.fetch_id and q.scope = 'row'
                          and q.position = 'row ' || b.position and q.rule = %(rule)s and q.parser_version = %(parser_version)s)
     order by b.fetch_id, b.position
    on conflict do nothing
    returning 1
)
select (select count(*) from put)::int as put, (select array_agg(distinct b.fetch_id) from broken b) as fetches;

-- name: analyze_units
-- Few rows in a new table look like a thousand to the planner, unless it is told.
analyze {units};

-- name: analyze
-- Deriving versions joins the stage with itself: the planner must know what is in it, not only how large it is.
analyze {stage};

-- name: drop
-- Dropped before the gate, so that the commit stays small.
drop table {stage}, {units};
