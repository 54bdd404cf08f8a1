-- name: publication_behind
-- Since when a release lags behind its table, or a file waits to be sent: the oldest of them that is older than the grace.
select min(since) as since
  from (select s.marked_at as since
          from publish.stale s
          join unnest(%(releases)s::text[], %(tables)s::text[]) as r (release, table_name) using (table_name)
          left join publish.built b on b.release = r.release and b.partition = s.partition
         where s.version > coalesce(b.version, 0)
        union all
        select f.created_at from publish.files f where f.state = 'waiting') as behind
 where since < collect.clock() - %(grace)s::interval
   and not exists (select 1 from publish.leases l
                    where l.name = %(lease)s and (l.lease_until > collect.clock() or l.put_off_until > collect.clock()));
