-- Why tools disagree on token counts
-- The same transcripts counted in five ways: every line; each response once per file; each response
-- once, without subagents; once, without subagents that have no file; and once, as in all other
-- reports. usage_duplicates lists the differences.
-- Group: cost
select
    counting,
    counted,
    input_tokens,
    output_tokens,
    cache_read_tokens,
    cache_write_tokens,
    explanation
from usage_reconciliation
