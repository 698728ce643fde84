-- job_parts_plan: the parts of a job, in the order in which they are taken
INSERT INTO job_parts (job_id, position, content, items, weight)
SELECT %(job_id)s, place - 1, content::jsonb, items, weight
FROM unnest(%(contents)s::text[], %(items)s::int[], %(weights)s::bigint[]) WITH ORDINALITY AS given (content, items, weight, place)

-- job_parts_plan_index: parts of neighbouring documents that an index lacks, of about a given number of bytes of text
INSERT INTO job_parts (job_id, position, content, items, weight)
SELECT %(job_id)s, row_number() OVER (ORDER BY part) - 1, jsonb_agg(id ORDER BY place), count(*), sum(size)
FROM (
    SELECT id, place, size, (sum(size) OVER (ORDER BY place) - size)::bigint / %(part_bytes)s::bigint AS part
    FROM (
        SELECT d.id, octet_length(d.text) AS size, row_number() OVER (ORDER BY d.created_at, d.key, d.id) AS place
        FROM documents d WHERE d.id IN (SELECT id FROM ({documents_missing_from_index}) AS missing)
    ) AS sized
) AS parted
GROUP BY part

-- job_parts_planned: whether a job has parts
SELECT EXISTS (SELECT FROM job_parts WHERE job_id = %(job_id)s) AS planned

-- job_part_gone: whether a part's holder is gone; while its process lived, it held a lock with its name
NOT EXISTS (
    SELECT FROM pg_locks l JOIN pg_database b ON b.oid = l.database
    WHERE b.datname = current_database() AND l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted
      AND ((l.classid::bigint << 32) | l.objid::bigint) = hashtextextended(holder, 7215004)
)

-- job_part_take: take the first part that waits or whose holder is gone
-- MATERIALIZED: as a plain subquery, a nested loop runs it again for each row and takes several parts for one taker
WITH next AS MATERIALIZED (
    SELECT position FROM job_parts
    WHERE job_id = %(job_id)s AND state <> 'done' AND times < %(most)s AND (state = 'waiting' OR {job_part_gone})
    ORDER BY position LIMIT 1 FOR UPDATE SKIP LOCKED
)
UPDATE job_parts p SET state = 'busy', holder = %(holder)s, times = times + 1, taken_at = clock_timestamp()
FROM next WHERE p.job_id = %(job_id)s AND p.position = next.position
RETURNING p.position, p.content, p.items

-- job_part_done: a part is done, in the transaction that stores its work; no row if another worker holds it now
UPDATE job_parts SET state = 'done', holder = NULL, result = %(result)s, done_at = clock_timestamp()
WHERE job_id = %(job_id)s AND position = %(position)s AND state = 'busy' AND holder = %(holder)s RETURNING position

-- job_parts_give_back: release the parts that a holder has, as if they had not been taken
UPDATE job_parts SET state = 'waiting', holder = NULL, times = times - 1
WHERE job_id = %(job_id)s AND state = 'busy' AND holder = %(holder)s

-- job_parts_tally: the progress of a job's parts, and how many workers hold one
SELECT count(*) AS parts, count(*) FILTER (WHERE state = 'done') AS done, count(*) FILTER (WHERE state = 'waiting') AS waiting,
    coalesce(sum(items), 0)::bigint AS items, coalesce(sum(items) FILTER (WHERE state = 'done'), 0)::bigint AS items_done,
    coalesce(sum(weight), 0)::bigint AS weight, coalesce(sum(weight) FILTER (WHERE state = 'done'), 0)::bigint AS weight_done,
    coalesce(sum(weight) FILTER (WHERE state = 'busy'), 0)::bigint AS weight_busy,
    (SELECT count(DISTINCT h.holder) FROM (SELECT holder FROM job_parts WHERE job_id = %(job_id)s
        UNION ALL SELECT holder FROM embedding_parts WHERE job_id = %(job_id)s) AS h) AS holders,
    count(*) FILTER (WHERE state <> 'done' AND times >= %(most)s AND (state = 'waiting' OR {job_part_gone})) AS given_up
FROM job_parts WHERE job_id = %(job_id)s

-- job_parts_results: the results of finished parts
SELECT position, content, items, result, times FROM job_parts WHERE job_id = %(job_id)s AND state = 'done' ORDER BY position

-- job_invitation: the invitation to take parts of a job, if one waits in the queue
SELECT id FROM procrastinate_jobs WHERE status = 'todo' AND queueing_lock = %(lock)s

-- job_any_queued: whether a job of these kinds waits for a worker
SELECT EXISTS (SELECT FROM jobs WHERE status = 'queued' AND kind = ANY(%(kinds)s)) AS queued
