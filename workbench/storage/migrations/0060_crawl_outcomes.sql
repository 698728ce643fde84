-- A page that may not be fetched by this workbench, and one whose removal waits for acceptance; addresses never fetched.

ALTER TABLE crawl_pages DROP CONSTRAINT crawl_pages_outcome_check, ADD CONSTRAINT crawl_pages_outcome_check CHECK (outcome IN
    ('added', 'changed', 'unchanged', 'duplicate', 'redirected', 'removed', 'held', 'failed', 'forbidden', 'not_allowed', 'left_out'));
ALTER TABLE crawl_jobs ADD COLUMN skipped jsonb NOT NULL DEFAULT '{}';  -- {reason: addresses met that have no row in crawl_pages}
