-- lexicon_version: values that change whenever words come into an index: the newest word, and the index's counts
SELECT (SELECT coalesce(max(id), 0) FROM {lexicon}) AS newest, coalesce(sum(passages), 0)::bigint AS passages,
    coalesce(sum(terms), 0)::bigint AS terms
FROM index_statistics WHERE index_name = %(index)s

-- lexicon_all: every term, also one that no passage has at present, because it may come back without a new id
SELECT coalesce(array_agg(term), '{{}}') AS terms FROM {lexicon}

-- terms_by_name: the lexicon's entries of given terms
SELECT l.term, l.id, l.df FROM {lexicon} l WHERE l.term = ANY(%(terms)s) AND l.df > 0

-- terms_of_variants: the terms of a text (many spellings of one word) that the lexicon knows
SELECT DISTINCT l.term FROM {lexicon} l WHERE l.df > 0 AND l.term = ANY(ARRAY(
    SELECT u.lexeme FROM (
        SELECT DISTINCT language FROM index_statistics WHERE index_name = %(index)s AND passages > 0) AS s,
    unnest(workbench_terms(s.language, %(variants)s)) u))

-- stop_words: the number of given words that each language of the text search leaves out as too common
SELECT c.cfgname AS language, count(*)::integer AS words FROM pg_ts_config c, unnest(%(words)s::text[]) AS w (word)
WHERE c.cfgname <> 'simple' AND length(to_tsvector(c.oid::regconfig, w.word)) = 0 GROUP BY c.cfgname

-- terms_of_words: the terms that given words become in given languages
SELECT w.word, w.language, u.lexeme AS term
FROM unnest(%(words)s::text[], %(languages)s::text[]) AS w (word, language), unnest(workbench_terms(w.language, w.word)) u
