"""Measure how many printed words search finds in place: ``python -m tests.ingestion.scans.measure --pages 10``."""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.ingestion.scans.printed import PrintedPage, bare, marked, places_of, printed, scan_pdf
from workbench import Workbench

MOST = 50  # hits of one word that are looked at; the pages make fewer passages


@dataclass(frozen=True)
class Outcome:
    """The number of words on the pages, of those marked at their place, and of those that search found and marked."""

    words: int
    marked: int
    searched: int
    seconds: float


def measure(workbench: Workbench, pages: list[PrintedPage], folder: Path) -> Outcome:
    """Ingest the pages as one scanned PDF, search for every word on them, and check whether it is marked."""
    (folder / "scan.pdf").write_bytes(scan_pdf(pages))
    begun = time.perf_counter()
    report = workbench.ingest([folder / "scan.pdf"], source="Scans")
    seconds = time.perf_counter() - begun
    (document,) = report.document_ids
    text, scans = workbench.documents.get(document).text or "", workbench.pages.scans(document)
    outcomes = [outcome for page, scan in zip(pages, scans, strict=True) for outcome in marked(page, scan, text)]
    spans = {word: _spans(workbench, word) for word in {bare(word.text) for word, _ in outcomes}}
    searched = sum(
        any(
            start <= place.start < end for place in places_of(word, scan, text) for start, end in spans[bare(word.text)]
        )
        for page, scan in zip(pages, scans, strict=True)
        for word in page.words
        if bare(word.text)
    )
    return Outcome(len(outcomes), sum(right for _, right in outcomes), searched, seconds)


def _spans(workbench: Workbench, word: str) -> list[tuple[int, int]]:
    """Return the first and last characters of the passages that hybrid search finds for a word."""
    hits = workbench.search(word, strategy="hybrid", limit=MOST)
    return [(hit.start, hit.end) for hit in hits]


def main() -> None:
    """Print the shares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=10)
    pages = printed(parser.parse_args().pages)
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)  # if root runs this, the database server is another user
        with Workbench.open(home=folder / "home") as workbench:
            outcome = measure(workbench, pages, folder)
    print(f"{len(pages)} pages, {outcome.words:,} words, {outcome.seconds / len(pages):.1f} s a page")
    print(f"read and marked at the right place: {outcome.marked / outcome.words:.1%}")
    print(f"found by hybrid search and marked there: {outcome.searched / outcome.words:.1%}")


if __name__ == "__main__":
    main()
