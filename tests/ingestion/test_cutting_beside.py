"""Documents chunked in parallel in one process do not wait for each other."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

from tests.ingestion.tokens import word_spans
from workbench.ingestion.chunking.spans import ChunkInput
from workbench.ingestion.chunking.task import CuttingTask

LONG = 30  # seconds until a test gives up


def test_a_document_is_measured_while_another_one_is() -> None:
    begun, done = Event(), Event()

    def slow(text: str) -> list[tuple[int, int]]:
        begun.set()
        assert done.wait(LONG), "the other document waited for this one"
        return word_spans(text)

    large = CuttingTask(ChunkInput("Large", "Every word of a large text."), slow, 100, {"size": 50})
    small = CuttingTask(ChunkInput("Small", "A small text."), word_spans, 100, {"size": 50})
    with ThreadPoolExecutor(2) as pool:
        measured = pool.submit(lambda: large.ruler)
        assert begun.wait(LONG)
        assert pool.submit(lambda: small.ruler.count(0, 13)).result() > 0
        done.set()
        assert measured.result() is large.ruler


def test_it_is_measured_once() -> None:
    calls: list[str] = []

    def counted(text: str) -> list[tuple[int, int]]:
        calls.append(text)
        return word_spans(text)

    task = CuttingTask(ChunkInput("Small", "A small text."), counted, 100, {"size": 50})
    assert task.ruler is task.ruler
    assert calls == ["A small text."]
