-- Long work: jobs that anyone can start, watch, stop and resume; crawls with the memory of every page they met.
-- (The queue's own tables are procrastinate's; they are applied beside these, see queue_schema.py.)

CREATE TABLE jobs (
    id text PRIMARY KEY,
    kind text NOT NULL CHECK (kind IN ('crawl', 'ingest', 'index_build')),
    title text NOT NULL,
    parameters jsonb NOT NULL DEFAULT '{}',
    source_id text REFERENCES sources ON DELETE CASCADE,
    status text NOT NULL DEFAULT 'queued'
        CHECK (status IN ('queued', 'running', 'completed', 'completed_with_errors', 'cancelled', 'failed')),
    done bigint NOT NULL DEFAULT 0,
    total bigint NOT NULL DEFAULT 0,  -- 0: not known yet
    message text NOT NULL DEFAULT '',
    error text,
    result jsonb NOT NULL DEFAULT '{}',
    cancel_requested boolean NOT NULL DEFAULT false,
    worker text,
    attempts integer NOT NULL DEFAULT 0,  -- taken up this often since it last got on
    created_at timestamptz NOT NULL DEFAULT now(),
    started_at timestamptz,
    completed_at timestamptz,
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX jobs_by_time ON jobs (created_at DESC);
CREATE INDEX jobs_by_source ON jobs (source_id, created_at DESC);

CREATE TABLE job_log (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id text NOT NULL REFERENCES jobs ON DELETE CASCADE,
    at timestamptz NOT NULL DEFAULT now(),
    level text NOT NULL DEFAULT 'info' CHECK (level IN ('info', 'warning', 'error')),
    message text NOT NULL
);
CREATE INDEX job_log_by_job ON job_log (job_id, id);

CREATE TABLE job_files (  -- uploads on their way to a worker, which may run on another machine
    job_id text NOT NULL REFERENCES jobs ON DELETE CASCADE,
    position integer NOT NULL,
    name text NOT NULL,
    bytes bytea NOT NULL,
    PRIMARY KEY (job_id, position)
);
ALTER TABLE job_files ALTER COLUMN bytes SET STORAGE EXTERNAL;

CREATE TABLE crawl_jobs (
    job_id text PRIMARY KEY REFERENCES jobs ON DELETE CASCADE,
    source_id text NOT NULL REFERENCES sources ON DELETE CASCADE,
    url text NOT NULL,
    options jsonb NOT NULL,
    seeded boolean NOT NULL DEFAULT false,
    seeds jsonb NOT NULL DEFAULT '[]',  -- addresses from sitemaps, llms.txt: [[url, via, lastmod], ...]
    scope jsonb,  -- host and path the crawl keeps to, once the start page said where it lives
    furniture bigint[]  -- hashes of the lines that repeat on most pages; NULL until enough pages were seen
);
CREATE INDEX crawl_jobs_by_source ON crawl_jobs (source_id);

CREATE TABLE crawl_pages (
    job_id text NOT NULL REFERENCES crawl_jobs ON DELETE CASCADE,
    position integer NOT NULL,  -- the order of a breadth-first walk by one careful reader, however many fetch
    url text NOT NULL,
    depth integer NOT NULL,
    parent text,
    via text NOT NULL DEFAULT 'link' CHECK (via IN ('start', 'link', 'sitemap', 'llms', 'memory')),
    lastmod text,  -- as the sitemap says
    state text NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'fetched', 'done')),
    outcome text CHECK (outcome IN ('added', 'changed', 'unchanged', 'duplicate', 'redirected', 'removed', 'failed', 'forbidden', 'left_out')),
    reason text,
    expanded boolean NOT NULL DEFAULT false,  -- its links have been taken into the frontier
    attempts integer NOT NULL DEFAULT 0,
    status_code integer,
    final_url text,
    document_key text,
    document_id text,
    passages integer NOT NULL DEFAULT 0,
    title text,
    media_type text,
    etag text,
    last_modified text,
    content_hash text,
    links jsonb NOT NULL DEFAULT '[]',
    blocks bigint[] NOT NULL DEFAULT '{}',  -- hashes of the main text's paragraphs, to recognise what is there twice
    metadata jsonb NOT NULL DEFAULT '{}',
    body bytea,  -- waits here between fetching and storing, so that nothing is fetched twice
    size integer NOT NULL DEFAULT 0,
    rendered boolean NOT NULL DEFAULT false,
    seconds real NOT NULL DEFAULT 0,
    fetched_at timestamptz,
    PRIMARY KEY (job_id, position),
    UNIQUE (job_id, url)
);
ALTER TABLE crawl_pages ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE INDEX crawl_pages_by_state ON crawl_pages (job_id, state, position);
