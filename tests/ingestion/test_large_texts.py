"""A text of any size is chunked, embedded and stored in windows: with bounded memory and the same result."""

from __future__ import annotations

import random
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.ingestion import large_text_process
from tests.ingestion.tokens import chunk
from workbench import Scope, Workbench
from workbench.ingestion import embedding, writing
from workbench.ingestion.chunking import CHUNKERS, ChunkInput, spans
from workbench.ingestion.readers.pdf.layout import SPLIT_MARK
from workbench.ingestion.readers.plain_text import FEED_DATE
from workbench.models.hashing import HashEncoder
from workbench.storage.database import Row

ENCODER = HashEncoder()
WORDS = ("ab", "cd", "ef", "gh", "ij", "kl", "mn", "op", "qr", "st")
SIZE = 3_000_000  # characters; one of them is no Latin letter, so that each takes two bytes
ALLOWED = 100  # MB above idle, twice what it takes; with all tokens and passages in memory it took 210


def prose(characters: int, seed: int = 1) -> str:
    """Return a text with headings, lists and tables."""
    words = random.Random(seed)
    parts: list[str] = ["Ω\n"]
    size = number = 0
    while size < characters:
        number += 1
        lines = [" ".join(words.choice(WORDS) for _ in range(120)) for _ in range(4)]
        part = f"\n## Part {number}\n\n" + ". ".join(line.capitalize() for line in lines) + ".\n"
        if number % 5 == 0:
            part += "\n| a | b |\n|---|---|\n" + "".join(f"| {row} | {number} |\n" for row in range(30))
        parts.append(part)
        size += len(part)
    return "".join(parts)


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="only Linux tells a process's highest memory")
def test_a_large_text_takes_little_memory_above_idle(database_url: str, test_home: Path, tmp_path: Path) -> None:
    (tmp_path / "short.md").write_text(prose(20_000, seed=2))
    (tmp_path / "large.md").write_text(prose(SIZE))
    arguments = [str(test_home), database_url, str(tmp_path / "short.md"), str(tmp_path / "large.md")]
    command = [sys.executable, "-m", large_text_process.__name__, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    above, passages = map(int, done.stdout.split())
    assert passages > 3_000
    assert above < ALLOWED


def list_rows(wb: Workbench, document_id: str) -> list[Row]:
    """Return everything that is stored of a document's passages and of its index's terms."""
    with wb.corpus.database.reading() as connection:
        passages = connection.execute(
            "SELECT p.text, p.metadata_ - 'document_id' - 'ref_doc_id' - 'source_id' AS noted, p.embedding::text, "
            "p.token_bits FROM data_main p WHERE document_id = %s "
            "ORDER BY (metadata_ ->> 'ordinal')::int",
            (document_id,),
        ).fetchall()
        words = connection.execute("SELECT term, df FROM lexicon_main WHERE df > 0 ORDER BY term").fetchall()
        postings = connection.execute(
            "SELECT sum(octet_length(entries)) AS bytes, (SELECT sum(terms) FROM index_statistics) AS words "
            "FROM postings_main"
        ).fetchall()
    return passages + words + postings


def test_a_document_in_windows_is_the_same_as_one_at_once(
    make_settings: Callable[..., object], folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, wb: Workbench
) -> None:
    root = folder({"book.md": prose(60_000)})
    wb.ingest(root, source="Book")
    (document,) = wb.documents.list()
    at_once = list_rows(wb, document.id)
    wb.documents.delete(document.id)
    monkeypatch.setattr(embedding, "WINDOW_PASSAGES", 7)
    monkeypatch.setattr(writing, "COPY_WINDOW_PASSAGES", 5)
    monkeypatch.setattr(spans, "MAX_TOKENIZED_CHARS", 300)
    wb.ingest(root, source="Book")
    (document,) = wb.documents.list()
    assert document.passages_count > 60
    assert list_rows(wb, document.id) == at_once


@pytest.mark.parametrize("name", CHUNKERS)
def test_a_text_that_is_measured_in_parts_is_cut_as_one_measured_whole(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = prose(40_000)
    options = {"embed": lambda texts: ENCODER.encode(texts).vectors} if CHUNKERS[name].needs_embed else {}
    monkeypatch.setattr(spans, "MAX_TOKENIZED_CHARS", len(text))
    whole = chunk(name, ChunkInput("Book", text), ENCODER.token_spans, options)
    monkeypatch.setattr(spans, "MAX_TOKENIZED_CHARS", 100)
    assert chunk(name, ChunkInput("Book", text), ENCODER.token_spans, options) == whole


def test_a_line_of_a_million_blanks_is_normalised_and_cut_in_seconds(wb: Workbench, tmp_path: Path) -> None:
    """Quadratic time took minutes, which held up every file of the ingest."""
    (tmp_path / "blank.txt").write_text("Amber" + " " * 1_000_000 + "pier\n" + "-" * 100_000 + "\nSluice.")
    report = wb.ingest([tmp_path], source="Blanks")
    assert report.added == 1
    assert wb.search("sluice", "keyword", scope=Scope(sources=(report.source_id,)))[0].path == "blank.txt"


@pytest.mark.parametrize(("pattern", "text"), [(SPLIT_MARK, "字" * 60_000), (FEED_DATE, "<updated " * 60_000)])
def test_hostile_texts_are_searched_in_linear_time(pattern: re.Pattern[str], text: str) -> None:
    """Quadratic time took more than 20 seconds of the processor."""
    before = time.process_time()
    assert pattern.search(text) is None
    assert time.process_time() - before < 2
