"""An index's lexicon and postings: as stored, and as computed from the texts of its passages."""

from __future__ import annotations

from psycopg import sql

from workbench import Workbench
from workbench.storage.postings import fetch_term_postings

Held = list[tuple[str, int, int, int, int]]

BROUGHT = """
SELECT u.lexeme AS term, p.id, cardinality(u.positions) AS frequency, workbench_length(p.terms) AS length,
    count(*) OVER (PARTITION BY u.lexeme) AS df
FROM (SELECT id, workbench_passage_terms(metadata_, text) AS terms FROM {data}) AS p, unnest(p.terms) u ORDER BY 1, 2
"""


def brought(wb: Workbench, name: str = "") -> Held:
    """Return (term, passage, frequency, length, passages with the term), computed from the passages."""
    data = sql.Identifier(f"data_{name or wb.corpus.index(None).name}")
    rows = wb.corpus.database.rows(sql.SQL(BROUGHT).format(data=data))
    return [(row["term"], row["id"], row["frequency"], row["length"], row["df"]) for row in rows]


def kept(wb: Workbench, name: str = "") -> Held:
    """Return the same as stored in the keyword index, in the order of terms and blocks."""
    name = name or wb.corpus.index(None).name
    query = sql.SQL("SELECT id, term, df FROM {} WHERE df > 0 ORDER BY term").format(sql.Identifier(f"lexicon_{name}"))
    rows = wb.corpus.database.rows(query)
    with wb.corpus.database.reading() as connection:
        postings = fetch_term_postings(connection, name, [row["id"] for row in rows])
    return sorted(
        (row["term"], int(passage), int(frequency), int(length), row["df"])
        for row in rows
        for passage, frequency, length in postings.get(row["id"], ())
    )


def blocks(wb: Workbench) -> list[tuple[int, int, int]]:
    """Return (term's id, first passage, postings) of every block."""
    table = sql.Identifier(f"postings_{wb.corpus.index(None).name}")
    query = sql.SQL("SELECT term_id, first, octet_length(entries) / 8 AS held FROM {} ORDER BY 1, 2").format(table)
    return [(row["term_id"], row["first"], row["held"]) for row in wb.corpus.database.rows(query)]
