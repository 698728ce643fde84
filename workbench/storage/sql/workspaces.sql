-- conversation_ids: the conversations of a workspace, narrowed by type; NULL is ignored
SELECT d.id, d.key FROM documents d
WHERE d.source_id = %(source_id)s
  AND (%(conversation_type)s::text IS NULL OR d.metadata ->> 'conversation_type' = %(conversation_type)s)

-- conversation_types: the types of conversation a workspace holds
SELECT DISTINCT d.metadata ->> 'conversation_type' AS type FROM documents d
WHERE d.source_id = %(source_id)s AND d.metadata ->> 'conversation_type' <> '' ORDER BY 1

-- conversations_like: other conversations of a workspace by the cosine between mean passage vectors
WITH whole AS (
    SELECT p.document_id, avg(p.embedding) AS mean FROM {data} p WHERE p.source_id = %(source_id)s GROUP BY p.document_id)
SELECT d.id, d.key, d.title, d.metadata, d.document_date, 1 - (w.mean <=> own.mean) AS score,
    left((SELECT p.text FROM {data} p WHERE p.document_id = d.id ORDER BY (p.metadata_ ->> 'ordinal')::integer LIMIT 1), 2000) AS text
FROM whole own, whole w JOIN documents d ON d.id = w.document_id
WHERE own.document_id = %(document_id)s AND w.document_id <> own.document_id
ORDER BY score DESC, d.key LIMIT %(limit)s

-- workspace_counts: the numbers of a workspace's conversations and passages in an index
SELECT count(*) AS documents, coalesce(sum(i.passages), 0)::bigint AS passages
FROM documents d JOIN index_documents i ON i.document_id = d.id AND i.index_name = %(index)s WHERE d.source_id = %(source_id)s

-- workspace_recent: the conversations embedded last
SELECT d.key, d.updated_at FROM documents d WHERE d.source_id = %(source_id)s ORDER BY d.updated_at DESC, d.key LIMIT %(limit)s
