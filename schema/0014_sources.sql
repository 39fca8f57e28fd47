-- What the rest needs to know of a source stands in its row, as the source states it: no query and no
-- view names one. The next sync writes it; here it is written for the sources there were.
alter table sources add column label text /* how the system is called: Claude Code, Chorus, ... */;
alter table sources add column is_agent integer not null default 0 /* 1: the transcripts of the agent itself; 0: of a program around it, which may repeat them */;
alter table sources add column lists_sessions integer not null default 0 /* 1: a list of its own says which conversations there are */;
alter table sources add column retention_days integer /* days after which the system deletes its files, unless its settings say otherwise; null: it deletes nothing */;

update sources
set label = case kind
        when 'claude' then 'Claude Code'
        when 'associate' then 'TheAssociate'
        when 'chorus' then 'Chorus'
        when 'cortex' then 'Cortex'
        when 'ccinsights' then 'CCInsights'
    end,
    is_agent = kind = 'claude',
    lists_sessions = kind in ('chorus', 'ccinsights'),
    retention_days = iif(kind = 'claude', 30, null);
