-- Promotions: which strategy serves a scope when none is named. History stays, so that the last one can be undone.
CREATE TABLE promotions (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project_id text REFERENCES projects ON DELETE CASCADE,
    folder_id text REFERENCES folders ON DELETE CASCADE,
    source_id text REFERENCES sources ON DELETE CASCADE,
    scope_key text NOT NULL GENERATED ALWAYS AS (
        CASE WHEN source_id IS NOT NULL THEN 'source:' || source_id WHEN folder_id IS NOT NULL THEN 'folder:' || folder_id
        WHEN project_id IS NOT NULL THEN 'project:' || project_id ELSE 'everywhere' END) STORED,
    version integer NOT NULL,  -- counts from 1 within a scope
    strategy text NOT NULL,
    parameters jsonb NOT NULL DEFAULT '{}',
    index_name text REFERENCES indexes ON DELETE SET NULL,  -- NULL: the default index
    note text NOT NULL DEFAULT '',
    promoted_at timestamptz NOT NULL DEFAULT now(),
    undone_at timestamptz,
    CHECK (num_nonnulls(project_id, folder_id, source_id) <= 1),
    UNIQUE (scope_key, version)
);
