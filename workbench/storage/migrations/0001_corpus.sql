-- The corpus: projects, folders, sources, documents, and the list of indexes over them.
CREATE EXTENSION IF NOT EXISTS vector;

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
    UNIQUE (id, project_id)  -- lets a source prove that its folder is its project's
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
    language text NOT NULL DEFAULT 'english',
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
    key text NOT NULL,  -- what makes it the same document again within its source: path, URL or content hash
    title text NOT NULL,
    path text,
    url text,
    document_type text NOT NULL,
    content_hash text NOT NULL,
    text text NOT NULL,
    language text NOT NULL DEFAULT 'english',
    metadata jsonb NOT NULL DEFAULT '{}',
    pages jsonb NOT NULL DEFAULT '[]',  -- [[page number, start, end], ...] where the form has pages
    document_date date,
    status text NOT NULL DEFAULT 'completed',
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (source_id, key)
);
CREATE INDEX documents_by_content ON documents (source_id, content_hash);
CREATE INDEX documents_by_type ON documents (document_type);
CREATE INDEX documents_by_url ON documents (url) WHERE url IS NOT NULL;

CREATE TABLE document_files (  -- the original bytes, where showing them says more than the text does (PDF)
    document_id text PRIMARY KEY REFERENCES documents ON DELETE CASCADE,
    name text NOT NULL,
    media_type text NOT NULL,
    bytes bytea NOT NULL
);
ALTER TABLE document_files ALTER COLUMN bytes SET STORAGE EXTERNAL;

CREATE TABLE indexes (
    name text PRIMARY KEY CHECK (name ~ '^[a-z][a-z0-9_]{0,40}$'),
    chunker text NOT NULL,
    chunker_options jsonb NOT NULL DEFAULT '{}',
    embedding_model text NOT NULL,
    dimensions integer NOT NULL CHECK (dimensions BETWEEN 1 AND 4000),
    is_default boolean NOT NULL DEFAULT false,
    dataset text REFERENCES sources ON DELETE CASCADE,  -- set: holds that evaluation corpus and nothing else
    status text NOT NULL DEFAULT 'ready' CHECK (status IN ('building', 'ready', 'failed')),
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX one_default_index ON indexes (is_default) WHERE is_default;

CREATE TABLE index_documents (  -- which documents an index holds, and in which version
    index_name text NOT NULL REFERENCES indexes ON DELETE CASCADE,
    document_id text NOT NULL REFERENCES documents ON DELETE CASCADE,
    content_hash text NOT NULL,
    passages integer NOT NULL,
    PRIMARY KEY (index_name, document_id)
);
CREATE INDEX index_documents_by_document ON index_documents (document_id);

CREATE TABLE index_statistics (  -- what BM25 needs to know of a whole index, kept by its triggers
    index_name text NOT NULL REFERENCES indexes ON DELETE CASCADE,
    language text NOT NULL,
    passages bigint NOT NULL,
    terms bigint NOT NULL,
    PRIMARY KEY (index_name, language)
) WITH (fillfactor = 50);

-- Pairs of neighbouring characters, for scripts that put no space between words.
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

-- The one way text becomes terms, for passages and for queries: words are runs of letters and digits (so that
-- hnsw.ef_search is three words, here and in a query), camelCase counts whole and in parts, stemmed by language.
CREATE FUNCTION workbench_terms(language text, body text) RETURNS tsvector LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT AS $$
DECLARE
    config regconfig := CASE WHEN language = 'cjk' THEN 'simple' ELSE language END::regconfig;
    words text := regexp_replace(body, '[^[:alnum:]]+', ' ', 'g');
    parts text;
BEGIN
    IF words ~ '[぀-ヿ㐀-䶿一-鿿가-힯豈-﫿]' THEN
        words := regexp_replace(words, '[぀-ヿ㐀-䶿一-鿿가-힯豈-﫿]+', ' ', 'g') || ' ' || workbench_bigrams(words);
    END IF;
    IF words ~ '[[:lower:]][[:upper:]]' THEN
        SELECT string_agg(regexp_replace(m[1], '([[:lower:]])([[:upper:]])', '\1 \2', 'g'), ' ') INTO parts
        FROM regexp_matches(words, '([[:alnum:]]*[[:lower:]][[:upper:]][[:alnum:]]*)', 'g') AS m;
        words := words || ' ' || parts;
    END IF;
    RETURN to_tsvector(config, words);
END $$;

-- BEFORE INSERT on a passage: its terms, from the heading context and the text in the document's language.
CREATE FUNCTION workbench_fill_terms() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.text_search_tsv := workbench_terms(
        coalesce(NEW.metadata_ ->> 'language', 'english'), coalesce(NEW.metadata_ ->> 'context', '') || ' ' || NEW.text);
    SELECT coalesce(sum(cardinality(positions)), 0) INTO NEW.length FROM unnest(NEW.text_search_tsv);
    RETURN NEW;
END $$;

-- AFTER INSERT of passages (once a statement): postings, document frequencies, statistics.
-- Terms are taken in one order everywhere, so that two writers wait for each other and never deadlock.
CREATE FUNCTION workbench_add_postings() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    index_name text := TG_ARGV[0];
BEGIN
    EXECUTE format($sql$
        INSERT INTO %1$I AS l (term, df)
        SELECT u.lexeme, count(*) FROM new_passages n, unnest(n.text_search_tsv) u GROUP BY u.lexeme ORDER BY u.lexeme
        ON CONFLICT (term) DO UPDATE SET df = l.df + excluded.df
    $sql$, 'lexicon_' || index_name);
    EXECUTE format($sql$
        INSERT INTO %2$I (term_id, passage_id, tf, length)
        SELECT l.id, n.id, least(cardinality(u.positions), 32767), least(n.length, 32767)
        FROM new_passages n, unnest(n.text_search_tsv) u JOIN %1$I l ON l.term = u.lexeme
    $sql$, 'lexicon_' || index_name, 'postings_' || index_name);
    INSERT INTO index_statistics AS s (index_name, language, passages, terms)
    SELECT index_name, coalesce(n.metadata_ ->> 'language', 'english'), count(*), sum(n.length) FROM new_passages n GROUP BY 2 ORDER BY 2
    ON CONFLICT ON CONSTRAINT index_statistics_pkey
    DO UPDATE SET passages = s.passages + excluded.passages, terms = s.terms + excluded.terms;
    RETURN NULL;
END $$;

-- AFTER DELETE of passages (also by cascade): the same, taken back.
CREATE FUNCTION workbench_drop_postings() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    index_name text := TG_ARGV[0];
BEGIN
    EXECUTE format($sql$
        WITH gone AS (SELECT u.lexeme, count(*) AS df FROM old_passages o, unnest(o.text_search_tsv) u GROUP BY u.lexeme),
             locked AS (SELECT l.id, g.df FROM gone g JOIN %1$I l ON l.term = g.lexeme ORDER BY l.term FOR UPDATE OF l)
        UPDATE %1$I l SET df = l.df - locked.df FROM locked WHERE l.id = locked.id
    $sql$, 'lexicon_' || index_name);
    EXECUTE format($sql$
        DELETE FROM %2$I p USING old_passages o, unnest(o.text_search_tsv) u, %1$I l
        WHERE l.term = u.lexeme AND p.term_id = l.id AND p.passage_id = o.id
    $sql$, 'lexicon_' || index_name, 'postings_' || index_name);
    UPDATE index_statistics s SET passages = s.passages - g.passages, terms = s.terms - g.terms
    FROM (SELECT coalesce(o.metadata_ ->> 'language', 'english') AS language, count(*) AS passages, sum(o.length) AS terms
          FROM old_passages o GROUP BY 1) g
    WHERE s.index_name = TG_ARGV[0] AND s.language = g.language;
    RETURN NULL;
END $$;

-- The tables of one index: its passages as LlamaIndex's PGVectorStore knows them, its lexicon and its postings.
CREATE FUNCTION workbench_create_index(index_name text, dimensions integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format($sql$
        CREATE TABLE %1$I (
            id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
            text varchar NOT NULL,
            metadata_ jsonb NOT NULL,
            node_id varchar NOT NULL UNIQUE,
            embedding halfvec(%2$s) NOT NULL,
            text_search_tsv tsvector,
            document_id text NOT NULL GENERATED ALWAYS AS (metadata_ ->> 'document_id') STORED
                REFERENCES documents ON DELETE CASCADE,
            source_id text NOT NULL GENERATED ALWAYS AS (metadata_ ->> 'source_id') STORED,
            passage_hash bytea,
            length integer,
            token_bits bytea
        )$sql$, 'data_' || index_name, dimensions);
    EXECUTE format('ALTER TABLE %I ALTER COLUMN token_bits SET STORAGE EXTERNAL', 'data_' || index_name);
    EXECUTE format('CREATE INDEX %I ON %I (document_id)', 'data_' || index_name || '_document', 'data_' || index_name);
    EXECUTE format('CREATE INDEX %I ON %I (source_id)', 'data_' || index_name || '_source', 'data_' || index_name);
    EXECUTE format('CREATE INDEX %I ON %I (passage_hash)', 'data_' || index_name || '_hash', 'data_' || index_name);
    EXECUTE format('CREATE INDEX %I ON %I USING gin (text_search_tsv)', index_name || '_idx', 'data_' || index_name);
    EXECUTE format('CREATE INDEX %I ON %I USING hnsw (embedding halfvec_cosine_ops) WITH (m = 16, ef_construction = 64)',
        'data_' || index_name || '_embedding_idx', 'data_' || index_name);
    EXECUTE format('CREATE TABLE %I (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, term text NOT NULL UNIQUE, '
        'df integer NOT NULL) WITH (fillfactor = 60)', 'lexicon_' || index_name);
    EXECUTE format('CREATE TABLE %I (term_id integer NOT NULL, passage_id bigint NOT NULL, tf smallint NOT NULL, '
        'length smallint NOT NULL, PRIMARY KEY (term_id, passage_id) INCLUDE (tf, length))', 'postings_' || index_name);
    EXECUTE format('CREATE TRIGGER fill_terms BEFORE INSERT ON %I FOR EACH ROW EXECUTE FUNCTION workbench_fill_terms()',
        'data_' || index_name);
    EXECUTE format('CREATE TRIGGER add_postings AFTER INSERT ON %I REFERENCING NEW TABLE AS new_passages '
        'FOR EACH STATEMENT EXECUTE FUNCTION workbench_add_postings(%L)', 'data_' || index_name, index_name);
    EXECUTE format('CREATE TRIGGER drop_postings AFTER DELETE ON %I REFERENCING OLD TABLE AS old_passages '
        'FOR EACH STATEMENT EXECUTE FUNCTION workbench_drop_postings(%L)', 'data_' || index_name, index_name);
END $$;

CREATE FUNCTION workbench_drop_index(index_name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('DROP TABLE IF EXISTS %I, %I, %I', 'data_' || index_name, 'lexicon_' || index_name, 'postings_' || index_name);
END $$;
