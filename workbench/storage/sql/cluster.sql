-- cluster_extension: whether this Postgres can reach others
SELECT 1 AS found FROM pg_available_extensions WHERE name = 'postgres_fdw'

-- cluster_alone: nobody else adds a shard or makes an index meanwhile
LOCK TABLE index_buckets, indexes IN SHARE ROW EXCLUSIVE MODE

-- cluster_shards: the foreign servers that are shards, with how they are reached
SELECT substring(s.srvname FROM 7)::integer AS number, coalesce(s.srvoptions, '{{}}') AS server, coalesce(m.umoptions, '{{}}') AS mapping
FROM pg_foreign_server s LEFT JOIN pg_user_mappings m ON m.srvid = s.oid AND m.usename = current_user
WHERE s.srvname ~ '^shard_[0-9]+$' ORDER BY 1

-- cluster_place_buckets: these buckets of an index lie on a shard
INSERT INTO index_buckets (index_name, bucket, shard) SELECT %(name)s, b, %(shard)s FROM unnest(%(held)s::integer[]) AS b

-- cluster_create_on_shard: an index's tables on a shard
SELECT workbench_create_shard_index(%(name)s, %(dimensions)s, %(buckets)s, %(held)s::integer[])

-- cluster_create_here: an index's tables on the coordinator, over those of the shards
SELECT workbench_create_cluster_index(%(name)s, %(dimensions)s)

-- cluster_drop_on_shard: what a shard holds of an index
SELECT workbench_drop_shard_index(%(name)s)

-- cluster_empty_shard: what a shard has of any index, before it leaves
SELECT workbench_drop_shard_index(substring(relname FROM '^data_([a-z0-9_]+)')) FROM pg_class
WHERE relkind = 'p' AND relnamespace = current_schema()::regnamespace AND starts_with(relname, 'data_')

-- cluster_leave_out: a schema is made whose tables lack what some shards hold
SELECT workbench_leave_out(%(away)s::integer[])

-- cluster_see_left_out: a session, or a transaction, finds the tables of indexes there, where the schema stands
SELECT set_config('search_path', place.name || ', public', %(within)s) AS path
FROM (SELECT 'without_' || array_to_string(%(away)s::integer[], '_') AS name) AS place WHERE to_regnamespace(place.name) IS NOT NULL

-- cluster_forget_left_out: the schemas of searches beside an outage go; they hold views only
SELECT workbench_forget_left_out()

-- cluster_see_everything: a session finds the tables of indexes over all shards
SELECT set_config('search_path', 'public', false)

-- cluster_unseen: the share of an index's passages that lie on some shards
SELECT coalesce(sum(i.passages) FILTER (WHERE b.shard = ANY(%(away)s::integer[])), 0)::float8 / greatest(sum(i.passages), 1) AS share
FROM index_documents i JOIN indexes x ON x.name = i.index_name
    JOIN index_buckets b ON b.index_name = x.name AND b.bucket = workbench_bucket(i.document_id, x.buckets)
WHERE i.index_name = %(index)s

-- cluster_leftovers: passages whose document is not in the index: of a writing that ended between two shards
DELETE FROM {data} WHERE document_id = ANY(ARRAY(
    SELECT p.document_id FROM {data} p EXCEPT SELECT i.document_id FROM index_documents i WHERE i.index_name = %(index)s))

-- cluster_indexes: the indexes that lie on shards
SELECT name FROM indexes WHERE buckets > 0 ORDER BY name

-- cluster_size_on_shard: the bytes of an index's buckets on a shard
SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
WHERE c.relkind = 'r' AND c.relname ~ ('^(data|lexicon|postings)_' || %(name)s || '_b[0-9]+$')

-- cluster_sizes_on_shard: the bytes of a shard's database, and of the buckets of each index there
SELECT pg_database_size(current_database()) AS bytes, coalesce((SELECT jsonb_object_agg(held.name, held.bytes) FROM (
    SELECT substring(c.relname FROM '^(?:data|lexicon|postings)_(.+)_b[0-9]+$') AS name, sum(pg_total_relation_size(c.oid))::bigint AS bytes
    FROM pg_class c WHERE c.relkind = 'r' GROUP BY 1) AS held WHERE held.name IS NOT NULL), jsonb_build_object()) AS indexes

-- cluster_buckets_held: how many buckets of all indexes each shard holds
SELECT shard, count(*)::integer AS buckets FROM index_buckets GROUP BY shard

-- cluster_newcomer: what a database must show before it becomes a shard: no indexes, and the coordinator's characters
SELECT (SELECT count(*) FROM indexes)::integer AS indexes, datctype AS character_type FROM pg_database WHERE datname = current_database()

-- cluster_lost_buckets: the buckets of a shard, with what their tables are made by
SELECT b.index_name AS index, b.bucket, x.dimensions, x.buckets FROM index_buckets b JOIN indexes x ON x.name = b.index_name
WHERE b.shard = %(lost)s ORDER BY b.index_name, b.bucket

-- cluster_hold_empty_bucket: a shard holds a bucket that begins anew
SELECT workbench_hold_empty_bucket(%(index)s, %(bucket)s, %(dimensions)s, %(buckets)s)

-- cluster_lost_documents: indexes do not hold the documents any more whose passages lay on a shard; how many, of each index
WITH gone AS (
    DELETE FROM index_documents i USING indexes x, index_buckets b
    WHERE x.name = i.index_name AND b.index_name = x.name AND b.bucket = workbench_bucket(i.document_id, x.buckets) AND b.shard = %(lost)s
    RETURNING i.index_name)
SELECT index_name, count(*)::integer AS documents FROM gone GROUP BY index_name ORDER BY index_name

-- cluster_deal_bucket: a bucket lies on another shard from now on
UPDATE index_buckets SET shard = %(shard)s WHERE index_name = %(index)s AND bucket = %(bucket)s

-- cluster_attach_anew: an index is read and written where its buckets lie now
SELECT workbench_attach_anew(%(index)s, %(names)s)

-- cluster_held_on_shard: the indexes that a shard has tables of, what these are called there, and the buckets that belong to them
SELECT substring(p.relname FROM '^data_([a-z0-9_]+)') AS index, substring(p.relname FROM '^data_(.+)$') AS called,
    coalesce(array_agg(substring(b.relname FROM '_b([0-9]+)$')::integer) FILTER (WHERE b.relname IS NOT NULL), '{{}}') AS buckets
FROM pg_class p LEFT JOIN pg_inherits i ON i.inhparent = p.oid LEFT JOIN pg_class b ON b.oid = i.inhrelid
WHERE p.relkind = 'p' AND p.relnamespace = current_schema()::regnamespace AND starts_with(p.relname, 'data_')
GROUP BY p.relname
