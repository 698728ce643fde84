-- Of deleted passages either the blocks of their terms are looked up, or all blocks are gone through, whichever are fewer. It was
-- decided by the number of passages; but a bucket of two hundred has eight thousand blocks, for a term's last one is seldom full.
CREATE OR REPLACE FUNCTION workbench_dropping_statement(index_name text, passages text, gone bytea[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    looked_up bigint := cardinality(gone) * 100;  -- terms of so many passages
    many boolean;
BEGIN
    EXECUTE format('SELECT count(*) < %s FROM (SELECT FROM %I LIMIT %1$s) AS blocks', looked_up, 'postings_' || index_name) INTO many;
    RETURN format($sql$
        WITH gone AS MATERIALIZED (
            SELECT o.id::integer AS id, coalesce(o.metadata_ ->> 'language', 'english') AS language,
                workbench_passage_terms(o.metadata_, o.text) AS terms
            FROM %6$s AS o),
        cut AS MATERIALIZED (
            SELECT * FROM (
                SELECT b.term_id, b.first, octet_length(b.entries) / 8 AS held, (
                    SELECT string_agg(substring(b.entries FROM place * 8 + 1 FOR 8), ''::bytea)
                    FROM generate_series(0, octet_length(b.entries) / 8 - 1) AS place
                    WHERE NOT substring(b.entries FROM place * 8 + 1 FOR 4) = ANY (%5$L::bytea[])) AS kept
                FROM %4$s AS b OFFSET 0) AS every
            WHERE coalesce(octet_length(kept) / 8, 0) < held),
        changed AS (
            UPDATE %3$I p SET entries = c.kept FROM cut c WHERE p.term_id = c.term_id AND p.first = c.first AND c.kept IS NOT NULL),
        emptied AS (
            DELETE FROM %3$I p USING cut c WHERE p.term_id = c.term_id AND p.first = c.first AND c.kept IS NULL),
        words AS (
            UPDATE %2$I l SET df = l.df - c.taken FROM (
                SELECT term_id, sum(held - coalesce(octet_length(kept) / 8, 0)) AS taken FROM cut GROUP BY term_id) AS c
            WHERE l.id = c.term_id)
        UPDATE index_statistics s SET passages = s.passages - g.passages, terms = s.terms - g.terms
        FROM (SELECT language, count(*) AS passages, sum(workbench_length(terms)) AS terms FROM gone GROUP BY language) g
        WHERE s.index_name = %1$L AND s.language = g.language
    $sql$, index_name, 'lexicon_' || index_name, 'postings_' || index_name,
        CASE WHEN many THEN format('%I', 'postings_' || index_name) ELSE format($sql$(
            SELECT p.term_id, p.first, p.entries FROM (
                SELECT DISTINCT l.id AS term_id, b.first
                FROM gone g, unnest(g.terms) u JOIN %1$I l ON l.term = u.lexeme, LATERAL (
                    SELECT p.first FROM %2$I p WHERE p.term_id = l.id AND p.first <= g.id ORDER BY p.first DESC LIMIT 1) AS b) AS t,
            LATERAL (SELECT p.* FROM %2$I p WHERE p.term_id = t.term_id AND p.first = t.first LIMIT 1) AS p)
        $sql$, 'lexicon_' || index_name, 'postings_' || index_name) END, gone, passages);
END $$;
