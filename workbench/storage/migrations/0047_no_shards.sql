-- Every index lies in this database: what divided indexes over servers goes.
DROP TRIGGER delete_from_shards ON documents;
DROP TABLE index_buckets, bucket_moves;
ALTER TABLE indexes DROP COLUMN buckets;

CREATE OR REPLACE FUNCTION workbench_drop_index(index_name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('DROP TABLE IF EXISTS %I, %I, %I, %I',
        'full_text_' || index_name, 'data_' || index_name, 'lexicon_' || index_name, 'postings_' || index_name);
END $$;

DROP FUNCTION workbench_add_to_buckets, workbench_attach_anew, workbench_attach_bucket, workbench_attach_ranked, workbench_attach_shard,
    workbench_attach_shards, workbench_bucket, workbench_bucket_moved, workbench_count_shards, workbench_create_bucket_graph,
    workbench_create_bucket_tables, workbench_create_cluster_index, workbench_create_divided, workbench_create_shard_index,
    workbench_delete_from_shards, workbench_drop_from_buckets, workbench_drop_loose_bucket, workbench_drop_shard_index,
    workbench_forget_left_out, workbench_forget_reads, workbench_give_bucket, workbench_hold_empty_bucket, workbench_leave_out,
    workbench_name_shard_tables, workbench_passage_columns, workbench_publish_bucket, workbench_read_shards, workbench_read_shards_by,
    workbench_shard_table, workbench_subscribe_bucket, workbench_take_bucket;
