-- name: unsaid
-- Incidents of which an audit has something to say: those that are open and that no silence covers, and those that are over
-- and whose issue does not say so yet; with what their issue says.
select i.*, s.title, s.body, s.ends_as, s.state as issue_state,
       exists (select 1 from ops.alerts a where a.incident_id = i.incident_id and a.alert_key like '%%/closed') as is_not_mended
  from ops.incidents i
  left join ops.issues s on s.incident_id = i.incident_id
 where i.incident_key <> %(own)s
   and case when i.closed_at is null
            then %(opens)s and (s.incident_id is not null or not exists (
                select 1 from ops.silences q
                 where q.ends_at > collect.clock()
                   and i.incident_key || '/' || i.incident_id
                       like replace(replace(replace(replace(q.pattern, '\', '\\'), '%%', '\%%'), '_', '\_'), '*', '%%')))
            else s.incident_id is not null and s.ends_as is null end
 order by i.incident_id;

-- name: want
-- What an incident's issue is to say from now on. One that is over and was never sent is not made any more.
insert into ops.issues as s (incident_id, title, body, ends_as, next_try_at, wanted_at)
values (%(incident)s, %(title)s, %(body)s, %(ends_as)s, collect.clock(), collect.clock())
on conflict (incident_id) do update
   set title = excluded.title, body = excluded.body, ends_as = excluded.ends_as, version = s.version + 1,
       wanted_at = case when s.told_version < s.version then s.wanted_at else collect.clock() end,
       state = case when s.state = 'wanted' and excluded.ends_as is not null then 'needless' else s.state end,
       told_version = case when s.state = 'wanted' and excluded.ends_as is not null then s.version + 1 else s.told_version end;

-- name: next
-- The oldest issue that GitHub lacks something of and whose time has come.
select * from ops.issues
 where told_version < version and state <> 'given_up' and next_try_at <= collect.clock()
 order by incident_id limit 1;

-- name: waiting
-- How many issues GitHub lacks something of, and since when the first does.
select count(*) as waiting, min(wanted_at) as since, collect.clock() as now
  from ops.issues where told_version < version and state <> 'given_up';

-- name: sending
-- Its making is about to be sent: whoever finds it so looks for it first, and not before an answer must have come.
update ops.issues
   set state = 'sending', repository = %(repository)s, first_sent_at = coalesce(first_sent_at, collect.clock()),
       attempts = attempts + 1, next_try_at = collect.clock() + interval '2 minutes'
 where incident_id = %(incident)s;

-- name: known
-- GitHub has it, and has confirmed a version of what it says.
update ops.issues
   set state = 'known', number = %(number)s, url = %(url)s, told_version = greatest(told_version, %(told)s),
       told_at = collect.clock(), attempts = 0, last_error = %(error)s, next_try_at = collect.clock()
 where incident_id = %(incident)s;

-- name: not_sent
-- It surely did not arrive, or changes nothing when it is sent again: again later, with growing gaps up to an hour.
update ops.issues
   set state = case when state = 'sending' and %(is_lost)s then 'sending' when state = 'sending' then 'wanted' else state end,
       last_error = %(error)s, attempts = attempts + case when state = 'sending' then 0 else 1 end,
       next_try_at = collect.clock() + greatest(make_interval(secs => %(wait)s), least(interval '1 minute' * power(2, least(attempts, 7) - 1), interval '1 hour'))
 where incident_id = %(incident)s;

-- name: give_up
-- GitHub takes nothing more of it.
update ops.issues set state = 'given_up', last_error = %(error)s where incident_id = %(incident)s;
