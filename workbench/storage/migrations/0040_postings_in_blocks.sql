-- Postings in blocks: one row holds up to 128 of a term's postings, 8 bytes each, where a row held one of 97 bytes.
-- A posting is the passage's number (4 bytes), the term's frequency in it and the passage's length in terms (2 bytes
-- each), most significant byte first; those of a block stand in the order of their passages, and the blocks of a term
-- do not overlap. `first` is at most the first passage of its block. workbench/storage/postings.py reads them.
-- The terms of a passage are made when it comes and goes, and are not kept: the framework's full text has a table of
-- its own, made when it is first asked for.

CREATE FUNCTION workbench_passage_terms(metadata jsonb, body text) RETURNS tsvector LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT workbench_terms(coalesce(metadata ->> 'language', 'english'), coalesce(metadata ->> 'context', '') || ' ' || body)
$$;

CREATE FUNCTION workbench_length(terms tsvector) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT least(coalesce(sum(cardinality(positions)), 0), 32767)::integer FROM unnest(terms)
$$;

CREATE FUNCTION workbench_posting(passage integer, frequency integer, length integer) RETURNS bytea LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT int4send(passage) || int2send(least(frequency, 32767)::smallint) || int2send(length::smallint)
$$;

-- The statement that takes the passages of a table expression into an index's lexicon, postings and statistics: a
-- term's last block is filled up before a new one begins. Terms are taken in one order everywhere.
CREATE FUNCTION workbench_posting_statement(index_name text, passages text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT format($sql$
        WITH read AS MATERIALIZED (
            SELECT n.id::integer AS id, coalesce(n.metadata_ ->> 'language', 'english') AS language,
                workbench_passage_terms(n.metadata_, n.text) AS terms
            FROM %4$s AS n),
        sized AS MATERIALIZED (SELECT id, language, terms, workbench_length(terms) AS length FROM read),
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
        INSERT INTO index_statistics AS s (index_name, language, passages, terms)
        SELECT %1$L, language, count(*), sum(length) FROM sized GROUP BY language ORDER BY language
        ON CONFLICT ON CONSTRAINT index_statistics_pkey
        DO UPDATE SET passages = s.passages + excluded.passages, terms = s.terms + excluded.terms
    $sql$, index_name, 'lexicon_' || index_name, 'postings_' || index_name, passages)
$$;

-- BEFORE INSERT of passages (once a statement): writers take turns before their passages get numbers, so that blocks
-- grow at their ends.
CREATE FUNCTION workbench_take_turn() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(7215005, hashtext(TG_ARGV[0]));
    RETURN NULL;
END $$;

-- AFTER INSERT of passages (once a statement): postings, document frequencies, statistics, and the framework's full text.
CREATE OR REPLACE FUNCTION workbench_add_postings() RETURNS trigger LANGUAGE plpgsql AS $$
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

-- AFTER DELETE of passages (also by cascade): the same, taken back. A few passages are looked up in the blocks of their
-- terms; for many all blocks are gone through once.
CREATE OR REPLACE FUNCTION workbench_drop_postings() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    index_name text := TG_ARGV[0];
    gone bytea[] := (SELECT array_agg(int4send(id::integer)) FROM old_passages);
    many boolean;
BEGIN
    IF gone IS NULL THEN
        RETURN NULL;
    END IF;
    SELECT cardinality(gone) * 30 > coalesce(sum(s.passages), 0) INTO many FROM index_statistics s WHERE s.index_name = TG_ARGV[0];
    EXECUTE format($sql$
        WITH gone AS MATERIALIZED (
            SELECT o.id::integer AS id, coalesce(o.metadata_ ->> 'language', 'english') AS language,
                workbench_passage_terms(o.metadata_, o.text) AS terms
            FROM old_passages o),
        touched AS MATERIALIZED (%4$s),
        cut AS MATERIALIZED (
            SELECT t.term_id, t.first, octet_length(b.entries) / 8 AS held, (
                SELECT string_agg(substring(b.entries FROM place * 8 + 1 FOR 8), ''::bytea)
                FROM generate_series(0, octet_length(b.entries) / 8 - 1) AS place
                WHERE NOT substring(b.entries FROM place * 8 + 1 FOR 4) = ANY (%5$L::bytea[])) AS kept
            FROM touched t, LATERAL (
                SELECT p.entries FROM %3$I p WHERE p.term_id = t.term_id AND p.first = t.first LIMIT 1) AS b),
        changed AS (
            UPDATE %3$I p SET entries = c.kept FROM cut c
            WHERE p.term_id = c.term_id AND p.first = c.first AND octet_length(c.kept) / 8 < c.held),
        emptied AS (
            DELETE FROM %3$I p USING cut c WHERE p.term_id = c.term_id AND p.first = c.first AND c.kept IS NULL),
        words AS (
            UPDATE %2$I l SET df = l.df - c.taken FROM (
                SELECT term_id, sum(held - coalesce(octet_length(kept) / 8, 0)) AS taken FROM cut GROUP BY term_id) AS c
            WHERE l.id = c.term_id AND c.taken > 0)
        UPDATE index_statistics s SET passages = s.passages - g.passages, terms = s.terms - g.terms
        FROM (SELECT language, count(*) AS passages, sum(workbench_length(terms)) AS terms FROM gone GROUP BY language) g
        WHERE s.index_name = %1$L AND s.language = g.language
    $sql$, index_name, 'lexicon_' || index_name, 'postings_' || index_name,
        CASE WHEN many THEN format('SELECT term_id, first FROM %I', 'postings_' || index_name) ELSE format($sql$
            SELECT DISTINCT l.id AS term_id, b.first
            FROM gone g, unnest(g.terms) u JOIN %1$I l ON l.term = u.lexeme, LATERAL (
                SELECT p.first FROM %2$I p WHERE p.term_id = l.id AND p.first <= g.id ORDER BY p.first DESC LIMIT 1) AS b
        $sql$, 'lexicon_' || index_name, 'postings_' || index_name) END, gone);
    RETURN NULL;
END $$;

-- The tables of the keyword index, and the triggers that keep them, for a table of passages.
CREATE FUNCTION workbench_create_postings(index_name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TABLE %I (term_id integer NOT NULL, first integer NOT NULL, entries bytea NOT NULL, '
        'PRIMARY KEY (term_id, first))', 'postings_' || index_name);
    EXECUTE format('ALTER TABLE %I ALTER COLUMN entries SET STORAGE PLAIN', 'postings_' || index_name);
    EXECUTE format('CREATE TRIGGER take_turn BEFORE INSERT ON %I FOR EACH STATEMENT EXECUTE FUNCTION workbench_take_turn(%L)',
        'data_' || index_name, index_name);
    EXECUTE format('CREATE TRIGGER add_postings AFTER INSERT ON %I REFERENCING NEW TABLE AS new_passages '
        'FOR EACH STATEMENT EXECUTE FUNCTION workbench_add_postings(%L)', 'data_' || index_name, index_name);
    EXECUTE format('CREATE TRIGGER drop_postings AFTER DELETE ON %I REFERENCING OLD TABLE AS old_passages '
        'FOR EACH STATEMENT EXECUTE FUNCTION workbench_drop_postings(%L)', 'data_' || index_name, index_name);
END $$;

CREATE OR REPLACE FUNCTION workbench_create_index(index_name text, dimensions integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format($sql$
        CREATE TABLE %1$I (
            id integer GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
            text varchar NOT NULL,
            metadata_ jsonb NOT NULL,
            node_id varchar NOT NULL UNIQUE,
            embedding halfvec(%2$s) NOT NULL,
            document_id text NOT NULL GENERATED ALWAYS AS (metadata_ ->> 'document_id') STORED
                REFERENCES documents ON DELETE CASCADE,
            source_id text NOT NULL GENERATED ALWAYS AS (metadata_ ->> 'source_id') STORED,
            passage_hash bytea,
            token_bits bytea
        )$sql$, 'data_' || index_name, dimensions);
    EXECUTE format('ALTER TABLE %I ALTER COLUMN token_bits SET STORAGE EXTERNAL', 'data_' || index_name);
    EXECUTE format('CREATE INDEX %I ON %I (document_id)', 'data_' || index_name || '_document', 'data_' || index_name);
    EXECUTE format('CREATE INDEX %I ON %I (source_id)', 'data_' || index_name || '_source', 'data_' || index_name);
    EXECUTE format('CREATE INDEX %I ON %I (passage_hash)', 'data_' || index_name || '_hash', 'data_' || index_name);
    EXECUTE format('CREATE INDEX %I ON %I USING hnsw (embedding halfvec_cosine_ops) WITH (m = 16, ef_construction = 64)',
        'data_' || index_name || '_embedding_idx', 'data_' || index_name);
    EXECUTE format('CREATE TABLE %I (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, term text NOT NULL UNIQUE, '
        'df integer NOT NULL) WITH (fillfactor = 60)', 'lexicon_' || index_name);
    PERFORM workbench_create_postings(index_name);
END $$;

CREATE OR REPLACE FUNCTION workbench_drop_index(index_name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('DROP TABLE IF EXISTS %I, %I, %I, %I',
        'full_text_' || index_name, 'data_' || index_name, 'lexicon_' || index_name, 'postings_' || index_name);
END $$;

-- The full text of an index as LlamaIndex's PGVectorStore reads it: the terms of every passage, under an index of their
-- own. Made once; the triggers keep it.
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

-- The keyword index of an index made anew from its passages' texts, a few thousand at a time: after words are cut
-- another way, and for an export of an older version.
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

-- Indexes from before: their postings are put into blocks, and what held terms beside them goes.
DO $$
DECLARE
    kept record;
BEGIN
    FOR kept IN SELECT x.name FROM indexes x WHERE to_regclass(quote_ident('postings_' || x.name)) IS NOT NULL ORDER BY x.name LOOP
        EXECUTE format('DROP TRIGGER fill_terms ON %1$I; DROP TRIGGER add_postings ON %1$I; DROP TRIGGER drop_postings ON %1$I',
            'data_' || kept.name);
        EXECUTE format('ALTER TABLE %I RENAME TO postings_before', 'postings_' || kept.name);
        EXECUTE format('ALTER TABLE postings_before RENAME CONSTRAINT %I TO postings_before_pkey', 'postings_' || kept.name || '_pkey');
        PERFORM workbench_create_postings(kept.name);
        EXECUTE format($sql$
            INSERT INTO %I SELECT term_id, min(passage_id),
                string_agg(workbench_posting(passage_id::integer, tf, length), ''::bytea ORDER BY passage_id)
            FROM (SELECT *, (row_number() OVER (PARTITION BY term_id ORDER BY passage_id) - 1) / 128 AS block FROM postings_before) AS numbered
            GROUP BY term_id, block ORDER BY term_id, block
        $sql$, 'postings_' || kept.name);
        DROP TABLE postings_before;
        EXECUTE format('ALTER TABLE %I DROP COLUMN text_search_tsv, DROP COLUMN length', 'data_' || kept.name);
    END LOOP;
END $$;
DROP FUNCTION workbench_fill_terms();
DROP FUNCTION workbench_read_numbers_again();
