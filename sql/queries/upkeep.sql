-- name: publication_behind
-- Since when a table is ahead of its files, or a file waits to be sent: the oldest that is older than the grace; null where
-- nothing is; where that is wanted, also where somebody publishes right now, and while publication is put off.
select min(since) as since
  from (select b.marked_at as since from publish.behind b where b.table_name = any(%(tables)s)
        union all
        select f.created_at from publish.files f where f.state = 'waiting') as behind
 where since < collect.clock() - %(grace)s::interval
   and not (%(patient)s and exists (select 1 from publish.leases l
                    where l.name = %(lease)s and (l.lease_until > collect.clock() or l.put_off_until > collect.clock())));

-- name: holders
-- Who holds the chunks of a run that are being worked on, and until when.
select lease_owner, lease_until from collect.cycles
 where run_id = %(run_id)s and stream = %(stream)s and cycle_status = 'RUNNING'
 order by cycle_id;
