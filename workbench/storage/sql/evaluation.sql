-- dataset_insert: a new test set
INSERT INTO datasets (id, title, description, source_id, corpus_hash, scope, grades)
VALUES (%(id)s, %(title)s, %(description)s, %(source_id)s, %(corpus_hash)s, %(scope)s, %(grades)s)

-- dataset_list: test sets with the counts of their current version; NULL is ignored
SELECT d.*, (SELECT count(*) FROM dataset_questions q WHERE q.dataset_id = d.id AND q.until IS NULL) AS questions,
    (SELECT count(DISTINCT (j.question_id, j.document, j.start_at, j.end_at)) FROM judgments j
        WHERE j.dataset_id = d.id AND j.until IS NULL AND j.judge <> 'llm') AS judgments,
    (SELECT count(*) FROM dataset_questions q WHERE q.dataset_id = d.id AND q.until IS NULL AND EXISTS (
        SELECT FROM judgments j WHERE j.dataset_id = d.id AND j.question_id = q.question_id AND j.until IS NULL AND j.grade > 0
            AND j.judge <> 'llm'))
    AS answerable
FROM datasets d WHERE (%(key)s::text IS NULL OR d.id = %(key)s OR d.title = %(key)s)
ORDER BY d.id IS DISTINCT FROM %(key)s::text, d.created_at, d.id

-- dataset_bump: start a new version; the row stays locked until the end of the transaction
UPDATE datasets SET version = version + 1, updated_at = now() WHERE id = %(id)s RETURNING version

-- dataset_update: NULL leaves a field unchanged
UPDATE datasets SET title = coalesce(%(title)s, title), description = coalesce(%(description)s, description),
    grades = coalesce(%(grades)s, grades), updated_at = now()
WHERE id = %(id)s

-- dataset_corpus: set another corpus, which makes a new version
UPDATE datasets SET source_id = %(source_id)s, corpus_hash = %(corpus_hash)s, version = version + 1, updated_at = now()
WHERE id = %(id)s

-- dataset_delete: with its questions, judgments and experiments, by cascade
DELETE FROM datasets WHERE id = %(id)s

-- question_close: the question ends before this version
UPDATE dataset_questions SET until = %(version)s
WHERE dataset_id = %(dataset_id)s AND question_id = %(question_id)s AND until IS NULL

-- question_insert: the question is valid from this version on
INSERT INTO dataset_questions (dataset_id, question_id, since, text, reference_answer, origin, metadata)
VALUES (%(dataset_id)s, %(question_id)s, %(version)s, %(text)s, %(reference_answer)s, %(origin)s, %(metadata)s)

-- question_list: the questions of one version, in the order they were added
SELECT question_id, text, reference_answer, origin, metadata FROM dataset_questions
WHERE dataset_id = %(dataset_id)s AND since <= %(version)s AND (until IS NULL OR until > %(version)s)
ORDER BY (SELECT min(f.position) FROM dataset_questions f
    WHERE f.dataset_id = dataset_questions.dataset_id AND f.question_id = dataset_questions.question_id), question_id

-- judgment_close: a judgment ends before this version; NULL is ignored
UPDATE judgments SET until = %(version)s
WHERE dataset_id = %(dataset_id)s AND question_id = %(question_id)s AND until IS NULL
  AND (%(document)s::text IS NULL OR document = %(document)s AND start_at IS NOT DISTINCT FROM %(start)s
       AND end_at IS NOT DISTINCT FROM %(end)s AND rater = %(rater)s)

-- judgment_insert: a judgment is valid from this version on
INSERT INTO judgments (dataset_id, question_id, since, document, grade, start_at, end_at, quote, judge, rater, reason, pages)
VALUES (%(dataset_id)s, %(question_id)s, %(version)s, %(document)s, %(grade)s, %(start)s, %(end)s, %(quote)s, %(judge)s,
    %(rater)s, %(reason)s, %(pages)s)

-- judgment_list: the judgments of one version
SELECT question_id, document, grade, start_at AS start, end_at AS end, quote, pages, judge, rater, reason, created_at FROM judgments
WHERE dataset_id = %(dataset_id)s AND since <= %(version)s AND (until IS NULL OR until > %(version)s) ORDER BY id

-- run_begin: the run with a key, inserted if there is none
INSERT INTO eval_runs AS r (id, key, corpus_hash, index_hash, strategy_hash, questions_hash, depth, strategy, parameters,
    index_name, index_settings, questions)
VALUES (%(id)s, %(key)s, %(corpus_hash)s, %(index_hash)s, %(strategy_hash)s, %(questions_hash)s, %(depth)s, %(strategy)s,
    %(parameters)s, %(index_name)s, %(index_settings)s, %(questions)s)
ON CONFLICT (key) DO UPDATE SET index_name = excluded.index_name RETURNING r.*

-- run_get: one run
SELECT * FROM eval_runs WHERE id = %(id)s

-- run_status: running, done or failed
UPDATE eval_runs SET status = %(status)s, error = %(error)s,
    finished_at = CASE WHEN %(status)s = 'done' THEN coalesce(finished_at, now()) END WHERE id = %(id)s

-- run_complete: done, once all its questions are answered
UPDATE eval_runs r SET status = 'done', error = NULL, finished_at = coalesce(finished_at, now())
WHERE id = %(id)s AND (SELECT count(*) FROM eval_answers a WHERE a.run_id = r.id) >= r.questions

-- run_delete: delete a run with its answers, and remove it from experiments
DELETE FROM eval_runs WHERE id = %(id)s

-- run_delete_unused: runs that were not finished and that no experiment shows
DELETE FROM eval_runs r WHERE r.id = ANY(%(ids)s) AND r.status <> 'done'
  AND NOT EXISTS (SELECT 1 FROM experiment_runs x WHERE x.run_id = r.id)

-- answer_insert: a run's answer to one question; two processes may compute it at the same time
INSERT INTO eval_answers (run_id, question_id, documents, passages, latency_ms, degraded, within, usage, reply)
VALUES (%(run_id)s, %(question_id)s, %(documents)s, %(passages)s, %(latency_ms)s, %(degraded)s, %(within)s, %(usage)s, %(reply)s) ON CONFLICT DO NOTHING

-- answer_questions: the questions that a run has answered
SELECT question_id FROM eval_answers WHERE run_id = %(run_id)s

-- answer_list: a run's answers so far
SELECT question_id, documents, passages, latency_ms, degraded, within, usage, reply FROM eval_answers WHERE run_id = %(run_id)s ORDER BY question_id

-- experiment_insert: a new experiment
INSERT INTO experiments (id, title, dataset_id, dataset_version, dataset_hash, corpus_hash, plan)
VALUES (%(id)s, %(title)s, %(dataset_id)s, %(dataset_version)s, %(dataset_hash)s, %(corpus_hash)s, %(plan)s)

-- experiment_list: experiments, newest first; NULL is ignored
SELECT e.*, e.dataset_id AS test_set_id, e.dataset_version AS test_set_version, e.dataset_hash AS test_set_hash,
    d.title AS test_set_title, d.source_id AS test_set_source_id, d.scope AS test_set_scope, (SELECT count(*) FROM experiment_runs x WHERE x.experiment_id = e.id) AS runs
FROM experiments e JOIN datasets d ON d.id = e.dataset_id
WHERE (%(id)s::text IS NULL OR e.id = %(id)s) AND (%(dataset_id)s::text IS NULL OR e.dataset_id = %(dataset_id)s)
ORDER BY e.created_at DESC, e.id

-- experiment_status: running, done, stopped or failed; one that runs again has no winner yet
UPDATE experiments SET status = %(status)s, message = %(message)s, updated_at = now(),
    winner = CASE WHEN %(status)s = 'done' THEN winner END
WHERE id = %(id)s

-- experiment_plan: change the plan of an experiment; its winner must be recomputed
UPDATE experiments SET plan = plan || %(changes)s, winner = NULL, updated_at = now() WHERE id = %(id)s

-- experiment_winners: the stored winners
SELECT id, winner FROM experiments WHERE winner IS NOT NULL

-- experiment_keep_winner: the winner of a finished experiment
UPDATE experiments SET winner = %(winner)s WHERE id = %(id)s AND status = 'done'

-- experiment_annotate: NULL leaves a value unchanged
UPDATE experiments SET note = coalesce(%(note)s, note), tags = coalesce(%(tags)s::text[], tags) WHERE id = %(id)s

-- experiment_annotate_run: the same of a run; NULL leaves a value unchanged
UPDATE experiment_runs SET note = coalesce(%(note)s, note), tags = coalesce(%(tags)s::text[], tags)
WHERE experiment_id = %(id)s AND label = %(run)s

-- experiment_view: the saved view of an experiment
UPDATE experiments SET view = %(view)s WHERE id = %(id)s

-- experiment_bars: the outcome of the bars of an experiment
UPDATE experiments SET bars = %(bars)s WHERE id = %(id)s

-- experiment_delete: the runs stay for other experiments
DELETE FROM experiments WHERE id = %(id)s

-- experiment_add_run: add a run at its position in the matrix; earlier notes on the same run are kept
INSERT INTO experiment_runs (experiment_id, position, run_id, label, extra)
VALUES (%(experiment_id)s, %(position)s, %(run_id)s, %(label)s, %(extra)s)
ON CONFLICT (experiment_id, position) DO UPDATE SET run_id = excluded.run_id, label = excluded.label,
    extra = CASE WHEN experiment_runs.run_id = excluded.run_id THEN experiment_runs.extra ELSE jsonb_build_object() END || excluded.extra

-- experiment_usage: what each stored ranking and answer of an experiment took, without the texts
SELECT r.strategy, r.parameters, r.index_settings ->> 'embedding_model' AS embedding_model, a.question_id, a.latency_ms,
    a.usage - 'reply' AS usage  -- earlier exports have it there
FROM experiment_runs x JOIN eval_runs r ON r.id = x.run_id JOIN eval_answers a ON a.run_id = r.id
WHERE x.experiment_id = %(experiment_id)s

-- run_times: the mean time of what the runs of some strategies have stored for a question
SELECT r.strategy, r.index_settings ->> 'embedding_model' AS embedding_model, k.kind,
    coalesce(r.parameters ->> 'llm', '') AS llm, coalesce(r.parameters ->> 'reranker', '') AS reranker,
    avg(coalesce(nullif((a.usage ->> 'elapsed_ms')::float, 0), a.latency_ms)) AS mean
FROM eval_runs r JOIN eval_answers a ON a.run_id = r.id CROSS JOIN LATERAL (
    SELECT CASE WHEN a.reply IS NULL THEN 'search' WHEN a.reply ? 'scores' THEN 'judge' ELSE 'answer' END AS kind) k
WHERE r.strategy = ANY(%(strategies)s) GROUP BY 1, 2, 3, 4, 5

-- experiment_runs: an experiment's runs in the order of the matrix
SELECT x.position, x.label, x.extra, x.note, x.tags, r.* FROM experiment_runs x JOIN eval_runs r ON r.id = x.run_id
WHERE x.experiment_id = %(experiment_id)s ORDER BY x.position
