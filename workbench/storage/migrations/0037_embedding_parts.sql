-- Texts of one large document that several workers embed, and their vectors until the document is written.
-- They are work under way: not in the log, not on a replica, not in a backup. What a crash of the server takes is embedded again.

CREATE UNLOGGED TABLE embedding_parts (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,  -- parts are taken in this order
    job_id text NOT NULL REFERENCES jobs ON DELETE CASCADE,
    model text NOT NULL,
    owner text NOT NULL,  -- who writes the document; an advisory lock is named after it
    passages integer NOT NULL,
    hashes bytea[] NOT NULL,  -- of the texts, in their order
    texts bytea,  -- a list as JSON; none once they are embedded
    state text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'busy', 'done')),
    holder text,  -- who embeds it; an advisory lock is named after it
    times integer NOT NULL DEFAULT 0,  -- taken so often
    vectors bytea,  -- of 32 bits a number, one text's after the other's
    token_bits bytea[],
    made_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX embedding_parts_of_job ON embedding_parts (job_id, id);
