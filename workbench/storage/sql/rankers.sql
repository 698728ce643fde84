-- ranker_insert: a new ranker; no row if the name is taken
INSERT INTO rankers (name, weights, trained_on, version, index_name, questions, figures, note)
VALUES (%(name)s, %(weights)s, %(trained_on)s, %(version)s, %(index)s, %(questions)s, %(figures)s, %(note)s)
ON CONFLICT DO NOTHING RETURNING name

-- ranker_list: rankers by name; NULL is ignored
SELECT * FROM rankers WHERE %(name)s::text IS NULL OR name = %(name)s ORDER BY name

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
