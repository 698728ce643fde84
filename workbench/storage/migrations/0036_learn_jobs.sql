-- Rankers are trained in the queue, too.

ALTER TABLE jobs DROP CONSTRAINT jobs_kind_check;
ALTER TABLE jobs ADD CONSTRAINT jobs_kind_check
    CHECK (kind IN ('crawl', 'ingest', 'index_build', 'experiment', 'optimise', 'test_set', 'learn'));
