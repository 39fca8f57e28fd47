create table thread_turns (id text);
