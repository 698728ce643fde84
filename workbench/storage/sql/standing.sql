-- vector_standing: a passage's cosine and how many passages in scope are nearer, every distance computed
SELECT t.score, 1 + (SELECT count(*) FROM {data} p WHERE ({scope})
        AND ((1 - (p.embedding <=> %(vector)s::halfvec)) > t.score
            OR ((1 - (p.embedding <=> %(vector)s::halfvec)) = t.score AND p.id < t.id))) AS rank
FROM (SELECT x.id, 1 - (x.embedding <=> %(vector)s::halfvec) AS score FROM {data} x WHERE x.id = %(passage)s) t
