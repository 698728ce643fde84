-- project_insert: a new project
INSERT INTO projects (id, title, description) VALUES (%(id)s, %(title)s, %(description)s)

-- project_list: all projects with the number of their sources
SELECT p.*, (SELECT count(*) FROM sources s WHERE s.project_id = p.id) AS source_count
FROM projects p WHERE (%(key)s::text IS NULL OR p.id = %(key)s OR p.title = %(key)s) ORDER BY p.title, p.id

-- project_update: NULL leaves a field as it is
UPDATE projects SET title = coalesce(%(title)s, title), description = coalesce(%(description)s, description) WHERE id = %(id)s

-- project_delete: with its folders and sources, by cascade
DELETE FROM projects WHERE id = %(id)s

-- folder_insert: a new folder
INSERT INTO folders (id, project_id, name, description, color, icon_name)
VALUES (%(id)s, %(project_id)s, %(name)s, %(description)s, %(color)s, %(icon_name)s)

-- folder_list: a project's folders with the number of their sources
SELECT f.*, (SELECT count(*) FROM sources s WHERE s.folder_id = f.id) AS source_count
FROM folders f WHERE f.project_id = %(project_id)s ORDER BY f.name

-- folder_update: NULL leaves a field as it is
UPDATE folders SET name = coalesce(%(name)s, name), description = coalesce(%(description)s, description),
    color = coalesce(%(color)s, color), icon_name = coalesce(%(icon_name)s, icon_name) WHERE id = %(id)s

-- folder_delete: its sources stay in the project
DELETE FROM folders WHERE id = %(id)s

-- source_insert: a new source
INSERT INTO sources (id, title, source_type, url, scope, project_id, folder_id, tags, language, metadata)
VALUES (%(id)s, %(title)s, %(source_type)s, %(url)s, %(scope)s, %(project_id)s, %(folder_id)s, %(tags)s, %(language)s, %(metadata)s)

-- source_list: sources with the number of their documents and passages; NULL parameters do not narrow
SELECT s.*, f.name AS folder_name, count(d.id) AS documents_count,
    coalesce(sum((SELECT sum(i.passages) FROM index_documents i JOIN indexes x ON x.name = i.index_name
        WHERE i.document_id = d.id AND (x.is_default OR x.dataset = s.id))), 0)::bigint AS passages_count
FROM sources s LEFT JOIN folders f ON f.id = s.folder_id LEFT JOIN documents d ON d.source_id = s.id
WHERE (s.source_type = 'dataset') = %(datasets)s
  AND (%(id)s::text IS NULL OR s.id = %(id)s)
  AND (%(scope)s::text IS NULL OR s.scope = %(scope)s)
  AND (%(project_id)s::text IS NULL OR s.project_id = %(project_id)s)
  AND (%(source_type)s::text IS NULL OR s.source_type = %(source_type)s)
GROUP BY s.id, f.name ORDER BY s.created_at, s.id LIMIT %(limit)s OFFSET %(offset)s

-- source_count: how many sources there are under the same conditions
SELECT count(*) AS n FROM sources s
WHERE (s.source_type = 'dataset') = %(datasets)s
  AND (%(scope)s::text IS NULL OR s.scope = %(scope)s)
  AND (%(project_id)s::text IS NULL OR s.project_id = %(project_id)s)
  AND (%(source_type)s::text IS NULL OR s.source_type = %(source_type)s)

-- source_find: ids of the sources that a person may mean by an id, a URL or an exact title; ids win, then titles
SELECT id FROM sources WHERE (id = %(key)s OR title = %(key)s OR url = %(key)s)
  AND (source_type <> 'dataset' OR id = %(key)s) ORDER BY (id = %(key)s) DESC, (title = %(key)s) DESC, created_at

-- source_standing_for: the source of a type that stands for an address (a mirrored folder's)
SELECT id FROM sources WHERE url = %(url)s AND source_type = %(source_type)s ORDER BY created_at LIMIT 1

-- source_update: all the fields a person may change
UPDATE sources SET title = %(title)s, url = %(url)s, scope = %(scope)s, project_id = %(project_id)s, folder_id = %(folder_id)s,
    tags = %(tags)s, language = %(language)s, status = %(status)s, metadata = %(metadata)s, updated_at = now() WHERE id = %(id)s

-- source_metadata: what a service keeps with a source
SELECT metadata FROM sources WHERE id = %(id)s

-- source_delete: with its documents, by cascade
DELETE FROM sources WHERE id = %(id)s

-- source_ids_in_scope: the ids of the sources a scope names; NULL parameters do not narrow
SELECT s.id, s.scope, s.project_id, s.folder_id, s.tags FROM sources s
WHERE s.source_type <> 'dataset'
  AND (%(kind)s::text <> 'global' OR s.scope = 'global')
  AND (%(kind)s::text <> 'project' OR s.project_id = %(project_id)s)
  AND (%(project_id)s::text IS NULL OR s.scope = 'global' OR s.project_id = %(project_id)s)
  AND (%(folder_id)s::text IS NULL OR s.folder_id = %(folder_id)s)
  AND (%(tags)s::text[] IS NULL OR s.tags && %(tags)s)
  AND (%(source_ids)s::text[] IS NULL OR s.id = ANY(%(source_ids)s))
ORDER BY s.id

-- tags_in_use: every tag with the number of its sources
SELECT tag, count(*) AS sources FROM sources, unnest(tags) AS tag WHERE source_type <> 'dataset' GROUP BY tag ORDER BY tag

-- document_upsert: a document, new or in a new version; its id stays
INSERT INTO documents AS d (id, source_id, key, title, path, url, document_type, content_hash, text, language, metadata, pages, document_date)
VALUES (%(id)s, %(source_id)s, %(key)s, %(title)s, %(path)s, %(url)s, %(document_type)s, %(content_hash)s, %(text)s,
    %(language)s, %(metadata)s, %(pages)s, %(document_date)s)
ON CONFLICT (source_id, key) DO UPDATE SET title = excluded.title, path = excluded.path, url = excluded.url,
    document_type = excluded.document_type, content_hash = excluded.content_hash, text = excluded.text,
    language = excluded.language, metadata = excluded.metadata, pages = excluded.pages,
    document_date = excluded.document_date, updated_at = now()
RETURNING d.id, (d.created_at = d.updated_at) AS added

-- document_file_upsert: the bytes a document was read from
INSERT INTO document_files (document_id, name, media_type, bytes) VALUES (%(document_id)s, %(name)s, %(media_type)s, %(bytes)s)
ON CONFLICT (document_id) DO UPDATE SET name = excluded.name, media_type = excluded.media_type, bytes = excluded.bytes

-- document_file: the bytes a document was read from
SELECT name, media_type, bytes FROM document_files WHERE document_id = %(document_id)s

-- document_hashes: what is known of a source's documents, to find out which have changed
SELECT d.key, d.id, d.content_hash, i.content_hash AS indexed_hash
FROM documents d LEFT JOIN index_documents i ON i.document_id = d.id AND i.index_name = %(index)s
WHERE d.source_id = %(source_id)s

-- document_list: documents without their text; NULL parameters do not narrow
SELECT d.id, d.source_id, d.title, d.path, d.url, d.document_type, d.content_hash, d.metadata, d.status, d.created_at, d.updated_at,
    coalesce((SELECT i.passages FROM index_documents i JOIN indexes x ON x.name = i.index_name
        WHERE i.document_id = d.id AND (x.is_default OR x.dataset = d.source_id) LIMIT 1), 0) AS passages_count
FROM documents d JOIN sources s ON s.id = d.source_id
WHERE (%(source_id)s::text IS NULL OR d.source_id = %(source_id)s)
  AND (%(source_id)s::text IS NOT NULL OR s.source_type <> 'dataset')
  AND (%(document_type)s::text IS NULL OR d.document_type = %(document_type)s)
  AND (%(contains)s::text IS NULL OR strpos(lower(d.title), lower(%(contains)s)) > 0)
ORDER BY d.created_at, d.key LIMIT %(limit)s OFFSET %(offset)s

-- document_count: how many documents there are under the same conditions
SELECT count(*) AS n FROM documents d JOIN sources s ON s.id = d.source_id
WHERE (%(source_id)s::text IS NULL OR d.source_id = %(source_id)s)
  AND (%(source_id)s::text IS NOT NULL OR s.source_type <> 'dataset')
  AND (%(document_type)s::text IS NULL OR d.document_type = %(document_type)s)
  AND (%(contains)s::text IS NULL OR strpos(lower(d.title), lower(%(contains)s)) > 0)

-- document_get: one document, whole
SELECT d.*, coalesce((SELECT i.passages FROM index_documents i JOIN indexes x ON x.name = i.index_name
    WHERE i.document_id = d.id AND (x.is_default OR x.dataset = d.source_id) LIMIT 1), 0) AS passages_count
FROM documents d WHERE d.id = %(id)s

-- document_by_hash: a document of a source with the same content
SELECT id FROM documents WHERE source_id = %(source_id)s AND content_hash = %(content_hash)s ORDER BY created_at LIMIT 1

-- document_update: fields that do not touch the passages; NULL leaves a field as it is
UPDATE documents SET title = coalesce(%(title)s, title), url = coalesce(%(url)s, url),
    metadata = metadata || coalesce(%(metadata)s::jsonb, '{{}}'), updated_at = now() WHERE id = %(id)s

-- document_delete: with its passages in every index, by cascade
DELETE FROM documents WHERE id = ANY(%(ids)s)

-- documents_missing_from_index: documents an index does not hold, or holds in an older version
SELECT d.id FROM documents d JOIN sources s ON s.id = d.source_id
    LEFT JOIN index_documents i ON i.document_id = d.id AND i.index_name = %(index)s
WHERE i.content_hash IS DISTINCT FROM d.content_hash
  AND CASE WHEN %(dataset)s::text IS NULL THEN s.source_type <> 'dataset' ELSE s.id = %(dataset)s END
ORDER BY d.created_at, d.key

-- documents_last_change: when a document was last added or changed
SELECT max(updated_at) AS at FROM documents

-- index_insert: a new index
INSERT INTO indexes (name, chunker, chunker_options, embedding_model, dimensions, is_default, dataset, status)
VALUES (%(name)s, %(chunker)s, %(chunker_options)s, %(embedding_model)s, %(dimensions)s, %(is_default)s, %(dataset)s, %(status)s)

-- index_list: indexes with what they hold; NULL parameters do not narrow
SELECT x.*, count(i.document_id) AS documents_count, coalesce(sum(i.passages), 0)::bigint AS passages_count
FROM indexes x LEFT JOIN index_documents i ON i.index_name = x.name
WHERE (%(name)s::text IS NULL OR x.name = %(name)s)
  AND (%(name)s::text IS NOT NULL OR x.dataset IS NOT DISTINCT FROM %(dataset)s)
GROUP BY x.name ORDER BY x.created_at, x.name

-- index_get: one index by name, or the default one where the name is NULL
SELECT * FROM indexes WHERE CASE WHEN %(name)s::text IS NULL THEN is_default ELSE name = %(name)s END

-- index_status: building, ready or failed
UPDATE indexes SET status = %(status)s WHERE name = %(name)s

-- index_undefault: no index is the default (for the next statement of the same transaction)
UPDATE indexes SET is_default = false WHERE is_default

-- index_default: this index serves searches that name none
UPDATE indexes SET is_default = true WHERE name = %(name)s

-- index_builder: the job that builds an index, waiting or running
SELECT id FROM jobs WHERE kind = 'index_build' AND parameters ->> 'index' = %(name)s AND status IN ('queued', 'running') LIMIT 1

-- index_delete: the entry; its tables go with workbench_drop_index
DELETE FROM indexes WHERE name = %(name)s

-- index_create_tables: the tables of a new index
SELECT workbench_create_index(%(name)s, %(dimensions)s)

-- index_drop_tables: the tables of an index that goes
SELECT workbench_drop_index(%(name)s)

-- index_names_of_dataset: the indexes that belong to an evaluation corpus
SELECT name FROM indexes WHERE dataset = %(dataset)s

-- index_names_of_model: the indexes whose vectors come from one model
SELECT name FROM indexes WHERE embedding_model = %(model)s

-- index_document_upsert: this index now holds this version of a document
INSERT INTO index_documents (index_name, document_id, content_hash, passages)
VALUES (%(index)s, %(document_id)s, %(content_hash)s, %(passages)s)
ON CONFLICT (index_name, document_id) DO UPDATE SET content_hash = excluded.content_hash, passages = excluded.passages

-- index_turn: who writes or deletes passages of an index waits here for the others, and so never in the middle, where
-- two could wait for each other's words; a NULL name means every index. The lock goes with the transaction.
SELECT pg_advisory_xact_lock(7215005, hashtext(x.name))
FROM (SELECT name FROM indexes WHERE %(name)s::text IS NULL OR name = %(name)s ORDER BY name) x

-- index_size: bytes on disk of an index's tables and their indexes
SELECT coalesce(sum(pg_total_relation_size(to_regclass(quote_ident(kind || %(name)s)))), 0)::bigint AS bytes
FROM unnest(ARRAY['data_', 'lexicon_', 'postings_']) AS kind

-- corpus_counts: the counts of everything a person has
SELECT (SELECT count(*) FROM projects) AS projects,
    (SELECT count(*) FROM sources WHERE source_type <> 'dataset') AS sources,
    (SELECT count(*) FROM documents d JOIN sources s ON s.id = d.source_id WHERE s.source_type <> 'dataset') AS documents,
    pg_database_size(current_database()) AS bytes, version() AS postgres,
    (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS pgvector
