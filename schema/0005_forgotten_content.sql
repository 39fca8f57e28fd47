-- What is forgotten is known by its content, too.
--
-- A home that is moved or copied has other paths, and a file in it may have no name that tells whose
-- it is: a plan, a pasted text, a message in a team. A fingerprint says nothing of what the file
-- said to anybody who does not have all of it.

alter table forgotten add column content_hash blob /* fingerprint of the file that was forgotten, 16 bytes: of its length, its first and last KiB and its checksum */;
alter table forgotten add column content_length integer /* bytes that the fingerprint is of; a copy has as many, and a log begins with them */;
drop index forgotten_key;
create unique index forgotten_key on forgotten (
    coalesce(session_key, ''), coalesce(path, ''), coalesce(root, ''), coalesce(content_hash, x'')
);
