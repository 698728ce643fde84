-- Which client called: the name that its configuration gives, else the one that it gives itself; null over plain HTTP.

ALTER TABLE tool_calls ADD COLUMN client text;
CREATE INDEX tool_calls_by_client ON tool_calls (client, called_at) WHERE client IS NOT NULL;
