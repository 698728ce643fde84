-- What shards are asked for all at once. A divided index has functions beside its tables, and each asks every shard that
-- holds some of it by a sub-select of its own (Async Foreign Scan), so that shards narrow, rank and cut by themselves.
-- `GROUP BY` is what makes postgres_fdw let them compute: an expression over a column is otherwise computed here, from
-- vectors that travel as text. It groups nothing, as `id` is unique; a shard of Postgres 17 or newer still walks its graphs
-- for it (Incremental Sort over an index's order), an older one computes every distance.
-- Whoever calls them names the index's `data_` table in the same statement, unread: that keeps movers of buckets away before a
-- function's text is looked up.
CREATE FUNCTION workbench_read_shards(place text, index_name text, shards integer[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    of_scope text := 'source_ids text[], document_ids text[], without text[]';
    scoped text := '(source_ids IS NULL OR p.source_id = ANY (source_ids)) AND (document_ids IS NULL OR p.document_id = ANY (document_ids)) '
        'AND (without IS NULL OR p.document_id <> ALL (without))';
BEGIN
    PERFORM workbench_read_shards_by(place, index_name, shards, 'nearest_', 'question halfvec, wanted bigint, ' || of_scope, 'id integer, distance float8',
        'SELECT p.id, p.embedding <=> question FROM %I.%I AS p WHERE ' || scoped
        || ' GROUP BY p.id, p.embedding <=> question ORDER BY p.embedding <=> question LIMIT wanted');
    -- every distance computed: the order is by an expression that no graph knows
    PERFORM workbench_read_shards_by(place, index_name, shards, 'exact_', 'question halfvec, wanted bigint, ' || of_scope, 'id integer, score float8',
        'SELECT p.id, 1 - (p.embedding <=> question) FROM %I.%I AS p WHERE ' || scoped
        || ' GROUP BY p.id, 1 - (p.embedding <=> question) ORDER BY 1 - (p.embedding <=> question) DESC, p.id LIMIT wanted');
    PERFORM workbench_read_shards_by(place, index_name, shards, 'cosines_', 'question halfvec, wanted integer[]', 'id integer, score float8',
        'SELECT p.id, 1 - (p.embedding <=> question) FROM %I.%I AS p WHERE p.id = ANY (wanted) GROUP BY p.id, 1 - (p.embedding <=> question)');
    PERFORM workbench_read_shards_by(place, index_name, shards, 'vectors_', 'wanted integer[]', 'id integer, embedding bytea',
        'SELECT p.id, halfvec_send(p.embedding) FROM %I.%I AS p WHERE p.id = ANY (wanted) GROUP BY p.id, halfvec_send(p.embedding)');
    PERFORM workbench_read_shards_by(place, index_name, shards, 'scoped_', of_scope, 'ids bytea',
        'SELECT string_agg(int8send(p.id), ''''::bytea) FROM %I.%I AS p WHERE ' || scoped);
END $$;

CREATE FUNCTION workbench_read_shards_by(place text, index_name text, shards integer[], kind text, takes text, gives text, one text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE OR REPLACE FUNCTION %I.%I (%s) RETURNS TABLE (%s) LANGUAGE sql STABLE AS %L', place, kind || index_name, takes, gives,
        (SELECT string_agg('(' || format(one, 'shard_' || shard, 'ranked_' || index_name) || ')', ' UNION ALL ' ORDER BY shard) FROM unnest(shards) AS shard));
END $$;

CREATE FUNCTION workbench_forget_reads(index_name text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    read regprocedure;
    ranked regclass;
BEGIN
    FOR ranked IN SELECT oid FROM pg_class WHERE relkind = 'f' AND relname = 'ranked_' || index_name LOOP
        EXECUTE format('DROP FOREIGN TABLE %s', ranked);
    END LOOP;
    FOR read IN SELECT oid FROM pg_proc WHERE pronamespace = 'public'::regnamespace
            AND proname IN ('nearest_' || index_name, 'exact_' || index_name, 'cosines_' || index_name, 'vectors_' || index_name, 'scoped_' || index_name) LOOP
        EXECUTE format('DROP FUNCTION %s', read);
    END LOOP;
END $$;

-- One shard's tables of an index, as foreign tables here. Words and postings come as many rows, of which all are wanted;
-- passages come a few at a time, since the order of a graph costs more the further it is followed.
CREATE FUNCTION workbench_attach_shard(index_name text, shard integer, remote text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    held text := (SELECT string_agg(b.bucket::text, ', ' ORDER BY b.bucket) FROM index_buckets b
        WHERE b.index_name = workbench_attach_shard.index_name AND b.shard = workbench_attach_shard.shard);
    kind text;
BEGIN
    IF held IS NULL THEN
        RETURN;
    END IF;
    FOREACH kind IN ARRAY ARRAY['data_', 'lexicon_', 'postings_'] LOOP
        EXECUTE format('CREATE FOREIGN TABLE %1$I.%2$I PARTITION OF %2$I FOR VALUES IN (%3$s) SERVER %1$I '
            'OPTIONS (schema_name ''public'', table_name %4$L, fetch_size %5$L)',
            'shard_' || shard, kind || index_name, held, kind || remote, CASE kind WHEN 'data_' THEN '100' ELSE '2000' END);
    END LOOP;
    PERFORM workbench_attach_ranked(index_name, shard, remote);
END $$;

-- The same passages once more, as the functions read them. The planner takes a foreign table for one of ten pages, fewer rows
-- than are asked for, and would then rank here what comes in the order of a graph, shard by shard. So it is told of many
-- rows in far more pages, by which no order is cheap (tried for 1 to 2,000 nearest, in scopes of sources and documents). Postgres
-- before 18 cannot be told: what is narrow is then asked shard by shard.
CREATE FUNCTION workbench_attach_ranked(index_name text, shard integer, remote text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE FOREIGN TABLE %1$I.%2$I (id integer, embedding halfvec(%3$s), document_id text, source_id text) SERVER %1$I '
        'OPTIONS (schema_name ''public'', table_name %4$L)', 'shard_' || shard, 'ranked_' || index_name,
        (SELECT i.dimensions FROM indexes i WHERE i.name = index_name), 'data_' || remote);
    IF current_setting('server_version_num')::integer >= 180000 THEN
        PERFORM pg_restore_relation_stats('schemaname', 'shard_' || shard, 'relname', 'ranked_' || index_name,
            'relpages', 2000000000::integer, 'reltuples', 1000000::real);
    END IF;
END $$;

CREATE OR REPLACE FUNCTION workbench_attach_shards(index_name text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    holders integer[] := (SELECT array_agg(DISTINCT b.shard) FROM index_buckets b WHERE b.index_name = workbench_attach_shards.index_name);
BEGIN
    PERFORM workbench_forget_left_out();
    PERFORM workbench_attach_shard(index_name, holder, index_name) FROM unnest(holders) AS holder;
    PERFORM workbench_read_shards('public', index_name, holders);
END $$;

CREATE OR REPLACE FUNCTION workbench_bucket_moved(index_name text, bucket integer, move integer, source integer, target integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    kind text;
BEGIN
    PERFORM workbench_forget_left_out();
    UPDATE index_buckets b SET shard = workbench_bucket_moved.target
    WHERE b.index_name = workbench_bucket_moved.index_name AND b.bucket = workbench_bucket_moved.bucket;
    FOREACH kind IN ARRAY ARRAY['data_', 'lexicon_', 'postings_', 'ranked_'] LOOP
        EXECUTE format('DROP FOREIGN TABLE IF EXISTS %1$I.%3$I, %2$I.%3$I', 'shard_' || source, 'shard_' || target, kind || index_name);
    END LOOP;
    PERFORM workbench_attach_shard(index_name, shard, index_name || '@' || move) FROM unnest(ARRAY[source, target]) AS shard;
    PERFORM workbench_read_shards('public', index_name,
        (SELECT array_agg(DISTINCT b.shard) FROM index_buckets b WHERE b.index_name = workbench_bucket_moved.index_name));
END $$;

CREATE OR REPLACE FUNCTION workbench_drop_index(index_name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('DROP TABLE IF EXISTS %I, %I, %I, %I',
        'full_text_' || index_name, 'data_' || index_name, 'lexicon_' || index_name, 'postings_' || index_name);
    PERFORM workbench_forget_reads(index_name);
END $$;

CREATE OR REPLACE FUNCTION workbench_leave_out(away integer[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    place text := 'without_' || array_to_string(away, '_');
    divided record;
    kind text;
BEGIN
    PERFORM pg_advisory_xact_lock(7215006);
    IF to_regnamespace(place) IS NULL THEN
        EXECUTE format('CREATE SCHEMA %I', place);
        FOR divided IN SELECT b.index_name AS name, array_agg(DISTINCT b.shard) AS rest FROM index_buckets b
                WHERE b.shard <> ALL (away) GROUP BY b.index_name LOOP
            FOREACH kind IN ARRAY ARRAY['data_', 'lexicon_', 'postings_'] LOOP
                EXECUTE format('CREATE VIEW %I.%I AS %s', place, kind || divided.name,
                    (SELECT string_agg(format('SELECT * FROM %I.%I', 'shard_' || shard, kind || divided.name), ' UNION ALL ') FROM unnest(divided.rest) AS shard));
            END LOOP;
            PERFORM workbench_read_shards(place, divided.name, divided.rest);
        END LOOP;
    END IF;
    RETURN place;
END $$;

-- What lies on shards already.
DO $$
DECLARE
    found record;
BEGIN
    PERFORM workbench_forget_left_out();
    FOR found IN SELECT b.index_name AS name, array_agg(DISTINCT b.shard) AS holders FROM index_buckets b GROUP BY b.index_name LOOP
        PERFORM workbench_attach_ranked(found.name, holder, found.name || coalesce((
            SELECT substring(named FROM '@[0-9]+$') FROM pg_foreign_table, unnest(ftoptions) AS named
            WHERE ftrelid = to_regclass(format('%I.%I', 'shard_' || holder, 'data_' || found.name)) AND starts_with(named, 'table_name=')), ''))
        FROM unnest(found.holders) AS holder;
        PERFORM workbench_read_shards('public', found.name, found.holders);
    END LOOP;
    FOR found IN SELECT c.oid::regclass AS name FROM pg_class c JOIN pg_foreign_table t ON t.ftrelid = c.oid JOIN pg_foreign_server s ON s.oid = t.ftserver
            WHERE s.srvname ~ '^shard_[0-9]+$' AND c.relname ~ '^(lexicon|postings)_' LOOP
        EXECUTE format('ALTER FOREIGN TABLE %s OPTIONS (ADD fetch_size ''2000'')', found.name);
    END LOOP;
    FOR found IN SELECT srvname AS name FROM pg_foreign_server WHERE srvname ~ '^shard_[0-9]+$' AND srvoptions::text !~ 'parallel_commit' LOOP
        EXECUTE format('ALTER SERVER %I OPTIONS (ADD parallel_commit ''true'')', found.name);
    END LOOP;
END $$;
