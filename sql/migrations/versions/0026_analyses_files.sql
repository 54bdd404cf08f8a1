-- 0026 analyses_files: what files of analyses are read from, and which months of receipt changed. Expand-only.
-- Roll-back note: the view holds nothing; the trigger may be dropped once no release is made from analyses.

create view publish.analyses as
    select a.rcept_no, d.rcept_dt as rcept_date, d.corp_code, d.corp_name, d.stock_code, d.report_name, a.kind, a.sentiment, a.summary,
           a.key_points_json as key_points, a.model, a.prompt_version, a.completed_at, d.fetch_id, a.completed_at as sent_at
      from dartbrief.analysis_cache a join dartbrief.disclosures d on d.rcept_no = a.rcept_no
     where a.summary is not null and a.completed_at is not null;
comment on view publish.analyses is 'What files of analyses are read from: those that readers see, with their filing';

create function publish.mark_analyses() returns trigger language plpgsql volatile set search_path = publish, pg_temp as $$
begin
    -- A claim or a failed try changes nothing that a file holds.
    insert into publish.stale as p (table_name, partition, marked_at)
    select 'dartbrief.analysis_cache', c.month, collect.clock()
      from (select distinct left(n.rcept_no, 4) || '-' || substr(n.rcept_no, 5, 2) as month
              from is_now n join was b on b.rcept_no = n.rcept_no
             where (n.summary, n.key_points_json, n.sentiment, n.model, n.prompt_version)
                   is distinct from (b.summary, b.key_points_json, b.sentiment, b.model, b.prompt_version)
               and n.rcept_no ~ '^\d{4}(0[1-9]|1[0-2])\d{8}$') c
     order by c.month
    on conflict (table_name, partition) do update set version = p.version + 1, marked_at = excluded.marked_at;
    return null;
end $$;
comment on function publish.mark_analyses() is 'Trigger: the months of receipt of which an analysis changed, for files that are made of them';

create trigger by_month_of_receipt after update on dartbrief.analysis_cache referencing old table as was new table as is_now
    for each statement execute function publish.mark_analyses();
