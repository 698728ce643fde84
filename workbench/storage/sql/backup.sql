-- backup_tables: every table of ours with the columns that can be written, without passwords; the queue's, the migrations' and
-- running work are excluded
SELECT c.relname AS name, array_agg(a.attname::text ORDER BY a.attnum) FILTER (WHERE a.attgenerated = '' AND a.attname <> 'attachment_url') AS columns,
    array_agg(a.attname::text ORDER BY a.attnum) FILTER (WHERE a.attidentity <> '') AS identities
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relkind = 'r' AND c.relpersistence = 'p' AND c.relnamespace = current_schema()::regnamespace
  AND c.relname NOT IN ('schema_migrations', 'queue_migrations') AND c.relname NOT LIKE 'procrastinate%%'
  AND c.relname NOT LIKE 'full!_text!_%%' ESCAPE '!'
GROUP BY c.relname ORDER BY c.relname

-- backup_references: pairs of tables of which one depends on the rows of the other
SELECT DISTINCT child.relname AS child, parent.relname AS parent
FROM pg_constraint k JOIN pg_class child ON child.oid = k.conrelid JOIN pg_class parent ON parent.oid = k.confrelid
WHERE k.contype = 'f' AND child.relnamespace = current_schema()::regnamespace AND k.conrelid <> k.confrelid

-- backup_indexes: the indexes whose tables belong to the backup
SELECT name, dimensions FROM indexes ORDER BY name

-- backup_migrations: the state of the tables a backup was written from
SELECT name FROM schema_migrations ORDER BY number

-- backup_people_have: whether the database has any data that a restore would mix with
SELECT (SELECT count(*) FROM sources) + (SELECT count(*) FROM projects) AS n

-- backup_snapshot: read one snapshot, independent of concurrent writes
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY

-- backup_alone: prevent others from writing sources or indexes until the restore is done
LOCK TABLE projects, sources, indexes IN SHARE ROW EXCLUSIVE MODE

-- backup_advance: let new numbers follow the restored ones
SELECT setval(pg_get_serial_sequence(quote_ident(%(table)s), %(column)s), greatest(%(last)s::bigint, 1), %(last)s::bigint IS NOT NULL)

-- backup_read_again: rebuild the keyword index of a backup that has another format
SELECT workbench_read_again(%(name)s)

-- backup_unfinished_jobs: unfinished jobs of a backup: running ones are queued, cancelled ones end
WITH freed AS (UPDATE jobs SET {job_released} WHERE status = 'running' RETURNING id, kind, status)
SELECT id, kind FROM freed WHERE status = 'queued' UNION ALL SELECT id, kind FROM jobs WHERE status = 'queued' ORDER BY id
