-- spans_around: for each given passage the span that it makes with its neighbours in the same document
SELECT w.place, min((n.metadata_ ->> 'start')::integer) AS first, max((n.metadata_ ->> 'end')::integer) AS last
FROM unnest(%(document_ids)s::text[], %(ordinals)s::integer[]) WITH ORDINALITY AS w (document_id, at, place)
    JOIN {data} n ON n.document_id = w.document_id
        AND (n.metadata_ ->> 'ordinal')::integer BETWEEN w.at - %(reach)s AND w.at + %(reach)s
GROUP BY w.place

-- spans_of_sections: for each given passage the span of the passages around it under the same heading
SELECT w.place, min((s.metadata_ ->> 'start')::integer) AS first, max((s.metadata_ ->> 'end')::integer) AS last
FROM unnest(%(document_ids)s::text[], %(ordinals)s::integer[]) WITH ORDINALITY AS w (document_id, at, place)
    JOIN {data} p ON p.document_id = w.document_id AND (p.metadata_ ->> 'ordinal')::integer = w.at
        AND p.metadata_ ? 'heading_path'
    CROSS JOIN LATERAL (
        SELECT coalesce(max(o.at) FILTER (WHERE o.at < w.at), w.at - %(reach)s - 1) AS before,
            coalesce(min(o.at) FILTER (WHERE o.at > w.at), w.at + %(reach)s + 1) AS after
        FROM (
            SELECT (n.metadata_ ->> 'ordinal')::integer AS at
            FROM {data} n
            WHERE n.document_id = w.document_id
                AND (n.metadata_ ->> 'ordinal')::integer BETWEEN w.at - %(reach)s AND w.at + %(reach)s
                AND n.metadata_ -> 'heading_path' IS DISTINCT FROM p.metadata_ -> 'heading_path'
        ) o
    ) other
    JOIN {data} s ON s.document_id = w.document_id
        AND (s.metadata_ ->> 'ordinal')::integer > other.before AND (s.metadata_ ->> 'ordinal')::integer < other.after
GROUP BY w.place

-- spans_of_pages: for each given span of a document the span of its pages
SELECT w.place, min((page ->> 1)::integer) AS first, max((page ->> 2)::integer) AS last
FROM unnest(%(document_ids)s::text[], %(starts)s::integer[], %(ends)s::integer[])
        WITH ORDINALITY AS w (document_id, first, last, place)
    JOIN documents d ON d.id = w.document_id
    CROSS JOIN LATERAL jsonb_array_elements(d.pages) AS page
WHERE (page ->> 1)::integer < w.last AND (page ->> 2)::integer > w.first
GROUP BY w.place

-- document_slices: parts of documents, characters counted from 0, if the index holds the document's present version
SELECT w.place, substr(d.text, w.first + 1, w.last - w.first) AS text
FROM unnest(%(document_ids)s::text[], %(starts)s::integer[], %(ends)s::integer[])
        WITH ORDINALITY AS w (document_id, first, last, place)
    JOIN documents d ON d.id = w.document_id
    JOIN index_documents i ON i.index_name = %(index)s AND i.document_id = d.id AND i.content_hash = d.content_hash

-- terms_of_passages: the terms of given passages with their share of the passage and their document frequency
WITH read AS MATERIALIZED (
    SELECT p.id, workbench_passage_terms(p.metadata_, p.text) AS terms FROM {data} p WHERE p.id = ANY(%(ids)s)),
sized AS MATERIALIZED (SELECT id, terms, greatest(workbench_length(terms), 1) AS length FROM read)
SELECT l.id, term, l.df, t.share, t.passages
FROM (
    SELECT u.lexeme AS term, sum(cardinality(u.positions)::float8 / r.length ORDER BY r.id) AS share, count(*) AS passages
    FROM sized r, unnest(r.terms) u GROUP BY u.lexeme) AS t JOIN {lexicon} l USING (term)
ORDER BY term
