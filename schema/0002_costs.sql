-- What responses cost.
--
-- A price is a row of its own, so that a user can change it, and a cost is computed when it is
-- asked for: change a price, and every cost follows. Money is counted in integers, in millionths
-- of a dollar, because sums of fractions drift.

create table prices ( -- Price of a model from a day on; one you change or add is never overwritten
    id integer primary key,
    model text not null,                -- model, as responses name it
    valid_from text not null default '', -- first day (UTC, YYYY-MM-DD) of this price; '': always was
    above_tokens integer not null default 0, -- the price of requests with more input than this, cached input included; 0: of all
    input integer,                      -- millionths of a dollar for a million tokens, as all below
    output integer,                     -- output
    cache_read integer,                 -- input read from the cache
    cache_write_5m integer,             -- input written to the cache for five minutes
    cache_write_1h integer,             -- input written to the cache for an hour
    web_search integer,                 -- millionths of a dollar for a thousand searches
    origin text not null default 'user', -- user, or the version of genai-prices that it was taken from
    unique (model, valid_from, above_tokens)
) strict;

-- Whoever changes a price makes it theirs.
create trigger prices_edited after update of model, valid_from, above_tokens, input, output,
    cache_read, cache_write_5m, cache_write_1h, web_search on prices
when new.origin = old.origin and new.origin <> 'user' begin
    update prices set origin = 'user' where id = new.id;
end;
