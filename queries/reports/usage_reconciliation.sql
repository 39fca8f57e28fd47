-- Why tools disagree on token counts
-- The same transcripts counted in five ways: every line, once in each file, once without subagents,
-- once without the subagents that left no file, and once, which is what all other numbers here are.
-- usage_duplicates lists what is in between.
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
