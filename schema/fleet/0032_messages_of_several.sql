-- Which messages several machines have is read from this index alone.
drop index assoc.messages_uuid;
create index messages_uuid on assoc.messages (uuid, block, origin_id, is_copy) where uuid is not null;
