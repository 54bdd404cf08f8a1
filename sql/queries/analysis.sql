-- name: permit
-- How many jobs may be under way at once, and which filings are analysed by themselves.
select dartbrief.permit(%(jobs)s, %(newest_days)s);

-- name: ask_for
-- Put filings received in a range into the queue, as an operator wishes.
select dartbrief.ask_for(%(start)s, %(end)s) as count;

-- name: read_again
-- Put analyses made with other prompts into the queue.
select dartbrief.read_again(%(start)s, %(end)s, %(version)s) as count;

-- name: recover
-- Put the jobs of workers that vanished back.
select dartbrief.recover() as count;

-- name: claim
-- The next filing and a slot for it; no row at the cap, while the model is away, or where nothing waits.
select c.*, d.report_name, d.corp_name from dartbrief.claim() c left join dartbrief.disclosures d using (rcept_no);

-- name: begin_submit
-- Renew the claim right before the model is asked; the answer's name, null where the claim is over.
select dartbrief.begin_submit(%(rcept_no)s, %(token)s, %(own_id)s, %(kind)s, %(prompt)s, %(length)s, %(reading)s,
                              %(fetches)s, %(for)s) as name;

-- name: submitted
-- The model has it.
select dartbrief.submitted(%(rcept_no)s, %(token)s, %(response_id)s) as hit;

-- name: complete
-- Keep an answer that was found good.
select dartbrief.complete(%(rcept_no)s, %(token)s, %(response_id)s, %(summary)s, %(points)s, %(sentiment)s,
                          %(model)s) as hit;

-- name: fail
-- Count a failure.
select dartbrief.fail(%(rcept_no)s, %(token)s, %(error)s, %(for_good)s) as hit;

-- name: await_body
-- There is no text yet.
select dartbrief.await_body(%(rcept_no)s, %(token)s, %(is_absent)s, %(error)s) as status;

-- name: put_back
-- Give a job back without counting anything.
select dartbrief.put_back(%(rcept_no)s, %(token)s, %(wait)s, %(error)s, %(lost)s) as hit;

-- name: lose
-- The model forgot a job.
select dartbrief.lose(%(rcept_no)s, %(token)s, %(response_id)s, %(submitted_at)s, %(most)s) as status;

-- name: model_away
-- The model does not answer; since when.
select dartbrief.model_away(%(pause)s) as since;

-- name: model_back
-- The model answers; since when it was away.
select dartbrief.model_back() as since;

-- name: in_flight
-- What the model was given, after a receipt number, so many; when and how long ago, where it is known to have it.
select a.rcept_no, a.claim_token, a.llm_response_id, a.submitted_at, collect.clock() - a.submitted_at as age
  from dartbrief.analysis_cache a
 where a.status in ('PROCESSING', 'BODY_PROCESSING') and a.llm_response_id is not null and a.rcept_no > %(after)s
 order by a.rcept_no limit %(most)s;

-- name: standing
-- How much waits and may be tried now, is claimed, and is with the model.
select (select count(*) from (select 1 from dartbrief.analysis_cache a
                               where a.status in ('PENDING', 'BODY_PENDING', 'FAILED') and a.retry_count < 3
                                 and not a.is_permanent and coalesce(a.next_try_at, a.updated_at) <= collect.clock()
                               limit 1000) w) as waiting,
       (select count(*) from dartbrief.analysis_cache a
         where a.status in ('PROCESSING', 'BODY_PROCESSING') and a.llm_response_id is null
           and coalesce(a.claimed_until, a.updated_at + interval '5 minutes') > collect.clock()) as claimed,
       (select count(*) from dartbrief.analysis_cache a
         where a.status in ('PROCESSING', 'BODY_PROCESSING') and a.llm_response_id is null
           and coalesce(a.claimed_until, a.updated_at + interval '5 minutes') <= collect.clock()) as stale,
       (select count(*) from dartbrief.analysis_cache a
         where a.status in ('PROCESSING', 'BODY_PROCESSING') and a.llm_response_id is not null) as in_flight,
       (select count(*) from dartbrief.analysis_slots s where s.is_open and s.rcept_no is null
           and not exists (select 1 from dartbrief.analysis_control c where c.paused_until > collect.clock())) as free,
       (select c.away_since from dartbrief.analysis_control c) as away_since;

-- name: stored_body
-- The stored answers that hold a filing's text, in the order of asking.
select f.fetch_id, f.request_key, f.unit, f.page, f.http_status, f.headers, f.sent_at, f.sha256, f.about
  from collect.fetches f where f.fetch_id = any(%(fetches)s) and f.sha256 is not null
 order by array_position(%(fetches)s::bigint[], f.fetch_id);
