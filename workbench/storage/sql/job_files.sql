-- job_file_add: an upload for a worker
INSERT INTO job_files (job_id, position, name, bytes, size)
VALUES (%(job_id)s, %(position)s, %(name)s, %(bytes)s, octet_length(%(bytes)s::bytea))

-- job_files_found: files that a worker found; known ones keep their positions
INSERT INTO job_files (job_id, position, name, size)
SELECT %(job_id)s, (SELECT coalesce(max(position), -1) FROM job_files WHERE job_id = %(job_id)s) + row_number() OVER (ORDER BY place), name, size
FROM (SELECT DISTINCT ON (name) name, size, place
      FROM unnest(%(names)s::text[], %(sizes)s::bigint[]) WITH ORDINALITY AS given (name, size, place) ORDER BY name, place) AS found
WHERE NOT EXISTS (SELECT FROM job_files f WHERE f.job_id = %(job_id)s AND f.name = found.name)

-- job_files_places: the position of each file of a job
SELECT position, name, size, bytes IS NOT NULL AS uploaded FROM job_files WHERE job_id = %(job_id)s ORDER BY position

-- job_file_bytes: one upload
SELECT bytes FROM job_files WHERE job_id = %(job_id)s AND position = %(position)s AND bytes IS NOT NULL

-- job_files_wait: set the files of a worker that is gone back to waiting
UPDATE job_files SET state = 'waiting' WHERE job_id = %(job_id)s AND state = 'busy'

-- job_files_note: record the states of files; a file that this job ingested keeps that state when it is seen again unchanged
UPDATE job_files f SET state = told.state, passages = told.passages, error = told.error,
    settled_at = CASE WHEN told.state = 'busy' THEN NULL ELSE clock_timestamp() END
FROM unnest(%(positions)s::int[], %(states)s::text[], %(passages)s::int[], %(errors)s::text[]) AS told (position, state, passages, error)
WHERE f.job_id = %(job_id)s AND f.position = told.position AND NOT (told.state = 'unchanged' AND f.state IN ('added', 'changed'))

-- job_files_forget_bytes: delete uploads that were ingested; failed ones are kept for a retry
UPDATE job_files SET bytes = NULL WHERE job_id = %(job_id)s AND bytes IS NOT NULL AND state <> 'failed'

-- job_files_list: a job's files in order; beyond the limit, failed ones and those in progress first
SELECT position, name, size, state, passages, error FROM (
    SELECT * FROM job_files WHERE job_id = %(job_id)s
    ORDER BY CASE state WHEN 'failed' THEN 0 WHEN 'busy' THEN 1 ELSE 2 END, settled_at DESC NULLS LAST, position LIMIT %(limit)s) AS chosen
ORDER BY position

-- job_files_tally: the number of files in each state, and their weight; "recent" was settled by the present worker
SELECT f.state, count(*) AS files, sum(f.size + 2000)::float8 AS weight,
    coalesce(sum(f.size + 2000) FILTER (WHERE f.settled_at >= j.taken_at), 0)::float8 AS recent
FROM job_files f JOIN jobs j ON j.id = f.job_id WHERE f.job_id = %(job_id)s GROUP BY f.state
