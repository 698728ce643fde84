-- A shard that is lost for good: its buckets begin anew, empty, on the others (storage/lost_shard.py).

-- On a shard that gets such a bucket; nothing where it has it already, of an attempt that broke off.
CREATE FUNCTION workbench_hold_empty_bucket(index_name text, bucket integer, dimensions integer, buckets integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF workbench_shard_table('data_', index_name) IS NULL THEN
        PERFORM workbench_create_shard_index(index_name, dimensions, buckets, '{}');
    END IF;
    IF EXISTS (SELECT FROM pg_class WHERE relname = 'data_' || index_name || '_b' || bucket AND relispartition
            AND relnamespace = current_schema()::regnamespace) THEN
        RETURN;
    END IF;
    PERFORM workbench_drop_loose_bucket(index_name, bucket);
    PERFORM workbench_create_bucket_tables(index_name, bucket, dimensions, buckets);
    PERFORM workbench_create_bucket_graph(index_name, bucket);
    PERFORM workbench_attach_bucket(index_name, bucket);
    INSERT INTO indexes (name, chunker, embedding_model, dimensions) VALUES (index_name || '_b' || bucket, '', '', dimensions);
END $$;

-- On the coordinator: an index's foreign tables are made anew, as index_buckets says; on a shard they keep the name that they
-- have there. The passages are counted again.
CREATE FUNCTION workbench_attach_anew(index_name text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    names jsonb := (SELECT jsonb_object_agg(n.nspname, substring(named FROM '^table_name=data_(.+)$'))
        FROM pg_foreign_table t JOIN pg_class c ON c.oid = t.ftrelid JOIN pg_namespace n ON n.oid = c.relnamespace, unnest(t.ftoptions) AS named
        WHERE c.relname = 'data_' || index_name AND named LIKE 'table\_name=data\_%');
    attached regclass;
BEGIN
    PERFORM workbench_forget_left_out();
    FOR attached IN SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE c.relkind = 'f' AND n.nspname ~ '^shard_[0-9]+$' AND c.relname IN ('data_' || index_name, 'lexicon_' || index_name,
                'postings_' || index_name, 'ranked_' || index_name) LOOP
        EXECUTE format('DROP FOREIGN TABLE %s', attached);
    END LOOP;
    PERFORM workbench_attach_shard(index_name, shard, coalesce(names ->> ('shard_' || shard), index_name))
    FROM (SELECT DISTINCT b.shard FROM index_buckets b WHERE b.index_name = workbench_attach_anew.index_name) AS holders;
    PERFORM workbench_read_shards('public', index_name,
        (SELECT array_agg(DISTINCT b.shard) FROM index_buckets b WHERE b.index_name = workbench_attach_anew.index_name));
    EXECUTE format('DELETE FROM %I WHERE false', 'data_' || index_name);  -- its trigger counts
END $$;
