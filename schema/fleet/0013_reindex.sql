-- An administrator may derive the rows of a machine anew. The machine must be able to tell that from a
-- push by a copy of itself: until it writes again, its origin keeps the nonces from before.
alter table assoc.origins add column reindexed_after uuid[] not null default '{}';
