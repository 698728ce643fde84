-- The whole schema, by subject: words, corpus, indexes, keyword index, choices, citations, jobs, crawls, evaluation, agents.
--
-- Changes: until the first release, edit this file; a database made from an earlier version is rejected and must be exported
-- before the change and imported afterwards. From the first release on this file is frozen, and a change is a file
-- migrations/NNNN_subject.sql (numbers from 0001), which runs after this one, once in each database.
--
-- The tables of an index (data_NAME, lexicon_NAME, postings_NAME, full_text_NAME) are created by workbench_create_index.
-- The queue's tables are procrastinate's; storage/jobs.py applies them.
CREATE EXTENSION IF NOT EXISTS vector;

-- ==== Words as terms ==================================================================================================

-- Pairs of neighbouring characters, for scripts without spaces between words.
CREATE FUNCTION workbench_bigrams(body text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT AS $$
DECLARE
    run text;
    pairs text[] := '{}';
    i integer;
BEGIN
    FOR run IN SELECT m[1] FROM regexp_matches(body, '([぀-ヿ㐀-䶿一-鿿가-힯豈-﫿]+)', 'g') AS m LOOP
        IF length(run) = 1 THEN pairs := pairs || run; END IF;
        FOR i IN 1 .. length(run) - 1 LOOP pairs := pairs || substr(run, i, 2); END LOOP;
    END LOOP;
    RETURN array_to_string(pairs, ' ');
END $$;

-- Triples of neighbouring characters of unspaced alphabets, with their positions; a shorter run is one term.
CREATE FUNCTION workbench_trigrams(body text) RETURNS tsvector LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT AS $$
    SELECT coalesce(string_agg(quote_literal(substr(run.m[1], i, 3)) || ':' || least(run.place + i - 1, 16383), ' '), '')::tsvector
    FROM (SELECT m, coalesce(sum(length(m[1])) OVER (ORDER BY number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) + 1 AS place
          FROM regexp_matches(body, '([\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u1000-\u103f\u1050-\u108f\u1780-\u17d3]+)', 'g')
              WITH ORDINALITY AS found (m, number)) AS run,
        generate_series(1, greatest(1, length(run.m[1]) - 2)) AS i
$$;

-- A text in NFKC without invisible hyphens and spaces; a superscript is a word of its own (10⁶ is 10 and 6).
CREATE FUNCTION workbench_plain(body text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT AS $$
DECLARE
    words text := body;
BEGIN
    IF words ~ '[^\u0001-\u007f]' THEN
        words := translate(words, U&'\00ad\200b\2060\feff', '');
        words := regexp_replace(words, '([⁰¹²³⁴-⁹™℠]+)', ' \1 ', 'g');
        IF words !~ '[\u0e33\u0eb3]' THEN  -- vowels of Thai and Lao that NFKC would split
            words := replace(normalize(words, NFKC), U&'\2010', '-');
        END IF;
    END IF;
    RETURN words;
END $$;

-- Tokens with signs, as one term each next to the terms of their parts, so that a question for one finds it before others with
-- the same parts: 1.3.2, 10.0.0.0/24, node.js, TCP/IP, scikit-learn, mail addresses, paths, C++ and C#, .NET, #4711, emoji,
-- and PPR9087 for PPR-9087 and PPR_9087. A token that is joined by slashes, colons, @ or & also counts its pieces (1.3.2 of
-- app@1.3.2). `is_whole` is true for versions, codes and languages, whose parts mean nothing by themselves. The candidates are
-- found without lookarounds, which would take 80 times as long.
CREATE FUNCTION workbench_names(body text) RETURNS TABLE (written text, name text, place bigint, is_whole boolean) LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT AS $$
    SELECT piece.written, translate(CASE WHEN piece.written ~ '[0-9]' THEN regexp_replace(piece.written, '([[:alnum:]])[-_]', '\1', 'g')
        ELSE piece.written END, E'\\_ABCDEFGHIJKLMNOPQRSTUVWXYZ', '/-abcdefghijklmnopqrstuvwxyz'), number, piece.is_whole
    FROM regexp_matches(body, '('
        || '[.#]?[[:alnum:]]+(?:[-_./\\:@&]{1,3}[[:alnum:]]+)+(?:\+{1,2}|#)?'
        || '|[[:alpha:]][[:alnum:]]*(?:\+{1,2}|#)|\.[[:alpha:]][[:alnum:]]+|#[0-9]+'
        || '|[\U0001F1E6-\U0001F1FF]{2}|[\u231a-\u23ff\u25b6\u25c0\u2600-\u27bf\u2b1b-\u2b55\U0001F000-\U0001FAFF]'
        || ')', 'g') WITH ORDINALITY AS token (m, number),
    LATERAL (
        SELECT m[1] AS written, m[1] ~ '^[^[:alnum:].#]' AS is_whole
        UNION ALL SELECT part, false FROM regexp_split_to_table(m[1], '[/\\:@&]+') AS part WHERE m[1] ~ '[/\\:@&]'
        UNION ALL SELECT code[1], true FROM regexp_matches(m[1], '('
            || '(?<![0-9.])[0-9]+(?:\.[0-9]+){2,}(?![0-9])|(?<![[:alnum:]])[[:alpha:]](?:\+\+|#)(?![[:alnum:]+#])'
            || '|(?<![[:alnum:]./\\])\.[[:alpha:]][[:alnum:]]{1,15}(?![[:alnum:]])'
            || '|(?<![[:alnum:]])[[:alpha:]]{1,8}(?:[-_][[:alnum:]]{1,8}){0,2}[-_][0-9][[:alnum:]]{0,11}(?![[:alnum:]])'
            || ')', 'g') AS code) AS piece
    WHERE piece.written ~ '[^[:alnum:]]' AND length(piece.written) <= 100 AND piece.written !~ '^[1-9][0-9]{0,2}(\.[0-9]{3})+$'
$$;

-- The only conversion of text to terms, for passages and queries (workbench/text.py has the rules): words are runs of letters
-- and digits (hnsw.ef_search is three words), camelCase is indexed whole and in parts, stemmed by language. Marks stay on their
-- letters; optional points of Arabic and Hebrew are removed. Thai, Lao, Burmese and Khmer, which are written without spaces,
-- are split into triples, Chinese, Japanese and Korean into pairs. A number is one word with or without digit groups: 1,204,
-- 1.204, 1 204 and 1'204 are 1204. The terms of names with signs have the weight A: they do not count as length.
CREATE FUNCTION workbench_terms(language text, body text) RETURNS tsvector LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT AS $$
DECLARE
    config regconfig := CASE WHEN language = 'cjk' THEN 'simple' ELSE language END::regconfig;
    words text := workbench_plain(body);
    parts text;
    threes tsvector;
    names tsvector;
BEGIN
    SELECT string_agg(quote_literal(name) || ':' || least(place, 16383) || 'A', ' ')::tsvector INTO names FROM workbench_names(words);
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
    RETURN to_tsvector(config, words) || coalesce(threes, '') || coalesce(names, '');
END $$;

-- A file's name as words: reports/3M_2018_10K.pdf is "3M 2018 10K"; '' for addresses, hashes and numbers (as in ingestion/metadata.py).
CREATE FUNCTION workbench_file_words(path text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE
        WHEN path IS NULL OR path ~ '://' OR path !~ '\.[A-Za-z][A-Za-z0-9]{0,8}$' THEN ''
        WHEN stem.name ~* '^([0-9a-f]{12,}|[0-9a-f-]{36}|[0-9]+)$' THEN ''
        ELSE regexp_replace(regexp_replace(stem.name, '([[:lower:]])([[:upper:]][[:lower:]])', '\1 \2', 'g'),
            '([0-9]{4})([[:alpha:]])', '\1 \2', 'g')
    END
    FROM (SELECT left(regexp_replace(regexp_replace(path, '^.*/', ''), '\.[^.]*$', ''), 500) AS name) AS stem
$$;

-- ==== The corpus: projects, folders, sources and documents ============================================================

CREATE TABLE projects (
    id text PRIMARY KEY,
    title text NOT NULL UNIQUE,
    description text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE folders (
    id text PRIMARY KEY,
    project_id text NOT NULL REFERENCES projects ON DELETE CASCADE,
    name text NOT NULL,
    description text NOT NULL DEFAULT '',
    color text NOT NULL DEFAULT '#6366f1',
    icon_name text NOT NULL DEFAULT 'folder',
    UNIQUE (project_id, name),
    UNIQUE (id, project_id)  -- lets a source reference a folder of its own project only
);

CREATE TABLE sources (
    id text PRIMARY KEY,
    title text NOT NULL,
    source_type text NOT NULL DEFAULT 'upload'
        CHECK (source_type IN ('upload', 'crawl', 'api', 'workspace', 'articles', 'archive', 'dataset')),
    url text,
    scope text NOT NULL DEFAULT 'global' CHECK (scope IN ('global', 'project')),
    project_id text REFERENCES projects ON DELETE CASCADE,
    folder_id text,
    tags text[] NOT NULL DEFAULT '{}',
    language text NOT NULL DEFAULT 'auto',  -- chosen by the user; also for documents added later
    encoding text NOT NULL DEFAULT '',  -- of its texts; '' detects it for each file
    hidden text NOT NULL DEFAULT 'read' CHECK (hidden IN ('read', 'skip')),  -- sheets, rows and columns
    status text NOT NULL DEFAULT 'active',
    metadata jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CHECK ((scope = 'project') = (project_id IS NOT NULL)),
    CHECK (folder_id IS NULL OR project_id IS NOT NULL),
    FOREIGN KEY (folder_id, project_id) REFERENCES folders (id, project_id) ON DELETE SET NULL (folder_id)
);
CREATE INDEX sources_by_project ON sources (project_id, folder_id);
CREATE INDEX sources_by_tag ON sources USING gin (tags);
CREATE UNIQUE INDEX sources_title_once ON sources (source_type, title, coalesce(project_id, ''));

CREATE TABLE documents (
    id text PRIMARY KEY,
    source_id text NOT NULL REFERENCES sources ON DELETE CASCADE,
    key text NOT NULL,  -- identifies the document within its source: path, URL or content hash
    title text NOT NULL,
    path text,
    url text,
    document_type text NOT NULL,
    content_hash text NOT NULL,
    text text NOT NULL,
    language text NOT NULL DEFAULT 'english',
    metadata jsonb NOT NULL DEFAULT '{}',
    pages jsonb NOT NULL DEFAULT '[]',  -- [[page number, start, end], ...] if the format has pages
    document_date date,
    status text NOT NULL DEFAULT 'completed',
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    -- its names as terms, so that a question that names the document prefers its passages
    title_terms tsvector GENERATED ALWAYS AS (workbench_terms(language, left(title, 1000))) STORED,
    name_terms tsvector GENERATED ALWAYS AS (workbench_terms(language, workbench_file_words(path))) STORED,
    UNIQUE (source_id, key)
);
CREATE INDEX documents_by_content ON documents (source_id, content_hash);
CREATE INDEX documents_by_type ON documents (document_type);
CREATE INDEX documents_by_url ON documents (url) WHERE url IS NOT NULL;
-- every search of an index that is not the default checks whether a document has changed since the index was complete
CREATE INDEX documents_by_update ON documents (updated_at);

CREATE TABLE document_files (  -- original bytes of formats that are worth showing (PDF)
    document_id text PRIMARY KEY REFERENCES documents ON DELETE CASCADE,
    name text NOT NULL,
    media_type text NOT NULL,
    bytes bytea NOT NULL
);
ALTER TABLE document_files ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- Pages that OCR read, with the position of every word in the document's text and on its page.
CREATE TABLE scanned_pages (
    document_id text NOT NULL REFERENCES documents ON DELETE CASCADE,
    number integer NOT NULL CHECK (number > 0),
    confidence double precision NOT NULL,
    words jsonb NOT NULL,  -- [start, end, left, top, right, bottom, confidence] each; boxes in shares of the page
    PRIMARY KEY (document_id, number)
);

-- ==== Indexes: ways of chunking and embedding all documents ===========================================================

CREATE TABLE indexes (
    name text PRIMARY KEY CHECK (name ~ '^[a-z][a-z0-9_]{0,40}$'),
    chunker text NOT NULL,
    chunker_options jsonb NOT NULL DEFAULT '{}',
    embedding_model text NOT NULL,
    dimensions integer NOT NULL CHECK (dimensions BETWEEN 1 AND 4000),
    is_default boolean NOT NULL DEFAULT false,
    dataset text REFERENCES sources ON DELETE CASCADE,  -- set: holds that evaluation corpus and nothing else
    status text NOT NULL DEFAULT 'ready' CHECK (status IN ('building', 'ready', 'failed')),
    transformations jsonb NOT NULL DEFAULT '[]',  -- names of components that passages go through before they are embedded
    nearness jsonb,  -- cosines that count as evidence, measured on its passages; NULL: those of a built-in model, or none
    notes jsonb NOT NULL DEFAULT '[]',  -- sentences on what the last build left out
    graph jsonb,  -- its HNSW graph: shape, and the share of sampled passages it found; NULL: exact search
    attachment jsonb,  -- a table of someone else that is searched in place: its columns and the last sync; NULL: our own vectors
    attachment_url text,  -- its server, with the password, which is never shown or exported; NULL: a table of this database
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX one_default_index ON indexes (is_default) WHERE is_default;

CREATE TABLE index_documents (  -- the documents of an index, with their versions
    index_name text NOT NULL REFERENCES indexes ON DELETE CASCADE,
    document_id text NOT NULL REFERENCES documents ON DELETE CASCADE,
    content_hash text NOT NULL,
    passages integer NOT NULL,
    PRIMARY KEY (index_name, document_id)
);
CREATE INDEX index_documents_by_document ON index_documents (document_id);

CREATE TABLE component_results (  -- what transformations made of passages, so that no LLM is asked twice
    key bytea PRIMARY KEY,  -- of the component, its settings and what it read
    nodes jsonb NOT NULL,
    made_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE index_statistics (  -- statistics of an index's sources for BM25, maintained by its triggers
    index_name text NOT NULL REFERENCES indexes ON DELETE CASCADE,
    source_id text NOT NULL REFERENCES sources ON DELETE CASCADE,
    language text NOT NULL,
    passages bigint NOT NULL,
    terms bigint NOT NULL,
    PRIMARY KEY (index_name, source_id, language)
) WITH (fillfactor = 50);

-- ==== The keyword index ===============================================================================================

-- Postings in blocks: one row has up to 128 of a term's postings with 8 bytes each, instead of one per row with 97 bytes.
-- A posting is the passage's number (4 bytes), the term's frequency in it and the passage's length in terms (2 bytes
-- each), most significant byte first. A block is ordered by passage, and the blocks of a term do not overlap. `first` is at
-- most the first passage of its block. workbench/storage/postings.py reads them.
-- The terms of a passage are computed on insert and delete and not stored; the framework's full text has a table of its
-- own, created at first use.

CREATE FUNCTION workbench_passage_terms(metadata jsonb, body text) RETURNS tsvector LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT workbench_terms(coalesce(metadata ->> 'language', 'english'), coalesce(metadata ->> 'context', '') || ' ' || body)
$$;

CREATE FUNCTION workbench_length(terms tsvector) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT least(coalesce(sum(cardinality(positions)), 0), 32767)::integer FROM unnest(terms) WHERE weights[1] <> 'A'
$$;

CREATE FUNCTION workbench_posting(passage integer, frequency integer, length integer) RETURNS bytea LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT int4send(passage) || int2send(least(frequency, 32767)::smallint) || int2send(length::smallint)
$$;

-- The statement that adds the passages of a table expression to an index's lexicon, postings and statistics: a term's last
-- block is filled up before a new one is started. Terms are processed in one order everywhere.
CREATE FUNCTION workbench_posting_statement(index_name text, passages text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT format($sql$
        WITH read AS MATERIALIZED (
            SELECT n.id::integer AS id, n.metadata_ ->> 'source_id' AS source_id,
                coalesce(n.metadata_ ->> 'language', 'english') AS language,
                workbench_passage_terms(n.metadata_, n.text) AS terms
            FROM %4$s AS n),
        sized AS MATERIALIZED (SELECT id, source_id, language, terms, workbench_length(terms) AS length FROM read),
        words AS (
            INSERT INTO %2$I AS l (term, df)
            SELECT u.lexeme, count(*) FROM sized s, unnest(s.terms) u GROUP BY u.lexeme ORDER BY u.lexeme
            ON CONFLICT (term) DO UPDATE SET df = l.df + excluded.df RETURNING l.id, l.term),
        tails AS MATERIALIZED (
            SELECT w.id AS term_id, last.first, greatest(0, 128 - last.held) AS room
            FROM words w, LATERAL (
                SELECT p.first, octet_length(p.entries) / 8 AS held FROM %3$I p
                WHERE p.term_id = w.id ORDER BY p.first DESC LIMIT 1) AS last),
        numbered AS (
            SELECT w.id AS term_id, s.id AS passage, workbench_posting(s.id, cardinality(u.positions), s.length) AS entry,
                row_number() OVER (PARTITION BY w.id ORDER BY s.id) - 1 AS place
            FROM sized s, unnest(s.terms) u JOIN words w ON w.term = u.lexeme),
        placed AS (
            SELECT n.*, t.first AS tail, CASE WHEN place < t.room THEN 0 ELSE 1 + (place - coalesce(t.room, 0)) / 128 END AS block
            FROM numbered n LEFT JOIN tails t ON t.term_id = n.term_id),
        stored AS (
            INSERT INTO %3$I AS p (term_id, first, entries)
            SELECT term_id, CASE WHEN block = 0 THEN tail ELSE min(passage) END, string_agg(entry, ''::bytea ORDER BY passage)
            FROM placed GROUP BY term_id, tail, block ORDER BY term_id, block
            ON CONFLICT (term_id, first) DO UPDATE SET entries = p.entries || excluded.entries)
        INSERT INTO index_statistics AS s (index_name, source_id, language, passages, terms)
        SELECT %1$L, source_id, language, count(*), sum(length) FROM sized
        GROUP BY source_id, language ORDER BY source_id, language
        ON CONFLICT ON CONSTRAINT index_statistics_pkey
        DO UPDATE SET passages = s.passages + excluded.passages, terms = s.terms + excluded.terms
    $sql$, index_name, 'lexicon_' || index_name, 'postings_' || index_name, passages)
$$;

-- BEFORE INSERT of passages (once per statement): writers are serialised before their passages get numbers, so that blocks
-- grow at their ends.
CREATE FUNCTION workbench_take_turn() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(7215005, hashtext(TG_ARGV[0]));
    RETURN NULL;
END $$;

-- AFTER INSERT of passages (once per statement): postings, document frequencies, statistics, and the framework's full text.
CREATE FUNCTION workbench_add_postings() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    index_name text := TG_ARGV[0];
    newest_is_new boolean;
BEGIN
    EXECUTE format('SELECT (SELECT count(*) FROM %I WHERE id >= (SELECT min(id) FROM new_passages)) = (SELECT count(*) FROM new_passages)',
        'data_' || index_name) INTO newest_is_new;
    IF NOT newest_is_new THEN
        RAISE EXCEPTION 'A new passage of an index has a number above all others; leave its id out.';
    END IF;
    EXECUTE workbench_posting_statement(index_name, 'new_passages');
    IF to_regclass(quote_ident('full_text_' || index_name)) IS NOT NULL THEN
        EXECUTE format('INSERT INTO %I SELECT id, workbench_passage_terms(metadata_, text) FROM new_passages', 'full_text_' || index_name);
    END IF;
    RETURN NULL;
END $$;

-- The statement that removes the passages of a table expression, whose numbers are `gone` (4 bytes each), from an index's
-- postings: it looks up the blocks of their terms or scans all blocks, whichever are fewer.
CREATE FUNCTION workbench_dropping_statement(index_name text, passages text, gone bytea[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    looked_up bigint := cardinality(gone) * 100;  -- terms of these passages, estimated
    many boolean;
BEGIN
    EXECUTE format('SELECT count(*) < %s FROM (SELECT FROM %I LIMIT %1$s) AS blocks', looked_up, 'postings_' || index_name) INTO many;
    RETURN format($sql$
        WITH gone AS MATERIALIZED (
            SELECT o.id::integer AS id, o.source_id, coalesce(o.metadata_ ->> 'language', 'english') AS language,
                workbench_passage_terms(o.metadata_, o.text) AS terms
            FROM %6$s AS o),
        cut AS MATERIALIZED (
            SELECT * FROM (
                SELECT b.term_id, b.first, octet_length(b.entries) / 8 AS held, (
                    SELECT string_agg(substring(b.entries FROM place * 8 + 1 FOR 8), ''::bytea)
                    FROM generate_series(0, octet_length(b.entries) / 8 - 1) AS place
                    WHERE NOT substring(b.entries FROM place * 8 + 1 FOR 4) = ANY (%5$L::bytea[])) AS kept
                FROM %4$s AS b OFFSET 0) AS every
            WHERE coalesce(octet_length(kept) / 8, 0) < held),
        changed AS (
            UPDATE %3$I p SET entries = c.kept FROM cut c WHERE p.term_id = c.term_id AND p.first = c.first AND c.kept IS NOT NULL),
        emptied AS (
            DELETE FROM %3$I p USING cut c WHERE p.term_id = c.term_id AND p.first = c.first AND c.kept IS NULL),
        words AS (
            UPDATE %2$I l SET df = l.df - c.taken FROM (
                SELECT term_id, sum(held - coalesce(octet_length(kept) / 8, 0)) AS taken FROM cut GROUP BY term_id) AS c
            WHERE l.id = c.term_id)
        UPDATE index_statistics s SET passages = s.passages - g.passages, terms = s.terms - g.terms
        FROM (
            SELECT source_id, language, count(*) AS passages, sum(workbench_length(terms)) AS terms
            FROM gone GROUP BY source_id, language) AS g
        WHERE s.index_name = %1$L AND s.source_id = g.source_id AND s.language = g.language
    $sql$, index_name, 'lexicon_' || index_name, 'postings_' || index_name,
        CASE WHEN many THEN format('%I', 'postings_' || index_name) ELSE format($sql$(
            SELECT p.term_id, p.first, p.entries FROM (
                SELECT DISTINCT l.id AS term_id, b.first
                FROM gone g, unnest(g.terms) u JOIN %1$I l ON l.term = u.lexeme, LATERAL (
                    SELECT p.first FROM %2$I p WHERE p.term_id = l.id AND p.first <= g.id ORDER BY p.first DESC LIMIT 1) AS b) AS t,
            LATERAL (SELECT p.* FROM %2$I p WHERE p.term_id = t.term_id AND p.first = t.first LIMIT 1) AS p)
        $sql$, 'lexicon_' || index_name, 'postings_' || index_name) END, gone, passages);
END $$;

-- AFTER DELETE of passages (once per statement, also by cascade).
CREATE FUNCTION workbench_drop_postings() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    gone bytea[] := (SELECT array_agg(int4send(id)) FROM old_passages);
BEGIN
    IF gone IS NOT NULL THEN
        EXECUTE workbench_dropping_statement(TG_ARGV[0], 'old_passages', gone);
    END IF;
    RETURN NULL;
END $$;

-- The triggers that maintain the keyword index of a table of passages.
CREATE FUNCTION workbench_create_triggers(index_name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TRIGGER take_turn BEFORE INSERT ON %I FOR EACH STATEMENT EXECUTE FUNCTION workbench_take_turn(%L)',
        'data_' || index_name, index_name);
    EXECUTE format('CREATE TRIGGER add_postings AFTER INSERT ON %I REFERENCING NEW TABLE AS new_passages '
        'FOR EACH STATEMENT EXECUTE FUNCTION workbench_add_postings(%L)', 'data_' || index_name, index_name);
    EXECUTE format('CREATE TRIGGER drop_postings AFTER DELETE ON %I REFERENCING OLD TABLE AS old_passages '
        'FOR EACH STATEMENT EXECUTE FUNCTION workbench_drop_postings(%L)', 'data_' || index_name, index_name);
END $$;

-- The tables of the keyword index for a table of passages, and the triggers that maintain them.
CREATE FUNCTION workbench_create_postings(index_name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TABLE %I (term_id integer NOT NULL, first integer NOT NULL, entries bytea NOT NULL, '
        'PRIMARY KEY (term_id, first))', 'postings_' || index_name);
    EXECUTE format('ALTER TABLE %I ALTER COLUMN entries SET STORAGE PLAIN', 'postings_' || index_name);
    PERFORM workbench_create_triggers(index_name);
END $$;

-- The tables of one index: its passages in the format of LlamaIndex's PGVectorStore, its lexicon and its postings. A small
-- index has no HNSW graph: searches are exact. The vector comes right after the number and is stored inline: an exact search
-- reads these two of every row. At 10,000 passages it took 6.1 ms of processor time, and 9.3 with the vector after the text
-- and partly out of line.
CREATE FUNCTION workbench_create_index(index_name text, dimensions integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format($sql$
        CREATE TABLE %1$I (
            id integer GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
            embedding halfvec(%2$s) NOT NULL,
            text varchar NOT NULL,
            metadata_ jsonb NOT NULL,
            node_id varchar NOT NULL UNIQUE,
            document_id text NOT NULL GENERATED ALWAYS AS (metadata_ ->> 'document_id') STORED
                REFERENCES documents ON DELETE CASCADE,
            source_id text NOT NULL GENERATED ALWAYS AS (metadata_ ->> 'source_id') STORED,
            passage_hash bytea,
            token_bits bytea
        )$sql$, 'data_' || index_name, dimensions);
    IF EXISTS (SELECT FROM indexes WHERE name = index_name AND attachment IS NOT NULL) THEN  -- vectors are elsewhere
        EXECUTE format('ALTER TABLE %I ALTER COLUMN embedding DROP NOT NULL', 'data_' || index_name);
    END IF;
    EXECUTE format('ALTER TABLE %I ALTER COLUMN token_bits SET STORAGE EXTERNAL', 'data_' || index_name);
    EXECUTE format('ALTER TABLE %I ALTER COLUMN embedding SET STORAGE MAIN', 'data_' || index_name);
    EXECUTE format('CREATE INDEX %I ON %I (document_id)', 'data_' || index_name || '_document', 'data_' || index_name);
    EXECUTE format('CREATE INDEX %I ON %I (source_id)', 'data_' || index_name || '_source', 'data_' || index_name);
    EXECUTE format('CREATE INDEX %I ON %I (passage_hash)', 'data_' || index_name || '_hash', 'data_' || index_name);
    EXECUTE format('CREATE TABLE %I (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, term text NOT NULL UNIQUE, '
        'df integer NOT NULL) WITH (fillfactor = 60)', 'lexicon_' || index_name);
    PERFORM workbench_create_postings(index_name);
END $$;

-- A new graph is built next to the old one, which is replaced in a separate transaction. A process that is killed in
-- between leaves the new one, which was never measured.
CREATE FUNCTION workbench_drop_new_graph(index_name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('DROP INDEX IF EXISTS %I', 'data_' || index_name || '_embedding_new');
END $$;

CREATE FUNCTION workbench_build_graph(index_name text, m integer, ef_construction integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM workbench_drop_new_graph(index_name);
    EXECUTE format('CREATE INDEX %I ON %I USING hnsw (embedding halfvec_cosine_ops) WITH (m = %s, ef_construction = %s)',
        'data_' || index_name || '_embedding_new', 'data_' || index_name, m, ef_construction);
END $$;

CREATE FUNCTION workbench_replace_graph(index_name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('DROP INDEX IF EXISTS %I', 'data_' || index_name || '_embedding_idx');
    EXECUTE format('ALTER INDEX %I RENAME TO %I',
        'data_' || index_name || '_embedding_new', 'data_' || index_name || '_embedding_idx');
END $$;

CREATE FUNCTION workbench_drop_index(index_name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('DROP TABLE IF EXISTS %I, %I, %I, %I',
        'full_text_' || index_name, 'data_' || index_name, 'lexicon_' || index_name, 'postings_' || index_name);
END $$;

-- Replaces the passages and the definition of an index with those of another one, which is dropped. The index keeps its
-- name, and so its promotions and its place as the default. Its triggers contain the index's name, so they are recreated.
CREATE FUNCTION workbench_replace_index(replaced text, successor text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    part text;
    relation text;
BEGIN
    PERFORM workbench_drop_index(replaced);
    DELETE FROM index_documents WHERE index_name = replaced;
    DELETE FROM index_statistics WHERE index_name = replaced;
    UPDATE index_documents SET index_name = replaced WHERE index_name = successor;
    UPDATE index_statistics SET index_name = replaced WHERE index_name = successor;
    UPDATE indexes i SET chunker = s.chunker, chunker_options = s.chunker_options, transformations = s.transformations,
        embedding_model = s.embedding_model, dimensions = s.dimensions, status = s.status, nearness = s.nearness, notes = s.notes,
        graph = s.graph, created_at = s.created_at
        FROM indexes s WHERE i.name = replaced AND s.name = successor;
    DELETE FROM indexes WHERE name = successor;
    FOREACH part IN ARRAY ARRAY['full_text_', 'data_', 'lexicon_', 'postings_'] LOOP
        FOR relation IN SELECT c.relname FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid
            WHERE x.indrelid = to_regclass(quote_ident(part || successor)) LOOP
            EXECUTE format('ALTER INDEX %I RENAME TO %I', relation,
                part || replaced || substr(relation, length(part || successor) + 1));
        END LOOP;
        EXECUTE format('ALTER TABLE IF EXISTS %I RENAME TO %I', part || successor, part || replaced);
    END LOOP;
    EXECUTE format('DROP TRIGGER take_turn ON %1$I; DROP TRIGGER add_postings ON %1$I; DROP TRIGGER drop_postings ON %1$I',
        'data_' || replaced);
    PERFORM workbench_create_triggers(replaced);
END $$;

-- The full text of an index for LlamaIndex's PGVectorStore: the terms of every passage, with an index of their own.
-- Created once and maintained by triggers.
CREATE FUNCTION workbench_create_full_text(index_name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF to_regclass(quote_ident('full_text_' || index_name)) IS NOT NULL THEN
        RETURN;  -- without waiting for a writer
    END IF;
    PERFORM pg_advisory_xact_lock(7215005, hashtext(index_name));
    IF to_regclass(quote_ident('full_text_' || index_name)) IS NULL THEN
        EXECUTE format('CREATE TABLE %I (passage_id integer PRIMARY KEY REFERENCES %I ON DELETE CASCADE, '
            'text_search_tsv tsvector NOT NULL)', 'full_text_' || index_name, 'data_' || index_name);
        EXECUTE format('INSERT INTO %I SELECT id, workbench_passage_terms(metadata_, text) FROM %I',
            'full_text_' || index_name, 'data_' || index_name);
        EXECUTE format('CREATE INDEX %I ON %I USING gin (text_search_tsv)', 'full_text_' || index_name || '_terms', 'full_text_' || index_name);
        EXECUTE format('ANALYZE %I', 'full_text_' || index_name);
    END IF;
END $$;

-- Rebuilds the keyword index of an index from its passages' texts, a few thousand at a time: after a change of the word
-- rules, and for an export of an older version.
CREATE FUNCTION workbench_read_again(index_name text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    newest integer;
BEGIN
    PERFORM pg_advisory_xact_lock(7215005, hashtext(index_name));
    EXECUTE format('TRUNCATE %I', 'postings_' || index_name);
    EXECUTE format('UPDATE %I SET df = 0', 'lexicon_' || index_name);
    DELETE FROM index_statistics s WHERE s.index_name = workbench_read_again.index_name;
    EXECUTE format('SELECT coalesce(max(id), 0) FROM %I', 'data_' || index_name) INTO newest;
    FOR start IN 0 .. newest BY 2000 LOOP
        EXECUTE workbench_posting_statement(index_name,
            format('(SELECT id, metadata_, text FROM %I WHERE id > %s AND id <= %s)', 'data_' || index_name, start, start + 2000));
    END LOOP;
    IF to_regclass(quote_ident('full_text_' || index_name)) IS NOT NULL THEN
        EXECUTE format('UPDATE %I f SET text_search_tsv = workbench_passage_terms(d.metadata_, d.text) FROM %I d WHERE d.id = f.passage_id',
            'full_text_' || index_name, 'data_' || index_name);
    END IF;
END $$;

-- ==== Choices: promoted strategies and trained rankers ================================================================

-- Promotions: the strategy that serves a scope if a search names none. The history is kept for undo.
CREATE TABLE promotions (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project_id text REFERENCES projects ON DELETE CASCADE,
    folder_id text REFERENCES folders ON DELETE CASCADE,
    source_id text REFERENCES sources ON DELETE CASCADE,
    scope_key text NOT NULL GENERATED ALWAYS AS (
        CASE WHEN source_id IS NOT NULL THEN 'source:' || source_id WHEN folder_id IS NOT NULL THEN 'folder:' || folder_id
        WHEN project_id IS NOT NULL THEN 'project:' || project_id ELSE 'everywhere' END) STORED,
    version integer NOT NULL,  -- from 1 within a scope
    strategy text NOT NULL,
    parameters jsonb NOT NULL DEFAULT '{}',
    index_name text REFERENCES indexes ON DELETE SET NULL,  -- NULL: the default index
    rival text NOT NULL DEFAULT '',  -- STRATEGY or STRATEGY@INDEX whose results are interleaved for agents
    note text NOT NULL DEFAULT '',
    promoted_at timestamptz NOT NULL DEFAULT now(),
    undone_at timestamptz,
    CHECK (num_nonnulls(project_id, folder_id, source_id) <= 1),
    UNIQUE (scope_key, version)
);

CREATE TABLE proposals (  -- promotions that an agent proposes and a person accepts or rejects
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project_id text REFERENCES projects ON DELETE CASCADE,
    source_id text REFERENCES sources ON DELETE CASCADE,  -- both NULL: everywhere
    strategy text NOT NULL,
    parameters jsonb NOT NULL DEFAULT '{}',
    index_name text REFERENCES indexes ON DELETE CASCADE,  -- NULL: the default index
    rival text NOT NULL DEFAULT '',  -- as in promotions
    reason text NOT NULL,
    proposed_by text NOT NULL DEFAULT '',
    proposed_at timestamptz NOT NULL DEFAULT now(),
    decided_at timestamptz,
    accepted boolean,
    CHECK (num_nonnulls(project_id, source_id) <= 1)
);

-- Rankers: weights of the strategy "learned", trained here or imported. Test set and index are stored by name, as the
-- weights outlive them.
CREATE TABLE rankers (
    name text PRIMARY KEY,
    weights jsonb NOT NULL,
    trained_on text NOT NULL DEFAULT '',
    version integer NOT NULL DEFAULT 0,
    index_name text NOT NULL DEFAULT '',
    questions integer NOT NULL DEFAULT 0,
    figures jsonb NOT NULL DEFAULT '{}',
    note text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT now()
);

-- ==== Citations =======================================================================================================

-- Citations: links between documents. A link is stored as written, with the addresses it may mean, and resolved when it is
-- read. So a target that is added later is found, a deleted one is not, and concurrent writers cannot miss each other.
CREATE TABLE document_addresses (  -- names by which a document can be cited: its path, page, URL, aliases, title
    document_id text NOT NULL REFERENCES documents ON DELETE CASCADE,
    source_id text NOT NULL,
    key text NOT NULL,  -- kind:address, such as page:guides/setup or url:example.com/setup
    depth smallint NOT NULL  -- folders above the document: of two with the same name the one nearer the root is meant
);
CREATE INDEX document_addresses_by_key ON document_addresses (key);
CREATE INDEX document_addresses_by_document ON document_addresses (document_id);

CREATE TABLE citations (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    document_id text NOT NULL REFERENCES documents ON DELETE CASCADE,
    source_id text NOT NULL,
    position integer NOT NULL,  -- of the link in the document's text
    kind text NOT NULL,
    target text NOT NULL,  -- as written
    url text,  -- absolute, if the link is or resolves to a URL
    label text NOT NULL,
    context text NOT NULL,
    confidence real NOT NULL,
    keys text[] NOT NULL  -- the addresses it may mean, the likeliest first
);
CREATE INDEX citations_by_document ON citations (document_id);
CREATE INDEX citations_by_source ON citations (source_id);
CREATE INDEX citations_by_key ON citations USING gin (keys) WITH (fastupdate = off);  -- otherwise lookups read a list of recent links

CREATE TABLE document_mentions (  -- one row per document with parsed links; keys are titles it may mention in its text
    document_id text PRIMARY KEY REFERENCES documents ON DELETE CASCADE,
    source_id text NOT NULL,
    keys text[] NOT NULL
);
CREATE INDEX document_mentions_by_key ON document_mentions USING gin (keys) WITH (fastupdate = off);

-- Each link with the document it leads to. A path or a name means a document of the same source; a URL also one of
-- another source, if that is global or of the same project, and not an evaluation corpus.
CREATE VIEW citation_links AS
SELECT c.*, found.document_id AS to_document
FROM citations c
    JOIN sources s ON s.id = c.source_id
    LEFT JOIN LATERAL (
        SELECT a.document_id
        FROM unnest(c.keys) WITH ORDINALITY AS k (key, rank)
            JOIN document_addresses a ON a.key = k.key
            JOIN sources t ON t.id = a.source_id
        WHERE a.source_id = c.source_id
           OR (k.key LIKE 'url:%' AND s.source_type <> 'dataset' AND t.source_type <> 'dataset'
               AND (t.project_id IS NULL OR t.project_id = s.project_id))
        ORDER BY k.rank, (a.source_id = c.source_id) DESC, a.depth, a.document_id
        LIMIT 1) found ON true;

-- Each title of another document of the same source that a document mentions in its text.
CREATE VIEW citation_mentions AS
SELECT m.document_id, m.source_id, k.key, a.document_id AS to_document
FROM document_mentions m, unnest(m.keys) AS k (key)
    JOIN document_addresses a ON a.key = k.key
WHERE a.source_id = m.source_id AND a.document_id <> m.document_id;

-- ==== Jobs ============================================================================================================

-- Long work that can be started, watched, cancelled and resumed.
CREATE TABLE jobs (
    id text PRIMARY KEY,
    kind text NOT NULL CHECK (kind IN ('crawl', 'ingest', 'index_build', 'experiment', 'optimise', 'test_set', 'learn')),
    title text NOT NULL,
    parameters jsonb NOT NULL DEFAULT '{}',
    source_id text REFERENCES sources ON DELETE CASCADE,
    status text NOT NULL DEFAULT 'queued'
        CHECK (status IN ('queued', 'running', 'completed', 'completed_with_errors', 'cancelled', 'failed')),
    done bigint NOT NULL DEFAULT 0,
    total bigint NOT NULL DEFAULT 0,  -- 0: unknown
    message text NOT NULL DEFAULT '',
    error text,
    result jsonb NOT NULL DEFAULT '{}',
    cancel_requested boolean NOT NULL DEFAULT false,
    worker text,
    attempts integer NOT NULL DEFAULT 0,  -- starts since the last progress
    part real NOT NULL DEFAULT 0,  -- finished share of the items in progress, 0..1
    seconds_left real,  -- the runner's estimate; NULL if unknown
    taken_at timestamptz,  -- when the present worker took it, for its pace
    moved_at timestamptz NOT NULL DEFAULT now(),  -- last change of numbers or message, or heartbeat of a slow step
    share real,  -- finished share of its work, 0..1; NULL before it is measured
    put_away boolean NOT NULL DEFAULT false,  -- hidden by a user
    created_at timestamptz NOT NULL DEFAULT now(),
    started_at timestamptz,
    completed_at timestamptz,
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX jobs_by_time ON jobs (created_at DESC);
CREATE INDEX jobs_by_source ON jobs (source_id, created_at DESC);

CREATE TABLE job_log (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id text NOT NULL REFERENCES jobs ON DELETE CASCADE,
    at timestamptz NOT NULL DEFAULT now(),
    level text NOT NULL DEFAULT 'info' CHECK (level IN ('info', 'warning', 'error')),
    message text NOT NULL
);
CREATE INDEX job_log_by_job ON job_log (job_id, id);

CREATE TABLE job_files (  -- the files of an ingest and their outcomes
    job_id text NOT NULL REFERENCES jobs ON DELETE CASCADE,
    position integer NOT NULL,
    name text NOT NULL,
    bytes bytea,  -- of uploads, until they are ingested: the worker may run on another machine
    size bigint NOT NULL DEFAULT 0,
    state text NOT NULL DEFAULT 'waiting'
        CHECK (state IN ('waiting', 'busy', 'added', 'changed', 'unchanged', 'failed')),
    passages integer NOT NULL DEFAULT 0,
    error text,
    settled_at timestamptz,
    PRIMARY KEY (job_id, position)
);
ALTER TABLE job_files ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- The parts of long work, which any number of workers take one by one: each is done once, completely or not at all.
CREATE TABLE job_parts (
    job_id text NOT NULL REFERENCES jobs ON DELETE CASCADE,
    position integer NOT NULL,  -- parts are taken in this order
    content jsonb NOT NULL,  -- documents by id, files by position, cells by number
    items integer NOT NULL,  -- number in the job's unit
    weight bigint NOT NULL DEFAULT 1,  -- bytes of text, or items
    state text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'busy', 'done')),
    holder text,  -- name of an advisory lock, which ends with the process that holds the part
    times integer NOT NULL DEFAULT 0,  -- how often it was taken
    result jsonb NOT NULL DEFAULT '{}',
    taken_at timestamptz,
    done_at timestamptz,
    PRIMARY KEY (job_id, position)
);
CREATE INDEX job_parts_to_do ON job_parts (job_id, position) WHERE state <> 'done';

-- Texts of one large document that several workers embed, and their vectors until the document is stored. They are
-- temporary: not in the log, on replicas or in backups. After a crash of the server they are embedded again.
CREATE UNLOGGED TABLE embedding_parts (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,  -- parts are taken in this order
    job_id text NOT NULL REFERENCES jobs ON DELETE CASCADE,
    model text NOT NULL,
    owner text NOT NULL,  -- writes the document; name of an advisory lock
    passages integer NOT NULL,
    hashes bytea[] NOT NULL,  -- of the texts, in their order
    texts bytea,  -- a list as JSON; NULL once they are embedded
    state text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'busy', 'done')),
    holder text,  -- embeds it; name of an advisory lock
    times integer NOT NULL DEFAULT 0,  -- how often it was taken
    vectors bytea,  -- 32 bits per number, the texts one after the other
    token_bits bytea[],
    made_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX embedding_parts_of_job ON embedding_parts (job_id, id);

-- ==== Crawls, with every page they found ==============================================================================

CREATE TABLE crawl_jobs (
    job_id text PRIMARY KEY REFERENCES jobs ON DELETE CASCADE,
    source_id text REFERENCES sources ON DELETE CASCADE,  -- NULL: nothing was stored, and its source is gone
    url text NOT NULL,
    options jsonb NOT NULL,
    seeds jsonb NOT NULL DEFAULT '[]',  -- URLs from sitemaps, llms.txt: [[url, via, lastmod], ...]
    scope jsonb,  -- host and path of the crawl, known after the start page
    skipped jsonb NOT NULL DEFAULT '{}',  -- {reason: number of URLs without a row in crawl_pages}
    boilerplate bigint[]  -- hashes of boilerplate lines; NULL until enough pages were fetched
);
CREATE INDEX crawl_jobs_by_source ON crawl_jobs (source_id);

CREATE TABLE crawl_pages (
    job_id text NOT NULL REFERENCES crawl_jobs ON DELETE CASCADE,
    position integer NOT NULL,  -- order of a breadth-first traversal, however many fetch in parallel
    url text NOT NULL,
    depth integer NOT NULL,
    parent text,
    via text NOT NULL DEFAULT 'link' CHECK (via IN ('start', 'link', 'sitemap', 'llms', 'guess', 'memory')),
    lastmod text,  -- from the sitemap
    state text NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'fetched', 'done')),
    outcome text CHECK (outcome IN ('added', 'changed', 'unchanged', 'duplicate', 'redirected', 'removed', 'gone', 'held',
        'failed', 'forbidden', 'not_allowed', 'left_out')),
    -- gone: kept and marked; held: removal awaits approval; not_allowed: by us, not by the site
    reason text,
    expanded boolean NOT NULL DEFAULT false,  -- whether its links are queued
    attempts integer NOT NULL DEFAULT 0,
    status_code integer,
    final_url text,
    document_key text,
    document_id text,
    passages integer NOT NULL DEFAULT 0,
    title text,
    media_type text,
    etag text,
    last_modified text,
    content_hash text,
    links jsonb NOT NULL DEFAULT '[]',
    blocks bigint[] NOT NULL DEFAULT '{}',  -- hashes of the main text's paragraphs, to find duplicates
    metadata jsonb NOT NULL DEFAULT '{}',
    body bytea,  -- kept between fetching and storing, so that nothing is fetched twice
    size integer NOT NULL DEFAULT 0,
    rendered boolean NOT NULL DEFAULT false,
    seconds real NOT NULL DEFAULT 0,
    fetched_at timestamptz,
    PRIMARY KEY (job_id, position),
    UNIQUE (job_id, url)
);
ALTER TABLE crawl_pages ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE INDEX crawl_pages_by_state ON crawl_pages (job_id, state, position);

-- ==== Evaluation: test sets with their history, judgments, and the answers of strategies ==============================

CREATE TABLE datasets (
    id text PRIMARY KEY,
    title text NOT NULL UNIQUE,
    description text NOT NULL DEFAULT '',
    source_id text REFERENCES sources ON DELETE CASCADE,  -- its own corpus; NULL: the user's sources
    scope jsonb NOT NULL DEFAULT '{}',  -- the part of the corpus it measures, by ids, with their titles at that time; {}: everything
    corpus_hash text NOT NULL DEFAULT '',
    grades smallint NOT NULL DEFAULT 3 CHECK (grades BETWEEN 2 AND 5),  -- number of grades of its raters, from 0
    version integer NOT NULL DEFAULT 1,  -- counts edits; every row below has the range of versions it is valid for
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE dataset_questions (  -- valid from version "since" until before version "until"
    dataset_id text NOT NULL REFERENCES datasets ON DELETE CASCADE,
    question_id text NOT NULL,
    since integer NOT NULL,
    until integer CHECK (until > since),
    text text NOT NULL,
    reference_answer text NOT NULL DEFAULT '',
    origin text NOT NULL DEFAULT 'person',
    metadata jsonb NOT NULL DEFAULT '{}',
    position bigint GENERATED ALWAYS AS IDENTITY,
    PRIMARY KEY (dataset_id, question_id, since)
);
CREATE UNIQUE INDEX dataset_questions_now ON dataset_questions (dataset_id, question_id) WHERE until IS NULL;

CREATE TABLE judgments (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    dataset_id text NOT NULL REFERENCES datasets ON DELETE CASCADE,
    question_id text NOT NULL,
    since integer NOT NULL,
    until integer CHECK (until > since),
    document text NOT NULL,  -- the document's key in the test set's own corpus, otherwise its id; outlives the document
    grade smallint NOT NULL CHECK (grade BETWEEN -100 AND 100),
    start_at integer,  -- a span of the document; both NULL: the document as a whole
    end_at integer,
    pages integer[] NOT NULL DEFAULT '{}',  -- relevant pages of the document
    quote text NOT NULL DEFAULT '',
    judge text NOT NULL DEFAULT 'person' CHECK (judge IN ('person', 'import', 'rule', 'llm', 'agent')),
    rater text NOT NULL DEFAULT '',  -- name of one of several raters; '': the grade that counts
    reason text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT now(),
    CHECK ((start_at IS NULL) = (end_at IS NULL)),
    CHECK (start_at >= 0 AND end_at > start_at)
);
CREATE INDEX judgments_by_dataset ON judgments (dataset_id, question_id);
CREATE UNIQUE INDEX judgments_now ON judgments (dataset_id, question_id, document, (coalesce(start_at, -1)), (coalesce(end_at, -1)), rater)
    WHERE until IS NULL;

CREATE TABLE eval_runs (  -- one strategy with parameters over one index; kept as long as nothing it depends on changes
    id text PRIMARY KEY,
    key text NOT NULL UNIQUE,  -- hash of the five below and of the ranking depth
    corpus_hash text NOT NULL,
    index_hash text NOT NULL,
    strategy_hash text NOT NULL,  -- name, parameters and ranking code
    questions_hash text NOT NULL,  -- of the questions without judgments, so that more judgments need no new run
    depth integer NOT NULL,
    strategy text NOT NULL,
    parameters jsonb NOT NULL DEFAULT '{}',
    index_name text NOT NULL,
    index_settings jsonb NOT NULL DEFAULT '{}',
    questions integer NOT NULL,
    status text NOT NULL DEFAULT 'running' CHECK (status IN ('running', 'done', 'failed')),
    error text,
    created_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz
);

CREATE TABLE eval_answers (  -- a run's results for one question; stored one by one, so that a killed run can resume
    run_id text NOT NULL REFERENCES eval_runs ON DELETE CASCADE,
    question_id text NOT NULL,
    documents text[] NOT NULL,
    passages jsonb NOT NULL,
    latency_ms real NOT NULL,
    degraded text[] NOT NULL DEFAULT '{}',
    within jsonb NOT NULL DEFAULT '[]',  -- results of a search within the relevant document
    usage jsonb NOT NULL DEFAULT '{}',  -- tokens of the found text, calls of the LLM and their tokens
    reply jsonb,  -- the answer to the question, or the scores of a judge; NULL for a search
    PRIMARY KEY (run_id, question_id)
);

CREATE TABLE experiments (
    id text PRIMARY KEY,
    title text NOT NULL,
    dataset_id text NOT NULL REFERENCES datasets ON DELETE CASCADE,
    dataset_version integer NOT NULL,
    dataset_hash text NOT NULL,  -- questions and judgments
    corpus_hash text NOT NULL,
    plan jsonb NOT NULL,  -- the matrix: indexes, strategies with parameters, metrics, questions
    status text NOT NULL DEFAULT 'running' CHECK (status IN ('running', 'done', 'stopped', 'failed')),
    message text NOT NULL DEFAULT '',
    winner jsonb,  -- best run of a finished experiment
    note text NOT NULL DEFAULT '',
    tags text[] NOT NULL DEFAULT '{}',
    view jsonb NOT NULL DEFAULT '{}',  -- the saved view: metric, runs A and B, tag
    bars jsonb NOT NULL DEFAULT '[]',  -- the outcome of each bar of a configuration file
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE experiment_runs (
    experiment_id text NOT NULL REFERENCES experiments ON DELETE CASCADE,
    position integer NOT NULL,
    run_id text NOT NULL REFERENCES eval_runs ON DELETE CASCADE,
    label text NOT NULL,
    extra jsonb NOT NULL DEFAULT '{}',  -- further measurements: ragas, index size
    note text NOT NULL DEFAULT '',
    tags text[] NOT NULL DEFAULT '{}',
    PRIMARY KEY (experiment_id, position)
);
CREATE INDEX experiment_runs_by_run ON experiment_runs (run_id);

-- ==== Agents: their tool calls ========================================================================================

-- One row per tool call, so that real questions can become test questions.
CREATE TABLE tool_calls (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    called_at timestamptz NOT NULL DEFAULT now(),
    tool text NOT NULL,
    query text,  -- the question of a search; of other arguments only sizes are stored
    argument_sizes jsonb NOT NULL DEFAULT '{}',
    scope jsonb NOT NULL DEFAULT '{}',
    duration_ms float8 NOT NULL,
    answer_chars integer NOT NULL,
    results integer,  -- NULL if a tool does not count
    zero_result boolean GENERATED ALWAYS AS (results IS NOT NULL AND results = 0) STORED,
    error text,
    client text,  -- the name in its configuration, otherwise its own; NULL over plain HTTP
    session text,  -- of its connection; NULL if the transport has none
    documents text[] NOT NULL DEFAULT '{}',  -- ids: found by a search, best first, or opened, or cited
    promotion text,  -- "SCOPE VERSION" of the promotion that interleaved two strategies
    teams text[] NOT NULL DEFAULT '{}'  -- of an interleaved search: the strategy that contributed each document
);
CREATE INDEX tool_calls_by_time ON tool_calls (called_at DESC);
CREATE INDEX tool_calls_by_client ON tool_calls (client, called_at) WHERE client IS NOT NULL;

-- ==== Compare: the questions that people asked =======================================================================

CREATE TABLE history (  -- one row per comparison, so that it can be shown again
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    question text NOT NULL,
    address text NOT NULL,  -- the query of its URL: question, strategies, parameters and scope
    asked_at timestamptz NOT NULL DEFAULT now(),
    saved boolean NOT NULL DEFAULT false  -- saved comparisons are never pruned
);
CREATE UNIQUE INDEX history_by_address ON history (md5(address));
CREATE INDEX history_by_time ON history (asked_at DESC);
