-- The large output of one tool call
-- What a call of the session :session gave that was too large for the transcript, by the name
-- :name that the transcript gives its file.
select t.text, t.size, t.media_type
from tool_result_files t
where t.session_id = :session
  and t.name = :name
order by t.id
limit 1
