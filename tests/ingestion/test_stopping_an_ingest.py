"""An ingest or build stops at once, even while a large document is being written, and leaves nothing partial."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from workbench import Workbench
from workbench.errors import Cancelled
from workbench.ingestion.incoming import text_item
from workbench.ingestion.pipeline import prefetch
from workbench.ingestion.writing import WriteBehind
from workbench.services.documents import IngestOptions


def stop() -> None:
    raise Cancelled("stopped")


def test_a_running_transaction_is_rolled_back(wb: Workbench) -> None:
    database, sources = wb.corpus.database, wb.corpus.sources
    kept, lost = sources.create("Kept"), sources.create("Lost")
    with database.transaction() as other:
        other.execute("SELECT FROM sources WHERE id = %s FOR UPDATE", (lost.id,))

        def write(connection) -> None:
            connection.execute("DELETE FROM sources WHERE id = %s", (kept.id,))
            connection.execute("DELETE FROM sources WHERE id = %s", (lost.id,))  # waits for as long as 'other' lasts

        with pytest.raises(Cancelled), WriteBehind(database) as writing:
            writing.submit(write, lambda _: None)
            writing.wait(stop)
    assert {source.title for source in wb.sources.list()} == {"Kept", "Lost"}


def test_what_cannot_be_written_is_reported(wb: Workbench) -> None:
    def write(connection) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), WriteBehind(wb.corpus.database) as writing:
        writing.submit(write, lambda _: None)
        writing.wait(lambda: None)


def test_an_ingest_that_waits_for_another_writer_can_be_stopped(wb: Workbench) -> None:
    source, index = wb.sources.create("Tides"), wb.indexes.get().name
    with wb.corpus.database.transaction() as other:
        wb.corpus.indexes.take_turn(other, index)
        asked = iter([False] * 4)
        with pytest.raises(Cancelled):
            wb.documents.ingest_items(
                source.id,
                [text_item("a.md", "# A\n\nOne.", title="A")],
                IngestOptions(should_stop=lambda: next(asked, True)),
            )
    assert wb.documents.count() == 0
    assert wb.documents.ingest_items(source.id, [text_item("a.md", "# A\n\nOne.", title="A")]).added == 1


def test_a_build_that_waits_for_another_writer_can_be_stopped(wb: Workbench, folder: Callable[..., Path]) -> None:
    wb.ingest(folder({"a.md": "# A\n\nOne."}), source="Tides")
    wb.indexes.create("other", chunker="token")
    with wb.corpus.database.transaction() as writer:
        wb.corpus.indexes.take_turn(writer, "other")
        asked = iter([False] * 4)
        with pytest.raises(Cancelled):
            wb.indexes.build("other", should_stop=lambda: next(asked, True))
    assert wb.indexes.count_missing("other") == 1
    assert wb.indexes.build("other").documents_count == 1


def test_cutting_that_needs_the_model_can_be_stopped(wb: Workbench, folder: Callable[..., Path]) -> None:
    wb.ingest(folder({"a.md": "# A\n\n" + "The tide comes in. The bread is baked. " * 200}), source="Tides")
    wb.indexes.create("meaning", chunker="semantic")
    asked, told = iter([False]), []
    with pytest.raises(Cancelled):
        wb.indexes.build("meaning", on_progress=told.append, should_stop=lambda: next(asked, True))
    assert told == []  # it never came as far as embedding the passages


def test_prefetching_stops_without_waiting_for_the_current_item() -> None:
    released = threading.Event()

    def items():
        yield 1
        released.wait()
        yield 2

    ahead = prefetch(items())
    assert next(ahead) == 1
    ahead.close()
    assert not released.is_set()
    released.set()
