-- graph_serves: true if an index is too large for exact search and has a graph that finds its passages
(coalesce((i.graph ->> 'recall')::float8 >= %(least_recall)s, false) AND (
    SELECT coalesce(sum(s.passages), 0) > %(exact_up_to)s FROM index_statistics s WHERE s.index_name = i.name))

-- graph_state: the state of an index's graph, and the size of the index
SELECT i.graph, (SELECT coalesce(sum(s.passages), 0)::bigint FROM index_statistics s WHERE s.index_name = i.name) AS passages,
    to_regclass(quote_ident('data_' || i.name || '_embedding_idx')) IS NOT NULL AS is_built,
    to_regclass(quote_ident('data_' || i.name || '_embedding_new')) IS NOT NULL AS has_new
FROM indexes i WHERE i.name = %(index)s

-- graph_turn: true if no other process builds or measures the graph of this index; held until the transaction ends
SELECT pg_try_advisory_xact_lock(7215006, hashtext(%(index)s)) AS is_ours

-- graph_memory: enough memory to build the graph: 2 bytes per dimension and 80 bytes per link
SELECT set_config('maintenance_work_mem', greatest(
    (SELECT setting::bigint FROM pg_settings WHERE name = 'maintenance_work_mem'),
    %(passages)s::bigint * (2 * dimensions + 80 * %(m)s) / 1024)::text, true)
FROM indexes WHERE name = %(index)s

-- graph_build: a new graph, not searched yet
SELECT workbench_build_graph(%(index)s, %(m)s, %(ef_construction)s)

-- graph_progress: the percentage of the table that a build of a graph has read
SELECT 100 * blocks_done / blocks_total AS percent FROM pg_stat_progress_create_index
WHERE pid = %(pid)s AND blocks_total > 0

-- graph_drop_new: remove the new graph of a killed process
SELECT workbench_drop_new_graph(%(index)s)

-- graph_replace: the new graph takes the place of the old one
SELECT workbench_replace_graph(%(index)s)

-- graph_note: store the state of an index's graph
UPDATE indexes SET graph = %(graph)s WHERE name = %(index)s

-- graph_settings: set the search width of the graph for the next statements of the transaction
SELECT set_config('hnsw.ef_search', %(ef_search)s, true), set_config('enable_seqscan', 'off', true),
    set_config('enable_sort', 'off', true)

-- graph_self_recall: how many passages of a sample are among the first ten that a search by their own vector returns. Half of
-- the sample is spread evenly over the age of passages, half is whole documents of few passages, spread evenly over theirs.
-- Among more than ten passages with the same vector, any ten are accepted.
WITH aged AS (
    SELECT id FROM (SELECT id, row_number() OVER (ORDER BY id) - 1 AS place FROM {data}) AS p
    WHERE place %% greatest(1, %(passages)s / %(half)s) = 0),
brief AS (
    SELECT array_agg(id) AS ids, row_number() OVER (ORDER BY min(id)) - 1 AS place FROM {data}
    GROUP BY document_id HAVING count(*) <= 5),
whole AS (
    SELECT unnest(ids) AS id FROM brief
    WHERE place %% greatest(1, ((SELECT sum(cardinality(ids)) FROM brief) / %(half)s)::bigint) = 0),
sample AS MATERIALIZED (
    SELECT p.id, p.embedding FROM {data} p WHERE p.id IN (SELECT id FROM aged UNION SELECT id FROM whole))
SELECT count(*) AS asked, count(*) FILTER (WHERE found.own OR found.furthest < 0.0001) AS found
FROM sample s, LATERAL (
    SELECT bool_or(n.id = s.id) AS own, CASE WHEN count(*) = 10 THEN max(n.distance) ELSE 2 END AS furthest FROM (
        SELECT p.id, p.embedding <=> s.embedding AS distance FROM {data} p
        ORDER BY p.embedding <=> s.embedding LIMIT 10) AS n) AS found
