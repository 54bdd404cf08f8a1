-- name: put
-- A unit or row that could not be read, or broke a rule.
insert into collect.quarantine (stream, unit, fetch_id, cycle_id, scope, position, rule, reason, content, parser_version, created_at)
values (%(stream)s, %(unit)s, %(fetch)s, %(cycle)s, %(scope)s, %(position)s, %(rule)s, %(reason)s, %(content)s,
        %(parser_version)s, collect.clock())
on conflict do nothing;

-- name: resolve_by_reading
-- What a newer answer or a newer parser reads without objection resolves by itself.
update collect.quarantine q
   set state = 'resolved', resolved_by = 'cycle ' || %(cycle)s, resolved_why = %(why)s, resolved_at = collect.clock()
 where q.stream = %(stream)s and q.unit = any(%(units)s) and q.state = 'open'
   and (q.fetch_id, q.parser_version) < (%(fetch)s, %(parser_version)s);
