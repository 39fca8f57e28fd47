-- The search of `search --remote`.

-- What finds a word, a phrase, or the words that begin with one, in assoc.words of a text. Of
-- Chinese, Japanese and Korean all pairs of letters must be there, whose order is checked later.
create function assoc.query_of(p_text text, p_is_prefix boolean) returns tsquery
language sql immutable parallel safe
as $$
    select case
        when p_text ~ '[\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]' then (
            select string_agg(
                quote_literal(lexeme) || case when length(lexeme) = 1 then ':*' else '' end, ' & '
            )::tsquery
            from unnest(assoc.words(p_text))
        )
        when p_is_prefix then (
            nullif(phraseto_tsquery('simple', assoc.plain_text(p_text))::text, '') || ':*'
        )::tsquery
        else phraseto_tsquery('simple', assoc.plain_text(p_text))
    end
$$;

-- A query without the order of words, which is all that the text index can tell: it finds the same
-- and more. The words of a query are letters and digits, so the signs of phrases are no part of them.
create function assoc.without_order(p_query tsquery) returns tsquery
language sql immutable parallel safe
as $$
    select replace(p_query::text, '<->', '&')::tsquery
$$;

-- The same of a whole query: {"clauses": [[{"text": ..., "is_prefix": ...}, ...], ...], "without":
-- [...]}. A clause is met by any of its alternatives. NULL: it has no word to look for. Without
-- p_is_exact, the order of words is left out, and so are phrases that must not be there.
create function assoc.query_of(p_terms json, p_is_exact boolean) returns tsquery
language plpgsql immutable parallel safe
as $$
declare
    clause json;
    term json;
    part tsquery;
    any_of tsquery;
    result tsquery;
begin
    for clause in select * from json_array_elements(p_terms -> 'clauses') loop
        any_of := null;
        for term in select * from json_array_elements(clause) loop
            part := assoc.query_of(term ->> 'text', (term ->> 'is_prefix')::boolean);
            if numnode(part) > 0 then
                part := case when p_is_exact then part else assoc.without_order(part) end;
                any_of := coalesce(any_of || part, part);
            end if;
        end loop;
        result := coalesce(result && any_of, any_of, result);
    end loop;
    for term in select * from json_array_elements(p_terms -> 'without') loop
        part := assoc.query_of(term ->> 'text', (term ->> 'is_prefix')::boolean);
        if numnode(part) > 0 and (p_is_exact or part::text not like '%<->%') then
            result := result && !!part;
        end if;
    end loop;
    return result;
end $$;

-- The phrases of a query as patterns for a text in lower case: they tell of most texts whether they
-- have a phrase in a twentieth of the time that the words of a long text take. A text that fits a
-- strict pattern has the phrase, between signs of ASCII. One that does not fit the other one has not;
-- there, letters beyond ASCII may be any word, or be between words, and some are several words, as
-- a fraction is. NULL: one of several alternatives
-- is a phrase, or one must not be there, so patterns alone do not tell.
create function assoc.phrases_of(p_terms json, p_is_strict boolean) returns text[]
language plpgsql immutable parallel safe
as $$
declare
    clause json;
    term json;
    is_phrase boolean;
    is_prefix boolean;
    sign constant text :=
        case when p_is_strict then '[\u0001-\u002f:-@\[-`{-\u007f]' else '[^0-9a-z]' end;
    word constant text :=
        -- Punctuation and signs beyond ASCII, and letters of Chinese, Japanese and Korean, are in no word.
        case
            when p_is_strict then '\1'
            else '(?:\1|[0-9a-z]*'
                '[^\u0001-\u007f\u2000-\u200a\u2010-\u205f\u2190-\u23ff\u2500-\u2bff\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uff00-\uff0f]'
                '[^\u0001-/:-@\[-`{-\u007f]*)'
        end;
    patterns text[] := '{}';
begin
    for clause in select * from json_array_elements(p_terms -> 'clauses') loop
        for term in select * from json_array_elements(clause) loop
            is_phrase := assoc.query_of(term ->> 'text', false)::text like '%<->%';
            is_prefix := (term ->> 'is_prefix')::boolean;
            if is_phrase and json_array_length(clause) > 1 then
                return null;
            elsif is_phrase then
                patterns := patterns || format(
                    '(?:^|%1$s)%2$s' || case when is_prefix then '' else '(?:$|%1$s)' end
                    || case when p_is_strict then '' else '|[\u00bc-\u00be\u013f\u0140\u2100-\u2109\u2150-\u215f\u2189\u2474-\u24b5\u3200-\u33ff\ufdfa\ufdfb\U0001f100-\U0001f2ff]' end,
                    sign,
                    replace(
                        regexp_replace(
                            btrim(assoc.plain_text(term ->> 'text')), '([^ ]+)', word, 'g'
                        ),
                        ' ', sign || '+'
                    )
                );
            end if;
        end loop;
    end loop;
    for term in select * from json_array_elements(p_terms -> 'without') loop
        if assoc.query_of(term ->> 'text', false)::text like '%<->%' then
            return null;
        end if;
    end loop;
    return patterns;
end $$;

-- The messages that hold everything that p_terms asks for, best first: of the newest 500 those that
-- have the query just as it was typed (p_literal) come first, then by the rank of their first 1,000
-- letters; what tools gave counts a fifth. Each of p_parts stands in the text as it is. A message
-- that several origins have is one hit.
--
-- Whether words stand one behind the other has to be read in the text, and so has p_parts: of very
-- many messages that have the words, this is done for the newest 5,000.
--
-- Rows are the best p_limit messages, and the best p_shown of each of the best p_limit conversations:
-- texts are large, and most of them nobody sees. So each row says how many messages were `found`
-- among the newest 500 and in how many `conversations`, whether there are more (`has_more`), which
-- conversation its own is in their order, and how many messages that has.
--
-- It reads with the rights of its owner, because row-level security keeps PostgreSQL from using the
-- text index; which origins the caller may see is asked for here.
create function assoc.search_v1(
    p_terms json, p_parts text[], p_literal text, p_kinds text[], p_since text, p_until text,
    p_projects bigint[], p_session text, p_source text, p_origin text, p_tools boolean,
    p_limit integer, p_shown integer
)
returns table (
    found bigint, conversations bigint, has_more boolean, place bigint, conversation bigint,
    in_conversation bigint, is_verbatim boolean, rank real, scope text, kind text, "text" text, session text,
    session_kind text, cwd text, project text, project_path text, subagent text, agent_key text,
    tool text, model text, branch text, "timestamp" text, source text, session_key text, file text,
    byte_offset bigint, has_transcript boolean, origin text, origin_id integer, file_no integer,
    id bigint
)
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
    with asked as materialized (
        select
            q.query, q.words, lower(p_literal) as literal,
            q.query is distinct from q.words or p_parts is not null as is_read,
            assoc.phrases_of(p_terms, true) as strict, assoc.phrases_of(p_terms, false) as loose
        from (
            select assoc.query_of(p_terms, true) as query, assoc.query_of(p_terms, false) as words
        ) q
    ),
    -- No joins here: the text index is to be asked once, and first.
    newest as materialized (
        select m.*
        from assoc.messages m
        where assoc.words(coalesce(m.text, m.tool_text)) @@ (select words from asked)
          and m.is_copy = 0
          -- Not `m.origin_id`: nearly all rows have one of these, and an index would list them all.
          and m.origin_id + 0 = any ((select assoc.visible_origins())::integer[])
          and (
            p_origin is null
            or m.origin_id in (select o.origin_id from assoc.origins o where o.label = p_origin)
          )
          and (p_kinds is null or m.kind = any (p_kinds))
          and (p_since is null or m.timestamp >= p_since)
          and (p_until is null or m.timestamp < p_until)
          and (p_session is null or m.session_key = p_session)
          and (
            p_source is null
            or (m.origin_id, m.source_no) in (
                select r.origin_id, r.source_no from assoc.sources r where r.kind = p_source
            )
          )
          and (not p_tools or m.tool_text is not null)
          and (
            p_projects is null
            or (m.origin_id, m.source_no, m.session_key) in (
                select s.origin_id, s.source_no, s.session_key
                from assoc.sessions s
                where assoc_read.id(s.origin_id, s.project_source_no, s.project_key)
                    = any (p_projects)
            )
          )
        order by m.timestamp desc nulls last
        limit (select case when is_read then 5000 else 500 end from asked)
    ),
    -- Not sorted again: reading ends with the 500th.
    candidates as materialized (
        select n.*
        from newest n
        cross join asked a
        where not a.is_read
           or (
            case
                when exists (
                    select from unnest(a.loose) phrase
                    where lower(coalesce(n.text, n.tool_text)) !~ phrase
                ) then false
                when a.strict is not null and not exists (
                    select from unnest(a.strict) phrase
                    where lower(coalesce(n.text, n.tool_text)) !~ phrase
                ) then true
                else assoc.words(coalesce(n.text, n.tool_text)) @@ a.query
            end
            and not exists (
                select from unnest(p_parts) part
                where strpos(lower(coalesce(n.text, n.tool_text)), lower(part)) = 0
            )
          )
        limit 500
    ),
    ranked as (
        select
            c.*,
            coalesce(strpos(lower(coalesce(c.text, c.tool_text)), nullif(a.literal, '')) > 0, false)
                as is_verbatim,
            -- Words of a long text cost more than all else.
            ts_rank(assoc.words(h.head), a.query)
                * case when c.text is null then 0.2 else 1 end as rank,
            row_number() over (
                partition by
                    coalesce(c.uuid, format('%s/%s/%s', c.origin_id, c.file_no, c.byte_offset)),
                    c.block
                order by c.origin_id, c.file_no, c.byte_offset
            ) as occurrence,
            count(*) over () = 500 or (select count(*) from newest) = 5000 as has_more
        from candidates c
        cross join asked a
        -- Once for each: the text of a function is put in its place, which names it several times.
        cross join lateral (
            select left(coalesce(c.text, c.tool_text), 1000) as head offset 0
        ) h
    ),
    placed as (
        select
            m.*, f.agent_key as file_agent_key, f.gone_at, f.kind as file_kind, f.path,
            r.kind as source_kind, r.root,
            row_number() over (
                order by m.is_verbatim desc, m.rank desc, m.timestamp desc nulls last, m.origin_id,
                    m.file_no, m.byte_offset, m.block
            ) as place,
            -- A message without a session is a conversation of its own.
            array[
                r.kind,
                coalesce(
                    m.session_key, format('%s/%s/%s/%s', m.origin_id, m.file_no, m.byte_offset, m.block)
                ),
                (m.session_key is null)::text
            ] as conversation_key
        from ranked m
        join assoc.files f on f.origin_id = m.origin_id and f.file_no = m.file_no
        join assoc.sources r on r.origin_id = f.origin_id and r.source_no = f.source_no
        where m.occurrence = 1
    ),
    grouped as (
        select
            p.*, count(*) over () as found,
            min(p.place) over conversation as first_place,
            row_number() over (partition by p.conversation_key order by p.place) as place_within,
            count(*) over conversation as in_conversation
        from placed p
        window conversation as (partition by p.conversation_key)
    ),
    numbered as (
        select g.*, dense_rank() over (order by g.first_place) as conversation from grouped g
    )
    select
        m.found, (select max(n.conversation) from numbered n), m.has_more, m.place, m.conversation,
        m.in_conversation, m.is_verbatim, m.rank::real,
        case when m.text is null then 'tools' else 'said' end,
        m.kind, left(coalesce(m.text, m.tool_text), 20000), s.title, s.kind, s.cwd, p.name, p.path,
        a.agent_type, m.file_agent_key,
        (
            select min(t.name)
            from assoc.tool_calls t
            where t.origin_id = m.origin_id and t.file_no = m.file_no
              and (
                (t.byte_offset = m.byte_offset and t.block = m.block)
                or (t.result_offset = m.byte_offset and t.result_block = m.block)
              )
        ),
        m.model, s.git_branch, m.timestamp, m.source_kind, s.session_key, m.root || '/' || m.path,
        m.byte_offset, m.gone_at is null and m.file_kind = 'transcript', o.label, m.origin_id,
        m.file_no, assoc_read.id(m.origin_id, m.file_no, m.byte_offset, m.block)
    from numbered m
    join assoc.origins o on o.origin_id = m.origin_id
    left join assoc.sessions s
        on s.origin_id = m.origin_id and s.source_no = m.source_no and s.session_key = m.session_key
    left join assoc.projects p
        on p.origin_id = s.origin_id and p.source_no = s.project_source_no and p.key = s.project_key
    left join assoc.subagents a
        on a.origin_id = m.origin_id and a.source_no = m.source_no
        and a.stated_session_key = m.agent_session_key and a.agent_key = m.agent_key
    where m.place <= p_limit or (m.conversation <= p_limit and m.place_within <= p_shown)
    order by m.place
$$;

revoke execute on function assoc.search_v1(
    json, text[], text, text[], text, text, bigint[], text, text, text, boolean, integer, integer
) from public;
grant execute on function assoc.search_v1(
    json, text[], text, text[], text, text, bigint[], text, text, text, boolean, integer, integer
) to assoc_reader, assoc_admin;
grant execute on function
    assoc.query_of(text, boolean), assoc.without_order(tsquery), assoc.query_of(json, boolean),
    assoc.phrases_of(json, boolean)
    to assoc_reader, assoc_admin;

-- The keys of sessions and of subagents before and after each of p_keys, among those that the caller
-- may see: how short a beginning of a key may be to mean only it.
create index subagents_key on assoc.subagents (agent_key);

create function assoc.key_neighbours_v1(p_keys text[])
returns table (
    "key" text, before text, after text, agent_before text, agent_after text
)
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
    with visible as materialized (select assoc.visible_origins()::integer[] as origins)
    select
        k.key,
        (
            select s.session_key from assoc.sessions s
            where s.session_key < k.key and s.origin_id = any ((select origins from visible)::integer[])
            order by s.session_key desc limit 1
        ),
        (
            select s.session_key from assoc.sessions s
            where s.session_key > k.key and s.origin_id = any ((select origins from visible)::integer[])
            order by s.session_key limit 1
        ),
        (
            select a.agent_key from assoc.subagents a
            where a.agent_key < k.key and a.origin_id = any ((select origins from visible)::integer[])
            order by a.agent_key desc limit 1
        ),
        (
            select a.agent_key from assoc.subagents a
            where a.agent_key > k.key and a.origin_id = any ((select origins from visible)::integer[])
            order by a.agent_key limit 1
        )
    from unnest(p_keys) as k (key)
$$;

revoke execute on function assoc.key_neighbours_v1(text[]) from public;
grant execute on function assoc.key_neighbours_v1(text[]) to assoc_reader, assoc_admin;
