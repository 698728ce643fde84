-- promotion_lock: lock, so that one promotion at a time gets the next version
SELECT pg_advisory_xact_lock(hashtext('workbench promotions'))

-- promotion_insert: a new version for a scope
INSERT INTO promotions (project_id, folder_id, source_id, version, strategy, parameters, index_name, rival, note)
VALUES (%(project_id)s, %(folder_id)s, %(source_id)s,
    (SELECT coalesce(max(version), 0) + 1 FROM promotions WHERE scope_key = %(scope_key)s),
    %(strategy)s, %(parameters)s, %(index)s, %(rival)s, %(note)s)

-- promotion_list: promotions, the newest of each scope first; NULL keys means every scope
SELECT p.*, p.undone_at IS NULL AND p.version = (
        SELECT max(c.version) FROM promotions c WHERE c.scope_key = p.scope_key AND c.undone_at IS NULL) AS serves,
    coalesce(j.title, f.name, s.title, '') AS scope_title, k.title AS folder_project
FROM promotions p LEFT JOIN projects j ON j.id = p.project_id LEFT JOIN folders f ON f.id = p.folder_id
    LEFT JOIN projects k ON k.id = f.project_id LEFT JOIN sources s ON s.id = p.source_id
WHERE (%(keys)s::text[] IS NULL OR p.scope_key = ANY(%(keys)s)) ORDER BY p.scope_key, p.version DESC

-- promotion_serving: the promotion that applies to a scope; its keys are ordered from the most specific
SELECT p.* FROM unnest(%(keys)s::text[]) WITH ORDINALITY AS k (scope_key, place)
    JOIN promotions p ON p.scope_key = k.scope_key AND p.undone_at IS NULL
ORDER BY k.place, p.version DESC LIMIT 1

-- promotion_indexes: the finished indexes that are promoted in any scope
SELECT i.name FROM indexes i WHERE i.status = 'ready' AND EXISTS (
    SELECT FROM promotions p WHERE p.index_name = i.name AND p.undone_at IS NULL AND p.version = (
        SELECT max(c.version) FROM promotions c WHERE c.scope_key = p.scope_key AND c.undone_at IS NULL))
ORDER BY i.name

-- promotion_undo: withdraw the scope's newest promotion
UPDATE promotions SET undone_at = now() WHERE id = (SELECT id FROM promotions
    WHERE scope_key = %(scope_key)s AND undone_at IS NULL ORDER BY version DESC LIMIT 1)
RETURNING id

-- ranker_insert: a new ranker; no row if the name is taken
INSERT INTO rankers (name, weights, trained_on, version, index_name, questions, figures, note)
VALUES (%(name)s, %(weights)s, %(trained_on)s, %(version)s, %(index)s, %(questions)s, %(figures)s, %(note)s)
ON CONFLICT DO NOTHING RETURNING name

-- ranker_list: rankers by name; NULL is ignored
SELECT name, weights, trained_on, version, index_name AS index, questions, figures, note, created_at FROM rankers
WHERE %(name)s::text IS NULL OR name = %(name)s ORDER BY name

-- ranker_delete: delete a ranker that no promotion uses
DELETE FROM rankers WHERE name = %(name)s RETURNING name

-- ranker_serving: the scopes in which a ranker is promoted
SELECT p.scope_key FROM promotions p WHERE p.undone_at IS NULL AND p.parameters ->> 'ranker' = %(name)s
    AND p.version = (SELECT max(c.version) FROM promotions c WHERE c.scope_key = p.scope_key AND c.undone_at IS NULL)
ORDER BY p.scope_key

-- ranker_withdraw: withdraw earlier promotions that an undo would restore without their ranker
UPDATE promotions SET undone_at = now() WHERE undone_at IS NULL AND parameters ->> 'ranker' = %(name)s

-- ranker_forget_runs: delete runs of a ranker, since another one may get its name
UPDATE eval_runs SET key = key || ' ' || id WHERE parameters ->> 'ranker' = %(name)s AND position(' ' in key) = 0

-- proposal_insert: a proposal without a decision
INSERT INTO proposals (project_id, source_id, strategy, parameters, index_name, rival, reason, proposed_by)
VALUES (%(project_id)s, %(source_id)s, %(strategy)s, %(parameters)s, %(index)s, %(rival)s, %(reason)s, %(proposed_by)s)
RETURNING id

-- proposal_list: the open proposals, oldest first, with those that were decided if they are wanted, or the one with an id
SELECT p.id, p.strategy, p.parameters, p.index_name AS index, p.rival, p.reason, p.proposed_by, p.proposed_at, p.project_id, p.source_id,
    coalesce(j.title, s.title, '') AS scope_title, p.decided_at, p.accepted
FROM proposals p LEFT JOIN projects j ON j.id = p.project_id LEFT JOIN sources s ON s.id = p.source_id
WHERE p.id = %(id)s OR (%(id)s::bigint IS NULL AND (p.decided_at IS NULL OR %(decided)s)) ORDER BY p.id

-- proposal_decide: accept or reject an open proposal; its reason then starts with a note
UPDATE proposals SET decided_at = now(), accepted = %(accepted)s, reason = %(note)s || reason WHERE id = %(id)s AND decided_at IS NULL RETURNING id
