-- Words in every script: marks stay on their letters, points that Arabic and Hebrew may leave out are left out, and
-- Thai, Lao, Burmese and Khmer, which put no space between words, count in threes (workbench/languages.py has the rules).

-- Triples of neighbouring characters of unspaced alphabets, with their positions; a shorter run counts whole.
CREATE FUNCTION workbench_trigrams(body text) RETURNS tsvector LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT AS $$
    SELECT coalesce(string_agg(quote_literal(substr(run.m[1], i, 3)) || ':' || least(run.place + i - 1, 16383), ' '), '')::tsvector
    FROM (SELECT m, coalesce(sum(length(m[1])) OVER (ORDER BY number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) + 1 AS place
          FROM regexp_matches(body, '([\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u1000-\u103f\u1050-\u108f\u1780-\u17d3]+)', 'g')
              WITH ORDINALITY AS found (m, number)) AS run,
        generate_series(1, greatest(1, length(run.m[1]) - 2)) AS i
$$;

CREATE OR REPLACE FUNCTION workbench_terms(language text, body text) RETURNS tsvector LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT AS $$
DECLARE
    config regconfig := CASE WHEN language = 'cjk' THEN 'simple' ELSE language END::regconfig;
    words text := body;
    parts text;
    threes tsvector;
BEGIN
    IF words ~ '[\u0300-\u036f\u0591-\u06dc\u0900-\u103f\u1780-\u17d3]' THEN
        words := translate(regexp_replace(words,
            '[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc]+', '', 'g'),
            'أإآٱىیک', 'ااااييك');
        IF words ~ '[\u0e01-\u0ece\u1000-\u108f\u1780-\u17d3]' THEN
            threes := workbench_trigrams(words);
            words := regexp_replace(words, '[\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u1000-\u103f\u1050-\u108f\u1780-\u17d3]+', ' ', 'g');
        END IF;
        words := regexp_replace(words, '[^[:alnum:]\u0300-\u036f\u0900-\u0963\u0966-\u0dff]+', ' ', 'g');
    ELSE
        words := regexp_replace(words, '[^[:alnum:]]+', ' ', 'g');
    END IF;
    IF words ~ '[぀-ヿ㐀-䶿一-鿿가-힯豈-﫿]' THEN
        words := regexp_replace(words, '[぀-ヿ㐀-䶿一-鿿가-힯豈-﫿]+', ' ', 'g') || ' ' || workbench_bigrams(words);
    END IF;
    IF words ~ '[[:lower:]][[:upper:]]' THEN
        SELECT string_agg(regexp_replace(m[1], '([[:lower:]])([[:upper:]])', '\1 \2', 'g'), ' ') INTO parts
        FROM regexp_matches(words, '([[:alnum:]]*[[:lower:]][[:upper:]][[:alnum:]]*)', 'g') AS m;
        words := words || ' ' || parts;
    END IF;
    RETURN to_tsvector(config, words) || coalesce(threes, '');
END $$;

-- Passages in these scripts get their terms and postings again: taken out and put back, as the triggers of both do the work.
DO $$
DECLARE
    kept record;
    columns text;
BEGIN
    FOR kept IN SELECT name FROM indexes ORDER BY name LOOP
        SELECT string_agg(quote_ident(column_name), ', ') INTO columns FROM information_schema.columns
        WHERE table_schema = current_schema() AND table_name = 'data_' || kept.name AND is_generated = 'NEVER';
        CONTINUE WHEN columns IS NULL;
        EXECUTE format('CREATE TEMP TABLE read_again ON COMMIT DROP AS SELECT %s FROM %I WHERE text ~ %L',
            columns, 'data_' || kept.name, '[\u0300-\u036f\u0591-\u06dc\u0900-\u103f\u1780-\u17d3]');
        EXECUTE format('DELETE FROM %I WHERE id IN (SELECT id FROM read_again)', 'data_' || kept.name);
        EXECUTE format('INSERT INTO %I (%s) SELECT %s FROM read_again', 'data_' || kept.name, columns, columns);
        DROP TABLE read_again;
    END LOOP;
END $$;
