-- What an earlier line of a log said and a later one needs, such as the model that is stated once.
alter table files add column context text /* JSON that the lines before the offset leave to those behind it; null: nothing */;
