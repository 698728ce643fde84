-- A crawl that brought nothing in keeps its record when the source goes that was made for it.

ALTER TABLE crawl_jobs ALTER COLUMN source_id DROP NOT NULL;
