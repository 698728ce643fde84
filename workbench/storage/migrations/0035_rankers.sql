-- Rankers: weights of the strategy "learned" that were trained here, or brought from elsewhere. Test set and index are
-- kept by their names, as the weights outlive them.

CREATE TABLE rankers (
    name text PRIMARY KEY,
    weights jsonb NOT NULL,
    trained_on text NOT NULL DEFAULT '',
    version integer NOT NULL DEFAULT 0,
    index_name text NOT NULL DEFAULT '',
    questions integer NOT NULL DEFAULT 0,
    figures jsonb NOT NULL DEFAULT '{}',
    note text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT now()
);
