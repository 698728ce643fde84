-- What agents asked: one row a tool call, so that real questions can become test questions.
CREATE TABLE tool_calls (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    called_at timestamptz NOT NULL DEFAULT now(),
    tool text NOT NULL,
    query text,  -- the question of a search, as it was asked; other arguments by size only
    argument_sizes jsonb NOT NULL DEFAULT '{}',
    scope jsonb NOT NULL DEFAULT '{}',
    duration_ms float8 NOT NULL,
    answer_chars integer NOT NULL,
    results integer,  -- NULL where a tool does not count
    zero_result boolean GENERATED ALWAYS AS (results IS NOT NULL AND results = 0) STORED,
    error text
);
CREATE INDEX tool_calls_by_time ON tool_calls (called_at DESC);
