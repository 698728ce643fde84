"""Deleting passages takes back exactly what they brought to the keyword index, be they few or most of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from psycopg import sql

from workbench import Workbench

WORDS = ["amber", "birch", "cedar", "dune", "ember", "fjord", "grove", "heath", "inlet", "jetty"]


BROUGHT = """
SELECT u.lexeme AS term, p.id, cardinality(u.positions) AS tf, count(*) OVER (PARTITION BY u.lexeme) AS df
FROM {data} p, unnest(p.text_search_tsv) u ORDER BY 1, 2
"""
KEPT = """
SELECT l.term, o.passage_id AS id, o.tf, l.df FROM {postings} o JOIN {lexicon} l ON l.id = o.term_id
WHERE l.df > 0 ORDER BY 1, 2
"""


def _brought_and_kept(wb: Workbench) -> list[list[tuple[Any, ...]]]:
    """(term, passage, its frequency there, passages with it) as the passages say, and as the keyword index holds it."""
    name = wb.corpus.index(None).name
    tables = {kind: sql.Identifier(f"{kind}_{name}") for kind in ("data", "lexicon", "postings")}
    read = [wb.corpus.database.rows(sql.SQL(query).format(**tables)) for query in (BROUGHT, KEPT)]
    return [[tuple(row.values()) for row in rows] for rows in read]


def _ingest(wb: Workbench, write: Callable[..., Path], source: str, documents: int) -> None:
    texts = {f"{n}.txt": " ".join(WORDS[k % 10] for k in range(n, n + 3 + n % 5)) for n in range(documents)}
    wb.ingest(write(texts, source), source=source)


def test_deleting_few_of_many_passages_leaves_the_keyword_index_as_if_they_had_never_been(
    wb: Workbench, folder: Callable[..., Path]
) -> None:
    _ingest(wb, folder, "Coast", 40)
    wb.documents.delete(wb.documents.list(limit=1)[0].id)
    brought, kept = _brought_and_kept(wb)
    assert kept == brought
    assert len({row[1] for row in kept}) == 39


def test_deleting_most_passages_at_once_does_too(wb: Workbench, folder: Callable[..., Path]) -> None:
    _ingest(wb, folder, "Coast", 10)
    _ingest(wb, folder, "Hills", 30)
    wb.sources.delete("Hills")
    brought, kept = _brought_and_kept(wb)
    assert kept == brought
    assert len({row[1] for row in kept}) == 10
