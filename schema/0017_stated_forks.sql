-- Lines may state from which session theirs goes on: sessions are found by what they state.
create index transcripts_forked_from on transcripts (forked_from_key) where forked_from_key is not null;
