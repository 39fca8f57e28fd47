-- Output tokens for each byte that a model writes
-- Of the complete responses of each model: their output tokens, and the length of what they wrote.
select
    model,
    count(*) as responses,
    sum(output_tokens) as output_tokens,
    sum(written_bytes) as written_bytes
from responses
where partial = 0 and written_bytes > 0
group by model
