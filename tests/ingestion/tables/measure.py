"""Count the statements that can be rebuilt from their passages: ``python -m tests.ingestion.tables.measure``.

With ``--folder`` the PDFs of a folder are looked at too: of each page that holds a statement, the rows that the
parser's plain text shows are looked for among the rows of the tables, each figure in a cell of its own.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.ingestion.tables.statements import Statement, statement
from tests.ingestion.tokens import chunk, word_spans
from workbench.ingestion.chunking import ChunkInput
from workbench.ingestion.readers.formats import read_bytes

STATEMENTS = 30
TITLE = re.compile(r"consolidated\s+(?:statements?\s+of|balance\s+sheets?)", re.IGNORECASE)
AMOUNT = re.compile(r"\d{1,3}(?:,\d{3})+|\(\d[\d,]*\)")
ROW = re.compile(r"(.*?[A-Za-z].*?)\s{2,}((?:[$(]\s*)?[\d(–—-][\d,.$()\s%–—-]*)")
FIGURE = re.compile(r"\(?\d[\d,.]*\)?|[-–—](?!\d)")
FEWEST, ROWS = 30, 6  # amounts on a page, and rows on it, that make it one with a statement


def rebuilt(page: Statement, size: int = 200) -> bool:
    """Return whether every figure of a statement is in its row and column in the passages of its document."""
    raw = read_bytes(page.pdf, "HARBOUR_2023_10K.pdf")
    spans = chunk("structure", ChunkInput("HARBOUR", raw.text, "pdf", raw.pages), word_spans, {"size": size})
    cells: dict[tuple[str, str], str] = {}
    names: list[str] = []
    for span in spans:
        header = span.metadata.get("table_header")
        lines = raw.text[slice(*header)].splitlines() if header else []
        for row in _table_rows([*lines, *raw.text[span.start : span.end].splitlines()]):
            if sum(name in cell for name in page.columns for cell in row[1:]) == len(page.columns):
                names = row
            for name, cell in zip(names[1:], row[1:], strict=False):
                year = next((column for column in page.columns if column in name), "")
                cells.setdefault((row[0], year), cell.replace("$", "").strip())
    wanted = {(label, name): cell for label, row in page.rows for name, cell in zip(page.columns, row, strict=True)}
    return all(cells.get(place) == cell for place, cell in wanted.items())


def page_rows(plain: str, markdown: str) -> tuple[int, int]:
    """Return how many rows of figures a page's plain text shows, and how many of them are in a table."""
    tables = [
        (_letters(row[0]), [FIGURE.findall(cell) for cell in row[1:]]) for row in _table_rows(markdown.split("\n"))
    ]
    single = [(label, [found[0] for found in cells if found]) for label, cells in tables if _one_each(cells)]
    shown = [(_letters(label)[-25:], figures) for label, figures in _plain_rows(plain)]
    kept = sum(any(name.endswith(label) and figures == row for name, row in single) for label, figures in shown)
    return len(shown), kept


def _one_each(cells: Sequence[list[str]]) -> bool:
    return all(len(found) <= 1 for found in cells)


def _table_rows(lines: Sequence[str]) -> Iterator[list[str]]:
    for line in lines:
        if line.startswith("|") and not set(line) <= set("|-: "):
            yield [cell.strip() for cell in line.strip().strip("|").split("|")]


def _plain_rows(text: str) -> Iterator[tuple[str, list[str]]]:
    for line in text.splitlines():
        match = ROW.fullmatch(line.strip())
        figures = FIGURE.findall(match[2]) if match else []
        if match and len(figures) >= 2 and not any(re.fullmatch(r"(19|20)\d\d", figure) for figure in figures):
            yield match[1], figures


def _letters(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def _of_folder(folder: Path) -> Iterator[tuple[str, int, int, int]]:
    from liteparse.parser import LiteParse

    from workbench.ingestion.readers.pdf.layout import strip_running_lines
    from workbench.ingestion.readers.pdf.pages import read_pages

    for path in sorted(folder.glob("*.pdf")):
        shown_pages = LiteParse(ocr_enabled=False, quiet=True, output_format="markdown").parse(path.read_bytes()).pages
        texts = strip_running_lines([page.texts for page in read_pages(path.read_bytes(), path.name).pages])
        for page, text in zip(shown_pages, texts, strict=True):
            head = " ".join(page.text.split("\n")[:14])
            if TITLE.search(head) and len(AMOUNT.findall(page.text)) >= FEWEST and len(page.text) < 9000:
                shown, kept = page_rows(page.text, text)
                if shown >= ROWS:
                    yield path.name, page.page_num, shown, kept


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="PDFs whose statements are looked at, too")
    arguments = parser.parse_args()
    missed = [seed for seed in range(STATEMENTS) if not rebuilt(statement(seed))]
    print(f"{STATEMENTS - len(missed)} of {STATEMENTS} statements rebuilt from their passages; not: {missed}")
    if arguments.folder is not None:
        pages = list(_of_folder(arguments.folder))
        for name, number, shown, kept in pages:
            print(f"{name} p. {number}: {kept} of {shown} rows")
        whole = sum(shown == kept for _, _, shown, kept in pages)
        rows, kept = sum(page[2] for page in pages), sum(page[3] for page in pages)
        print(f"{whole} of {len(pages)} pages whole, {kept} of {rows} rows")


if __name__ == "__main__":
    main()
