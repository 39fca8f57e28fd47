-- One entry that is no message
-- The entry :id of the store :what. is_session: the first part of its name is the key of a session.
select
    e.*,
    exists (
        select 1
        from sessions o
        where o.session_key = e.head
    ) as is_session,
    r.root,
    f.path
from searchable e
left join files f on f.id = e.file_id
left join sources r on r.id = e.source_id
where e.what = :what
  and e.id = :id
