-- crawl_insert: the task of a crawl job
INSERT INTO crawl_jobs (job_id, source_id, url, options, boilerplate) VALUES (%(job_id)s, %(source_id)s, %(url)s, %(options)s,
    (SELECT c.boilerplate FROM crawl_jobs c JOIN jobs j ON j.id = c.job_id
     WHERE c.source_id = %(source_id)s AND c.boilerplate IS NOT NULL ORDER BY j.created_at DESC LIMIT 1))

-- crawl_get: the task of a crawl job
SELECT job_id, source_id, url, options, seeds, scope, boilerplate FROM crawl_jobs WHERE job_id = %(job_id)s

-- crawl_source: the source that a crawl fills, if it was created again
WITH job AS (UPDATE jobs SET source_id = %(source_id)s WHERE id = %(job_id)s)
UPDATE crawl_jobs SET source_id = %(source_id)s WHERE job_id = %(job_id)s

-- crawl_seeded: record the crawl's scope and seeds
UPDATE crawl_jobs SET scope = %(scope)s, seeds = %(seeds)s WHERE job_id = %(job_id)s

-- crawl_boilerplate: the boilerplate lines
UPDATE crawl_jobs SET boilerplate = %(boilerplate)s WHERE job_id = %(job_id)s

-- page_insert: a discovered URL, in the order of a breadth-first walk
INSERT INTO crawl_pages (job_id, position, url, depth, parent, via, lastmod, state, outcome, reason, expanded)
VALUES (%(job_id)s, %(position)s, %(url)s, %(depth)s, %(parent)s, %(via)s, %(lastmod)s,
    CASE WHEN %(outcome)s::text IS NULL THEN 'queued' ELSE 'done' END, %(outcome)s, %(reason)s, %(outcome)s::text IS NOT NULL)

-- page_frontier: the fields of every page that a crawl keeps in memory; links only if they are not yet queued
SELECT position, url, depth, via, lastmod, state, outcome, expanded, attempts, content_hash, document_key, size,
    body IS NOT NULL AS has_body, metadata, CASE WHEN expanded THEN '[]'::jsonb ELSE links END AS links
FROM crawl_pages WHERE job_id = %(job_id)s ORDER BY position

-- page_fetched: the response of a URL
UPDATE crawl_pages SET state = %(state)s, outcome = %(outcome)s, reason = %(reason)s, attempts = %(attempts)s,
    status_code = %(status_code)s, final_url = %(final_url)s, document_key = %(document_key)s, document_id = %(document_id)s,
    title = %(title)s, media_type = %(media_type)s, etag = %(etag)s, last_modified = %(last_modified)s,
    content_hash = %(content_hash)s, links = %(links)s, blocks = %(blocks)s, metadata = %(metadata)s, body = %(body)s,
    size = %(size)s, rendered = %(rendered)s, seconds = %(seconds)s, fetched_at = now()
WHERE job_id = %(job_id)s AND position = %(position)s

-- page_attempted: a failed attempt that will be retried
UPDATE crawl_pages SET attempts = %(attempts)s, reason = %(reason)s WHERE job_id = %(job_id)s AND position = %(position)s

-- page_expanded: the page's links are queued
UPDATE crawl_pages SET expanded = true WHERE job_id = %(job_id)s AND position = %(position)s

-- page_settled: the outcome of a page
UPDATE crawl_pages SET state = 'done', outcome = %(outcome)s, reason = %(reason)s, body = NULL, document_id = NULL
WHERE job_id = %(job_id)s AND position = %(position)s

-- page_settled_with_note: the outcome of a page, with a sentence added to its reason unless already present
UPDATE crawl_pages SET state = 'done', outcome = %(outcome)s, body = NULL, document_id = NULL,
    reason = CASE WHEN strpos(coalesce(reason, ''), %(note)s) > 0 THEN reason ELSE concat_ws(' ', reason, %(note)s::text) END
WHERE job_id = %(job_id)s AND position = %(position)s

-- page_stored: the page's document was written, in the same transaction; also without a change if it is read in another way now
UPDATE crawl_pages p SET state = 'done', body = NULL, reason = NULL, document_id = d.id,
    outcome = CASE WHEN d.created_at = d.updated_at THEN 'added' WHEN p.content_hash = (
        SELECT o.content_hash FROM crawl_jobs c JOIN crawl_pages o USING (job_id)
        WHERE c.source_id = d.source_id AND o.job_id <> p.job_id AND o.url = p.url AND o.document_id = d.id
        ORDER BY o.fetched_at DESC LIMIT 1) THEN 'unchanged' ELSE 'changed' END,
    passages = coalesce((SELECT i.passages FROM index_documents i WHERE i.document_id = d.id AND i.index_name = %(index)s), 0)
FROM documents d WHERE d.id = %(document_id)s AND p.job_id = %(job_id)s AND p.position = %(position)s

-- page_unchanged: the stored document has the same text
UPDATE crawl_pages p SET state = 'done', body = NULL, reason = NULL, outcome = 'unchanged', document_id = d.id
FROM crawl_jobs c, documents d WHERE c.job_id = p.job_id AND d.source_id = c.source_id AND d.key = p.document_key
  AND p.job_id = %(job_id)s AND p.position = %(position)s

-- crawl_unmark_found: documents that an earlier crawl marked as gone, and whose pages were found again
UPDATE documents d SET metadata = d.metadata - 'gone', updated_at = now()
FROM crawl_pages p WHERE p.document_id = d.id AND p.job_id = %(job_id)s AND d.metadata ? 'gone'

-- page_requeue: fetch the page again from the start
UPDATE crawl_pages SET state = 'queued', outcome = NULL, reason = NULL, attempts = 0, body = NULL, metadata = %(metadata)s
WHERE job_id = %(job_id)s AND position = %(position)s

-- pages_retry_failed: queue the failed pages again
UPDATE crawl_pages SET state = 'queued', outcome = NULL, reason = NULL, attempts = 0, expanded = false
WHERE job_id = %(job_id)s AND outcome = 'failed' RETURNING position

-- pages_accept_held: fetch the pages whose removal was held back again, and remove them if the site confirms it
UPDATE crawl_pages SET state = 'queued', outcome = NULL, reason = NULL, attempts = 0, expanded = false,
    metadata = jsonb_build_object('accepted', true)
WHERE job_id = %(job_id)s AND outcome = 'held' RETURNING position

-- page_rekey: the address that identifies a page's document
UPDATE crawl_pages SET document_key = %(key)s WHERE job_id = %(job_id)s AND position = %(position)s

-- crawl_keys: the keys of a source's documents
SELECT key FROM documents WHERE source_id = %(source_id)s

-- crawl_documents: the number of a source's documents
SELECT count(*) AS n FROM documents WHERE source_id = %(source_id)s

-- crawl_unlisted: URLs from pages or the site's own lists that were not queued; a reason if no page asks to follow the link
SELECT met.url, CASE WHEN bool_and(met.reason IS NOT NULL) THEN min(met.reason) END AS reason FROM (
    SELECT jsonb_array_elements_text(links) AS url, NULL AS reason FROM crawl_pages WHERE job_id = %(job_id)s
    UNION SELECT seed->>0, NULL FROM crawl_jobs, jsonb_array_elements(seeds) AS seed WHERE job_id = %(job_id)s
    UNION SELECT skip.key, skip.value FROM crawl_pages, jsonb_each_text(metadata->'skipped_links') AS skip WHERE job_id = %(job_id)s
) AS met WHERE NOT EXISTS (SELECT FROM crawl_pages p WHERE p.job_id = %(job_id)s AND p.url = met.url) GROUP BY met.url

-- crawl_skipped: URLs that were not queued, by reason
UPDATE crawl_jobs SET skipped = %(skipped)s WHERE job_id = %(job_id)s

-- page_reasons: addresses that were not fetched, by reason
SELECT reason, sum(n)::bigint AS n FROM (
    SELECT reason, count(*) AS n FROM crawl_pages
    WHERE job_id = %(job_id)s AND outcome IN ('forbidden', 'not_allowed', 'left_out') AND reason IS NOT NULL GROUP BY reason
    UNION ALL SELECT skip.key, skip.value::bigint FROM crawl_jobs, jsonb_each_text(skipped) AS skip WHERE job_id = %(job_id)s
) AS counted GROUP BY reason ORDER BY n DESC, reason

-- page_body: the text of a page that waits to be stored
SELECT position, url, depth, title, metadata, document_key, links, body, fetched_at
FROM crawl_pages WHERE job_id = %(job_id)s AND position = ANY(%(positions)s) ORDER BY position

-- page_blocks: the hashes by which pages are compared
SELECT url, blocks FROM crawl_pages WHERE job_id = %(job_id)s AND position = ANY(%(positions)s)
ORDER BY array_position(%(positions)s::integer[], position)

-- page_list: pages for display; NULL parameters are ignored
SELECT position, url, depth, parent, via, state, outcome, reason, attempts, status_code, final_url, document_id, passages, title,
    media_type, size, rendered, seconds, fetched_at
FROM crawl_pages WHERE job_id = %(job_id)s AND (%(outcome)s::text IS NULL OR outcome = %(outcome)s)
ORDER BY position LIMIT %(limit)s OFFSET %(offset)s

-- page_counts: the number of a crawl's pages of each state and outcome
SELECT state, outcome, count(*) AS n, coalesce(sum(passages), 0)::bigint AS passages, coalesce(sum(size), 0)::bigint AS bytes
FROM crawl_pages WHERE job_id = %(job_id)s GROUP BY state, outcome

-- page_memory: the knowledge of the latest crawl that fetched each address of a source, with the document's present version
SELECT DISTINCT ON (p.url) p.url, p.etag, p.last_modified, p.lastmod, p.content_hash, p.links, p.blocks, p.title, p.metadata,
    p.media_type, p.document_key, p.size, p.outcome, p.rendered, d.id AS document_id,
    d.id IS NOT NULL AND d.content_hash = i.content_hash AS indexed, p.fetched_at
FROM crawl_pages p JOIN crawl_jobs c ON c.job_id = p.job_id
    LEFT JOIN documents d ON d.source_id = c.source_id AND d.key = p.document_key
    LEFT JOIN index_documents i ON i.document_id = d.id AND i.index_name = %(index)s
WHERE c.source_id = %(source_id)s AND p.job_id <> %(job_id)s AND p.state = 'done'
  AND p.outcome IN ('added', 'changed', 'unchanged', 'duplicate')
ORDER BY p.url, p.fetched_at DESC NULLS LAST

-- crawl_document: a source's document by its key
SELECT id FROM documents WHERE source_id = %(source_id)s AND key = %(key)s

-- crawl_document_texts: the texts of some of a source's documents
SELECT key, text FROM documents WHERE source_id = %(source_id)s AND key = ANY(%(keys)s)
