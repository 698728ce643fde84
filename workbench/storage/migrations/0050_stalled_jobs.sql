-- When a job's numbers last changed, what share of its work is done, and how much of a job's work a part is.

ALTER TABLE jobs
    ADD COLUMN moved_at timestamptz NOT NULL DEFAULT now(),  -- its numbers or its message changed, or a slow step had a heartbeat
    ADD COLUMN share real;  -- of its work, 0..1; null before its worker has measured any
ALTER TABLE job_parts ADD COLUMN weight bigint NOT NULL DEFAULT 1;  -- bytes of text, or items
