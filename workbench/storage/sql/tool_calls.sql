-- tool_call_insert: a call of an agent and its outcome
INSERT INTO tool_calls (called_at, tool, query, argument_sizes, scope, duration_ms, answer_chars, results, error, client, session,
    documents, promotion, teams)
VALUES (%(called_at)s, %(tool)s, %(query)s, %(argument_sizes)s, %(scope)s, %(duration_ms)s, %(answer_chars)s, %(results)s, %(error)s,
    %(client)s, %(session)s, %(documents)s, %(promotion)s, %(teams)s)

-- tool_call_list: the last calls, newest first; NULL parameters are ignored
SELECT * FROM tool_calls
WHERE (%(tool)s::text IS NULL OR tool = %(tool)s) AND (NOT %(zero_only)s OR zero_result) AND (NOT %(queries_only)s OR query IS NOT NULL)
ORDER BY id DESC LIMIT %(limit)s OFFSET %(offset)s

-- tool_call_count: the number of calls under the same conditions
SELECT count(*) AS n FROM tool_calls
WHERE (%(tool)s::text IS NULL OR tool = %(tool)s) AND (NOT %(zero_only)s OR zero_result) AND (NOT %(queries_only)s OR query IS NOT NULL)

-- tool_call_callers: the clients that called, with how often and when last
SELECT client, count(*) AS calls, max(called_at) AS last FROM tool_calls WHERE client IS NOT NULL GROUP BY client

-- tool_call_prune: keep the newest
DELETE FROM tool_calls WHERE id <= (SELECT max(id) FROM tool_calls) - %(keep)s

-- tool_call_clear: forget every call
DELETE FROM tool_calls

-- history_insert: a comparison, or its new time
INSERT INTO history (question, address) VALUES (%(question)s, %(address)s)
ON CONFLICT (md5(address)) DO UPDATE SET asked_at = now()

-- history_prune: keep the saved comparisons and the newest of the others
DELETE FROM history WHERE id IN (SELECT id FROM history WHERE NOT saved ORDER BY asked_at DESC OFFSET %(keep)s)

-- history_list: the last comparisons, newest first
SELECT * FROM history WHERE saved OR NOT %(saved_only)s ORDER BY asked_at DESC, id DESC LIMIT %(limit)s

-- history_save: mark comparisons as saved, or not
UPDATE history SET saved = %(saved)s WHERE address = ANY(%(addresses)s)

-- history_clear: forget the comparisons that are not saved
DELETE FROM history WHERE NOT saved
