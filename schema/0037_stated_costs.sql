-- Has a session responses whose cost an application stated? Few have, and an append asks it. With the
-- cost in it, the index is taken instead of the longer one that begins in the same way.
create index responses_stated on responses (session_id, stated_cost_usd)
    where stated_cost_usd is not null;
