-- What conversations are about
-- Of each session of the JSON array :keys, its title, if one was given to it, and its first prompts.
select
    s.session_key,
    iif(s.title_source in ('prompt', 'history', 'id'), null, s.title) as title,
    (
        select group_concat(x.text, char(10))
        from (
            select substr(m.text, 1, 2000) as text
            from messages m
            where m.session_id = s.id
              and m.kind = 'prompt'
              and m.subagent_id is null
            order by m.id
            limit 2
        ) x
    ) as prompts
from json_each(coalesce(nullif(:keys, ''), '[]')) k
cross join sessions s on s.session_key = k.value
