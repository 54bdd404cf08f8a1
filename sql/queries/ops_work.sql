-- name: job_runs
-- A page of job runs, the newest first.
select * from collect.job_runs r
 where (%(mode)s::text is null or r.mode = %(mode)s) and (%(is_open)s::boolean is null or (r.outcome is null) = %(is_open)s)
   and (%(before)s::timestamptz is null or (r.created_at, r.run_id) < (%(before)s, %(before_id)s))
 order by r.created_at desc, r.run_id desc limit %(limit)s;

-- name: pace
-- How many chunks of a run ended in the last hour, and since when the first of them was worked on.
select count(*) as ended, min(started_at) as first_started_at, max(finished_at) as last_ended_at
  from collect.cycles where run_id = %(run_id)s and finished_at >= %(now)s::timestamptz - interval '1 hour';

-- name: quarantine
-- A page of quarantine entries, the newest first.
select q.* from collect.quarantine q
 where (%(stream)s::text is null or q.stream = %(stream)s) and (%(state)s::text is null or q.state = %(state)s)
   and (%(before)s::bigint is null or q.quarantine_id < %(before)s)
 order by q.quarantine_id desc limit %(limit)s;

-- name: quarantine_one
-- One quarantine entry.
select q.* from collect.quarantine q where q.quarantine_id = %(id)s;

-- name: pending
-- A page of pending keys, by stream and key.
select p.* from collect.pending p
 where (%(stream)s::text is null or p.stream = %(stream)s) and (%(why)s::text is null or p.why = %(why)s)
   and (%(given_up)s::boolean is null or (p.given_up_at is not null) = %(given_up)s)
   and (%(after)s::text is null or (p.stream, p.key) > (%(after_stream)s::text, %(after)s))
 order by p.stream, p.key limit %(limit)s;

-- name: exceptions
-- A page of days on which a calendar is known, or thought, to be wrong, the newest day first.
select e.* from collect.calendar_exceptions e
 where (%(calendar)s::text is null or e.calendar = %(calendar)s) and (%(state)s::text is null or e.state = %(state)s)
   and (%(before)s::date is null or (e.day, e.calendar) < (%(before)s, %(before_calendar)s))
 order by e.day desc, e.calendar desc limit %(limit)s;

-- name: exception
-- One day of a calendar.
select e.* from collect.calendar_exceptions e where e.calendar = %(calendar)s and e.day = %(day)s;

-- name: alerts
-- A page of alerts, the newest first.
select a.* from ops.alerts a
 where (%(severity)s::text is null or a.severity = %(severity)s)
   and (%(is_sent)s::boolean is null or (a.sent_at is not null) = %(is_sent)s)
   and (%(is_put_aside)s::boolean is null or (a.refused_at is not null and a.settled_by is null) = %(is_put_aside)s)
   and (%(before)s::bigint is null or a.alert_id < %(before)s)
 order by a.alert_id desc limit %(limit)s;

-- name: alert
-- One alert.
select a.* from ops.alerts a where a.alert_id = %(id)s;

-- name: silences
-- A page of silences, or one of them, the newest first, with how many messages each has kept back.
select s.*, s.ends_at > collect.clock() as holds, (select count(*) from ops.alerts a where a.silence_id = s.silence_id) as kept_back
  from ops.silences s
 where (%(holds)s::boolean is null or (s.ends_at > collect.clock()) = %(holds)s)
   and (%(before)s::bigint is null or s.silence_id < %(before)s) and (%(id)s::bigint is null or s.silence_id = %(id)s)
 order by s.silence_id desc limit %(limit)s;

-- name: incidents
-- A page of incidents, the newest first.
select i.*, s.url as issue_url from ops.incidents i left join ops.issues s using (incident_id)
 where (%(stream)s::text is null or i.stream = %(stream)s)
   and (%(is_open)s::boolean is null or (i.closed_at is null) = %(is_open)s)
   and (%(before)s::bigint is null or i.incident_id < %(before)s)
 order by incident_id desc limit %(limit)s;

-- name: open_incidents
-- What is wrong now, the worst first.
select i.*, s.url as issue_url from ops.incidents i left join ops.issues s using (incident_id) where i.closed_at is null
 order by array_position(array['critical', 'error', 'warning'], i.severity), i.opened_at, i.incident_id;
