-- job_insert: a new job, waiting for a worker
INSERT INTO jobs (id, kind, title, parameters, source_id, message)
VALUES (%(id)s, %(kind)s, %(title)s, %(parameters)s, %(source_id)s, 'Waiting for a worker.')

-- job_standing: how long a job's numbers have been unchanged, and the state of its worker and of others
CASE WHEN j.status IN ('queued', 'running') THEN extract(epoch FROM clock_timestamp() - j.moved_at)::float END AS quiet,
CASE WHEN j.status = 'running' THEN (
    SELECT extract(epoch FROM clock_timestamp() - w.last_heartbeat)::float FROM procrastinate_jobs q
        JOIN procrastinate_workers w ON w.id = q.worker_id WHERE q.lock = j.id AND q.status = 'doing' LIMIT 1) END AS silent,
j.status = 'running' AND (SELECT NOT {job_part_gone} FROM (SELECT j.id AS holder) AS h) AS is_held,
CASE WHEN j.status IN ('queued', 'running') THEN (
    SELECT count(*) FROM procrastinate_workers WHERE last_heartbeat > now() - interval '15 seconds') END AS workers,
CASE WHEN j.status = 'queued' THEN EXISTS (
    SELECT FROM jobs other WHERE other.status = 'running' AND other.id <> j.id) END AS are_busy

-- job_get: one job
SELECT j.*, {job_standing} FROM jobs j WHERE id = %(id)s

-- job_list: jobs, newest first; NULL parameters are ignored
SELECT j.*, {job_standing} FROM jobs j WHERE (%(kind)s::text IS NULL OR kind = %(kind)s) AND (%(status)s::text IS NULL OR status = %(status)s)
  AND (%(source_id)s::text IS NULL OR source_id = %(source_id)s)
ORDER BY created_at DESC, id LIMIT %(limit)s OFFSET %(offset)s

-- job_count: the number of jobs that job_list would give without a limit
SELECT count(*) AS n FROM jobs WHERE (%(kind)s::text IS NULL OR kind = %(kind)s)
  AND (%(status)s::text IS NULL OR status = %(status)s)

-- job_unfinished: jobs of a kind that wait or run, oldest first
SELECT j.*, {job_standing} FROM jobs j WHERE kind = %(kind)s AND status IN ('queued', 'running') ORDER BY created_at, id

-- sources_being_read: whether a job or another process, which holds the source's id, reads documents into any of some sources
SELECT EXISTS (
    SELECT FROM jobs WHERE kind IN ('ingest', 'crawl') AND status IN ('queued', 'running')
      AND (%(sources)s::text[] IS NULL OR source_id = ANY(%(sources)s))
) OR EXISTS (
    SELECT FROM (SELECT id AS holder FROM sources WHERE %(sources)s::text[] IS NULL OR id = ANY(%(sources)s)) AS searched
    WHERE NOT {job_part_gone}
) AS reads

-- job_with_parameters: the newest job of a kind whose parameters include the given ones, optionally only waiting or running ones
SELECT j.*, {job_standing} FROM jobs j WHERE kind = %(kind)s AND parameters @> %(parameters)s
  AND (NOT %(unfinished)s OR status IN ('queued', 'running'))
ORDER BY created_at DESC, id LIMIT 1

-- job_in_view: unfinished jobs, and finished ingests and builds until they are dismissed
SELECT j.*, {job_standing} FROM jobs j WHERE status IN ('queued', 'running')
  OR (NOT put_away AND kind IN ('ingest', 'index_build', 'test_set') AND completed_at > now() - interval '1 day')
ORDER BY created_at, id LIMIT 50

-- job_put_away: dismiss a finished job
UPDATE jobs SET put_away = true WHERE id = %(id)s AND status NOT IN ('queued', 'running')

-- job_requeue: a finished job waits for a worker again; its parts will be planned again, and vectors that it has are kept. If
-- it was complete, the amount of remaining work is unknown.
WITH former AS (DELETE FROM job_parts p USING jobs j WHERE p.job_id = %(id)s AND j.id = p.job_id AND j.status NOT IN ('queued', 'running')),
waiting AS (DELETE FROM embedding_parts e USING jobs j
    WHERE e.job_id = %(id)s AND j.id = e.job_id AND j.status NOT IN ('queued', 'running') AND e.state <> 'done')
UPDATE jobs SET status = 'queued', cancel_requested = false, error = NULL, completed_at = NULL, attempts = 0, put_away = false,
    done = CASE WHEN done < total THEN done ELSE 0 END, total = CASE WHEN done < total THEN total ELSE 0 END,
    share = CASE WHEN done < total THEN share END, message = 'Waiting for a worker.', moved_at = now(), updated_at = now()
WHERE id = %(id)s AND status NOT IN ('queued', 'running') RETURNING id, kind

-- job_begin: a worker takes the job unless it has ended, possibly from a worker that died
UPDATE jobs SET status = 'running', worker = %(worker)s, attempts = attempts + 1, started_at = coalesce(started_at, now()),
    taken_at = now(), moved_at = now(), part = 0, seconds_left = NULL, message = 'Started.', updated_at = now()
WHERE id = %(id)s AND status IN ('queued', 'running') RETURNING *

-- job_worker_failure: why the worker of the waiting jobs fails, or that it no longer does
UPDATE jobs SET message = %(message)s WHERE status = 'queued' AND (%(fails)s OR starts_with(message, %(failed)s))

-- job_source: the source that a job fills, once it is created
UPDATE jobs SET source_id = %(source_id)s WHERE id = %(id)s

-- job_progress: the progress of a job; an advance clears the count of attempts, and an estimate stays until numbers change
UPDATE jobs j SET attempts = CASE WHEN j.done IS DISTINCT FROM new.done THEN 1 ELSE attempts END,
    moved_at = CASE WHEN moved THEN now() ELSE moved_at END,
    seconds_left = CASE WHEN moved THEN new.seconds_left ELSE j.seconds_left END,
    done = new.done, total = new.total, part = new.part, share = new.share, message = new.message, updated_at = now()
FROM (
    SELECT n.*, (o.done, o.total, o.part, o.message) IS DISTINCT FROM (n.done, n.total, n.part, n.message) AS moved
    FROM jobs o, (SELECT %(done)s::bigint AS done, %(total)s::bigint AS total, %(part)s::real AS part, %(share)s::real AS share,
        %(message)s::text AS message, %(seconds_left)s::real AS seconds_left) AS n WHERE o.id = %(id)s
) AS new
WHERE j.id = %(id)s

-- job_beat: heartbeat of a slow step, during which no number changes
UPDATE jobs SET moved_at = now() WHERE id = %(id)s AND status = 'running'

-- job_got_on: reset the count of attempts, because a step is finished
UPDATE jobs SET attempts = 1 WHERE id = %(id)s AND attempts > 1

-- job_finish: end a job; if it did not complete, its embeddings are kept for a day so that it can be resumed
WITH spent AS (DELETE FROM embedding_parts p USING jobs j WHERE j.id = p.job_id
    AND (j.completed_at < now() - interval '1 day' OR (j.id = %(id)s AND %(status)s LIKE 'completed%%')))
UPDATE jobs SET status = %(status)s, error = %(error)s, result = result || %(result)s::jsonb, message = %(message)s, worker = NULL,
    seconds_left = NULL, cancel_requested = false, completed_at = now(), updated_at = now() WHERE id = %(id)s

-- job_released: the state of a job whose worker is gone before it is finished; another resumes it unless it was cancelled
status = CASE WHEN cancel_requested THEN 'cancelled' ELSE 'queued' END, worker = NULL, cancel_requested = false,
    attempts = greatest(0, attempts - 1), seconds_left = NULL, completed_at = CASE WHEN cancel_requested THEN now() END,
    message = CASE WHEN cancel_requested THEN 'Cancelled; finished work is kept, and the job can be resumed.'
        ELSE 'Waiting for a worker to continue.' END, moved_at = now(), updated_at = now()

-- job_release: the worker of a job stops
UPDATE jobs SET {job_released} WHERE id = %(id)s AND status = 'running'

-- job_cancel: stop a job; one that no worker has taken ends immediately
UPDATE jobs SET cancel_requested = (status = 'running'), status = CASE status WHEN 'queued' THEN 'cancelled' ELSE status END,
    completed_at = CASE status WHEN 'queued' THEN now() END,
    message = CASE status WHEN 'queued' THEN 'Cancelled before it started.' ELSE 'Stopping.' END, moved_at = now(), updated_at = now()
WHERE id = %(id)s AND status IN ('queued', 'running') RETURNING status

-- job_cancel_requested: whether the job was cancelled (an ended or deleted one must also stop)
SELECT coalesce((SELECT cancel_requested OR status NOT IN ('queued', 'running') FROM jobs WHERE id = %(id)s), true) AS stop

-- job_delete: a job with its log, files and pages
DELETE FROM jobs WHERE id = %(id)s

-- job_log_add: one line of a job's log
INSERT INTO job_log (job_id, level, message) SELECT id, %(level)s, %(message)s FROM jobs WHERE id = %(job_id)s

-- job_log_list: a job's log after a line, oldest first
SELECT id, at, level, message FROM (
    SELECT * FROM job_log WHERE job_id = %(job_id)s AND id > %(after)s ORDER BY id DESC LIMIT %(limit)s) AS latest ORDER BY id

-- job_pace: seconds per embedded passage in the last ingest with enough of them
SELECT (result ->> 'seconds')::float / (result ->> 'embedded')::float AS pace FROM jobs
WHERE kind = 'ingest' AND status IN ('completed', 'completed_with_errors') AND (result ->> 'embedded')::int >= %(enough)s
ORDER BY completed_at DESC LIMIT 1

-- job_any_waiting: whether a job waits for a worker, or was left by one that died
SELECT EXISTS (
    SELECT 1 FROM jobs WHERE status = 'queued' OR (status = 'running' AND updated_at < now() - interval '20 seconds')
) AS waiting

-- work_going_on: the jobs that run or wait, oldest first, and how far their parts are
SELECT j.*, {job_standing}, p.parts, p.parts_done, p.hands
FROM jobs j CROSS JOIN LATERAL (
    SELECT count(*) AS parts, count(*) FILTER (WHERE state = 'done') AS parts_done, count(DISTINCT holder) AS hands
    FROM job_parts WHERE job_id = j.id
) p WHERE j.status IN ('queued', 'running') ORDER BY j.status DESC, j.created_at, j.id LIMIT %(limit)s

-- work_counts: the jobs that wait and run, and the workers with a recent heartbeat
SELECT count(*) FILTER (WHERE status = 'queued') AS queued, count(*) FILTER (WHERE status = 'running') AS running,
    (SELECT count(*) FROM procrastinate_workers WHERE last_heartbeat > now() - make_interval(secs => %(silent)s)) AS workers FROM jobs
