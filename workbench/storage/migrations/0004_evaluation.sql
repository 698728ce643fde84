-- Evaluation: test sets with their whole history, what people judged, and what strategies answered.

CREATE TABLE datasets (
    id text PRIMARY KEY,
    title text NOT NULL UNIQUE,
    description text NOT NULL DEFAULT '',
    source_id text REFERENCES sources ON DELETE CASCADE,  -- its own corpus; NULL: over the person's own sources
    corpus_hash text NOT NULL DEFAULT '',
    version integer NOT NULL DEFAULT 1,  -- counts edits; every row below says in which versions it holds
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE dataset_questions (  -- holds from version "since" until before version "until"
    dataset_id text NOT NULL REFERENCES datasets ON DELETE CASCADE,
    question_id text NOT NULL,
    since integer NOT NULL,
    until integer CHECK (until > since),
    text text NOT NULL,
    reference_answer text NOT NULL DEFAULT '',
    origin text NOT NULL DEFAULT 'person',
    metadata jsonb NOT NULL DEFAULT '{}',
    position bigint GENERATED ALWAYS AS IDENTITY,
    PRIMARY KEY (dataset_id, question_id, since)
);
CREATE UNIQUE INDEX dataset_questions_now ON dataset_questions (dataset_id, question_id) WHERE until IS NULL;

CREATE TABLE judgments (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    dataset_id text NOT NULL REFERENCES datasets ON DELETE CASCADE,
    question_id text NOT NULL,
    since integer NOT NULL,
    until integer CHECK (until > since),
    document text NOT NULL,  -- the document's key in the test set's own corpus, else its id; outlives the document
    grade smallint NOT NULL CHECK (grade BETWEEN 0 AND 3),
    start_at integer,  -- a span of the document; both NULL: the document as a whole
    end_at integer,
    quote text NOT NULL DEFAULT '',
    judge text NOT NULL DEFAULT 'person' CHECK (judge IN ('person', 'import', 'rule', 'llm')),
    created_at timestamptz NOT NULL DEFAULT now(),
    CHECK ((start_at IS NULL) = (end_at IS NULL)),
    CHECK (start_at >= 0 AND end_at > start_at)
);
CREATE INDEX judgments_by_dataset ON judgments (dataset_id, question_id);
CREATE UNIQUE INDEX judgments_now ON judgments (dataset_id, question_id, document, (coalesce(start_at, -1)), (coalesce(end_at, -1)), (judge = 'llm'))
    WHERE until IS NULL;

CREATE TABLE eval_runs (  -- one strategy with its parameters over one index; kept as long as nothing it depends on changes
    id text PRIMARY KEY,
    key text NOT NULL UNIQUE,  -- hash of the five below, and of how deep the rankings go
    corpus_hash text NOT NULL,
    index_hash text NOT NULL,
    strategy_hash text NOT NULL,  -- its name, its parameters and the code that ranks
    questions_hash text NOT NULL,  -- what is asked; judgments are not part of it, so that judging more costs no run
    depth integer NOT NULL,
    strategy text NOT NULL,
    parameters jsonb NOT NULL DEFAULT '{}',
    index_name text NOT NULL,
    index_settings jsonb NOT NULL DEFAULT '{}',
    questions integer NOT NULL,
    status text NOT NULL DEFAULT 'running' CHECK (status IN ('running', 'done', 'failed')),
    error text,
    created_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz
);

CREATE TABLE eval_answers (  -- what a run found for one question; written as it goes, so that a killed run goes on
    run_id text NOT NULL REFERENCES eval_runs ON DELETE CASCADE,
    question_id text NOT NULL,
    documents text[] NOT NULL,
    passages jsonb NOT NULL,
    latency_ms real NOT NULL,
    degraded text[] NOT NULL DEFAULT '{}',
    PRIMARY KEY (run_id, question_id)
);

CREATE TABLE experiments (
    id text PRIMARY KEY,
    title text NOT NULL,
    dataset_id text NOT NULL REFERENCES datasets ON DELETE CASCADE,
    dataset_version integer NOT NULL,
    dataset_hash text NOT NULL,  -- questions and judgments
    corpus_hash text NOT NULL,
    plan jsonb NOT NULL,  -- the matrix: indexes, strategies with parameters, metrics, questions
    status text NOT NULL DEFAULT 'running' CHECK (status IN ('running', 'done', 'stopped', 'failed')),
    message text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE experiment_runs (
    experiment_id text NOT NULL REFERENCES experiments ON DELETE CASCADE,
    position integer NOT NULL,
    run_id text NOT NULL REFERENCES eval_runs ON DELETE CASCADE,
    label text NOT NULL,
    extra jsonb NOT NULL DEFAULT '{}',  -- what was measured besides: ragas, index size
    PRIMARY KEY (experiment_id, position)
);
CREATE INDEX experiment_runs_by_run ON experiment_runs (run_id);
