-- Files that were last changed before this time are not kept: machines do not push them.
create table assoc.retention (
    kept_since text collate "C" primary key
);
