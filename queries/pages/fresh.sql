-- How fresh the index is
-- When the last sync ended, whether it read all that there was, and how many records could not be
-- parsed.
select
    (select max(coalesce(finished_at, started_at)) from sync_runs) as synced_at,
    exists (
        select 1
        from (
            select finished_at, error
            from sync_runs
            order by id desc
            limit 1
        ) last
        where last.finished_at is not null and last.error is null
    ) as is_complete,
    (select count(*) from issues) as issues
