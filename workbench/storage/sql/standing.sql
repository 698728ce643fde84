-- vector_standing: a passage's cosine and how many passages in scope are nearer, every distance computed
SELECT t.score, 1 + (SELECT count(*) FROM {data} p WHERE ({scope})
        AND ((1 - (p.embedding <=> %(vector)s::halfvec)) > t.score
            OR ((1 - (p.embedding <=> %(vector)s::halfvec)) = t.score AND p.id < t.id))) AS rank
FROM (SELECT x.id, 1 - (x.embedding <=> %(vector)s::halfvec) AS score FROM {data} x WHERE x.id = %(passage)s) t

-- bm25_standing: a passage's BM25 score and how many passages in scope have more; no row for one without the words
WITH scores AS (
    SELECT o.passage_id AS id, sum(t.weight * o.tf / (o.tf + %(a)s + %(c)s * o.length)) AS score
    FROM unnest(%(term_ids)s::integer[], %(weights)s::float8[]) AS t (id, weight) JOIN {postings} o ON o.term_id = t.id
    WHERE o.passage_id = %(passage)s OR o.passage_id IN (SELECT p.id FROM {data} p WHERE {scope})
    GROUP BY o.passage_id)
SELECT t.score, 1 + (SELECT count(*) FROM scores s
    WHERE s.score > t.score OR (s.score = t.score AND s.id < t.id)) AS rank
FROM scores t WHERE t.id = %(passage)s
