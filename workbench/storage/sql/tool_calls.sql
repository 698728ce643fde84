-- tool_call_insert: what an agent asked and got
INSERT INTO tool_calls (called_at, tool, query, argument_sizes, scope, duration_ms, answer_chars, results, error)
VALUES (%(called_at)s, %(tool)s, %(query)s, %(argument_sizes)s, %(scope)s, %(duration_ms)s, %(answer_chars)s, %(results)s, %(error)s)

-- tool_call_list: the last calls, newest first; NULL parameters do not narrow
SELECT * FROM tool_calls
WHERE (%(tool)s::text IS NULL OR tool = %(tool)s) AND (NOT %(zero_only)s OR zero_result) AND (NOT %(queries_only)s OR query IS NOT NULL)
ORDER BY id DESC LIMIT %(limit)s OFFSET %(offset)s

-- tool_call_count: how many calls are kept under the same conditions
SELECT count(*) AS n FROM tool_calls
WHERE (%(tool)s::text IS NULL OR tool = %(tool)s) AND (NOT %(zero_only)s OR zero_result) AND (NOT %(queries_only)s OR query IS NOT NULL)

-- tool_call_prune: keep the newest
DELETE FROM tool_calls WHERE id <= (SELECT max(id) FROM tool_calls) - %(keep)s

-- tool_call_clear: forget every call
DELETE FROM tool_calls
