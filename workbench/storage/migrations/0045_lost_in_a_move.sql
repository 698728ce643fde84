-- A shard that is lost for good in the middle of a bucket's move (storage/lost_shard.py). The shards that are left say what they
-- hold, and by which name: one of them may have switched to a move that the coordinator never heard of.

-- On a shard that gets a bucket which begins anew. One that has it already, of an attempt that broke off or of a move whose
-- source is gone with the last of what was written, empties it.
CREATE OR REPLACE FUNCTION workbench_hold_empty_bucket(index_name text, bucket integer, dimensions integer, buckets integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    name text := index_name || '_b' || bucket;
BEGIN
    IF workbench_shard_table('data_', index_name) IS NULL THEN
        PERFORM workbench_create_shard_index(index_name, dimensions, buckets, '{}');
    END IF;
    IF EXISTS (SELECT FROM pg_class WHERE relname = 'data_' || name AND relispartition AND relnamespace = current_schema()::regnamespace) THEN
        EXECUTE format('TRUNCATE %I, %I, %I', 'data_' || name, 'lexicon_' || name, 'postings_' || name);
        DELETE FROM index_statistics s WHERE s.index_name = name;
        RETURN;
    END IF;
    PERFORM workbench_drop_loose_bucket(index_name, bucket);
    PERFORM workbench_create_bucket_tables(index_name, bucket, dimensions, buckets);
    PERFORM workbench_create_bucket_graph(index_name, bucket);
    PERFORM workbench_attach_bucket(index_name, bucket);
    INSERT INTO indexes (name, chunker, embedding_model, dimensions) VALUES (name, '', '', dimensions);
END $$;

-- On the coordinator: an index's foreign tables are made anew, as index_buckets says, over what each shard's tables of it are
-- called ({"2": "main@7"}). The passages are counted again.
DROP FUNCTION workbench_attach_anew(text);
CREATE FUNCTION workbench_attach_anew(index_name text, names jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    holders integer[] := (SELECT array_agg(DISTINCT b.shard) FROM index_buckets b WHERE b.index_name = workbench_attach_anew.index_name);
    attached regclass;
BEGIN
    PERFORM workbench_forget_left_out();
    FOR attached IN SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE c.relkind = 'f' AND n.nspname ~ '^shard_[0-9]+$' AND c.relname IN ('data_' || index_name, 'lexicon_' || index_name,
                'postings_' || index_name, 'ranked_' || index_name) LOOP
        EXECUTE format('DROP FOREIGN TABLE %s', attached);
    END LOOP;
    PERFORM workbench_attach_shard(index_name, holder, names ->> holder::text) FROM unnest(holders) AS holder;
    PERFORM workbench_read_shards('public', index_name, holders);
    EXECUTE format('DELETE FROM %I WHERE false', 'data_' || index_name);  -- its trigger counts
END $$;
