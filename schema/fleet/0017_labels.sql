-- A login cannot take all labels: it registers as many machines as its owner allows, and a label that a
-- machine of another login has had stays that login's.

alter table assoc.logins add column most_origins integer not null default 5;

create table assoc.labels (
    label text primary key,
    role_name name not null
);
insert into assoc.labels select label, role_name from assoc.origins;
grant select, insert, update, delete on assoc.labels to assoc_admin;

-- 54000: the login has as many origins as it may. 23505: somebody has this uuid or label.
create or replace function assoc.register_v1(p_uuid uuid, p_label text, p_db_uuid uuid, p_nonce uuid)
returns integer
language plpgsql security definer set search_path = pg_catalog, assoc, pg_temp
as $$
declare
    is_owner boolean := pg_has_role(session_user, current_user, 'member');
    most integer := coalesce(
        (select l.most_origins from assoc.logins l where l.role_name = session_user), 5
    );
    made integer;
begin
    -- Two calls at once count one after the other.
    perform pg_advisory_xact_lock(hashtextextended('assoc origins ' || session_user, 0));
    if not is_owner
        and (select count(*) from assoc.origins o where o.role_name = session_user) >= most
    then
        raise program_limit_exceeded using
            message = format('the login %s may push as %s machines', session_user, most),
            constraint = 'origins_of_login';
    end if;
    insert into assoc.labels as l (label, role_name) values (p_label, session_user)
    on conflict (label) do nothing;
    if (select l.role_name from assoc.labels l where l.label = p_label) <> session_user
        and not exists (select from assoc.origins o where o.uuid = p_uuid)
    then
        raise unique_violation using message = 'another login has used this label',
            constraint = 'origins_label_key';
    end if;
    insert into assoc.origins (uuid, role_name, label, db_uuid, nonce, team)
    values (p_uuid, session_user, p_label, p_db_uuid, p_nonce,
            (select team from assoc.logins where role_name = session_user))
    returning origin_id into made;
    return made;
end $$;
