-- Branches of a conversation
-- The branches that the lines of the conversation :session state, in the order of their first lines.
select c.value as branch
from contexts c
join files f on f.id = c.file_id
where f.session_id = :session
  and f.subagent_id is null
  and c.name = 'git_branch'
  and c.value not in ('', 'HEAD')
group by c.value
order by min(c.byte_offset), c.value
