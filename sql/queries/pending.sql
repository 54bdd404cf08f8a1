-- name: due
-- Keys whose time has come, but for days that an operator has called closed meanwhile: first what was never asked for.
select p.key, p.why, p.attempts from collect.pending p
 where p.stream = %(stream)s and p.next_try_at <= collect.clock()
   and not exists (select 1 from collect.streams s join collect.calendar_exceptions e on e.calendar = s.calendar
                    where s.stream = p.stream and e.day = p.session_date and e.state = 'closed')
 order by why = 'recheck', why <> 'discovered', session_date desc nulls last, key
 limit %(limit)s;

-- name: waiting
-- Those of some keys that are kept for another time, or were given up.
select key from collect.pending
 where stream = %(stream)s and key = any(%(keys)s) and (next_try_at is null or next_try_at > collect.clock());

-- name: given_up
-- Those of some keys that were given up.
select key from collect.pending where stream = %(stream)s and key = any(%(keys)s) and given_up_at is not null;

-- name: lock
-- The rows that a transaction is going to change, in the order in which everybody locks them.
select 1 from collect.pending where stream = %(stream)s and key = any(%(keys)s) order by key for update;

-- name: done
-- Keys whose answer is held or explained.
delete from collect.pending
 where stream = %(stream)s and key = any(%(keys)s) and not (%(keep_rechecks)s and why = 'recheck');

-- name: answered
-- A key whose answer a crash had left behind and that is applied now; one that became pending after it was sent stays, and so
-- does one whose answer could not be read.
delete from collect.pending
 where stream = %(stream)s and key = %(key)s and updated_at <= %(sent_at)s
   and not exists (select 1 from collect.quarantine q
                    where q.stream = %(stream)s and q.unit = %(unit)s and q.scope = 'unit' and q.state = 'open');

-- name: again
-- A key to be asked for again, or given up once its patience is over.
insert into collect.pending as p (stream, key, why, session_date, attempts, next_try_at, give_up_at, last_error, cycle_id, created_at, updated_at)
values (%(stream)s, %(key)s, %(why)s, %(session_date)s, case when %(at)s::timestamptz is null then 1 else 0 end,
        coalesce(%(at)s::timestamptz, collect.clock() + collect.pending_gap(%(why)s, 1)),
        case when %(why)s <> 'recheck' then collect.clock() + collect.pending_patience(%(why)s) end,
        %(error)s, %(cycle)s, collect.clock(), collect.clock())
on conflict (stream, key) do update
   set why = excluded.why,
       attempts = case when p.why = excluded.why then p.attempts + 1 else excluded.attempts end,
       give_up_at = case when p.why = excluded.why then p.give_up_at else excluded.give_up_at end,
       given_up_at = case when p.why = excluded.why and p.give_up_at <= collect.clock() then coalesce(p.given_up_at, collect.clock()) end,
       next_try_at = case when p.why = excluded.why and p.give_up_at <= collect.clock() then null
                          else coalesce(%(at)s::timestamptz, collect.clock()
                               + collect.pending_gap(excluded.why, case when p.why = excluded.why then p.attempts + 1 else 1 end)) end,
       last_error = excluded.last_error, cycle_id = excluded.cycle_id, updated_at = excluded.updated_at
 where not %(only_if_absent)s
returning attempts, created_at, given_up_at is not null as given_up;

-- name: left_out
-- Parts that an upstream refused and that are not kept yet; what another transaction is keeping is left to it.
select fetch_id, left_out ->> 'key' as key, left_out ->> 'reason' as reason, session_date from collect.fetches
 where stream = %(stream)s and left_out is not null and applied_at is null
 order by fetch_id
   for update skip locked;

-- name: left_out_kept
-- Refusals whose part is pending from now on.
update collect.fetches set applied_at = collect.clock(), applied_by = %(cycle)s where fetch_id = any(%(fetches)s);

-- name: outdated
-- Things that were had before an instant and not asked for again since: they are asked for again.
insert into collect.pending as p (stream, key, why, session_date, attempts, next_try_at, give_up_at, cycle_id, created_at, updated_at)
select distinct on (o.key) %(stream)s, o.key, 'discovered', o.session_date, 0, collect.clock(),
       collect.clock() + collect.pending_patience('discovered'), %(cycle)s, collect.clock(), collect.clock()
  from unnest(%(keys)s::text[], %(sessions)s::date[], %(units)s::text[], %(covers)s::jsonb[], %(since)s::timestamptz[])
       as o (key, session_date, unit, covers, since)
 cross join lateral (
    select max(f.sent_at) as last_had from collect.fetches f
     where f.stream = %(stream)s and f.unit = o.unit and f.head_fetch is null and f.applied_at is not null and f.left_out is null
       and exists (select 1 from jsonb_array_elements_text(o.covers) c where f.request_key ^@ c)) had
 where had.last_had < o.since
 order by o.key
on conflict (stream, key) do nothing;
