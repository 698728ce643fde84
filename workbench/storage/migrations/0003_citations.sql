-- Citations: what documents point at. A link is stored as written, with the addresses it may mean; where it leads is
-- found when it is read. So a target that arrives later is found, one that is deleted is not, and two writers at
-- once cannot miss each other.
CREATE TABLE document_addresses (  -- the names a document can be cited by: its path, page, URL, aliases, title
    document_id text NOT NULL REFERENCES documents ON DELETE CASCADE,
    source_id text NOT NULL,
    key text NOT NULL,  -- kind:address, such as page:guides/setup or url:example.com/setup
    depth smallint NOT NULL  -- folders above the document: of two with the same name the one nearer the root is meant
);
CREATE INDEX document_addresses_by_key ON document_addresses (key);
CREATE INDEX document_addresses_by_document ON document_addresses (document_id);

CREATE TABLE citations (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    document_id text NOT NULL REFERENCES documents ON DELETE CASCADE,
    source_id text NOT NULL,
    position integer NOT NULL,  -- where in the document's text the link begins
    kind text NOT NULL,
    target text NOT NULL,  -- as written
    url text,  -- absolute, where the link is or becomes one
    label text NOT NULL,
    context text NOT NULL,
    confidence real NOT NULL,
    keys text[] NOT NULL  -- the addresses it may mean, the likeliest first
);
CREATE INDEX citations_by_document ON citations (document_id);
CREATE INDEX citations_by_source ON citations (source_id);
CREATE INDEX citations_by_key ON citations USING gin (keys);

CREATE TABLE document_mentions (  -- one row a document whose links were read; keys are titles it may mention in words
    document_id text PRIMARY KEY REFERENCES documents ON DELETE CASCADE,
    source_id text NOT NULL,
    reading smallint NOT NULL,  -- version of the reading of links; an older one is read again
    keys text[] NOT NULL
);
CREATE INDEX document_mentions_by_key ON document_mentions USING gin (keys);

-- Each link with the document it leads to. A path or a name means a document of the same source; a URL also one of
-- another source, as long as it is global or of the same project, and no evaluation corpus.
CREATE VIEW citation_links AS
SELECT c.*, found.document_id AS to_document
FROM citations c
    JOIN sources s ON s.id = c.source_id
    LEFT JOIN LATERAL (
        SELECT a.document_id
        FROM unnest(c.keys) WITH ORDINALITY AS k (key, rank)
            JOIN document_addresses a ON a.key = k.key
            JOIN sources t ON t.id = a.source_id
        WHERE a.source_id = c.source_id
           OR (k.key LIKE 'url:%' AND s.source_type <> 'dataset' AND t.source_type <> 'dataset'
               AND (t.project_id IS NULL OR t.project_id = s.project_id))
        ORDER BY k.rank, (a.source_id = c.source_id) DESC, a.depth, a.document_id
        LIMIT 1) found ON true;

-- Each title of another document of the same source that a document mentions in words.
CREATE VIEW citation_mentions AS
SELECT m.document_id, m.source_id, k.key, a.document_id AS to_document
FROM document_mentions m, unnest(m.keys) AS k (key)
    JOIN document_addresses a ON a.key = k.key
WHERE a.source_id = m.source_id AND a.document_id <> m.document_id;
