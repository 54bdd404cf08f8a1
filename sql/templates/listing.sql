-- name: see
-- Items that the staged rows show, by the answers that this cycle asked for; a row whose key has a gap names none.
insert into collect.seen_items (cycle_id, item_key, seen_at)
select %(cycle)s, x.item_key, max(x.sent_at)
  from (select concat_ws('/', {s_key}) as item_key, s.sent_at from {stage} s join collect.fetches f on f.fetch_id = s.fetch_id
         where f.cycle_id = %(cycle)s and ({s_key}) is not null) x
 group by x.item_key order by x.item_key
on conflict do nothing;

-- name: doubts
-- What a source's view of doubts says of its streams.
select d.stream, d.says from {view} d order by d.stream, d.key;
