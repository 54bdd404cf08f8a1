-- name: all
-- What is measured, a row for each number: few rows of each are read, by an index where the table grows.
with at as (select %(now)s::timestamptz as now, (%(now)s::timestamptz at time zone 'Asia/Seoul')::date as today)
select 'daybook_windows' as name, jsonb_build_object('stream', c.stream, 'state', c.cycle_status) as labels, count(*)::numeric as value
  from at join collect.cycles c on c.run_date = at.today group by c.stream, c.cycle_status
union all
select 'daybook_build_info', jsonb_build_object('version', %(version)s::text, 'schema', v.version_num), 1 from schema_version v
union all
select 'daybook_lag_days', jsonb_build_object('stream', s.stream), (at.today - k.session_date)::numeric
  from at cross join collect.streams s join collect.checkpoints k on k.stream = s.stream where s.active and k.session_date is not null
union all
select 'daybook_success_age_seconds', jsonb_build_object('stream', s.stream), extract(epoch from at.now - g.finished_at)
  from at cross join collect.streams s
  cross join lateral (select g.finished_at from collect.cycles g
                       where g.stream = s.stream and g.window_start is not null and g.cycle_status = 'SUCCESS'
                       order by g.window_start desc limit 1) g
 where s.active
union all
select 'daybook_lease_losses', jsonb_build_object('kind', k.kind), count(e.event_id)
  from at cross join (values ('expired'), ('refused')) k (kind)
  left join collect.lease_events e on e.kind = k.kind and e.at >= at.now - interval '24 hours' group by k.kind
union all
select 'daybook_host_wait_seconds', jsonb_build_object('host_group', h.host_group),
       greatest(extract(epoch from greatest(h.next_allowed_at, h.blocked_until) - at.now), 0)
  from at cross join collect.host_groups h
union all
select 'daybook_host_blocked', jsonb_build_object('host_group', h.host_group), coalesce(h.blocked_until > at.now, false)::int
  from at cross join collect.host_groups h
union all
select 'daybook_quota_left', jsonb_build_object('host_group', h.host_group, 'key', u.key_fingerprint), h.quota - u.used
  from at cross join collect.host_groups h
  join collect.key_usage u on u.host_group = h.host_group and u.usage_date = (at.now at time zone h.quota_zone)::date
 where h.quota is not null
union all
select 'daybook_outbox_age_seconds', jsonb_build_object('outbox', 'files'),
       coalesce(extract(epoch from at.now - min(f.created_at)), 0)
  from at left join publish.files f on f.state = 'waiting' group by at.now
union all
select 'daybook_outbox_age_seconds', jsonb_build_object('outbox', 'alerts'),
       coalesce(extract(epoch from at.now - min(a.created_at)), 0)
  from at left join ops.alerts a on a.sent_at is null and a.silenced_at is null and a.refused_at is null group by at.now
union all
select 'daybook_incidents', jsonb_build_object('severity', s.severity), count(i.incident_id)
  from (values ('warning'), ('error'), ('critical')) s (severity)
  left join ops.incidents i on i.severity = s.severity and i.closed_at is null group by s.severity
union all
select 'daybook_quarantined', jsonb_build_object('stream', q.stream), count(*)
  from collect.quarantine q where q.state = 'open' group by q.stream
order by 1, 2;
