-- When the line at an offset was written
-- The time of the last message or prompt that begins at this offset of a file or before it.
select coalesce(
    (
      select m.timestamp
      from messages m
      where m.file_id = :file
        and m.byte_offset <= :offset
      order by m.byte_offset desc
      limit 1
    ),
    (
      select i.timestamp
      from prompts i
      where i.file_id = :file
        and i.byte_offset <= :offset
      order by i.byte_offset desc
      limit 1
    )
  ) as timestamp
