-- What a document is called, as terms: its title and its file name, so that a question that names a document prefers its passages.

-- A file's name as words: reports/3M_2018_10K.pdf is "3M 2018 10K"; '' for addresses, hashes and numbers (ingestion/about.py says the same).
CREATE FUNCTION workbench_file_words(path text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE
        WHEN path IS NULL OR path ~ '://' OR path !~ '\.[A-Za-z][A-Za-z0-9]{0,8}$' THEN ''
        WHEN stem.name ~* '^([0-9a-f]{12,}|[0-9a-f-]{36}|[0-9]+)$' THEN ''
        ELSE regexp_replace(regexp_replace(stem.name, '([[:lower:]])([[:upper:]][[:lower:]])', '\1 \2', 'g'),
            '([0-9]{4})([[:alpha:]])', '\1 \2', 'g')
    END
    FROM (SELECT left(regexp_replace(regexp_replace(path, '^.*/', ''), '\.[^.]*$', ''), 500) AS name) AS stem
$$;

ALTER TABLE documents
    ADD COLUMN title_terms tsvector GENERATED ALWAYS AS (workbench_terms(language, left(title, 1000))) STORED,
    ADD COLUMN name_terms tsvector GENERATED ALWAYS AS (workbench_terms(language, workbench_file_words(path))) STORED;
