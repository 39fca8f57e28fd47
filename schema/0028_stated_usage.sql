create table stated_usage ( -- What an agent states of its own use at a line: sums of its session so far
    id integer primary key,
    model text not null,                -- model as the agent names it; '': all models
    timestamp text,                     -- of the line
    input_tokens integer,               -- tokens that were not cached
    output_tokens integer,              -- output tokens
    cache_read_tokens integer,          -- tokens read from the cache
    cache_write_tokens integer,         -- tokens written to the cache
    cost_usd real,                      -- cost in dollars
    is_lower_bound integer not null,    -- 1: the agent knows no price for some of it
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,
    byte_length integer not null,
    unique (file_id, byte_offset, model)
) strict;
