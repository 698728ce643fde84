-- bench_nearest: the nearest passages in plain SQL, their texts and metadata included, with the same search width as ours
SELECT id, node_id, text, metadata_, 1 - (embedding <=> %(vector)s::halfvec) AS score
FROM {data} WHERE {breadth} ORDER BY embedding <=> %(vector)s::halfvec LIMIT %(limit)s

-- bench_nearest_ids: only the ids of the nearest passages, to compare with the true ones
SELECT id FROM {data} ORDER BY embedding <=> %(vector)s::halfvec LIMIT %(limit)s

-- bench_width: how many passages a graph search keeps as candidates, until the transaction ends
SELECT set_config('hnsw.ef_search', %(width)s, true)

-- bench_plain_drop: the plain postings of an earlier benchmark
DROP TABLE IF EXISTS {plain}

-- bench_plain: postings as plain rows
CREATE TABLE {plain} AS
SELECT l.id AS term_id, d.id AS passage_id, cardinality(u.positions) AS tf, workbench_length(d.terms) AS length
FROM (SELECT id, workbench_passage_terms(metadata_, text) AS terms FROM {data} OFFSET 0) AS d,
    unnest(d.terms) u JOIN {lexicon} l ON l.term = u.lexeme

-- bench_plain_index: the index over them
ALTER TABLE {plain} ADD PRIMARY KEY (term_id, passage_id) INCLUDE (tf, length)

-- bench_plain_analyse: update the planner's statistics for the table
VACUUM ANALYZE {plain}

-- bench_bm25: the passages with the best BM25 scores in plain SQL
SELECT o.passage_id AS id, sum(t.weight * o.tf / (o.tf + %(a)s + %(c)s * o.length)) AS score
FROM unnest(%(term_ids)s::integer[], %(weights)s::float8[]) AS t (id, weight) JOIN {plain} o ON o.term_id = t.id
GROUP BY o.passage_id ORDER BY score DESC, o.passage_id LIMIT %(limit)s

-- bench_copy_to_framework: the same passages in the framework's own table, for the benchmark
INSERT INTO {framework} (text, metadata_, node_id, embedding)
SELECT text, metadata_::json, node_id, embedding::vector FROM {data}

-- bench_framework_drop: the framework's table of an earlier benchmark
DROP TABLE IF EXISTS {framework}

-- bench_framework_analyse: update the planner's statistics for the table
VACUUM ANALYZE {framework}
