-- Without the text index, pushes are several times as fast, but a search reads everything.
drop index concurrently if exists assoc.messages_words;
