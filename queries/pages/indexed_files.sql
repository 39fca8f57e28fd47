-- What was read
-- How many files were read, how many of them are no longer on the disk, how many pieces of them
-- could not be read at all (unread), and how many only with loss.
select
    (select count(*) from files) as files,
    (select count(*) from files where gone_at is not null) as gone,
    (select count(*) from issues where quarantined = 1) as unread,
    (select count(*) from issues where quarantined = 0) as lossy
