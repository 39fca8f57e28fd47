-- What a user noted

-- name: notes
-- Notes on one thing
-- Of the conversation :session_key with its lines, of files with one of the paths :paths, a JSON array,
-- or the one with the number :id; the latest first.
select n.*
from notes_full n
where coalesce(:session_key, '') in ('', n.session_key)
  and (coalesce(:paths, '') = '' or n.path in (select value from json_each(:paths)))
  and (:id is null or n.id = :id)
order by n.noted_at desc, n.id

-- name: noted_sessions
-- Conversations with notes
-- The keys of those on which, or on a line of which, there is a note.
select distinct session_key
from notes
where session_key is not null

-- name: line_key
-- What a note calls a line
-- The line of the message :id by what outlives its row: its uuid, or without one its place.
select coalesce(m.uuid, f.path || '@' || m.byte_offset) as line_key
from messages m
join files f on f.id = m.file_id
where m.id = :id
