"""Files read in a separate process give the same documents, and a crash costs at most a page or a file."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.ingestion import files
from workbench import Workbench
from workbench.errors import Cancelled, UnreadableDocument
from workbench.formatting import MB
from workbench.ingestion.metadata import page_notes
from workbench.ingestion.readers.formats import MIN_ISOLATED_OFFICE_BYTES, read_bytes
from workbench.ingestion.readers.isolation import ParserProcess

pytestmark = pytest.mark.slow  # each starts a process that imports the parsers

LINES = (
    "The otter of page {page} sleeps on its back, and holds line {line} in its paws.",
    "Line {line} is {page} long.",
)
ENDS_WITHIN = 10.0  # seconds
# A parser process in a separate process, which prints the parser's id and then waits.
PARENT = """
import sys, time
from pathlib import Path
from workbench.ingestion.readers.isolation import ParserProcess
parser = ParserProcess(lambda: None)
parser.draft(Path(sys.argv[1]).read_bytes(), "otters.pdf")
print(parser.process_id, flush=True)
time.sleep(600)
"""


def large_pdf(pages: int = 60) -> bytes:
    text = [
        [(780 - 14 * line, LINES[line % 2].format(page=page, line=line)) for line in range(50)] for page in range(pages)
    ]
    return files.paged_pdf(text)


@pytest.fixture
def parser() -> Iterator[ParserProcess]:
    with ParserProcess(lambda: None) as process:
        yield process


def _comes_true(condition: Callable[[], bool]) -> bool:
    ends = time.monotonic() + ENDS_WITHIN
    while not condition() and time.monotonic() < ends:
        threading.Event().wait(0.05)
    return condition()


def _lives(process_id: int) -> bool:
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_large_pdf_is_read_in_another_process_as_in_this_one(parser: ParserProcess) -> None:
    data = large_pdf()
    beside = read_bytes(data, "otters.pdf", parser=parser)
    assert parser.process_id is not None
    assert beside == read_bytes(data, "otters.pdf")


def test_a_small_office_file_and_a_text_start_no_process(parser: ParserProcess) -> None:
    assert len(files.docx()) < MIN_ISOLATED_OFFICE_BYTES
    read_bytes(files.docx(), "otter.docx", parser=parser)
    read_bytes(b"Many otters. " * 20_000, "otters.txt", parser=parser)
    assert parser.process_id is None


def test_a_file_that_is_refused_leaves_the_process_for_the_next_one(parser: ParserProcess) -> None:
    with pytest.raises(UnreadableDocument, match=r"'half\.pdf' is not a valid PDF"):
        read_bytes(b"%PDF-1.7\n" + bytes(50_000), "half.pdf", parser=parser)
    process_id = parser.process_id
    assert len(read_bytes(large_pdf(), "otters.pdf", parser=parser).pages) == 60
    assert parser.process_id == process_id


def test_a_process_that_crashed_between_two_files_costs_neither(parser: ParserProcess) -> None:
    read_bytes(large_pdf(), "otters.pdf", parser=parser)
    process_id = parser.process_id
    assert process_id is not None
    os.kill(process_id, signal.SIGSEGV)
    assert _comes_true(lambda: not _lives(process_id))
    document = read_bytes(large_pdf(), "otters.pdf", parser=parser)
    assert (len(document.pages), document.metadata.get("unreadable_pages")) == (60, None)


@pytest.mark.skipif(sys.platform != "linux", reason="a system without a limit of memory for a process")
def test_pages_that_take_too_much_memory_cost_these_pages_and_are_named() -> None:
    data = files.pdf_with_heavy_pages(40, heavy=(7, 23))
    with ParserProcess(lambda: None, memory=300 * MB) as process:
        document = read_bytes(data, "otters.pdf", parser=process)
    assert document.metadata["unreadable_pages"] == [7, 23]
    assert [number for number, _, _ in document.pages] == [n for n in range(1, 41) if n not in (7, 23)]
    assert page_notes("otters.pdf", document.metadata) == ("otters.pdf: pages 7, 23 could not be read.",)


def test_a_page_that_takes_too_long_costs_that_page() -> None:
    data = files.pdf_with_endless_page(3, endless=2)
    with ParserProcess(lambda: None, patience=4.0) as process:
        document = read_bytes(data, "otters.pdf", parser=process)
    assert (document.metadata["unreadable_pages"], len(document.pages)) == ([2], 2)


@pytest.mark.skipif(sys.platform != "linux", reason="a system without a limit of memory for a process")
def test_a_file_that_ends_the_process_on_every_page_is_refused_in_one_sentence_and_the_next_is_read() -> None:
    data = files.pdf_with_heavy_pages(5, heavy=range(1, 6))
    with ParserProcess(lambda: None, memory=300 * MB) as process:
        with pytest.raises(UnreadableDocument, match=r"Parsing 'otters\.pdf' crashed the parser \(\w+\)\. Re-save"):
            read_bytes(data, "otters.pdf", parser=process)
        assert len(read_bytes(large_pdf(), "otters.pdf", parser=process).pages) == 60


def test_reading_stops_when_it_is_asked_to_and_the_process_goes() -> None:
    asked: list[int] = []

    def ask() -> None:
        asked.append(process.process_id or 0)
        raise Cancelled("Stopped.")

    process = ParserProcess(ask)
    with pytest.raises(Cancelled):
        process.draft(large_pdf(400), "otters.pdf")
    assert process.process_id is None
    assert not _lives(asked[0])


def test_the_process_ends_with_the_one_that_started_it_even_if_that_was_killed(tmp_path: Path) -> None:
    path = tmp_path / "otters.pdf"
    path.write_bytes(large_pdf())
    with subprocess.Popen([sys.executable, "-c", PARENT, str(path)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        process_id = int(parent.stdout.readline())
        assert _lives(process_id)
        parent.kill()
    assert _comes_true(lambda: not _lives(process_id))


def dense_pdf(pages: int = 200, pieces: int = 490) -> bytes:
    """Return a PDF of tables in small print, with a given number of text runs per page."""
    places = [divmod(place, 7) for place in range(pieces)]
    return files.spread_pdf(
        [
            [(30 + 78 * column, 810 - 11 * row, f"otter{page} {row} {column}") for row, column in places]
            for page in range(pages)
        ]
    )


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's figures of memory")
@pytest.mark.parametrize(
    ("made", "otters"), [(lambda: large_pdf(200), 25 * 200), (dense_pdf, 490 * 200)], ids=["text", "dense"]
)
def test_two_hundred_pages_are_read_whole_in_less_than_300_megabytes(
    parser: ParserProcess, made: Callable[[], bytes], otters: int
) -> None:
    document = read_bytes(made(), "otters.pdf", parser=parser)
    assert (len(document.pages), document.text.count("otter")) == (200, otters)
    status = Path(f"/proc/{parser.process_id}/status").read_text()
    highest = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert highest is not None
    assert int(highest[1]) * 1024 < 300_000_000


def test_an_ingest_reads_a_large_pdf_in_another_process_and_leaves_no_process(wb: Workbench, tmp_path: Path) -> None:
    (tmp_path / "otters.pdf").write_bytes(large_pdf())
    (tmp_path / "notes.md").write_text("# Notes\n\nThe beaver builds.")
    report = wb.ingest([tmp_path], source="Animals")
    assert (report.added, report.failures) == (2, ())
    assert wb.search("otter of page 44")[0].metadata["page"] == 45
    children = Path("/proc/self/task").glob("*/children")
    commands = [Path(f"/proc/{child}/cmdline").read_text() for file in children for child in file.read_text().split()]
    assert not any("parser_process" in command for command in commands)


def test_the_pages_of_a_long_pdf_are_reported(wb: Workbench, parser: ParserProcess, tmp_path: Path) -> None:
    data = files.paged_pdf([[(700, f"The otter of page {page}.")] for page in range(1, 601)])
    pages: list[tuple[int, int, bool]] = []
    read_bytes(data, "otters.pdf", on_page=lambda *page: pages.append(page), parser=parser)
    assert pages == [(page, 600, False) for page in range(1, 601)]
    (tmp_path / "otters.pdf").write_bytes(data)
    messages: list[str] = []
    wb.ingest([tmp_path], source="Animals", on_progress=lambda progress: messages.append(progress.message))
    assert any(re.match(r"reading otters\.pdf \(page \d+ of 600\), ", message) for message in messages), messages


def peak_memory(process: int) -> int:
    [line] = [line for line in Path(f"/proc/{process}/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit is Linux's")
def test_a_bomb_costs_one_file_and_at_most_500_mb(parser: ParserProcess) -> None:
    peak = 0
    with pytest.raises(UnreadableDocument, match=r"out of memory"), ParserProcess(lambda: None) as other:
        watching = threading.Event()

        def watch() -> None:
            nonlocal peak
            while not watching.wait(0.01):
                with suppress(OSError, ValueError):
                    peak = max(peak, peak_memory(other.process_id or 0))

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            other.draft(files.bomb_xlsx(150 * MB), "bomb.xlsx")
        finally:
            watching.set()
            thread.join()
    assert 100 * MB < peak < 500 * MB
    assert parser.draft(b"a,b\n" + b"1,pump\n" * 400_000, "long.csv").metadata["rows"] == 400_000
    assert peak_memory(parser.process_id or 0) < 500 * MB
