"""Postings in blocks: how they grow, and how they are maintained."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby, pairwise
from pathlib import Path

import numpy as np
import psycopg
import pytest
from keyword_index import blocks, brought, kept
from psycopg import sql

from workbench import Workbench
from workbench.errors import StorageError
from workbench.storage.postings import fetch_passage_postings, fetch_term_postings, select_postings

WORDS = ("amber", "birch", "cedar")


def _passages(count: int) -> dict[str, str]:
    return {f"{n:03}.txt": f"amber {'birch ' * (n % 4)}{'cedar' if n % 5 == 0 else ''} word{n}" for n in range(count)}


def test_a_terms_last_block_is_filled_before_a_new_one_starts(wb: Workbench, folder: Callable[..., Path]) -> None:
    for start in range(0, 300, 60):
        files = dict(list(_passages(300).items())[start : start + 60])
        wb.ingest(folder(files, f"part{start}"), source=f"Part {start}")
    assert kept(wb) == brought(wb)
    sizes = [[held for *_, held in of_term] for _, of_term in groupby(blocks(wb), key=lambda block: block[0])]
    assert max(sizes) == [128, 128, 44]  # amber, which every passage has
    assert all(held == 128 for of_term in sizes for held in of_term[:-1])


def test_blocks_of_a_term_do_not_overlap_when_passages_come_and_go(wb: Workbench, folder: Callable[..., Path]) -> None:
    wb.ingest(folder(_passages(200), "first"), source="First")
    wb.sources.delete("First")
    wb.ingest(folder(_passages(150), "second"), source="Second")
    for document in wb.documents.list(limit=40):
        wb.documents.delete(document.id)
    wb.ingest(folder(_passages(90), "third"), source="Third")
    held = kept(wb)
    assert held == brought(wb)
    firsts = {term: [first for _, first, _ in of] for term, of in groupby(blocks(wb), key=lambda block: block[0])}
    assert all(earlier < later for of_term in firsts.values() for earlier, later in pairwise(of_term))


@pytest.mark.parametrize("step", [1, 3, 50, 70, 129, 250])
def test_passages_bring_the_blocks_that_hold_them(wb: Workbench, folder: Callable[..., Path], step: int) -> None:
    wb.ingest(folder(_passages(600), "all"))
    with wb.corpus.database.transaction() as connection:
        terms = [row["id"] for row in connection.execute("SELECT id FROM lexicon_main").fetchall()]
        every = fetch_term_postings(connection, "main", terms)
        wanted = np.arange(step, 600, step)
        looked_up = fetch_passage_postings(connection, "main", terms, wanted)
    brought = {term: select_postings(of, wanted).tolist() for term, of in every.items()}
    assert {term: sorted(of.tolist()) for term, of in looked_up.items()} == {
        term: sorted(of) for term, of in brought.items() if of
    }


def test_a_passage_with_a_number_of_its_own_is_refused(wb: Workbench, folder: Callable[..., Path]) -> None:
    wb.ingest(folder(_passages(5)), source="First")
    again = (
        "INSERT INTO data_main (id, text, metadata_, node_id, embedding) "
        "SELECT 0, text, metadata_, 'again', embedding FROM data_main LIMIT 1"
    )
    with (
        psycopg.connect(wb.corpus.database.url) as connection,
        pytest.raises(psycopg.errors.RaiseException, match="a number above all others"),
    ):
        connection.execute(again)  # pyright: ignore[reportArgumentType, reportCallIssue]
    assert kept(wb) == brought(wb)


def test_the_frameworks_full_text_is_made_when_it_is_asked_for_and_kept(
    wb: Workbench, folder: Callable[..., Path]
) -> None:
    wb.ingest(folder(_passages(20), "first"), source="First")
    table = "SELECT count(*) AS passages FROM full_text_main"
    with pytest.raises(StorageError, match="full_text_main"):
        wb.corpus.database.rows(sql.SQL(table))
    assert "007.txt" in [hit.path for hit in wb.search("word7", "llamaindex-hybrid", limit=20)]
    assert wb.corpus.database.rows(sql.SQL(table))[0]["passages"] == 20
    with wb.corpus.database.transaction() as writer:  # another writer's turn holds up no search
        writer.execute("SELECT pg_advisory_xact_lock(7215005, hashtext('main'))")
        assert wb.search("word8", "llamaindex-hybrid", limit=20).results
    wb.ingest(folder({"more.txt": "a zebra among them"}, "more"), source="More")
    assert any(hit.path == "more.txt" for hit in wb.search("zebra", "llamaindex-hybrid"))
    wb.sources.delete("First")
    assert wb.corpus.database.rows(sql.SQL(table))[0]["passages"] == 1
