-- A number is one word whether its digits stand in groups or not: 1,204, 1.204, 1 204 and 1'204 are 1204 (workbench/languages.py has the rules).

CREATE OR REPLACE FUNCTION workbench_terms(language text, body text) RETURNS tsvector LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT AS $$
DECLARE
    config regconfig := CASE WHEN language = 'cjk' THEN 'simple' ELSE language END::regconfig;
    words text := body;
    parts text;
    threes tsvector;
BEGIN
    IF words ~ '[0-9][., ''\u00a0\u2009\u2019\u202f][0-9]{3}' THEN
        words := regexp_replace(words, '(?<![A-Za-z_\u00c0-\u0dff0-9.,])(?<![0-9][ ''\u00a0\u2009\u2019\u202f])([1-9][0-9]{0,2})[ ''\u00a0\u2009\u2019\u202f]([0-9]{3})(?:[ ''\u00a0\u2009\u2019\u202f]([0-9]{3}))?(?:[ ''\u00a0\u2009\u2019\u202f]([0-9]{3}))?(?:[ ''\u00a0\u2009\u2019\u202f]([0-9]{3}))?(?![ ''\u00a0\u2009\u2019\u202f]?[0-9]|[.,][0-9]{3})(?![A-Za-z_\u00c0-\u0dff])', '\1\2\3\4\5', 'g');
        words := regexp_replace(words, '(?<![A-Za-z_\u00c0-\u0dff0-9.,])([1-9][0-9]{0,2})\.([0-9]{3})(?:\.([0-9]{3}))?(?:\.([0-9]{3}))?(?:\.([0-9]{3}))?(?!\.?[0-9])(?![A-Za-z_\u00c0-\u0dff])', '\1\2\3\4\5', 'g');
        words := regexp_replace(words, '(?<![A-Za-z_\u00c0-\u0dff0-9.,])([1-9][0-9]{0,2}),([0-9]{3})(?:,([0-9]{3}))?(?:,([0-9]{3}))?(?:,([0-9]{3}))?(?!,?[0-9])(?![A-Za-z_\u00c0-\u0dff])', '\1\2\3\4\5', 'g');
    END IF;
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

-- Passages with such numbers get their terms and postings again, as an import of an older export does: taken out and
-- put back, as the triggers of both do the work. Names of documents are made anew by writing them as they are.
CREATE OR REPLACE FUNCTION workbench_read_numbers_again() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    kept record;
    columns text;
    grouped text := '[0-9][., ''\u00a0\u2009\u2019\u202f][0-9]{3}';
BEGIN
    FOR kept IN SELECT name FROM indexes ORDER BY name LOOP
        SELECT string_agg(quote_ident(column_name), ', ') INTO columns FROM information_schema.columns
        WHERE table_schema = current_schema() AND table_name = 'data_' || kept.name AND is_generated = 'NEVER';
        CONTINUE WHEN columns IS NULL;
        EXECUTE format('CREATE TEMP TABLE read_again AS SELECT %s FROM %I WHERE text ~ %L OR metadata_ ->> ''context'' ~ %L',
            columns, 'data_' || kept.name, grouped, grouped);
        EXECUTE format('DELETE FROM %I WHERE id IN (SELECT id FROM read_again)', 'data_' || kept.name);
        EXECUTE format('INSERT INTO %I (%s) SELECT %s FROM read_again', 'data_' || kept.name, columns, columns);
        DROP TABLE read_again;
    END LOOP;
    UPDATE documents SET title = title, path = path WHERE title ~ grouped OR path ~ grouped;
END $$;
SELECT workbench_read_numbers_again();
