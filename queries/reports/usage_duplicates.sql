-- Responses recorded more than once
-- Responses that several lines or files repeat, with the tokens that a sum of all lines would count
-- too often: they explain the differences in usage_reconciliation. The largest first.
-- Group: cost
with repeated as materialized (
    select
        r.id,
        count(*) as files,
        sum(u.line_count) as lines,
        sum(u.all_output_tokens) as all_output_tokens,
        sum(u.all_input_tokens) as all_input_tokens,
        sum(u.all_cache_read_tokens) as all_cache_read_tokens
    from responses r
    join usage u on u.response_key = coalesce(r.api_message_id, r.response_key)
    group by r.id
    having count(*) > 1 or sum(u.line_count) > 1
)
select
    r.model,
    r.timestamp,
    s.title as session,
    d.files,
    d.lines,
    r.output_tokens,
    d.all_output_tokens - r.output_tokens as extra_output_tokens,
    d.all_input_tokens - r.input_tokens as extra_input_tokens,
    d.all_cache_read_tokens - r.cache_read_tokens as extra_cache_read_tokens,
    r.partial,
    r.partial as is_lower_bound,
    r.api_message_id,
    s.session_key
from repeated d
join responses r on r.id = d.id
left join sessions s on s.id = r.session_id
order by
    d.all_output_tokens - r.output_tokens
        + d.all_input_tokens - r.input_tokens
        + d.all_cache_read_tokens - r.cache_read_tokens desc,
    r.id
limit cast(coalesce(nullif(:limit, ''), '50') as integer)
