-- The parts of long work, which any number of workers take one by one: each is done whole, once, or not at all.

CREATE TABLE job_parts (
    job_id text NOT NULL REFERENCES jobs ON DELETE CASCADE,
    position integer NOT NULL,  -- parts are taken in this order
    content jsonb NOT NULL,  -- documents by id, files by position, cells by number
    items integer NOT NULL,  -- how many of the job's unit it holds
    state text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'busy', 'done')),
    holder text,  -- an advisory lock is named after it, and ends with the process that has the part in hand
    times integer NOT NULL DEFAULT 0,  -- taken so often
    result jsonb NOT NULL DEFAULT '{}',
    taken_at timestamptz,
    done_at timestamptz,
    PRIMARY KEY (job_id, position)
);
CREATE INDEX job_parts_to_do ON job_parts (job_id, position) WHERE state <> 'done';
