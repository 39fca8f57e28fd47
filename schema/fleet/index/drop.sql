-- Without the text index a push is several times as fast, and a search reads everything.
drop index concurrently if exists assoc.messages_words;
