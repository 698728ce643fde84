-- Deleting many passages: their postings go in one reading of the table, not by a look-up each, and the texts of the
-- deleted stay out of the join. A cascade that takes nothing does nothing. (5,000 documents of 25,000 passages: 5 s, was 100.)
CREATE OR REPLACE FUNCTION workbench_drop_postings() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    index_name text := TG_ARGV[0];
    many boolean;
BEGIN
    IF NOT EXISTS (SELECT FROM old_passages) THEN
        RETURN NULL;
    END IF;
    SELECT (SELECT count(*) FROM old_passages) * 30 > coalesce(sum(s.passages), 0)
        INTO many FROM index_statistics s WHERE s.index_name = TG_ARGV[0];
    EXECUTE format($sql$
        WITH gone AS (SELECT u.lexeme, count(*) AS df FROM old_passages o, unnest(o.text_search_tsv) u GROUP BY u.lexeme),
             locked AS (SELECT l.id, g.df FROM gone g JOIN %1$I l ON l.term = g.lexeme ORDER BY l.term FOR UPDATE OF l)
        UPDATE %1$I l SET df = l.df - locked.df FROM locked WHERE l.id = locked.id
    $sql$, 'lexicon_' || index_name);
    IF many THEN
        EXECUTE format('DELETE FROM %I p USING old_passages o WHERE p.passage_id = o.id', 'postings_' || index_name);
    ELSE
        EXECUTE format($sql$
            WITH gone AS MATERIALIZED (
                SELECT l.id AS term_id, o.id AS passage_id
                FROM old_passages o, unnest(o.text_search_tsv) u JOIN %1$I l ON l.term = u.lexeme)
            DELETE FROM %2$I p USING gone g WHERE p.term_id = g.term_id AND p.passage_id = g.passage_id
        $sql$, 'lexicon_' || index_name, 'postings_' || index_name);
    END IF;
    UPDATE index_statistics s SET passages = s.passages - g.passages, terms = s.terms - g.terms
    FROM (SELECT coalesce(o.metadata_ ->> 'language', 'english') AS language, count(*) AS passages, sum(o.length) AS terms
          FROM old_passages o GROUP BY 1) g
    WHERE s.index_name = TG_ARGV[0] AND s.language = g.language;
    RETURN NULL;
END $$;
