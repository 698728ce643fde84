-- scope_everything: the predicate of a scope without filters
TRUE

-- scope_sources: the predicate of a scope that is a list of sources
p.source_id = ANY(%(source_ids)s)

-- scope_documents: the predicate of a scope that lists documents, to include or exclude; NULL parameters are ignored
(%(source_ids)s::text[] IS NULL OR p.source_id = ANY(%(source_ids)s))
    AND (%(document_ids)s::text[] IS NULL OR p.document_id = ANY(%(document_ids)s))
    AND (%(without)s::text[] IS NULL OR p.document_id <> ALL(%(without)s))

-- scope_properties: the same for a scope with conditions on properties of documents
{scope_documents} AND p.document_id IN (
        SELECT d.id FROM documents d
        WHERE (%(source_ids)s::text[] IS NULL OR d.source_id = ANY(%(source_ids)s))
          AND (%(document_types)s::text[] IS NULL OR d.document_type = ANY(%(document_types)s))
          AND (%(languages)s::text[] IS NULL OR d.language = ANY(%(languages)s))
          AND (%(metadata)s::jsonb IS NULL OR NOT EXISTS (
              SELECT FROM jsonb_each(%(metadata)s::jsonb) AS w WHERE NOT EXISTS (
                  SELECT FROM jsonb_array_elements_text(CASE jsonb_typeof(d.metadata -> w.key) WHEN 'array'
                      THEN d.metadata -> w.key ELSE jsonb_build_array(d.metadata -> w.key) END) AS own(value)
                  WHERE w.value ? lower(own.value))))
          AND (%(since)s::date IS NULL OR d.document_date >= %(since)s)
          AND (%(until)s::date IS NULL OR d.document_date <= %(until)s))

-- count_in_scope: the number of passages in a scope, counted up to a cap
SELECT count(*) AS n FROM (SELECT 1 FROM {data} p WHERE {scope} LIMIT %(cap)s) AS capped

-- breadth_by_size: a condition that is always true; before a graph is searched, it sets for the transaction how many candidates
-- the search keeps: one for every 1,600 passages of the index, at least the connection's setting and the number that the graph
-- was found to need, and at most 1,000
(SELECT set_config('hnsw.ef_search', least(1000, greatest(
    current_setting('hnsw.ef_search')::integer, (sum(s.passages) / 1600)::integer, max((i.graph ->> 'ef_search')::integer)))::text, true)
FROM index_statistics s JOIN indexes i ON i.name = s.index_name WHERE s.index_name = %(index)s) IS NOT NULL

-- nearest_and_given: the nearest passages by one of the statements below, and the cosines of given passages, with the
-- documents of both, in any order
(SELECT n.id, n.document_id, n.score, true AS is_near FROM ({nearest}) AS n)
UNION ALL
SELECT p.id, p.document_id, 1 - (p.embedding <=> %(vector)s::halfvec), false FROM {data} p WHERE p.id = ANY(%(given)s)

-- vector_everything: nearest passages by HNSW
SELECT p.id, p.document_id, 1 - (p.embedding <=> %(vector)s::halfvec) AS score FROM {data} p WHERE {breadth_by_size}
ORDER BY p.embedding <=> %(vector)s::halfvec LIMIT {limit}

-- vector_filtered: nearest passages within a large scope, HNSW scanned until the limit is reached
SELECT p.id, p.document_id, 1 - (p.embedding <=> %(vector)s::halfvec) AS score FROM {data} p WHERE {breadth_by_size} AND {scope}
ORDER BY p.embedding <=> %(vector)s::halfvec LIMIT %(limit)s

-- vector_exact: nearest passages within a small scope, every distance computed (the expression prevents the use of HNSW)
SELECT p.id, p.document_id, 1 - (p.embedding <=> %(vector)s::halfvec) AS score FROM {data} p WHERE {scope}
ORDER BY 1 - (p.embedding <=> %(vector)s::halfvec) DESC, p.id LIMIT %(limit)s

-- languages_of_index: the languages of an index's passages with their number, most first; NULL means every source
SELECT language, sum(passages)::bigint AS passages FROM index_statistics WHERE index_name = %(index)s AND passages > 0
  AND (%(source_ids)s::text[] IS NULL OR source_id = ANY(%(source_ids)s))
GROUP BY language ORDER BY passages DESC, language

-- statistics_of_sources: passages and terms of an index by language, in the sources of a scope
SELECT p.language, sum(p.passages) AS passages, sum(p.terms) AS terms FROM index_statistics p
WHERE p.index_name = %(index)s AND p.passages > 0 AND {scope} GROUP BY p.language

-- statistics_of_documents: the same for a scope with conditions on documents, whose passages count as long as those of their
-- sources
SELECT p.language, sum(p.passages) AS passages, sum(p.passages * coalesce(s.terms::float8 / s.passages, 1)) AS terms
FROM (
    SELECT i.document_id, i.passages, d.source_id, d.language FROM index_documents i JOIN documents d ON d.id = i.document_id
    WHERE i.index_name = %(index)s) AS p
LEFT JOIN index_statistics s
    ON s.index_name = %(index)s AND s.source_id = p.source_id AND s.language = p.language AND s.passages > 0
WHERE {scope} GROUP BY p.language HAVING sum(p.passages) > 0

-- query_terms: one row with the size of a scope, the query's terms in each of its languages with what the lexicon knows of
-- them, the terms of the text in which names of documents are looked for, and for each known term, in the order of their ids,
-- its postings, or NULL once those of rarer terms exceed a number. The parts of a name that the lexicon knows (1.3.2, C++) are
-- left out; the caller repeats the query with the names that it finds to be absent from the scope. Other spellings of words
-- (5mm, e-mail) are terms if the lexicon knows them.
WITH spoken AS MATERIALIZED ({statistics}),
totals AS (
    SELECT coalesce(sum(passages), 0)::bigint AS all_passages,
        coalesce(sum(terms)::float8 / nullif(sum(passages), 0), 1) AS average_length,
        coalesce(array_agg(language ORDER BY language), '{{}}') AS languages,
        (SELECT concat_ws(' ', sum(s.passages), sum(s.terms)) FROM index_statistics s WHERE s.index_name = %(index)s) AS counts,
        (SELECT max(updated_at) FROM documents) AS changed FROM spoken),
signed AS MATERIALIZED (
    SELECT n.name, n.written, n.is_whole, coalesce(min(w.place), 0) AS position
    FROM workbench_names(workbench_plain(%(query)s)) n LEFT JOIN regexp_matches(%(query)s, '[[:alnum:]]+', 'g')
        WITH ORDINALITY AS w (m, place) ON lower(w.m[1]) = lower(substring(n.written FROM '[[:alnum:]]+'))
    GROUP BY n.name, n.written, n.is_whole),
names AS MATERIALIZED (
    SELECT string_agg(n.written, ' ') AS written, array_agg(n.name) AS names,
        string_agg(regexp_replace(n.written, '([^[:alnum:]])', '\\\1', 'g'), '|') AS pattern
    FROM signed n JOIN {lexicon} l ON l.term = n.name AND l.df > 0
    WHERE n.is_whole AND n.name <> ALL(%(absent)s::text[])),
typed AS (SELECT * FROM unnest(%(spellings)s::text[], %(places)s::bigint[], %(lengths)s::integer[]) AS s (word, place, length)),
spelt AS MATERIALIZED (
    SELECT word AS term, place, length FROM typed UNION ALL SELECT u.lexeme, place, length
    FROM typed, spoken g, unnest(workbench_terms(g.language, word)) u WHERE word ~ '^[[:alpha:]]+$'),
respelt AS MATERIALIZED (
    SELECT l.term, min(s.place) AS position, max(s.length) AS replaces FROM {lexicon} l JOIN spelt s USING (term)
    WHERE l.term = ANY(ARRAY(SELECT term FROM spelt)) AND l.df > 0 GROUP BY l.term),
asked AS MATERIALIZED (
    SELECT term, min(position) AS position, min(passages) AS passages, min(replaces) AS replaces FROM (
        SELECT u.lexeme AS term, coalesce((SELECT min(s.position) FROM signed s WHERE s.name = u.lexeme), min(u.positions[1])) AS position,
            sum(g.passages)::bigint AS passages, 0 AS replaces
        FROM spoken g, names n, unnest(workbench_terms(g.language, %(query)s)) u
        WHERE n.pattern IS NULL OR u.lexeme = ANY(n.names)
            OR u.lexeme <> ALL(tsvector_to_array(workbench_terms(g.language, n.written)))
            OR u.lexeme = ANY(tsvector_to_array(workbench_terms(g.language, regexp_replace(%(query)s, n.pattern, ' ', 'g'))))
        GROUP BY u.lexeme
        UNION ALL SELECT r.term, r.position, totals.all_passages, r.replaces FROM respelt r, totals) AS t
    GROUP BY term),
known AS MATERIALIZED (
    SELECT l.term, l.id, l.df, sum(l.df) OVER (ORDER BY l.df, l.id) AS postings
    FROM {lexicon} l WHERE l.term = ANY(ARRAY(SELECT term FROM asked)) AND l.df > 0)
SELECT totals.*, names.names, ARRAY(SELECT name FROM signed UNION SELECT term FROM respelt) AS signed, t.*,
    ARRAY(SELECT DISTINCT u.lexeme FROM spoken g, unnest(workbench_terms(g.language, %(names)s)) u) AS name_terms,
    ARRAY(SELECT CASE WHEN k.postings <= %(at_once)s THEN
        (SELECT string_agg(o.entries, ''::bytea) FROM {postings} o WHERE o.term_id = k.id) END FROM known k ORDER BY k.id) AS entries
FROM totals CROSS JOIN names CROSS JOIN (
    SELECT array_agg(term ORDER BY term) AS terms, array_agg(id ORDER BY term) AS ids, array_agg(df ORDER BY term) AS dfs,
        array_agg(position ORDER BY term) AS positions, array_agg(asked.passages ORDER BY term) AS passages,
        array_agg(replaces ORDER BY term) AS replaces
    FROM asked LEFT JOIN known USING (term)) AS t

-- postings_of_terms: all postings of given terms, the blocks of each as one value
SELECT o.term_id, string_agg(o.entries, ''::bytea) AS entries FROM {postings} o
WHERE o.term_id = ANY(%(term_ids)s::integer[]) GROUP BY o.term_id

-- postings_of_passages: the blocks of given terms that can contain passages of given runs of numbers, without duplicates. The
-- blocks of a run start with the last one that starts at or before it, and end where it ends; those of the run before are omitted.
SELECT t.id AS term_id, string_agg(b.entries, ''::bytea) AS entries
FROM unnest(%(term_ids)s::integer[]) AS t (id),
    unnest(%(firsts)s::integer[], %(lasts)s::integer[], %(befores)s::integer[]) AS r (first, last, before),
    LATERAL (
        SELECT o.entries FROM {postings} o
        WHERE o.term_id = t.id AND o.first > r.before AND o.first <= r.last AND o.first >= coalesce(
            (SELECT max(e.first) FROM {postings} e WHERE e.term_id = t.id AND e.first <= r.first), 0)
        OFFSET 0) AS b
GROUP BY t.id

-- terms_of_titles: the title and the file name of given documents, with the terms of both
SELECT id, title, CASE WHEN length(name_terms) > 0 THEN workbench_file_words(path) END AS file,
    tsvector_to_array(title_terms) AS title_terms, tsvector_to_array(name_terms) AS file_terms
FROM documents WHERE id = ANY(%(ids)s)

-- names_of_documents: the names of the documents that an index holds, with the short values of their metadata
SELECT d.id, d.title, workbench_file_words(d.path) AS file,
    coalesce((SELECT jsonb_object_agg(m.key, m.value) FROM jsonb_each(d.metadata) AS m WHERE length(m.value::text) <= 400),
        '{{}}') AS metadata
FROM index_documents i JOIN documents d ON d.id = i.document_id
WHERE i.index_name = %(index)s

-- documents_of_passages: the documents of given passages
SELECT p.id, p.document_id FROM {data} p WHERE p.id = ANY(%(ids)s)

-- cosines_of: the cosine similarity of given passages with the query
SELECT p.id, 1 - (p.embedding <=> %(vector)s::halfvec) AS score FROM {data} p WHERE p.id = ANY(%(ids)s)

-- documents_listed: the documents of an index that are in a scope
SELECT p.document_id FROM (
    SELECT i.document_id, d.source_id FROM index_documents i JOIN documents d ON d.id = i.document_id
    WHERE i.index_name = %(index)s) AS p
WHERE {scope}

-- documents_within: those of given documents that are in a scope
SELECT p.document_id FROM (SELECT id AS document_id, source_id FROM documents WHERE id = ANY(%(ids)s)) AS p WHERE {scope}

-- ids_of_scope: the passages of a scope, as one value
SELECT string_agg(int8send(p.id), ''::bytea) AS ids FROM {data} p WHERE {scope}

-- ids_in_scope: those of given passages that are in a scope
SELECT p.id FROM {data} p WHERE p.id = ANY(%(ids)s) AND {scope}

-- passage_columns: the columns of a passage that are shown
p.id, p.node_id, p.text, p.metadata_ AS metadata, p.document_id, p.source_id

-- document_columns: the columns of a passage's document that are shown
d.title, d.path, d.url, d.document_type, d.document_date

-- any_index: the condition of a search that has just looked up its index
TRUE

-- same_index: the condition of a search that cached its index: it is unchanged, and still the default or still not
EXISTS (SELECT FROM indexes i WHERE i.name = %(index)s AND i.created_at = %(created_at)s AND i.is_default = %(is_default)s
    AND i.embedding_model = %(embedding_model)s AND {graph_serves} = %(has_graph)s)

-- passages_by_id: passages with their documents, for showing (OFFSET 0: only one way of joining to plan)
SELECT {passage_columns}, o.* FROM {data} p, LATERAL (SELECT {document_columns} FROM documents d WHERE d.id = p.document_id OFFSET 0) AS o
WHERE p.id = ANY(%(ids)s) AND {condition}

-- nearest_passages: nearest passages by HNSW with their documents, in any order
SELECT n.*, o.* FROM (
    SELECT {passage_columns}, 1 - (p.embedding <=> %(vector)s::halfvec) AS score FROM {data} p WHERE {breadth_by_size}
    ORDER BY p.embedding <=> %(vector)s::halfvec LIMIT {limit}) AS n,
    LATERAL (SELECT {document_columns} FROM documents d WHERE d.id = n.document_id OFFSET 0) AS o
WHERE {condition}

-- nearest_passages_exact: the same, every distance computed (OFFSET 0: only one way of joining to plan)
SELECT b.*, n.score, o.* FROM (
    SELECT p.id, 1 - (p.embedding <=> %(vector)s::halfvec) AS score FROM {data} p
    ORDER BY 1 - (p.embedding <=> %(vector)s::halfvec) DESC, p.id LIMIT %(limit)s) AS n,
    LATERAL (SELECT {passage_columns} FROM {data} p WHERE p.id = n.id OFFSET 0) AS b,
    LATERAL (SELECT {document_columns} FROM documents d WHERE d.id = b.document_id OFFSET 0) AS o
WHERE {condition}

-- token_bits_by_id: the one-bit token vectors of given passages
SELECT p.id, p.token_bits FROM {data} p WHERE p.id = ANY(%(ids)s)

-- embeddings_by_id: the vectors of given passages, as pgvector sends them: as text they would take as long as a second statement
SELECT p.id, halfvec_send(p.embedding) AS embedding FROM {data} p WHERE p.id = ANY(%(ids)s)

-- sample_of_index: a sample of the passages of an index
{data} p TABLESAMPLE SYSTEM (%(percent)s) REPEATABLE (1) WHERE TRUE

-- sample_of_scope: the same for a scope, with one passage in so many
{data} p WHERE {scope} AND p.id %% %(step)s = 0

-- hubness: the hubness of given passages against a sample: inner products with its mean vector
WITH centre AS MATERIALIZED (SELECT avg(p.embedding) AS mean FROM {sample})
SELECT p.id, -(p.embedding <#> c.mean) AS likeness FROM {data} p, centre c WHERE p.id = ANY(%(ids)s) AND c.mean IS NOT NULL

-- embeddings_by_hash: vectors already computed for the same text with the same model
SELECT DISTINCT ON (passage_hash) passage_hash, embedding::text AS embedding, token_bits
FROM {data} WHERE passage_hash = ANY(%(hashes)s)

-- sample_passages: passages of an index in an order unrelated to their texts
SELECT text, embedding::text AS embedding FROM {data} WHERE length(text) >= 80 ORDER BY passage_hash LIMIT %(limit)s

-- best_cosines: the highest cosine of each vector with a sample of the passages
SELECT max(-(p.embedding <#> q.vector::halfvec)) AS cosine
FROM unnest(%(vectors)s::text[]) WITH ORDINALITY q(vector, place),
     (SELECT embedding FROM {data} ORDER BY passage_hash LIMIT %(limit)s) p
GROUP BY q.place ORDER BY q.place

-- passages_of_document: every passage of a document, in reading order
SELECT {passage_columns}, {document_columns} FROM {data} p JOIN documents d ON d.id = p.document_id
WHERE p.document_id = %(document_id)s ORDER BY (p.metadata_ ->> 'ordinal')::integer

-- ids_of_passages: the internal ids behind public passage ids
SELECT id, node_id FROM {data} WHERE node_id = ANY(%(node_ids)s)

-- named_by_hits: stored documents that a foreign retriever's hit names: by id, URL, file name, or key in the index; whether
-- the index has them, and whether they are in a scope too
SELECT p.document_id AS id, p.key, p.path, p.url, p.indexed, p.indexed AND ({scope}) AS inside FROM (
    SELECT d.id AS document_id, d.source_id, d.key, d.path, d.url, EXISTS (
        SELECT FROM index_documents i WHERE i.index_name = %(index)s AND i.document_id = d.id) AS indexed
    FROM (
        SELECT id FROM documents WHERE id = ANY(%(ids)s)
        UNION SELECT id FROM documents WHERE url = ANY(%(urls)s)
        UNION SELECT id FROM documents WHERE %(file)s <> '' AND regexp_replace(path, '^.*[/\\]', '') = %(file)s
        UNION SELECT k.id FROM index_documents i JOIN documents k ON k.id = i.document_id
            WHERE i.index_name = %(index)s AND k.key = ANY(%(ids)s)) AS named JOIN documents d USING (id)) AS p

-- copy_passages: store new passages
COPY {data} (node_id, text, metadata_, embedding, passage_hash, token_bits) FROM STDIN (FORMAT BINARY)

-- delete_passages_of_documents: delete passages before new versions of their documents are stored
DELETE FROM {data} WHERE document_id = ANY(%(document_ids)s)

-- delete_passages_of_source: delete a source's passages in one statement
DELETE FROM {data} WHERE source_id = %(source_id)s

-- documents_in_scope: the documents with passages in a scope
SELECT DISTINCT p.document_id FROM {data} p WHERE {scope}

-- pack_postings: blocks that grew one by one put in the order of their terms, without room between them
CLUSTER {postings} USING {postings_key}

-- analyse: update the planner's statistics for the table after a bulk load
VACUUM ANALYZE {data}, {postings}, {lexicon}

-- vector_standing: a passage's cosine and how many passages in scope are nearer, every distance computed
SELECT t.score, 1 + (SELECT count(*) FROM {data} p WHERE ({scope})
        AND ((1 - (p.embedding <=> %(vector)s::halfvec)) > t.score
            OR ((1 - (p.embedding <=> %(vector)s::halfvec)) = t.score AND p.id < t.id))) AS rank
FROM (SELECT x.id, 1 - (x.embedding <=> %(vector)s::halfvec) AS score FROM {data} x WHERE x.id = %(passage)s) t

-- spans_around: for each given passage, the span of it and its neighbours in the same document
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

-- lexicon_version: values that change whenever words are added to an index: the newest word, and the index's counts
SELECT (SELECT coalesce(max(id), 0) FROM {lexicon}) AS newest, coalesce(sum(passages), 0)::bigint AS passages,
    coalesce(sum(terms), 0)::bigint AS terms
FROM index_statistics WHERE index_name = %(index)s

-- lexicon_all: every term, also one that no passage has at present, because it may come back without a new id
SELECT coalesce(array_agg(term), '{{}}') AS terms FROM {lexicon}

-- terms_by_name: the lexicon's entries of given terms
SELECT l.term, l.id, l.df FROM {lexicon} l WHERE l.term = ANY(%(terms)s) AND l.df > 0

-- terms_of_variants: the terms of a text (many spellings of one word) that the lexicon knows
SELECT DISTINCT l.term FROM {lexicon} l WHERE l.df > 0 AND l.term = ANY(ARRAY(
    SELECT u.lexeme FROM (
        SELECT DISTINCT language FROM index_statistics WHERE index_name = %(index)s AND passages > 0) AS s,
    unnest(workbench_terms(s.language, %(variants)s)) u))

-- stop_words: the number of given words that each language of the text search leaves out as too common
SELECT c.cfgname AS language, count(*)::integer AS words FROM pg_ts_config c, unnest(%(words)s::text[]) AS w (word)
WHERE c.cfgname <> 'simple' AND length(to_tsvector(c.oid::regconfig, w.word)) = 0 GROUP BY c.cfgname

-- terms_of_words: the terms that given words become in given languages
SELECT w.word, w.language, u.lexeme AS term
FROM unnest(%(words)s::text[], %(languages)s::text[]) AS w (word, language), unnest(workbench_terms(w.language, w.word)) u
