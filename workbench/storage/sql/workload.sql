-- work_going_on: the jobs that run or wait, oldest first, and how far their parts are
SELECT j.*, {standing}, p.parts, p.parts_done, p.hands
FROM jobs j CROSS JOIN LATERAL (
    SELECT count(*) AS parts, count(*) FILTER (WHERE state = 'done') AS parts_done, count(DISTINCT holder) AS hands
    FROM job_parts WHERE job_id = j.id
) p WHERE j.status IN ('queued', 'running') ORDER BY j.status DESC, j.created_at, j.id LIMIT %(limit)s

-- work_counts: the jobs that wait and run, and the workers with a recent heartbeat
SELECT count(*) FILTER (WHERE status = 'queued') AS queued, count(*) FILTER (WHERE status = 'running') AS running,
    (SELECT count(*) FROM procrastinate_workers WHERE last_heartbeat > now() - make_interval(secs => %(silent)s)) AS workers FROM jobs
