-- name: open
-- Something is wrong: open its incident, or see it again; whether it was told.
select ops.open_incident(%(key)s, %(severity)s, %(text)s, %(stream)s, %(alert_key)s, %(again)s) as told;

-- name: close
-- Some incidents are over: end those that are open and tell so; how many.
select ops.close_incidents(%(keys)s, %(text)s, %(mended)s) as closed;

-- name: listed
-- Incidents that are open, or have ended since an instant: the worst of what lasts first, then the newest.
select i.*, s.url as issue_url from ops.incidents i left join ops.issues s using (incident_id)
 where i.closed_at is null or i.closed_at >= coalesce(%(since)s::timestamptz, 'infinity')
 order by i.closed_at is not null, array_position(array['critical', 'error', 'warning'], i.severity), i.opened_at desc, incident_id;

-- name: put_aside
-- What a cycle has put to quarantine and is still open there, by rule.
select q.rule, q.scope, count(*) as entries, count(distinct q.unit) as units, min(q.unit) as unit,
       (array_agg(q.reason order by q.quarantine_id))[1] as reason
  from collect.quarantine q where q.cycle_id = %(cycle)s and q.state = 'open' and q.rule <> all(%(doubted)s)
 group by q.rule, q.scope order by q.rule, q.scope;
