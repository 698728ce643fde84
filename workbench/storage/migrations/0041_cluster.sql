-- Many servers. An index of `buckets` > 0 lies by hash of its documents in so many buckets on shards, which are databases
-- of their own with these same functions. A bucket is a small index: passages, lexicon, postings and statistics, all kept
-- by the triggers of a single index. Here, on the coordinator, the same names are partitioned tables; their partitions
-- are foreign tables, one a shard with the buckets that it has. Numbers of passages come from a sequence here.
ALTER TABLE indexes ADD COLUMN buckets integer NOT NULL DEFAULT 0 CHECK (buckets BETWEEN 0 AND 1024);

CREATE TABLE index_buckets (  -- which shard has which bucket of an index
    index_name text NOT NULL REFERENCES indexes ON DELETE CASCADE,
    bucket integer NOT NULL,
    shard integer NOT NULL,
    PRIMARY KEY (index_name, bucket)
);

CREATE FUNCTION workbench_bucket(document_id text, buckets integer) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (hashtextextended(document_id, 0) & 2147483647)::integer % buckets
$$;

-- The document and the source are plain columns here: over generated ones postgres_fdw deletes row by row, by a place that
-- says nothing in a table with partitions.
CREATE FUNCTION workbench_passage_columns(dimensions integer) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT format($sql$
        text varchar NOT NULL,
        metadata_ jsonb NOT NULL,
        node_id varchar NOT NULL,
        embedding halfvec(%s) NOT NULL,
        document_id text NOT NULL,
        source_id text NOT NULL,
        passage_hash bytea,
        token_bits bytea
    $sql$, dimensions)
$$;

-- On a shard: one bucket of an index. The number of a term is a hash of it, so that it is the same on every shard; that
-- two terms of an index share one is an error, and happens once in millions of indexes of a million terms.
CREATE FUNCTION workbench_create_bucket(index_name text, bucket integer, dimensions integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    name text := index_name || '_b' || bucket;
BEGIN
    INSERT INTO indexes (name, chunker, embedding_model, dimensions) VALUES (name, '', '', dimensions);
    EXECUTE format('CREATE TABLE %I (id integer NOT NULL PRIMARY KEY, %s)', 'data_' || name, workbench_passage_columns(dimensions));
    EXECUTE format('ALTER TABLE %I ALTER COLUMN token_bits SET STORAGE EXTERNAL', 'data_' || name);
    EXECUTE format('CREATE UNIQUE INDEX %I ON %I (node_id)', 'data_' || name || '_node', 'data_' || name);
    EXECUTE format('CREATE INDEX %I ON %I (document_id)', 'data_' || name || '_document', 'data_' || name);
    EXECUTE format('CREATE INDEX %I ON %I (source_id)', 'data_' || name || '_source', 'data_' || name);
    EXECUTE format('CREATE INDEX %I ON %I (passage_hash)', 'data_' || name || '_hash', 'data_' || name);
    EXECUTE format('CREATE INDEX %I ON %I USING hnsw (embedding halfvec_cosine_ops) WITH (m = 16, ef_construction = 64)',
        'data_' || name || '_embedding_idx', 'data_' || name);
    EXECUTE format('CREATE TABLE %I (bucket integer NOT NULL DEFAULT %s, '
        'id bigint NOT NULL GENERATED ALWAYS AS (hashtextextended(term, 0)) STORED PRIMARY KEY, '
        'term text NOT NULL UNIQUE, df integer NOT NULL) WITH (fillfactor = 60)', 'lexicon_' || name, bucket);
    EXECUTE format('CREATE TABLE %I (bucket integer NOT NULL DEFAULT %s, term_id bigint NOT NULL, first integer NOT NULL, '
        'entries bytea NOT NULL, PRIMARY KEY (term_id, first))', 'postings_' || name, bucket);
    EXECUTE format('ALTER TABLE %I ALTER COLUMN entries SET STORAGE PLAIN', 'postings_' || name);
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES IN (%s)', 'data_' || index_name, 'data_' || name, bucket);
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES IN (%s)', 'lexicon_' || index_name, 'lexicon_' || name, bucket);
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES IN (%s)', 'postings_' || index_name, 'postings_' || name, bucket);
END $$;

-- On both sides: the tables of an index, divided by bucket; their partitions come apart.
CREATE FUNCTION workbench_create_divided(index_name text, dimensions integer, buckets integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TABLE %I (id integer NOT NULL, %s) PARTITION BY LIST (workbench_bucket(document_id, %s))',
        'data_' || index_name, workbench_passage_columns(dimensions), buckets);
    EXECUTE format('CREATE TABLE %I (bucket integer NOT NULL, id bigint NOT NULL GENERATED ALWAYS AS (hashtextextended(term, 0)) STORED, '
        'term text NOT NULL, df integer NOT NULL) PARTITION BY LIST (bucket)', 'lexicon_' || index_name);
    EXECUTE format('CREATE TABLE %I (bucket integer NOT NULL, term_id bigint NOT NULL, first integer NOT NULL, entries bytea NOT NULL) '
        'PARTITION BY LIST (bucket)', 'postings_' || index_name);
END $$;

CREATE FUNCTION workbench_create_shard_index(index_name text, dimensions integer, buckets integer, held integer[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM workbench_drop_shard_index(index_name);
    PERFORM workbench_create_divided(index_name, dimensions, buckets);
    EXECUTE format('CREATE TRIGGER take_turn BEFORE INSERT ON %I FOR EACH STATEMENT EXECUTE FUNCTION workbench_take_turn(%L)',
        'data_' || index_name, index_name);
    EXECUTE format('CREATE TRIGGER add_postings AFTER INSERT ON %I REFERENCING NEW TABLE AS new_passages '
        'FOR EACH STATEMENT EXECUTE FUNCTION workbench_add_to_buckets(%L, %L)', 'data_' || index_name, index_name, buckets);
    EXECUTE format('CREATE TRIGGER drop_postings AFTER DELETE ON %I REFERENCING OLD TABLE AS old_passages '
        'FOR EACH STATEMENT EXECUTE FUNCTION workbench_drop_from_buckets(%L, %L)', 'data_' || index_name, index_name, buckets);
    PERFORM workbench_create_bucket(index_name, b, dimensions) FROM unnest(held) AS b;
END $$;

CREATE FUNCTION workbench_drop_shard_index(index_name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('DROP TABLE IF EXISTS %I, %I, %I', 'data_' || index_name, 'lexicon_' || index_name, 'postings_' || index_name);
    DELETE FROM indexes i WHERE i.name ~ ('^' || index_name || '_b[0-9]+$');
END $$;

-- On the coordinator: the tables, with those of each shard as foreign tables in a schema of the shard's own.
CREATE FUNCTION workbench_create_cluster_index(index_name text, dimensions integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM workbench_create_divided(index_name, dimensions, (SELECT buckets FROM indexes WHERE name = index_name));
    EXECUTE format('CREATE SEQUENCE %I AS integer OWNED BY %I.id', 'passages_' || index_name, 'data_' || index_name);
    EXECUTE format('ALTER TABLE %I ALTER COLUMN id SET DEFAULT nextval(%L)', 'data_' || index_name, quote_ident('passages_' || index_name));
    EXECUTE format('CREATE TRIGGER take_turn BEFORE INSERT ON %I FOR EACH STATEMENT EXECUTE FUNCTION workbench_take_turn(%L)',
        'data_' || index_name, index_name);
    EXECUTE format('CREATE TRIGGER count_shards AFTER INSERT OR DELETE ON %I FOR EACH STATEMENT EXECUTE FUNCTION workbench_count_shards(%L)',
        'data_' || index_name, index_name);
    PERFORM workbench_attach_shards(index_name);
END $$;

-- AFTER INSERT and DELETE of passages on the coordinator: its statistics of the index are the sum of the buckets'.
CREATE FUNCTION workbench_count_shards() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    counted text := (
        SELECT string_agg(format('SELECT * FROM %I.index_statistics WHERE starts_with(index_name, %L)', 'shard_' || shard, TG_ARGV[0] || '_b'),
            ' UNION ALL ') FROM (SELECT DISTINCT shard FROM index_buckets WHERE index_name = TG_ARGV[0]) AS s);
BEGIN
    DELETE FROM index_statistics WHERE index_name = TG_ARGV[0];
    EXECUTE format('INSERT INTO index_statistics (index_name, language, passages, terms) '
        'SELECT %L, language, sum(passages), sum(terms) FROM (%s) AS s WHERE index_name ~ %L GROUP BY language',
        TG_ARGV[0], counted, '^' || TG_ARGV[0] || '_b[0-9]+$');
    RETURN NULL;
END $$;

CREATE FUNCTION workbench_attach_shards(index_name text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    held record;
    kind text;
BEGIN
    PERFORM workbench_forget_left_out();
    FOR held IN SELECT DISTINCT shard FROM index_buckets b WHERE b.index_name = workbench_attach_shards.index_name LOOP
        FOREACH kind IN ARRAY ARRAY['data_', 'lexicon_', 'postings_'] LOOP
            EXECUTE format('DROP FOREIGN TABLE IF EXISTS %I.%I', 'shard_' || held.shard, kind || index_name);
        END LOOP;
    END LOOP;
    FOR held IN SELECT shard, string_agg(bucket::text, ', ' ORDER BY bucket) AS buckets FROM index_buckets b
            WHERE b.index_name = workbench_attach_shards.index_name GROUP BY shard LOOP
        FOREACH kind IN ARRAY ARRAY['data_', 'lexicon_', 'postings_'] LOOP
            EXECUTE format('CREATE FOREIGN TABLE %1$I.%2$I PARTITION OF %2$I FOR VALUES IN (%3$s) SERVER %1$I OPTIONS (schema_name ''public'')',
                'shard_' || held.shard, kind || index_name, held.buckets);
        END LOOP;
    END LOOP;
END $$;

-- AFTER INSERT and AFTER DELETE of passages on a shard: the postings of each bucket that is touched.
CREATE FUNCTION workbench_add_to_buckets() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    bucket integer;
    newest_are_new boolean;
BEGIN
    FOR bucket IN SELECT DISTINCT workbench_bucket(document_id, TG_ARGV[1]::integer) FROM new_passages ORDER BY 1 LOOP
        EXECUTE format('SELECT (SELECT min(id) FROM new_passages WHERE workbench_bucket(document_id, %1$s) = %2$s) > '
            'coalesce((SELECT max(id) FROM %3$I WHERE id NOT IN (SELECT id FROM new_passages)), 0)',
            TG_ARGV[1], bucket, 'data_' || TG_ARGV[0] || '_b' || bucket) INTO newest_are_new;
        IF NOT newest_are_new THEN
            RAISE EXCEPTION 'A new passage of an index has a number above all others; leave its id out.';
        END IF;
        EXECUTE workbench_posting_statement(TG_ARGV[0] || '_b' || bucket,
            format('(SELECT * FROM new_passages WHERE workbench_bucket(document_id, %s) = %s)', TG_ARGV[1], bucket));
    END LOOP;
    RETURN NULL;
END $$;

CREATE FUNCTION workbench_drop_from_buckets() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    bucket integer;
BEGIN
    FOR bucket IN SELECT DISTINCT workbench_bucket(document_id, TG_ARGV[1]::integer) FROM old_passages ORDER BY 1 LOOP
        EXECUTE workbench_dropping_statement(TG_ARGV[0] || '_b' || bucket,
            format('(SELECT * FROM old_passages WHERE workbench_bucket(document_id, %s) = %s)', TG_ARGV[1], bucket),
            (SELECT array_agg(int4send(id)) FROM old_passages WHERE workbench_bucket(document_id, TG_ARGV[1]::integer) = bucket));
    END LOOP;
    RETURN NULL;
END $$;

-- The statement that takes the passages of a table expression, whose numbers are `gone` (4 bytes each), out of an index's
-- postings. A few passages are looked up in the blocks of their terms; for many all blocks are gone through once.
CREATE FUNCTION workbench_dropping_statement(index_name text, passages text, gone bytea[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    many boolean;
BEGIN
    SELECT cardinality(gone) * 30 > coalesce(sum(s.passages), 0) INTO many
    FROM index_statistics s WHERE s.index_name = workbench_dropping_statement.index_name;
    RETURN format($sql$
        WITH gone AS MATERIALIZED (
            SELECT o.id::integer AS id, coalesce(o.metadata_ ->> 'language', 'english') AS language,
                workbench_passage_terms(o.metadata_, o.text) AS terms
            FROM %6$s AS o),
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
        $sql$, 'lexicon_' || index_name, 'postings_' || index_name) END, gone, passages);
END $$;

CREATE OR REPLACE FUNCTION workbench_drop_postings() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    gone bytea[] := (SELECT array_agg(int4send(id)) FROM old_passages);
BEGIN
    IF gone IS NOT NULL THEN
        EXECUTE workbench_dropping_statement(TG_ARGV[0], 'old_passages', gone);
    END IF;
    RETURN NULL;
END $$;

-- AFTER DELETE of documents: no foreign key reaches a shard, so their passages there go by a statement.
CREATE FUNCTION workbench_delete_from_shards() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    index_name text;
BEGIN
    FOR index_name IN SELECT name FROM indexes WHERE buckets > 0 ORDER BY name LOOP
        EXECUTE format('DELETE FROM %I WHERE document_id = ANY (%L::text[])', 'data_' || index_name,
            (SELECT coalesce(array_agg(id), '{}') FROM old_documents));
    END LOOP;
    RETURN NULL;
END $$;
CREATE TRIGGER delete_from_shards AFTER DELETE ON documents REFERENCING OLD TABLE AS old_documents
    FOR EACH STATEMENT EXECUTE FUNCTION workbench_delete_from_shards();

-- A schema with the tables of all divided indexes but for what some shards hold, for searches while these are away; made
-- once, dropped when an index is made or its buckets move. Returns its name.
CREATE FUNCTION workbench_leave_out(away integer[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    place text := 'without_' || array_to_string(away, '_');
    divided record;
BEGIN
    PERFORM pg_advisory_xact_lock(7215006);
    IF to_regnamespace(place) IS NULL THEN
        EXECUTE format('CREATE SCHEMA %I', place);
        FOR divided IN
            SELECT kind || x.name AS name, string_agg(format('SELECT * FROM %I.%I', 'shard_' || s.shard, kind || x.name), ' UNION ALL ') AS rest
            FROM indexes x, unnest(ARRAY['data_', 'lexicon_', 'postings_']) AS kind,
                LATERAL (SELECT DISTINCT shard FROM index_buckets b WHERE b.index_name = x.name AND b.shard <> ALL (away)) AS s
            WHERE x.buckets > 0 GROUP BY kind, x.name LOOP
            EXECUTE format('CREATE VIEW %I.%I AS %s', place, divided.name, divided.rest);
        END LOOP;
    END IF;
    RETURN place;
END $$;

CREATE FUNCTION workbench_forget_left_out() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    place text;
BEGIN
    PERFORM pg_advisory_xact_lock(7215006);
    FOR place IN SELECT nspname FROM pg_namespace WHERE nspname ~ '^without_[0-9_]+$' LOOP
        EXECUTE format('DROP SCHEMA %I CASCADE', place);
    END LOOP;
END $$;
