-- name: schemas
-- The schemas of the warehouse with what they are for.
select n.nspname as schema, obj_description(n.oid, 'pg_namespace') as comment
  from pg_namespace n
 where n.nspname in ('collect', 'market', 'filings', 'dartbrief', 'publish', 'ops')
 order by n.nspname;

-- name: relations
-- Tables and views with their comments and keys; parts of partitioned tables are left out, as are a migration tool's own.
select n.nspname as schema, c.relname as relation, c.relkind::text as kind, obj_description(c.oid, 'pg_class') as comment,
       coalesce((select array_agg(a.attname::text order by u.place)
                   from pg_constraint k cross join unnest(k.conkey) with ordinality as u (number, place)
                   join pg_attribute a on a.attrelid = k.conrelid and a.attnum = u.number
                  where k.conrelid = c.oid and k.contype = 'p'), '{}') as key_columns
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
 where c.relkind in ('r', 'p', 'v', 'm') and not c.relispartition
   and n.nspname in ('collect', 'market', 'filings', 'dartbrief', 'publish', 'ops')
 order by n.nspname, c.relname collate "C";

-- name: columns
-- Columns of these with type, comment, and whether they are never null.
select n.nspname as schema, c.relname as relation, a.attname as name, format_type(a.atttypid, a.atttypmod) as type,
       a.attnotnull as required, col_description(c.oid, a.attnum) as comment
  from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
 where a.attnum > 0 and not a.attisdropped and c.relkind in ('r', 'p', 'v', 'm') and not c.relispartition
   and n.nspname in ('collect', 'market', 'filings', 'dartbrief', 'publish', 'ops')
 order by n.nspname, c.relname collate "C", a.attnum;

-- name: functions
-- Functions that somebody may call: what a trigger calls is left out.
select n.nspname as schema, p.proname as name, pg_get_function_identity_arguments(p.oid) as arguments,
       obj_description(p.oid, 'pg_proc') as comment
  from pg_proc p join pg_namespace n on n.oid = p.pronamespace
 where n.nspname in ('collect', 'market', 'filings', 'dartbrief', 'publish', 'ops')
   and p.prorettype <> 'trigger'::regtype
 order by n.nspname, p.proname collate "C", 3;
