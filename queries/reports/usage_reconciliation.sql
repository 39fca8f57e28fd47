-- Why tools disagree on token counts
-- The same transcripts of each agent counted in five ways: every line; each response once per file;
-- each response once, without subagents; once, without subagents that have no file; and once, as in
-- all other reports. Then the conversations whose usage the agent states itself: as counted, and as
-- stated. usage_duplicates lists the differences.
-- Group: cost
select
    source,
    counting,
    counted,
    input_tokens,
    output_tokens,
    cache_read_tokens,
    cache_write_tokens,
    cost_usd,
    partial,
    unpriced,
    iif(partial + coalesce(unpriced, 0) > 0, 1, 0) as is_lower_bound,
    explanation
from usage_reconciliation
where coalesce(:source, '') = '' or source = :source
order by
    source,
    case counting
        when 'every line' then 1
        when 'once in each file' then 2
        when 'once, without subagents' then 3
        when 'once, without agents that have no file' then 4
        when 'once' then 5
        when 'once, where the agent states it' then 6
        else 7
    end
