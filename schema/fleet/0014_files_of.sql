-- All files of a machine, with the project of each file's session, and the directory of its project: that of
-- the session, or for a file without one, its own. A machine withdraws by it what it no longer has.
create function assoc.files_of_v1(p_origin integer)
returns table (file_key bytea, file_no integer, source_no integer, path text, session_key text,
               project_source_no integer, project_key text, team_key text,
               session_project_source_no integer, session_project_key text, project_path text)
language plpgsql stable security definer set search_path = pg_catalog, assoc, pg_temp
as $$
begin
    perform assoc.check_origin(p_origin);
    return query
    select f.file_key, f.file_no, f.source_no, f.path, f.session_key, f.project_source_no,
        f.project_key, f.team_key, s.project_source_no, s.project_key, p.path
    from assoc.files f
    left join assoc.sessions s
        on s.origin_id = f.origin_id and s.source_no = f.source_no
        and s.session_key = f.session_key
    left join assoc.projects p
        on p.origin_id = f.origin_id
        and (p.source_no, p.key) = (
            case when s.session_key is null then f.project_source_no else s.project_source_no end,
            case when s.session_key is null then f.project_key else s.project_key end
        )
    where f.origin_id = p_origin;
end $$;

revoke all on function assoc.files_of_v1(integer) from public;
grant execute on function assoc.files_of_v1(integer) to assoc_device, assoc_admin;
