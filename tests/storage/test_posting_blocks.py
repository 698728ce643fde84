"""Postings in blocks: how they grow, and how the indexes and exports of older versions become them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from itertools import groupby, pairwise
from pathlib import Path

import numpy as np
import psycopg
import pytest
from keyword_index import blocks, brought, kept
from psycopg import sql
from psycopg.conninfo import make_conninfo

from workbench import Workbench
from workbench.errors import StorageError
from workbench.settings import Settings
from workbench.storage.backup import Backup
from workbench.storage.database import Database
from workbench.storage.migrate import migrate, migrations
from workbench.storage.postings import among, postings_of_passages, postings_of_terms
from workbench.storage.queue import Queue

FIRST_WITH_BLOCKS = 40
WORDS = ("amber", "birch", "cedar")


def _passages(count: int) -> dict[str, str]:
    return {f"{n:03}.txt": f"amber {'birch ' * (n % 4)}{'cedar' if n % 5 == 0 else ''} word{n}" for n in range(count)}


def test_a_terms_last_block_is_filled_before_a_new_one_begins(wb: Workbench, folder: Callable[..., Path]) -> None:
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
        every = postings_of_terms(connection, "main", terms)
        wanted = np.arange(step, 600, step)
        looked_up = postings_of_passages(connection, "main", terms, wanted)
    brought = {term: among(of, wanted).tolist() for term, of in every.items()}
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


@pytest.fixture
def before(server_url: str) -> Iterator[str]:
    """A database of the version before, with an index of 150 passages."""
    name = f"before_{uuid.uuid4().hex[:10]}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    url = make_conninfo(server_url, dbname=name)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE schema_migrations (number integer PRIMARY KEY, name text NOT NULL UNIQUE, "
            "checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())"
        )
        for number, file, body in migrations():
            if number < FIRST_WITH_BLOCKS:
                connection.execute(body)  # pyright: ignore[reportArgumentType, reportCallIssue]
                noted = "INSERT INTO schema_migrations VALUES (%s, %s, encode(sha256(convert_to(%s, 'UTF8')), 'hex'))"
                connection.execute(noted, (number, file, body))
        _fill(connection)
    yield url
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def _fill(connection: psycopg.Connection) -> None:
    """Write what the version before wrote: a source, its documents, and an index with a passage of each."""
    connection.execute("INSERT INTO sources (id, title) VALUES ('src_1', 'Woods')")
    connection.execute(
        "INSERT INTO indexes (name, chunker, embedding_model, dimensions, is_default) "
        "VALUES ('main', 'structure', 'hash', 8, true)"
    )
    connection.execute("SELECT workbench_create_index('main', 8)")
    for name, text in _passages(150).items():
        connection.execute(
            "INSERT INTO documents (id, source_id, key, title, path, document_type, content_hash, text) "
            "VALUES (%(id)s, 'src_1', %(id)s, %(id)s, %(id)s, 'text', %(id)s, %(text)s)",
            {"id": name, "text": text},
        )
        connection.execute(
            "INSERT INTO data_main (text, node_id, embedding, metadata_) VALUES (%(text)s::text, %(id)s::text, "
            "'[1,0,0,0,0,0,0,0]', jsonb_build_object('document_id', %(id)s::text, 'source_id', 'src_1', "
            "'start', 0, 'end', length(%(text)s::text), 'ordinal', 0, 'context', 'Woods'))",
            {"id": name, "text": text},
        )
        connection.execute("INSERT INTO index_documents VALUES ('main', %(id)s, %(id)s, 1)", {"id": name})


def test_an_index_from_before_is_put_into_blocks(before: str, make_settings: Callable[..., Settings]) -> None:
    migrate(before)
    with Workbench.open(settings=make_settings(database_url=before)) as wb:
        assert kept(wb) == brought(wb)
        assert len(kept(wb)) > 400
        assert max(held for *_, held in blocks(wb)) == 128
        found = wb.search("cedar word5", "keyword")
        assert found[0].path == "005.txt"
        wb.documents.delete(found[0].document_id)
        assert kept(wb) == brought(wb)
        assert not wb.search("word5", "keyword").results


def test_an_export_from_before_is_put_into_blocks(
    before: str, tmp_path: Path, make_settings: Callable[..., Settings]
) -> None:
    database = Database(before)
    Backup(database, Queue(before)).write(tmp_path / "before.zip", "0", lambda progress: None)
    database.close()
    with Workbench.open(settings=make_settings()) as wb:
        wb.backups.read(tmp_path / "before.zip")
        assert kept(wb) == brought(wb)
        assert wb.search("word5", "keyword")[0].path == "005.txt"


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
