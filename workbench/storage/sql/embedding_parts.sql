-- embedding_part_publish: a part of texts to be embedded, of a job that still exists
INSERT INTO embedding_parts (job_id, model, owner, passages, hashes, texts)
SELECT id, %(model)s, %(owner)s, cardinality(%(hashes)s::bytea[]), %(hashes)s::bytea[], %(texts)s FROM jobs WHERE id = %(job_id)s
RETURNING id

-- embedding_parts_adopt: take over the parts of a dead owner that start with one of these texts
UPDATE embedding_parts e SET owner = %(owner)s
WHERE job_id = %(job_id)s AND model = %(model)s AND hashes[1] = ANY(%(hashes)s::bytea[])
  AND (SELECT {job_part_gone} FROM (SELECT e.owner AS holder) AS o)
RETURNING id, hashes, state

-- embedding_part_take: take the first part that waits or whose holder is gone
-- MATERIALIZED: as a plain subquery, a nested loop runs it again for each row and takes several parts for one taker
WITH next AS MATERIALIZED (
    SELECT id FROM embedding_parts
    WHERE job_id = %(job_id)s AND state <> 'done' AND times < %(most)s AND (state = 'waiting' OR {job_part_gone})
      AND (%(model)s::text IS NULL OR model = %(model)s)
    ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED
)
UPDATE embedding_parts p SET state = 'busy', holder = %(holder)s, times = times + 1
FROM next WHERE p.id = next.id RETURNING p.id, p.model, p.texts

-- embedding_part_done: a part's vectors; no row if another worker holds it now
UPDATE embedding_parts SET state = 'done', holder = NULL, texts = NULL, vectors = %(vectors)s, token_bits = %(token_bits)s::bytea[]
WHERE id = %(id)s AND state = 'busy' AND holder = %(holder)s

-- embedding_parts_give_back: release the parts that a holder has, as if they had not been taken
UPDATE embedding_parts SET state = 'waiting', holder = NULL, times = times - 1
WHERE job_id = %(job_id)s AND state = 'busy' AND holder = %(holder)s

-- embedding_parts_done: which of these parts are done, and which were given up
SELECT id, passages, state = 'done' AS done, state <> 'done' AND times >= %(most)s AND (state = 'waiting' OR {job_part_gone}) AS given_up
FROM embedding_parts WHERE id = ANY(%(ids)s)

-- embedding_part_vectors: the result of a part
SELECT hashes, vectors, token_bits FROM embedding_parts WHERE id = %(id)s AND state = 'done'

-- embedding_parts_tally: progress of a job's parts that are not yet stored
SELECT count(*) FILTER (WHERE state = 'waiting') AS waiting, count(DISTINCT holder) AS holders,
    coalesce(sum(passages), 0)::bigint AS passages, coalesce(sum(passages) FILTER (WHERE state = 'done'), 0)::bigint AS passages_done
FROM embedding_parts WHERE job_id = %(job_id)s

-- embedding_parts_drop: delete parts whose vectors are now in an index
DELETE FROM embedding_parts WHERE id = ANY(%(ids)s)
