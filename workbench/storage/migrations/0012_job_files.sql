-- What became of each file of an ingest, so that every page and process can show it, and how long a job will take.

ALTER TABLE job_files ALTER COLUMN bytes DROP NOT NULL;  -- uploads only, and only until they have arrived
ALTER TABLE job_files
    ADD COLUMN size bigint NOT NULL DEFAULT 0,
    ADD COLUMN state text NOT NULL DEFAULT 'waiting'
        CHECK (state IN ('waiting', 'busy', 'added', 'changed', 'unchanged', 'failed')),
    ADD COLUMN passages integer NOT NULL DEFAULT 0,
    ADD COLUMN error text,
    ADD COLUMN settled_at timestamptz;
UPDATE job_files SET size = octet_length(bytes);

ALTER TABLE jobs
    ADD COLUMN part real NOT NULL DEFAULT 0,  -- how far what is under way now is, 0..1
    ADD COLUMN taken_at timestamptz,  -- when the present worker took it: the pace is judged from there
    ADD COLUMN put_away boolean NOT NULL DEFAULT false;  -- seen by a person, and out of the way
UPDATE jobs SET put_away = true WHERE completed_at IS NOT NULL;
