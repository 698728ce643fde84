-- bench_nearest: what anyone would write to get the nearest passages, their texts and metadata included
SELECT id, node_id, text, metadata_, 1 - (embedding <=> %(vector)s::halfvec) AS score
FROM {data} ORDER BY embedding <=> %(vector)s::halfvec LIMIT %(limit)s

-- bench_copy_to_framework: the same passages in the framework's own table, for the bench
INSERT INTO {framework} (text, metadata_, node_id, embedding)
SELECT text, metadata_::json, node_id, embedding::vector FROM {data}

-- bench_framework_drop: the framework's table of an earlier bench
DROP TABLE IF EXISTS {framework}

-- bench_framework_analyse: give the planner the table's numbers
VACUUM ANALYZE {framework}
