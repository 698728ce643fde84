-- Buckets move from shard to shard: Postgres' own logical replication copies a bucket's tables and keeps the copy, until
-- one transaction on each side changes what it is attached to (storage/bucket_move.py). A shard's tables of an index then
-- get the number of the move behind their name, here as there: a coordinator, or a replica of it, that does not know yet
-- where a bucket lies finds no table, and never too few passages or the same ones twice.
CREATE TABLE bucket_moves (  -- on the coordinator: the move that is under way, or that broke off and is to be cleared
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    index_name text NOT NULL,  -- without a foreign key: what is left on shards is cleared also when the index is gone
    index_made timestamptz NOT NULL,
    bucket integer NOT NULL,
    source integer NOT NULL,
    target integer NOT NULL,
    name text NOT NULL UNIQUE DEFAULT 'workbench_move_' || left(replace(gen_random_uuid()::text, '-', ''), 12),  -- of publication, slot and subscription
    begun_at timestamptz NOT NULL DEFAULT now()
);

-- On a shard: the name of one of an index's three tables over its buckets ("@" is in no name of an index).
CREATE FUNCTION workbench_shard_table(kind text, index_name text) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT relname::text FROM pg_class
    WHERE relkind = 'p' AND relnamespace = current_schema()::regnamespace AND relname ~ ('^' || kind || index_name || '(@[0-9]+)?$')
$$;

-- On a shard: the tables of one bucket, attached to nothing yet; the checks spare the attaching a look at every row.
CREATE FUNCTION workbench_create_bucket_tables(index_name text, bucket integer, dimensions integer, buckets integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    name text := index_name || '_b' || bucket;
BEGIN
    EXECUTE format('CREATE TABLE %I (id integer NOT NULL PRIMARY KEY, %s, CONSTRAINT of_bucket CHECK '
        '(workbench_bucket(document_id, %3$s) IS NOT NULL AND workbench_bucket(document_id, %3$s) = %4$s))',
        'data_' || name, workbench_passage_columns(dimensions), buckets, bucket);
    EXECUTE format('ALTER TABLE %I ALTER COLUMN token_bits SET STORAGE EXTERNAL', 'data_' || name);
    EXECUTE format('CREATE UNIQUE INDEX %I ON %I (node_id)', 'data_' || name || '_node', 'data_' || name);
    EXECUTE format('CREATE INDEX %I ON %I (document_id)', 'data_' || name || '_document', 'data_' || name);
    EXECUTE format('CREATE INDEX %I ON %I (source_id)', 'data_' || name || '_source', 'data_' || name);
    EXECUTE format('CREATE INDEX %I ON %I (passage_hash)', 'data_' || name || '_hash', 'data_' || name);
    EXECUTE format('CREATE TABLE %I (bucket integer NOT NULL DEFAULT %2$s CONSTRAINT of_bucket CHECK (bucket = %2$s), '
        'id bigint NOT NULL GENERATED ALWAYS AS (hashtextextended(term, 0)) STORED PRIMARY KEY, '
        'term text NOT NULL UNIQUE, df integer NOT NULL) WITH (fillfactor = 60)', 'lexicon_' || name, bucket);
    EXECUTE format('ALTER TABLE %I REPLICA IDENTITY USING INDEX %I', 'lexicon_' || name, 'lexicon_' || name || '_term_key');
    EXECUTE format('CREATE TABLE %I (bucket integer NOT NULL DEFAULT %2$s CONSTRAINT of_bucket CHECK (bucket = %2$s), '
        'term_id bigint NOT NULL, first integer NOT NULL, entries bytea NOT NULL, PRIMARY KEY (term_id, first))', 'postings_' || name, bucket);
    EXECUTE format('ALTER TABLE %I ALTER COLUMN entries SET STORAGE PLAIN', 'postings_' || name);
END $$;

CREATE FUNCTION workbench_attach_bucket(index_name text, bucket integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    kind text;
BEGIN
    FOREACH kind IN ARRAY ARRAY['data_', 'lexicon_', 'postings_'] LOOP
        EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES IN (%s)',
            workbench_shard_table(kind, index_name), kind || index_name || '_b' || bucket, bucket);
    END LOOP;
END $$;

CREATE FUNCTION workbench_create_bucket_graph(index_name text, bucket integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    name text := 'data_' || index_name || '_b' || bucket;
BEGIN
    EXECUTE format('ANALYZE %I, %I, %I', name, 'lexicon_' || index_name || '_b' || bucket, 'postings_' || index_name || '_b' || bucket);
    PERFORM set_config('maintenance_work_mem', greatest(
        (SELECT setting::bigint FROM pg_settings s WHERE s.name = 'maintenance_work_mem'),
        least(2000000, 3 * (SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = to_regclass(quote_ident(name)))))::text, true);  -- 3 KB a passage
    EXECUTE format('CREATE INDEX %I ON %I USING hnsw (embedding halfvec_cosine_ops) WITH (m = 16, ef_construction = 64)',
        name || '_embedding_idx', name);
END $$;

CREATE OR REPLACE FUNCTION workbench_create_shard_index(index_name text, dimensions integer, buckets integer, held integer[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    bucket integer;
BEGIN
    PERFORM workbench_drop_shard_index(index_name);
    PERFORM workbench_create_divided(index_name, dimensions, buckets);
    EXECUTE format('CREATE TRIGGER take_turn BEFORE INSERT ON %I FOR EACH STATEMENT EXECUTE FUNCTION workbench_take_turn(%L)',
        'data_' || index_name, index_name);
    EXECUTE format('CREATE TRIGGER add_postings AFTER INSERT ON %I REFERENCING NEW TABLE AS new_passages '
        'FOR EACH STATEMENT EXECUTE FUNCTION workbench_add_to_buckets(%L, %L)', 'data_' || index_name, index_name, buckets);
    EXECUTE format('CREATE TRIGGER drop_postings AFTER DELETE ON %I REFERENCING OLD TABLE AS old_passages '
        'FOR EACH STATEMENT EXECUTE FUNCTION workbench_drop_from_buckets(%L, %L)', 'data_' || index_name, index_name, buckets);
    FOREACH bucket IN ARRAY held LOOP
        PERFORM workbench_drop_loose_bucket(index_name, bucket);
        PERFORM workbench_create_bucket_tables(index_name, bucket, dimensions, buckets);
        PERFORM workbench_create_bucket_graph(index_name, bucket);
        PERFORM workbench_attach_bucket(index_name, bucket);
        INSERT INTO indexes (name, chunker, embedding_model, dimensions) VALUES (index_name || '_b' || bucket, '', '', dimensions);
    END LOOP;
END $$;
DROP FUNCTION workbench_create_bucket(text, integer, integer);

CREATE OR REPLACE FUNCTION workbench_drop_shard_index(index_name text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    kind text;
BEGIN
    FOREACH kind IN ARRAY ARRAY['data_', 'lexicon_', 'postings_'] LOOP
        EXECUTE format('DROP TABLE IF EXISTS %I', coalesce(workbench_shard_table(kind, index_name), kind || index_name));
    END LOOP;
    DELETE FROM indexes i WHERE i.name ~ ('^' || index_name || '_b[0-9]+$');
END $$;

-- On a shard: what a bucket's tables hold goes, where they are attached to nothing.
CREATE FUNCTION workbench_drop_loose_bucket(index_name text, bucket integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    loose text;
BEGIN
    FOR loose IN SELECT relname FROM pg_class WHERE relkind = 'r' AND NOT relispartition AND relnamespace = current_schema()::regnamespace
            AND relname ~ ('^(data|lexicon|postings)_' || index_name || '_b' || bucket || '$') LOOP
        EXECUTE format('DROP TABLE %I', loose);
    END LOOP;
END $$;

-- On the shard that a bucket comes from: its tables are published. A shard of before 0042 lacks the replica identity.
CREATE FUNCTION workbench_publish_bucket(index_name text, bucket integer, publication text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    name text := index_name || '_b' || bucket;
BEGIN
    EXECUTE format('ALTER TABLE %I REPLICA IDENTITY USING INDEX %I', 'lexicon_' || name, 'lexicon_' || name || '_term_key');
    EXECUTE format('CREATE PUBLICATION %I FOR TABLE %I, %I, %I', publication, 'data_' || name, 'lexicon_' || name, 'postings_' || name);
END $$;

-- On the shard that a bucket goes to. The slot was made before: shards may be two databases of one server.
CREATE FUNCTION workbench_subscribe_bucket(subscription text, conninfo text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE SUBSCRIPTION %1$I CONNECTION %2$L PUBLICATION %1$I WITH (create_slot = false, slot_name = %1$L, binary = true)',
        subscription, conninfo);
END $$;

-- On either shard, in one transaction: the bucket joins what the shard holds, or leaves it, and the tables get the move's number.
CREATE FUNCTION workbench_take_bucket(index_name text, bucket integer, move integer, dimensions integer, statistics jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF workbench_shard_table('data_', index_name) <> 'data_' || index_name || '@' || move THEN  -- else the source did not follow
        PERFORM workbench_attach_bucket(index_name, bucket);
        INSERT INTO indexes (name, chunker, embedding_model, dimensions) VALUES (index_name || '_b' || bucket, '', '', dimensions);
        PERFORM workbench_name_shard_tables(index_name, move);
    END IF;
    DELETE FROM index_statistics s WHERE s.index_name = workbench_take_bucket.index_name || '_b' || bucket;
    INSERT INTO index_statistics SELECT * FROM jsonb_populate_recordset(NULL::index_statistics, statistics);
END $$;

CREATE FUNCTION workbench_give_bucket(index_name text, bucket integer, move integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    kind text;
BEGIN
    FOREACH kind IN ARRAY ARRAY['data_', 'lexicon_', 'postings_'] LOOP
        EXECUTE format('ALTER TABLE %I DETACH PARTITION %I', workbench_shard_table(kind, index_name), kind || index_name || '_b' || bucket);
    END LOOP;
    DELETE FROM indexes WHERE name = index_name || '_b' || bucket;
    PERFORM workbench_name_shard_tables(index_name, move);
END $$;

CREATE FUNCTION workbench_name_shard_tables(index_name text, move integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    kind text;
BEGIN
    FOREACH kind IN ARRAY ARRAY['data_', 'lexicon_', 'postings_'] LOOP
        EXECUTE format('ALTER TABLE %I RENAME TO %I', workbench_shard_table(kind, index_name), kind || index_name || '@' || move);
    END LOOP;
END $$;

-- On the coordinator: a bucket lies on another shard now. The foreign tables of both shards are made anew.
CREATE FUNCTION workbench_bucket_moved(index_name text, bucket integer, move integer, source integer, target integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    held record;
    kind text;
BEGIN
    PERFORM workbench_forget_left_out();
    UPDATE index_buckets b SET shard = workbench_bucket_moved.target
    WHERE b.index_name = workbench_bucket_moved.index_name AND b.bucket = workbench_bucket_moved.bucket;
    FOREACH kind IN ARRAY ARRAY['data_', 'lexicon_', 'postings_'] LOOP
        EXECUTE format('DROP FOREIGN TABLE IF EXISTS %1$I.%3$I, %2$I.%3$I', 'shard_' || source, 'shard_' || target, kind || index_name);
        FOR held IN SELECT shard, string_agg(b.bucket::text, ', ' ORDER BY b.bucket) AS buckets FROM index_buckets b
                WHERE b.index_name = workbench_bucket_moved.index_name AND shard IN (source, target) GROUP BY shard LOOP
            EXECUTE format('CREATE FOREIGN TABLE %1$I.%2$I PARTITION OF %2$I FOR VALUES IN (%3$s) SERVER %1$I OPTIONS (schema_name ''public'', table_name %4$L)',
                'shard_' || held.shard, kind || index_name, held.buckets, kind || index_name || '@' || move);
        END LOOP;
    END LOOP;
END $$;
