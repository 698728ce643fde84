-- attached_keys: the ids that given passages have in the attached table
SELECT p.id, p.metadata_ ->> 'row' AS key FROM {data} p WHERE p.id = ANY(%(ids)s)

-- attached_rows: the rows of an attached table as they were read, and whether the document has changed since
SELECT p.metadata_ ->> 'row' AS key, p.passage_hash AS hash, p.source_id, i.content_hash IS DISTINCT FROM d.content_hash AS outdated
FROM {data} p JOIN documents d ON d.id = p.document_id
    LEFT JOIN index_documents i ON i.document_id = p.document_id AND i.index_name = %(index)s

-- attached_delete: delete passages before their rows are read again
DELETE FROM {data} WHERE node_id = ANY(%(node_ids)s)

-- attached_documents_delete: rows that were separate documents but no longer exist
DELETE FROM documents WHERE source_id = %(source_id)s AND key = ANY(%(keys)s)

-- attached_documents_forget: delete the list of an attached index's documents, before they are counted again
DELETE FROM index_documents WHERE index_name = %(index)s

-- attached_documents_count: count the documents of an attached index
INSERT INTO index_documents (index_name, document_id, content_hash, passages)
SELECT %(index)s, d.id, d.content_hash, count(*) FROM {data} p JOIN documents d ON d.id = p.document_id GROUP BY d.id

-- attached_candidates: the documents that may contain rows, without their texts
SELECT d.id, d.source_id, d.key, d.path, d.url, d.language FROM documents d JOIN sources s ON s.id = d.source_id
WHERE CASE WHEN %(dataset)s::text IS NULL THEN s.source_type <> 'dataset' ELSE s.id = %(dataset)s END ORDER BY d.created_at, d.id

-- attached_texts: the texts of documents
SELECT id, text FROM documents WHERE id = ANY(%(ids)s)

-- index_attach: the table from which an index reads its vectors
UPDATE indexes SET attachment = %(attachment)s WHERE name = %(name)s

-- index_attachment_url: the address of an attached table with its password; NULL for a table of our own database
SELECT attachment_url AS url FROM indexes WHERE name = %(name)s

-- attached_limits: a time limit and pgvector's schema, for a transaction on the server of an attached table
SELECT set_config('statement_timeout', %(milliseconds)s::text, true),
    set_config('search_path', quote_ident(%(schema)s::text) || ', pg_catalog', true)

-- attached_state: the counters of a table, of its partitions and of the tables behind a view; a rewritten table has another file
WITH RECURSIVE read AS (
    SELECT %(table)s::text::regclass::oid AS oid
    UNION SELECT x.oid FROM read, LATERAL (
        SELECT d.refobjid AS oid FROM pg_rewrite r JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass
            AND d.objid = r.oid AND d.refclassid = 'pg_class'::regclass WHERE r.ev_class = read.oid
        UNION ALL SELECT i.inhrelid FROM pg_inherits i WHERE i.inhparent = read.oid) AS x)
SELECT coalesce(string_agg(concat_ws(':', c.oid, c.relfilenode, s.n_tup_ins, s.n_tup_upd, s.n_tup_del), ' ' ORDER BY c.oid), '')
    AS state
FROM read JOIN pg_class c USING (oid) LEFT JOIN pg_stat_all_tables s ON s.relid = c.oid WHERE c.relkind IN ('r', 'm', 'p')

-- attached_extension: the schema and the version of pgvector
SELECT n.nspname AS schema, e.extversion AS version
FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'

-- attached_tables: tables and views of a name, and whether they can be read
SELECT c.oid::bigint AS oid, n.nspname AS schema, c.relname AS table, has_schema_privilege(n.oid, 'USAGE')
    AND (has_table_privilege(c.oid, 'SELECT') OR has_any_column_privilege(c.oid, 'SELECT')) AS readable
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'v', 'm', 'p', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
  AND (%(schema)s::text IS NULL OR n.nspname = %(schema)s::text) AND c.relname IN (%(table)s::text, lower(%(table)s::text))
ORDER BY c.relname = %(table)s::text DESC, n.nspname = 'public' DESC, n.nspname

-- attached_columns: the columns of a table
SELECT a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type,
    has_column_privilege(a.attrelid, a.attnum, 'SELECT') AS readable, EXISTS (
        SELECT FROM pg_index i WHERE i.indrelid = a.attrelid AND i.indisprimary AND i.indkey[0] = a.attnum AND i.indnkeyatts = 1
    ) AS is_key
FROM pg_attribute a WHERE a.attrelid = %(oid)s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum

-- attached_vector_indexes: the indexes of a table with the operator class and the expression of their first column
SELECT x.relname AS name, o.opcname AS operator_class, pg_get_indexdef(i.indexrelid, 1, true) AS expression
FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid JOIN pg_opclass o ON o.oid = i.indclass[0]
WHERE i.indrelid = %(oid)s AND i.indisvalid AND i.indpred IS NULL ORDER BY x.relname

-- attached_breadth: how many candidates a search of an HNSW graph keeps
SELECT set_config('hnsw.ef_search', %(breadth)s, true)

-- attached_iterates: continue a search whose candidates a filter has removed (pgvector 0.8)
SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('ivfflat.iterative_scan', 'relaxed_order', true)
