-- name: claim
-- Claim the next eligible cycle of a stream: a new token, one attempt more; what a slice reads of it, as each column costs.
select cycle_id, stream, mode, slot, run_id, run_date, window_start, due_at, session_date, kind, chunk, continuation_cursor,
       lease_token, lease_until, attempt, failed_attempts, list_page_count, fetched_count, new_count, changed_count,
       withdrawn_count, quarantined_count, detail_request_count, started_at, updated_at
  from collect.claim(%(stream)s, %(mode)s, %(run_id)s, %(owner)s, %(ttl)s);

-- name: recover
-- End the leases of a stream whose holder vanished.
select * from collect.recover(%(stream)s, %(limit)s);

-- name: renew
-- Prolong a lease that is not over.
select collect.renew(%(cycle)s, %(token)s, %(ttl)s) as lease_until;

-- name: guard
-- The proof of ownership that a write commits with: locks the cycle's row, and gives no row where the lease is over.
select cycle_id from collect.cycles
 where cycle_id = %(cycle)s and lease_token = %(token)s and cycle_status = 'RUNNING' and lease_until > collect.clock()
   for no key update;

-- name: settle
-- Write a cycle's state, cursor and counters under its token, after the gate.
select collect.settle(%(cycle)s, %(token)s, %(status)s, %(facts)s) as settled_at;

-- name: open_window
-- Open a poll window, closing an older one that still waits.
select collect.open_window(%(stream)s, %(slot)s, %(run_date)s, %(start)s, %(due_at)s, %(session_date)s, %(kind)s) as cycle_id;

-- name: refused
-- Count a write that came after its lease was over.
insert into collect.lease_events (at, kind, cycle_id, stream, attempt, holder, words)
values (collect.clock(), 'refused', %(cycle)s, %(stream)s, %(attempt)s, %(holder)s, %(words)s);
