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
