-- The lines with messages around a place
-- In a file, the last before the place and the first after it.
select
    (
        select max(m.byte_offset)
        from messages m
        where m.file_id = :file and m.byte_offset < :byte_offset
    ) as before,
    (
        select min(m.byte_offset)
        from messages m
        where m.file_id = :file and m.byte_offset > :byte_offset
    ) as after
