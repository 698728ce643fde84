-- bucket_move_plannable: which shard has which bucket of which index
SELECT b.index_name, b.bucket, b.shard FROM index_buckets b ORDER BY b.index_name, b.bucket

-- bucket_move_note: a move begins: said before anything is done on a shard, so that what is left of it can be found
INSERT INTO bucket_moves (index_name, index_made, bucket, source, target)
SELECT b.index_name, i.created_at, b.bucket, b.shard, %(target)s FROM index_buckets b JOIN indexes i ON i.name = b.index_name
WHERE b.index_name = %(index)s AND b.bucket = %(bucket)s AND b.shard = %(source)s
RETURNING id, index_name AS index, bucket, source, target, name

-- bucket_move_forget: nothing is left of a move
DELETE FROM bucket_moves WHERE id = %(id)s

-- bucket_moves: the moves that are under way or broke off
SELECT id, index_name AS index, bucket, source, target, name FROM bucket_moves ORDER BY id

-- bucket_move_is_going_on: whether somebody holds the lock of those who move buckets
SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database AND d.datname = current_database()
    WHERE l.locktype = 'advisory' AND l.classid = 0 AND l.objid = 7215007 AND l.objsubid = 1 AND l.granted) AS going_on

-- bucket_move_index: the index of a move, where it is still the one that it was begun for and lies on the source
SELECT i.dimensions, i.buckets FROM bucket_moves m JOIN indexes i ON i.name = m.index_name AND i.created_at = m.index_made
    JOIN index_buckets b ON b.index_name = i.name AND b.bucket = m.bucket AND b.shard = m.source
WHERE m.id = %(id)s

-- bucket_move_hold: the same, held until the transaction ends
SELECT i.dimensions, i.buckets FROM bucket_moves m JOIN indexes i ON i.name = m.index_name AND i.created_at = m.index_made
    JOIN index_buckets b ON b.index_name = i.name AND b.bucket = m.bucket AND b.shard = m.source
WHERE m.id = %(id)s FOR UPDATE OF i, b

-- bucket_move_keep_out: nobody reads or writes an index until the transaction ends
LOCK TABLE {data}, {lexicon}, {postings} IN ACCESS EXCLUSIVE MODE

-- bucket_move_patience: how long a statement of this transaction waits for others, who wait behind it
SELECT set_config('lock_timeout', %(patience)s || 'ms', true)

-- bucket_move_done: the coordinator knows where the bucket lies now
SELECT workbench_bucket_moved(%(index)s, %(bucket)s, %(id)s, %(source)s, %(target)s)

-- bucket_move_log_level: how much a server writes into its log, and how many more may follow it
SELECT current_setting('wal_level') AS wal_level,
    current_setting('max_replication_slots')::integer - (SELECT count(*) FROM pg_replication_slots)::integer AS slots_free

-- bucket_move_prepare: the target's tables of the index, where it has none of it yet, and empty ones for the bucket
SELECT CASE WHEN workbench_shard_table('data_', %(index)s) IS NULL
    THEN workbench_create_shard_index(%(index)s, %(dimensions)s, %(buckets)s, '{{}}') END,
    workbench_drop_loose_bucket(%(index)s, %(bucket)s),
    workbench_create_bucket_tables(%(index)s, %(bucket)s, %(dimensions)s, %(buckets)s)

-- bucket_move_publish: the source offers the bucket's tables
SELECT workbench_publish_bucket(%(index)s, %(bucket)s, %(name)s)

-- bucket_move_slot: the source keeps from now on what is written, until the target has it
SELECT pg_create_logical_replication_slot(%(name)s, 'pgoutput')

-- bucket_move_subscribe: the target copies the tables, and then follows
SELECT workbench_subscribe_bucket(%(name)s, %(source_url)s)

-- bucket_move_copied: whether the target has copied all three tables, and how often it failed at it
SELECT count(*) >= 3 AND bool_and(r.srsubstate = 'r') AS done, coalesce(max(t.apply_error_count + t.sync_error_count), 0) AS errors
FROM pg_subscription s JOIN pg_subscription_rel r ON r.srsubid = s.oid LEFT JOIN pg_stat_subscription_stats t ON t.subid = s.oid
WHERE s.subname = %(name)s

-- bucket_move_graph: the graph over the copied vectors, built in one go
SELECT workbench_create_bucket_graph(%(index)s, %(bucket)s)

-- bucket_move_mark: a last entry in the source's log; when it is committed, all before it is written
SELECT pg_logical_emit_message(true, 'workbench', %(name)s)

-- bucket_move_log_end: the end of the source's log
SELECT pg_current_wal_flush_lsn()::text AS log_end

-- bucket_move_followed: whether the target has all until there
SELECT confirmed_flush_lsn >= %(log_end)s::pg_lsn AS followed FROM pg_replication_slots WHERE slot_name = %(name)s

-- bucket_move_switched: whether a shard's tables have the move's number already
SELECT coalesce(workbench_shard_table('data_', %(index)s) = 'data_' || %(index)s || '@' || %(id)s, false) AS switched

-- bucket_move_statistics: the source's counts of the bucket
SELECT coalesce(jsonb_agg(to_jsonb(s)), '[]')::text AS statistics FROM index_statistics s WHERE s.index_name = %(index)s || '_b' || %(bucket)s

-- bucket_move_take: the target takes the bucket
SELECT workbench_take_bucket(%(index)s, %(bucket)s, %(id)s, %(dimensions)s, %(statistics)s::jsonb)

-- bucket_move_give: the source gives it away
SELECT workbench_give_bucket(%(index)s, %(bucket)s, %(id)s)

-- bucket_move_follows: whether a shard has the subscription of a move
SELECT 1 AS found FROM pg_subscription WHERE subname = %(name)s

-- bucket_move_slot_drop: the source keeps nothing any more
SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %(name)s

-- bucket_move_loose_drop: what a shard has of the bucket and does not use
SELECT workbench_drop_loose_bucket(%(index)s, %(bucket)s)
