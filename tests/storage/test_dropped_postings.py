"""Deleting passages removes exactly what they added to the keyword index, whether few or most of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from keyword_index import blocks, brought, kept
from psycopg import sql

from workbench import Workbench

WORDS = ["amber", "birch", "cedar", "dune", "ember", "fjord", "grove", "heath", "inlet", "jetty"]


def _ingest(wb: Workbench, write: Callable[..., Path], source: str, documents: int) -> None:
    texts = {f"{n}.txt": " ".join(WORDS[k % 10] for k in range(n, n + 3 + n % 5)) for n in range(documents)}
    wb.ingest(write(texts, source), source=source)


def test_deleting_few_of_many_passages_leaves_the_keyword_index_as_if_they_had_never_been(
    wb: Workbench, folder: Callable[..., Path]
) -> None:
    _ingest(wb, folder, "Coast", 40)
    wb.documents.delete(wb.documents.list(limit=1)[0].id)
    assert kept(wb) == brought(wb)
    assert len({row[1] for row in kept(wb)}) == 39


def test_deleting_most_passages_at_once_does_too(wb: Workbench, folder: Callable[..., Path]) -> None:
    _ingest(wb, folder, "Coast", 10)
    _ingest(wb, folder, "Hills", 30)
    wb.sources.delete("Hills")
    assert kept(wb) == brought(wb)
    assert len({row[1] for row in kept(wb)}) == 10


def test_deleting_everything_leaves_no_block(wb: Workbench, folder: Callable[..., Path]) -> None:
    _ingest(wb, folder, "Coast", 10)
    wb.sources.delete("Coast")
    assert (brought(wb), kept(wb), blocks(wb)) == ([], [], [])


def test_a_passage_among_a_few_with_many_words_is_looked_up_and_not_searched_for_in_every_block(
    wb: Workbench, folder: Callable[..., Path]
) -> None:
    own = {f"{n}.txt": " ".join(f"{word}{n}of{k}" for k in range(8) for word in WORDS) for n in range(12)}
    wb.ingest(folder(own, "Coast"), source="Coast")
    asked = sql.SQL("SELECT workbench_dropping_statement('main', 'old_passages', array_fill(int4send(1), %s)) AS text")
    one, all_of_them = (str((wb.corpus.database.row(asked, [[count]]) or {})["text"]) for count in (1, 12))
    assert ("unnest(g.terms)" in one, "unnest(g.terms)" in all_of_them) == (True, False)
    wb.documents.delete(wb.documents.list(limit=1)[0].id)
    assert kept(wb) == brought(wb)
    assert len({row[1] for row in kept(wb)}) == 11
