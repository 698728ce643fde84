-- project_insert: a new project
INSERT INTO projects (id, title, description) VALUES (%(id)s, %(title)s, %(description)s)

-- project_list: all projects with the numbers of their sources and of those with conversations, articles or archives
SELECT p.*, held.*
FROM projects p CROSS JOIN LATERAL (SELECT count(*) FILTER (WHERE s.source_type <> ALL(%(apart)s)) AS source_count,
    count(*) FILTER (WHERE s.source_type = ANY(%(families)s)) AS family_count FROM sources s WHERE s.project_id = p.id) AS held
WHERE (%(key)s::text IS NULL OR p.id = %(key)s OR p.title = %(key)s) ORDER BY p.title, p.id

-- project_update: NULL leaves a field unchanged
UPDATE projects SET title = coalesce(%(title)s, title), description = coalesce(%(description)s, description) WHERE id = %(id)s

-- project_delete: with its folders and sources, by cascade
DELETE FROM projects WHERE id = %(id)s

-- folder_insert: a new folder
INSERT INTO folders (id, project_id, name, description, color, icon_name)
VALUES (%(id)s, %(project_id)s, %(name)s, %(description)s, %(color)s, %(icon_name)s)

-- folder_list: a project's folders with the same numbers
SELECT f.*, held.*
FROM folders f CROSS JOIN LATERAL (SELECT count(*) FILTER (WHERE s.source_type <> ALL(%(apart)s)) AS source_count,
    count(*) FILTER (WHERE s.source_type = ANY(%(families)s)) AS family_count FROM sources s WHERE s.folder_id = f.id) AS held
WHERE f.project_id = %(project_id)s ORDER BY f.name

-- folder_update: NULL leaves a field unchanged
UPDATE folders SET name = coalesce(%(name)s, name), description = coalesce(%(description)s, description),
    color = coalesce(%(color)s, color), icon_name = coalesce(%(icon_name)s, icon_name) WHERE id = %(id)s

-- folder_delete: its sources stay in the project
DELETE FROM folders WHERE id = %(id)s

-- source_insert: a new source
INSERT INTO sources (id, title, source_type, url, scope, project_id, folder_id, tags, language, metadata)
VALUES (%(id)s, %(title)s, %(source_type)s, %(url)s, %(scope)s, %(project_id)s, %(folder_id)s, %(tags)s, %(language)s, %(metadata)s)

-- source_conditions: the sources that are listed and counted; NULL parameters are ignored, and those of evaluation corpora and of
-- the types in "apart" are included only if their type or id is requested
(%(id)s::text IS NULL OR s.id = %(id)s)
  AND (%(id)s::text IS NOT NULL OR (s.source_type = 'dataset') = %(datasets)s)
  AND (%(id)s::text IS NOT NULL OR %(source_type)s::text IS NOT NULL OR s.source_type <> ALL(%(apart)s))
  AND (%(scope)s::text IS NULL OR s.scope = %(scope)s)
  AND (%(project_id)s::text IS NULL OR s.project_id = %(project_id)s)
  AND (%(source_type)s::text IS NULL OR s.source_type = %(source_type)s)

-- source_list: sources with the number of their documents and passages
SELECT s.*, greatest(s.updated_at, documents.changed_at) AS updated_at, f.name AS folder_name, documents.documents_count,
    passages.passages_count
FROM sources s LEFT JOIN folders f ON f.id = s.folder_id
CROSS JOIN LATERAL (SELECT count(*) AS documents_count, max(d.updated_at) AS changed_at
    FROM documents d WHERE d.source_id = s.id) documents
CROSS JOIN LATERAL (SELECT coalesce(sum(i.passages), 0)::bigint AS passages_count
    FROM documents d JOIN index_documents i ON i.document_id = d.id JOIN indexes x ON x.name = i.index_name
    WHERE d.source_id = s.id AND (x.is_default OR x.dataset = s.id)) passages
WHERE {source_conditions} ORDER BY s.created_at, s.id LIMIT %(limit)s OFFSET %(offset)s

-- source_count: the number of sources under the same conditions
SELECT count(*) AS n FROM sources s WHERE {source_conditions}

-- source_titles: ids and titles of all sources except evaluation corpora, in order of creation
SELECT id, title FROM sources WHERE source_type <> 'dataset' ORDER BY created_at, id

-- source_ids: the ids of all sources except those of the types in "apart"
SELECT id FROM sources WHERE source_type <> ALL(%(apart)s)

-- source_find: the sources that match an id, a URL or an exact title; the one with the id first
SELECT s.id, s.title, s.source_type, s.project_id, p.title AS project_title
FROM sources s LEFT JOIN projects p ON p.id = s.project_id
WHERE (s.id = %(key)s OR s.title = %(key)s OR s.url = %(key)s) AND (s.source_type <> 'dataset' OR s.id = %(key)s)
ORDER BY (s.id = %(key)s) DESC, s.created_at, s.id

-- source_standing_for: the source of a type that represents a URL (a mirrored folder's)
SELECT id FROM sources WHERE url = %(url)s AND source_type = %(source_type)s ORDER BY created_at LIMIT 1

-- source_update: all fields that a user may change
UPDATE sources SET title = %(title)s, url = %(url)s, scope = %(scope)s, project_id = %(project_id)s, folder_id = %(folder_id)s,
    tags = %(tags)s, language = %(language)s, encoding = %(encoding)s, hidden = %(hidden)s, status = %(status)s,
    metadata = %(metadata)s, updated_at = now() WHERE id = %(id)s

-- source_metadata: the metadata that a service stores with a source
SELECT metadata FROM sources WHERE id = %(id)s

-- source_claim: keep a source that an ingest created, because it has documents or is used otherwise
UPDATE sources SET metadata = metadata - 'unfilled' WHERE id = %(id)s AND metadata ? 'unfilled'

-- source_unfilled: lock a source that an ingest created and that has not been used otherwise
SELECT id FROM sources WHERE id = %(id)s AND metadata ? 'unfilled' FOR UPDATE

-- source_has_documents: whether a source has documents
SELECT EXISTS (SELECT FROM documents WHERE source_id = %(id)s) AS filled

-- source_leaves_jobs: keep the records of jobs that would have filled a source
UPDATE jobs SET source_id = NULL WHERE source_id = %(id)s

-- source_leaves_crawls: keep the tasks of crawls that would have filled a source
UPDATE crawl_jobs SET source_id = NULL WHERE source_id = %(id)s

-- source_delete: with its documents, by cascade
DELETE FROM sources WHERE id = %(id)s

-- source_ids_in_scope: the ids of the sources a scope names; NULL parameters are ignored, tags match regardless of case,
-- sources of the types in "apart" count only if they are named, and those of other indexes only if nothing is named
SELECT s.id, s.scope, s.project_id, s.folder_id, s.tags FROM sources s
WHERE (s.source_type <> 'dataset' OR %(datasets)s)
  AND (%(kind)s::text <> 'global' OR s.scope = 'global')
  AND (%(kind)s::text <> 'project' OR s.project_id = %(project_id)s)
  AND (%(project_id)s::text IS NULL OR s.scope = 'global' OR s.project_id = %(project_id)s)
  AND (%(folder_id)s::text IS NULL OR s.folder_id = %(folder_id)s)
  AND (%(tags)s::text[] IS NULL OR EXISTS (SELECT FROM unnest(s.tags) AS t WHERE lower(t) = ANY(%(tags)s)))
  AND (%(source_ids)s::text[] IS NULL OR s.id = ANY(%(source_ids)s))
  AND (%(source_ids)s::text[] IS NOT NULL OR s.source_type <> ALL(%(apart)s))
ORDER BY s.id

-- source_of_types: whether there is a source of one of these types
SELECT EXISTS (SELECT FROM sources WHERE source_type = ANY(%(types)s)) AS found

-- tags_in_use: every tag with the number of its sources; NULL means every source
SELECT tag, count(*) AS sources FROM sources, unnest(tags) AS tag
WHERE source_type NOT IN ('dataset', 'workspace', 'articles', 'archive')
  AND (%(source_ids)s::text[] IS NULL OR id = ANY(%(source_ids)s)) GROUP BY tag ORDER BY tag

-- metadata_in_use: short values of the documents' metadata that several documents share, or all those of names with few values;
-- the most frequent first; NULL means every source
SELECT name || '=' || value AS item, documents FROM (
    SELECT m.key AS name, own.value, count(*) AS documents, count(*) OVER (PARTITION BY m.key) AS choices
    FROM documents d JOIN sources s ON s.id = d.source_id AND s.source_type NOT IN ('dataset', 'workspace', 'articles', 'archive'),
        jsonb_each(d.metadata) AS m, jsonb_array_elements_text(CASE jsonb_typeof(m.value) WHEN 'array' THEN m.value
            ELSE jsonb_build_array(m.value) END) AS own(value)
    WHERE (%(source_ids)s::text[] IS NULL OR s.id = ANY(%(source_ids)s)) AND length(own.value) BETWEEN 1 AND 60
      AND jsonb_typeof(m.value) IN ('string', 'number', 'boolean', 'array') AND own.value <> d.title
    GROUP BY m.key, own.value) AS used
WHERE documents > 1 OR choices <= 30 ORDER BY documents DESC, item LIMIT 200

-- document_upsert: insert a document or a new version of one, keeping its id; return whether the version was already stored
WITH before AS (SELECT content_hash FROM documents WHERE source_id = %(source_id)s AND key = %(key)s)
INSERT INTO documents AS d (id, source_id, key, title, path, url, document_type, content_hash, text, language, metadata, pages, document_date)
VALUES (%(id)s, %(source_id)s, %(key)s, %(title)s, %(path)s, %(url)s, %(document_type)s, %(content_hash)s, %(text)s,
    %(language)s, %(metadata)s, %(pages)s, %(document_date)s)
ON CONFLICT (source_id, key) DO UPDATE SET title = excluded.title, path = excluded.path, url = excluded.url,
    document_type = excluded.document_type, content_hash = excluded.content_hash, text = excluded.text,
    language = excluded.language, metadata = excluded.metadata, pages = excluded.pages,
    document_date = excluded.document_date, updated_at = now()
RETURNING d.id, (d.created_at = d.updated_at) AS added,
    coalesce((SELECT content_hash FROM before) = %(content_hash)s, false) AS same

-- document_file_upsert: the bytes a document was read from
INSERT INTO document_files (document_id, name, media_type, bytes) VALUES (%(document_id)s, %(name)s, %(media_type)s, %(bytes)s)
ON CONFLICT (document_id) DO UPDATE SET name = excluded.name, media_type = excluded.media_type, bytes = excluded.bytes

-- document_file: the bytes a document was read from
SELECT name, media_type, bytes FROM document_files WHERE document_id = %(document_id)s

-- scanned_page_insert: the words that OCR read on a page
INSERT INTO scanned_pages (document_id, number, confidence, words) VALUES (%(document_id)s, %(number)s, %(confidence)s, %(words)s)

-- scanned_pages_delete: before a new version of the document is read
DELETE FROM scanned_pages WHERE document_id = %(document_id)s

-- scanned_pages_of_document: the words that OCR read, of one page or of all
SELECT number, confidence, words FROM scanned_pages
WHERE document_id = %(document_id)s AND (%(number)s::int IS NULL OR number = %(number)s) ORDER BY number

-- document_hashes: the hashes of a source's documents, to detect changes
SELECT d.key, d.id, d.content_hash, i.content_hash AS indexed_hash
FROM documents d LEFT JOIN index_documents i ON i.document_id = d.id AND i.index_name = %(index)s
WHERE d.source_id = %(source_id)s

-- document_conditions: the documents that are listed and counted; NULL parameters are ignored
(%(source_id)s::text IS NULL OR d.source_id = %(source_id)s)
  AND (%(source_id)s::text IS NOT NULL OR s.source_type <> ALL(%(apart)s))
  AND (%(document_type)s::text IS NULL OR d.document_type = %(document_type)s)
  AND (%(contains)s::text IS NULL OR strpos(lower(d.title), lower(%(contains)s)) > 0 OR starts_with(d.id, %(contains)s))
  AND (%(named)s::text IS NULL OR NOT EXISTS (SELECT FROM string_to_table(%(named)s, ' ') AS w (word)
        WHERE strpos(lower(concat_ws(' ', d.title, d.path, d.url)), lower(w.word)) = 0))

-- document_passages: the number of a document's passages in the default index, or in that of its evaluation corpus
coalesce((SELECT i.passages FROM index_documents i JOIN indexes x ON x.name = i.index_name
    WHERE i.document_id = d.id AND (x.is_default OR x.dataset = d.source_id) LIMIT 1), 0) AS passages_count

-- document_list: documents without their text
SELECT d.id, d.source_id, d.title, d.path, d.url, d.document_type, d.content_hash, d.metadata, d.status, d.document_date, d.created_at,
    d.updated_at, {document_passages}
FROM documents d JOIN sources s ON s.id = d.source_id WHERE {document_conditions} ORDER BY d.created_at, d.key LIMIT %(limit)s OFFSET %(offset)s

-- document_count: the number of documents under the same conditions
SELECT count(*) AS n FROM documents d JOIN sources s ON s.id = d.source_id WHERE {document_conditions}

-- document_get: one document with its text
SELECT d.id, d.source_id, d.key, d.title, d.path, d.url, d.document_type, d.content_hash, d.text, d.language, d.metadata, d.pages,
    d.document_date, d.status, d.created_at, d.updated_at, {document_passages}
FROM documents d WHERE d.id = %(id)s

-- document_by_hash: a document of a source with the same content
SELECT id FROM documents WHERE source_id = %(source_id)s AND content_hash = %(content_hash)s ORDER BY created_at LIMIT 1

-- documents_elsewhere: those of some documents whose content is in another document too, with its source's title, or in
-- the same source its name; of two among these documents, the one with the later key
SELECT DISTINCT ON (a.key, a.id) coalesce(a.path, a.title) AS name,
    CASE WHEN d.source_id = a.source_id THEN coalesce(d.path, d.title) ELSE s.title END AS place
FROM documents a JOIN documents d ON d.content_hash = a.content_hash AND d.id <> a.id
        AND (d.source_id <> a.source_id OR d.key < a.key OR d.id <> ALL(%(ids)s))
    JOIN sources s ON s.id = d.source_id
WHERE a.id = ANY(%(ids)s) AND s.source_type <> ALL(%(apart)s)
ORDER BY a.key, a.id, d.source_id = a.source_id DESC, s.created_at, d.key

-- document_by_url: the documents that came from an address, newest first
SELECT d.id, s.title AS source_title FROM documents d JOIN sources s ON s.id = d.source_id
WHERE d.url = %(url)s ORDER BY d.updated_at DESC

-- document_update: fields that do not touch the passages, unless others changed it; NULL leaves a field unchanged
UPDATE documents SET title = coalesce(%(title)s, title), url = coalesce(%(url)s, url),
    metadata = jsonb_strip_nulls(metadata || %(metadata)s::jsonb), updated_at = now()
WHERE id = %(id)s AND updated_at = coalesce(%(unchanged_since)s, updated_at) RETURNING id

-- document_delete: with its passages in every index, by cascade
DELETE FROM documents WHERE id = ANY(%(ids)s)

-- documents_of_language: set the language of a source's documents; return those that had another
UPDATE documents d SET language = %(language)s, updated_at = now()
WHERE d.source_id = %(source_id)s AND d.language <> %(language)s RETURNING d.id

-- reading_of_source: how the files of a source are read
SELECT encoding, hidden FROM sources WHERE id = %(source_id)s

-- language_of_source: the language that a user chose for a source; no row if the language of each text is identified
SELECT language FROM sources WHERE id = %(source_id)s AND language <> 'auto'

-- beginnings_of_documents: a source's documents after an id, each with the beginning of its text
SELECT id, document_type, left(text, %(characters)s) AS beginning FROM documents
WHERE source_id = %(source_id)s AND id > %(after)s ORDER BY id LIMIT %(limit)s

-- documents_of_languages: set the language of each document; return those that had another
UPDATE documents d SET language = n.language, updated_at = now()
FROM unnest(%(ids)s::text[], %(languages)s::text[]) AS n (id, language)
WHERE d.id = n.id AND d.language <> n.language RETURNING d.id

-- languages_of_documents: the distinct languages of documents
SELECT DISTINCT language FROM documents WHERE id = ANY(%(ids)s) ORDER BY language

-- documents_to_restem: change the language of documents, and remove their current versions from all indexes, so that a build adds
-- them again; the number of those that had another language
WITH changed AS ({changed}), outdated AS (
    UPDATE index_documents i SET content_hash = '' FROM changed c WHERE i.document_id = c.id)
SELECT count(*) AS n FROM changed

-- documents_missing_from_index: documents that an index lacks or has in an older version
SELECT d.id FROM documents d JOIN sources s ON s.id = d.source_id
    LEFT JOIN index_documents i ON i.document_id = d.id AND i.index_name = %(index)s
WHERE i.content_hash IS DISTINCT FROM d.content_hash
  AND NOT EXISTS (SELECT FROM indexes x WHERE x.name = %(index)s AND x.attachment IS NOT NULL)
  AND CASE WHEN %(dataset)s::text IS NULL THEN s.source_type <> 'dataset' ELSE s.id = %(dataset)s END
ORDER BY d.created_at, d.key

-- documents_sizes: the bytes of text of these documents
SELECT id, octet_length(text) AS size FROM documents WHERE id = ANY(%(ids)s)

-- documents_undated: the number of an index's documents in a scope without a date
SELECT count(*) AS n FROM (
    SELECT i.document_id, d.source_id FROM index_documents i JOIN documents d ON d.id = i.document_id
    WHERE i.index_name = %(index)s AND d.document_date IS NULL) AS p
WHERE {scope}

-- documents_changed_since: documents added or changed after a moment, by the database's own clock
SELECT d.id, d.source_id, now() AS at FROM (SELECT 1) AS one
    LEFT JOIN documents d ON d.updated_at > %(since)s::timestamptz
ORDER BY d.updated_at LIMIT %(limit)s

-- documents_last_change: when a document was last added or changed
SELECT max(updated_at) AS at FROM documents

-- index_insert: a new index
INSERT INTO indexes (name, chunker, chunker_options, transformations, embedding_model, dimensions, is_default, dataset, status,
    attachment, attachment_url)
VALUES (%(name)s, %(chunker)s, %(chunker_options)s, %(transformations)s, %(embedding_model)s, %(dimensions)s, %(is_default)s,
    %(dataset)s, %(status)s, %(attachment)s, %(attachment_url)s)

-- index_list: indexes with their counts; NULL parameters are ignored. Conversations, articles and archives have a count of
-- their own, as everywhere.
SELECT x.*, held.documents - family.documents AS documents_count, family.documents AS family_count, held.passages AS passages_count, (
    SELECT {graph_serves} FROM indexes i WHERE i.name = x.name) AS has_graph
FROM indexes x
CROSS JOIN LATERAL (SELECT count(*) AS documents, coalesce(sum(h.passages), 0)::bigint AS passages
    FROM index_documents h WHERE h.index_name = x.name) AS held
CROSS JOIN LATERAL (SELECT count(*) AS documents
    FROM sources s JOIN documents d ON d.source_id = s.id JOIN index_documents h ON h.document_id = d.id AND h.index_name = x.name
    WHERE s.source_type IN ('workspace', 'articles', 'archive')) AS family
WHERE (%(name)s::text IS NULL OR x.name = %(name)s)
  AND (%(name)s::text IS NOT NULL OR x.dataset IS NOT DISTINCT FROM %(dataset)s)
ORDER BY x.created_at, x.name

-- index_get: one index by name, or the default one if the name is NULL
SELECT i.*, {graph_serves} AS has_graph FROM indexes i WHERE CASE WHEN %(name)s::text IS NULL THEN i.is_default ELSE i.name = %(name)s END

-- index_status: building, ready or failed
UPDATE indexes SET status = %(status)s WHERE name = %(name)s

-- index_clear_notes: remove the notes of the previous build
UPDATE indexes SET notes = '[]' WHERE name = %(name)s

-- index_add_notes: several workers may add theirs
UPDATE indexes SET notes = notes || %(notes)s WHERE name = %(name)s

-- index_nearness: thresholds of evidence
UPDATE indexes SET nearness = %(nearness)s WHERE name = %(name)s

-- index_nearness_get: they may have been measured since the index was read
SELECT nearness FROM indexes WHERE name = %(name)s

-- count_flagged_passages: passages with a flag in their metadata
SELECT count(*) FILTER (WHERE metadata_::jsonb ? 'no_span') AS no_span, count(*) FILTER (WHERE metadata_::jsonb ? 'cut_off') AS cut_off FROM {data}

-- component_results: stored results by key
SELECT key, nodes FROM component_results WHERE key = ANY(%(keys)s)

-- component_results_insert: another worker may have stored the same
INSERT INTO component_results (key, nodes) SELECT * FROM unnest(%(keys)s::bytea[], %(nodes)s::jsonb[]) ON CONFLICT DO NOTHING

-- index_undefault: no index is the default (for the next statement of the same transaction)
UPDATE indexes SET is_default = false WHERE is_default

-- index_default: searches that name no index use this one
UPDATE indexes SET is_default = true WHERE name = %(name)s

-- index_builder: the job that builds an index, waiting or running
SELECT id FROM jobs WHERE kind = 'index_build' AND parameters ->> 'index' = %(name)s AND status IN ('queued', 'running') LIMIT 1

-- index_delete: the entry, and the source of an attached index, which no other index has; its tables go with workbench_drop_index
WITH gone AS (DELETE FROM indexes WHERE name = %(name)s RETURNING attachment ->> 'source' AS source)
DELETE FROM sources WHERE id IN (SELECT source FROM gone)

-- index_names_of_attached: the indexes of evaluation corpora that read the table of an attached index
SELECT name FROM indexes WHERE attachment ->> 'of' = %(name)s

-- index_create_tables: the tables of a new index
SELECT workbench_create_index(%(name)s, %(dimensions)s)

-- index_drop_tables: drop the tables of an index
SELECT workbench_drop_index(%(name)s)

-- index_replace: replace the passages and the definition of an index with those of another one, which is dropped
SELECT workbench_replace_index(%(name)s, %(successor)s)

-- index_model: the name of an index's model, after a change of its options
UPDATE indexes SET embedding_model = %(model)s WHERE name = %(name)s

-- full_text_create: the framework's full text of an index, unless it exists
SELECT workbench_create_full_text(%(name)s)

-- index_names_of_dataset: the indexes that belong to an evaluation corpus
SELECT name FROM indexes WHERE dataset = %(dataset)s

-- index_names_of_model: the indexes whose vectors come from one model and are in our tables
SELECT name FROM indexes WHERE embedding_model = %(model)s AND attachment IS NULL

-- index_document_upsert: record that this index has this version of a document
INSERT INTO index_documents (index_name, document_id, content_hash, passages)
VALUES (%(index)s, %(document_id)s, %(content_hash)s, %(passages)s)
ON CONFLICT (index_name, document_id) DO UPDATE SET content_hash = excluded.content_hash, passages = excluded.passages

-- index_turn: a writer of an index's passages waits here for others, because later two writers
-- could wait for each other's terms (deadlock). A NULL name means every index. The lock ends with the transaction.
SELECT pg_advisory_xact_lock(7215005, hashtext(x.name))
FROM (SELECT name FROM indexes WHERE %(name)s::text IS NULL OR name = %(name)s ORDER BY name) x

-- index_size: bytes on disk of an index's tables and their indexes
SELECT coalesce(sum(pg_total_relation_size(to_regclass(quote_ident(kind || %(name)s)))), 0)::bigint AS bytes
FROM unnest(ARRAY['data_', 'lexicon_', 'postings_', 'full_text_']) AS kind

-- corpus_counts: the counts of everything a user has
SELECT (SELECT count(*) FROM projects) AS projects,
    (SELECT count(*) FROM sources WHERE source_type <> ALL(%(apart)s)) AS sources,
    (SELECT count(*) FROM documents d JOIN sources s ON s.id = d.source_id WHERE s.source_type <> ALL(%(apart)s)) AS documents,
    (SELECT count(*) FROM documents d JOIN sources s ON s.id = d.source_id WHERE s.source_type = 'workspace') AS conversations,
    (SELECT count(*) FROM documents d JOIN sources s ON s.id = d.source_id WHERE s.source_type = 'articles') AS articles,
    (SELECT count(*) FROM documents d JOIN sources s ON s.id = d.source_id WHERE s.source_type = 'archive') AS archives,
    pg_database_size(current_database()) AS bytes, version() AS postgres,
    (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS pgvector

-- replica_position: how far a replica has replayed its primary's log, and the age in seconds of the last change it has
SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()::text END AS position,
    extract(epoch FROM now() - pg_last_xact_replay_timestamp())::float AS seconds

-- log_beyond: the bytes of this server's log beyond a position
SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), %(position)s::pg_lsn)::bigint AS bytes

-- source_places: projects and folders of sources, for results
SELECT s.id AS source_id, s.title AS source_title, s.scope, s.project_id, f.name AS folder_name, s.tags
FROM sources s LEFT JOIN folders f ON f.id = s.folder_id WHERE s.id = ANY(%(ids)s)

-- document_word_counts: the length of whole documents in words
SELECT id, regexp_count(text, '\S+') AS words FROM documents WHERE id = ANY(%(ids)s)

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

-- document_lines: lines that contain a text exactly, of some documents, with the number of all such lines
SELECT d.id, l.line, l.number, count(*) OVER () AS total
FROM documents d CROSS JOIN LATERAL string_to_table(d.text, E'\n') WITH ORDINALITY AS l (line, number)
WHERE d.id = ANY(%(ids)s) AND CASE WHEN %(match_case)s THEN strpos(d.text, %(text)s) > 0 AND strpos(l.line, %(text)s) > 0
    ELSE d.text ILIKE %(pattern)s AND l.line ILIKE %(pattern)s END
ORDER BY d.title, d.id, l.number LIMIT %(limit)s OFFSET %(offset)s
