"""Plain SQL of the baselines, with which the workbench's own statements are compared."""

from __future__ import annotations

from typing import LiteralString

from psycopg import sql

from workbench.storage.database import statement

_TEXTS: dict[str, LiteralString] = {
    # The nearest passages, their texts and metadata included, with the same search width as ours
    "nearest": """SELECT id, node_id, text, metadata_, 1 - (embedding <=> %(vector)s::halfvec) AS score
        FROM {data} WHERE {breadth} ORDER BY embedding <=> %(vector)s::halfvec LIMIT %(limit)s""",
    # Only the ids of the nearest passages, to compare with the true ones
    "nearest_ids": "SELECT id FROM {data} ORDER BY embedding <=> %(vector)s::halfvec LIMIT %(limit)s",
    # How many passages a graph search keeps as candidates, until the transaction ends
    "width": "SELECT set_config('hnsw.ef_search', %(width)s, true)",
    # Postings as plain rows, with an index over them
    "plain_drop": "DROP TABLE IF EXISTS {plain}",
    "plain": """CREATE TABLE {plain} AS
        SELECT l.id AS term_id, d.id AS passage_id, cardinality(u.positions) AS tf, workbench_length(d.terms) AS length
        FROM (SELECT id, workbench_passage_terms(metadata_, text) AS terms FROM {data} OFFSET 0) AS d,
            unnest(d.terms) u JOIN {lexicon} l ON l.term = u.lexeme""",
    "plain_index": "ALTER TABLE {plain} ADD PRIMARY KEY (term_id, passage_id) INCLUDE (tf, length)",
    "plain_analyse": "VACUUM ANALYZE {plain}",
    # The passages with the best BM25 scores over these rows
    "bm25": """SELECT o.passage_id AS id, sum(t.weight * o.tf / (o.tf + %(a)s + %(c)s * o.length)) AS score
        FROM unnest(%(term_ids)s::integer[], %(weights)s::float8[]) AS t (id, weight)
            JOIN {plain} o ON o.term_id = t.id
        GROUP BY o.passage_id ORDER BY score DESC, o.passage_id LIMIT %(limit)s""",
    # The same passages in the framework's own table
    "framework_drop": "DROP TABLE IF EXISTS {framework}",
    "framework_copy": """INSERT INTO {framework} (text, metadata_, node_id, embedding)
        SELECT text, metadata_::json, node_id, embedding::vector FROM {data}""",
    "framework_analyse": "VACUUM ANALYZE {framework}",
}


def baseline(name: str, index: str) -> sql.Composed:
    """Return the statement of a baseline over the tables of an index."""
    return sql.SQL(_TEXTS[name]).format(
        data=sql.Identifier(f"data_{index}"),
        lexicon=sql.Identifier(f"lexicon_{index}"),
        plain=sql.Identifier(f"plain_postings_{index}"),
        framework=sql.Identifier(f"data_framework_{index}"),
        breadth=statement("breadth_by_size"),
    )
