create table unpriced ( -- A model whose price the library does not know; asked again when the library is newer
    id integer primary key,
    model text not null unique,         -- model, as responses name it
    origin text not null                -- the version of genai-prices that was asked
) strict;
