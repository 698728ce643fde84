-- Who cites a document is looked up by its addresses. Without this the newest links wait in an unsorted list that every
-- lookup reads from end to end: 230 ms against 26 ms for 600 addresses after 10,000 documents came in.
ALTER INDEX citations_by_key SET (fastupdate = off);
ALTER INDEX document_mentions_by_key SET (fastupdate = off);
SELECT gin_clean_pending_list('citations_by_key'), gin_clean_pending_list('document_mentions_by_key');
