alter table projects add column directory text /* name of its directory in the agent's home, if that was empty at the last sync */;
-- A sync looks for logs that say nothing of their session: a list of sessions may decide whose they are.
create index transcripts_of_no_session on transcripts (file_id) where stated_session_key is null;
