alter table projects add column directory text /* name of its directory in the agent's home, if that was empty at the last sync */;
