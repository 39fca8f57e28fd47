alter table usage add column written_bytes integer /* length of what the response wrote in this file, where a reader measures it: see docs/costs.md */;
alter table responses add column written_bytes integer /* length of what it wrote, as its file has it; null: not known. An estimate of output_tokens where partial is 1: see docs/costs.md */;
create index responses_complete on responses (model, output_tokens, written_bytes)
    where partial = 0 and written_bytes > 0;
create index responses_partial on responses (session_id) where partial = 1;
