-- The words of a text: both the stored text and the query go through these functions. The text index
-- calls them, so a migration that changes one must rebuild the index. Nothing depends on the locale of
-- the database: in locale C, character classes know only ASCII, so letters are given by number.

-- Pairs of neighbouring letters of Chinese, Japanese and Korean, which put no spaces between words.
create function assoc.cjk_pairs(p_text text) returns text
language sql immutable parallel safe
as $$
    select pg_catalog.string_agg(pair, ' ')
    from (
        select letter || coalesce(pg_catalog.lead(letter) over (partition by run_no order by n), '')
            as pair, pg_catalog.count(*) over (partition by run_no) as length,
            n, pg_catalog.row_number() over (partition by run_no order by n desc) as from_end
        from pg_catalog.regexp_matches(
                normalize(p_text, nfkc), '[\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]+', 'g'
            ) with ordinality as run (letters, run_no),
            pg_catalog.unnest(pg_catalog.string_to_array(letters[1], null))
                with ordinality as letter (letter, n)
    ) pieces
    where from_end > 1 or length = 1
$$;

-- Letters without marks, in lower case, with a space for everything that separates words. Testing first
-- whether there is anything to replace takes a tenth of the time.
create function assoc.plain_text(p_text text) returns text
language sql immutable parallel safe
as $$
    select pg_catalog.regexp_replace(
        case
            when bare ~ '[\u0391-\u03c2\u0410-\u042f]' then pg_catalog.translate(
                pg_catalog.lower(bare),
                'ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩςАБВГДЕЖЗИКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯ',
                'αβγδεζηθικλμνξοπρστυφχψωσабвгдежзиклмнопрстуфхцчшщъыьэюя'
            )
            else pg_catalog.lower(bare)
        end,
        '[\u0001-\u002f\u003a-\u0040\u005b-\u0060\u007b-\u00a9\u00ab-\u00b1\u00b4\u00b6-\u00b8\u00bb\u00bf\u00d7\u00f7\u02c2-\u02df\u2000-\u206f\u20a0-\u20cf\u2100-\u2bff\u2e00-\u2e7f\u3000-\u303f\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\u1100-\u11ff\uac00-\ud7a3\ue000-\uf8ff\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65\ufffd]+',
        ' ', 'g'
    )
    from (
        select case
            when decomposed ~ '[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f\u00ad\u200b-\u200f\u2060-\u2064\ufeff]'
            then pg_catalog.regexp_replace(
                decomposed, '[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f\u00ad\u200b-\u200f\u2060-\u2064\ufeff]+', '', 'g'
            )
            else decomposed
        end as bare
        from (select normalize(p_text, nfkd) as decomposed offset 0) decomposition
        offset 0
    ) letters
$$;

-- The content of the text index. A long text is cut, or its words would not fit.
create function assoc.words(p_text text) returns tsvector
language sql immutable parallel safe
as $$
    select case
        when pg_catalog.octet_length(p_text) > 250000
        then assoc.words(pg_catalog.left(p_text, 60000))
        -- The same as below for most texts, in half the time: all of its bytes are ASCII.
        when pg_catalog.octet_length(p_text) = pg_catalog.length(p_text)
        then pg_catalog.to_tsvector(
            'pg_catalog.simple',
            pg_catalog.regexp_replace(pg_catalog.lower(p_text), '[^0-9a-z]+', ' ', 'g')
        )
        when p_text ~ '[\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]'
        then pg_catalog.to_tsvector(
            'pg_catalog.simple', assoc.plain_text(p_text) || ' ' || coalesce(assoc.cjk_pairs(p_text), '')
        )
        else pg_catalog.to_tsvector('pg_catalog.simple', assoc.plain_text(p_text))
    end
$$;
