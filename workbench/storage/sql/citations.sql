-- citations_forget: delete a document's previous links
WITH a AS (DELETE FROM document_addresses WHERE document_id = %(document_id)s),
    m AS (DELETE FROM document_mentions WHERE document_id = %(document_id)s)
DELETE FROM citations WHERE document_id = %(document_id)s

-- addresses_insert: the names a document can be cited by
INSERT INTO document_addresses (document_id, source_id, key, depth)
SELECT %(document_id)s, %(source_id)s, key, depth FROM unnest(%(keys)s::text[], %(depths)s::smallint[]) AS a (key, depth)

-- citations_insert: a document's links, from a JSON list
INSERT INTO citations (document_id, source_id, position, kind, target, url, label, context, confidence, keys)
SELECT %(document_id)s, %(source_id)s, r.position, r.kind, r.target, r.url, r.label, r.context, r.confidence, r.keys
FROM jsonb_to_recordset(%(links)s) AS r (position integer, kind text, target text, url text, label text, context text,
    confidence real, keys text[])

-- mentions_insert: the titles that a document may mention in its text
INSERT INTO document_mentions (document_id, source_id, keys)
VALUES (%(document_id)s, %(source_id)s, %(keys)s)

-- citation_columns: a resolved citation
l.document_id AS source_id, l.to_document AS target_id, coalesce(nullif(l.url, ''), l.target) AS target_url, l.context,
    round(l.confidence::numeric, 3)::float8 AS confidence, l.kind

-- citations_from: the documents that given ones cite, resolved; links first, in reading order
SELECT {citation_columns} FROM citation_links l
WHERE l.document_id = ANY(%(ids)s) AND l.to_document IS NOT NULL AND l.to_document <> l.document_id
ORDER BY l.document_id, l.position LIMIT %(limit)s

-- citations_to: the documents that cite given ones, resolved; the keys narrow the rows by index, the view decides
SELECT {citation_columns} FROM citation_links l
WHERE l.keys && ARRAY(SELECT a.key FROM document_addresses a WHERE a.document_id = ANY(%(ids)s))
  AND l.to_document = ANY(%(ids)s) AND l.to_document <> l.document_id
ORDER BY l.to_document, l.document_id, l.position LIMIT %(limit)s

-- mentions_from: the titles that given documents mention in their text
SELECT m.document_id, m.to_document, m.key FROM citation_mentions m
WHERE m.document_id = ANY(%(ids)s) ORDER BY m.document_id, m.to_document LIMIT %(limit)s

-- mentions_to: the documents that mention the titles of given ones
SELECT m.document_id, m.to_document, m.key FROM citation_mentions m
WHERE m.document_id IN (
    SELECT n.document_id FROM document_mentions n
    WHERE n.keys && ARRAY(SELECT a.key FROM document_addresses a WHERE a.document_id = ANY(%(ids)s) AND a.key LIKE 'title:%%'))
  AND m.to_document = ANY(%(ids)s) ORDER BY m.to_document, m.document_id LIMIT %(limit)s

-- mention_contexts: the places where given documents mention given titles, with the text around
SELECT d.id AS document_id, w.title, substr(d.text, greatest(1, f.place - 300), length(w.title) + 600) AS around,
    least(f.place - 1, 300) AS start
FROM unnest(%(documents)s::text[], %(titles)s::text[]) AS w (document_id, title)
    JOIN documents d ON d.id = w.document_id, LATERAL (SELECT strpos(lower(d.text), w.title) AS place) f
WHERE f.place > 0

-- cited_documents: documents with the fields that a graph shows
SELECT d.id, d.title, d.source_id, s.title AS source_title, d.document_type
FROM documents d JOIN sources s ON s.id = d.source_id WHERE d.id = ANY(%(ids)s)

-- links_in_scope: the links of a scope's documents, and whether they lead out of it. No scope has evaluation corpora.
WITH inside AS MATERIALIZED (
    SELECT p.document_id FROM (
        SELECT d.id AS document_id, d.source_id FROM documents d JOIN sources s ON s.id = d.source_id
        WHERE s.source_type <> 'dataset') AS p
    WHERE {scope}),
links AS (
    SELECT c.document_id, c.position, c.kind, c.target, c.url, c.label, c.context, c.confidence, c.keys, t.document_id AS to_document,
        c.to_document IS NOT NULL AND t.document_id IS NULL AS leads_out
    FROM citation_links c JOIN inside f ON f.document_id = c.document_id LEFT JOIN inside t ON t.document_id = c.to_document)

-- citation_pairs: each pair of documents in which one cites the other
{links_in_scope}
SELECT l.document_id AS source, l.to_document AS target, max(l.confidence) AS confidence, count(*) AS links,
    (array_agg(l.context ORDER BY l.position))[1] AS context
FROM links l WHERE l.to_document <> l.document_id
GROUP BY l.document_id, l.to_document ORDER BY l.document_id, l.to_document

-- broken_links: links that should lead to a document of the source and do not; external addresses are not judged
{links_in_scope}
SELECT l.document_id, d.title, l.target, l.context
FROM links l JOIN documents d ON d.id = l.document_id
WHERE l.to_document IS NULL AND NOT l.leads_out AND l.url IS NULL AND l.kind <> 'path' AND cardinality(l.keys) > 0
ORDER BY d.title, l.position LIMIT %(limit)s

-- citation_counts: the number of links by kind of target; the parts add up to the total
{links_in_scope}
SELECT count(*) AS links, count(l.to_document) FILTER (WHERE l.to_document <> l.document_id) AS resolved,
    count(*) FILTER (WHERE l.to_document = l.document_id) AS within,
    count(*) FILTER (WHERE l.to_document IS NULL AND NOT l.leads_out AND l.url IS NULL AND (l.kind = 'path' OR coalesce(cardinality(l.keys), 0) = 0))
        AS unjudged,
    count(*) FILTER (WHERE l.leads_out OR (l.to_document IS NULL AND l.url IS NOT NULL)) AS external,
    count(*) FILTER (WHERE l.to_document IS NULL AND NOT l.leads_out AND l.url IS NULL AND l.kind <> 'path' AND cardinality(l.keys) > 0) AS broken
FROM links l

-- citations_held: the number of links of given documents, or of all of a source's
SELECT count(*) AS held FROM citations WHERE document_id = ANY(%(ids)s) OR source_id = %(source_id)s

-- documents_to_cite: the ids of a scope's documents
SELECT p.document_id AS id FROM (
    SELECT d.id AS document_id, d.source_id, d.created_at, d.key FROM documents d JOIN sources s ON s.id = d.source_id
    WHERE s.source_type <> 'dataset') AS p
WHERE {scope} ORDER BY p.created_at, p.key
