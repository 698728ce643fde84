"""Tables that are split by rows: each part names its table, units and columns."""

from __future__ import annotations

from pathlib import PurePath

import pytest

from tests.ingestion.files import statement_pdf
from tests.ingestion.tokens import chunk, word_spans
from workbench.ingestion.chunking import ChunkInput
from workbench.ingestion.chunking.spans import CutPassage
from workbench.ingestion.metadata import about_document
from workbench.ingestion.readers.formats import read_bytes

STATEMENT = "CONSOLIDATED STATEMENTS OF OTTERS"


def parts_of_statement() -> tuple[str, list[CutPassage]]:
    name = "OTTER_2020_10K.pdf"
    raw = read_bytes(statement_pdf(STATEMENT, "(in thousands)", ("2020", "2019", "2018"), rows=36), name)
    about = about_document(raw.title, name, raw.metadata)
    document = ChunkInput(raw.title or PurePath(name).stem, raw.text, "pdf", raw.pages, about)
    spans = chunk("structure", document, word_spans, {"size": 150})
    return raw.text, [span for span in spans if span.page == 2]


def test_a_statement_without_ruling_lines_is_read_as_a_table() -> None:
    text, parts = parts_of_statement()
    assert any("| Cost of line 7 |" in text[span.start : span.end] for span in parts)


def test_each_part_of_a_split_statement_reports_its_document_caption_units_and_columns() -> None:
    text, parts = parts_of_statement()
    later = [span for span in parts if STATEMENT not in text[span.start : span.end]]
    assert len(later) >= 2
    for span in later:
        assert span.header.startswith("OTTER 2020 10K")
        assert STATEMENT in span.header
        assert "in thousands" in span.header
        assert all(year in span.header for year in ("2020", "2019", "2018"))


def test_a_table_in_markdown_repeats_its_caption_and_the_names_of_its_columns() -> None:
    rows = "\n".join(f"| River number {n} | {n * 17} |" for n in range(60))
    text = f"# Rivers\n\nThey are many.\n\n**Lengths (in km)**\n\n| River | Length |\n|---|---|\n{rows}\n"
    spans = chunk("structure", ChunkInput("Rivers", text), word_spans, {"size": 100})
    assert len(spans) > 3
    assert {span.header for span in spans[1:]} == {"Rivers > Lengths (in km) River | Length"}


def test_a_first_row_of_figures_and_a_sentence_before_a_table_name_nothing() -> None:
    rows = "\n".join(f"| Row {n} | 1,{n:03} |" for n in range(60))
    text = f"# Rivers\n\nThe next table is long.\n\n| Sum | 1,000 |\n|---|---|\n{rows}\n"
    spans = chunk("structure", ChunkInput("Rivers", text), word_spans, {"size": 100})
    assert {span.header for span in spans[1:]} == {"Rivers"}


def test_a_heading_on_every_page_does_not_describe_a_passage() -> None:
    page = "# Table of Contents\n\n## Part {n}\n\nWords about otters on page {n} and of what they eat there."
    pages, text = [], ""
    for number in range(1, 9):
        start = len(text)
        text += page.format(n=number)
        pages.append((number, start, len(text)))
        text += "\n\n"
    spans = chunk("structure", ChunkInput("Otters", text, "pdf", tuple(pages)), word_spans, {"size": 30, "small": 0})
    assert all("Contents" not in span.header for span in spans)


def test_column_names_state_a_common_beginning_once() -> None:
    rows = "\n".join(f"| Row {n} of the catch | {n} | {n * 2} | {n * 3} |" for n in range(60))
    names = "|  | Year ended May 31, 2020 | Year ended May 31, 2019 | Year ended May 31, 2018 |"
    text = f"# Catch\n\n{names}\n|---|---|---|---|\n{rows}\n"
    spans = chunk("structure", ChunkInput("Boats", text), word_spans, {"size": 100})
    assert len(spans) > 3
    assert {span.header for span in spans[1:]} == {"Boats > Catch Year ended May 31, 2020 | 2019 | 2018"}


@pytest.mark.parametrize("apart", ["\n\n", ""])
def test_a_line_that_leads_to_a_table_is_with_its_first_rows(apart: str) -> None:
    before = "Boats are counted twice a year, by the harbour master and by the ferry line. " * 8
    lead = "The following table shows the boats of each harbour:"
    rows = "\n".join(f"| Harbour number {n} | {n * 17} | {n * 18} |" for n in range(20))
    text = f"# Boats\n\n{before}{apart}{lead}\n\n| Harbour | Spring | Autumn |\n|---|---|---|\n{rows}\n"
    spans = chunk("structure", ChunkInput("Boats", text), word_spans, {"size": 200})
    passages = [text[span.start : span.end] for span in spans]
    (leading,) = [passage for passage in passages if lead in passage]
    assert "| Harbour number 0 |" in leading
    (rest,) = [span for span in spans if "| Harbour number 19 |" in text[span.start : span.end]]
    header = rest.metadata.get("table_header")
    assert header is None or text[slice(*header)].startswith("| Harbour | Spring |")
    assert all("| Harbour | Spring |" in text[span.start : span.end] or span.metadata.get("table_header")
               for span in spans if "| Harbour number" in text[span.start : span.end])  # fmt: skip


def test_a_heading_of_the_cover_that_is_above_all_pages_does_not_describe_a_passage() -> None:
    text, pages = "# Commission of Harbours\n\n", []
    for number in range(1, 31):
        start = len(text) if number > 1 else 0
        text += f"### Part {number}\n\nWords about the boats of harbour number {number}, and of what they catch there."
        pages.append((number, start, len(text)))
        text += "\n\n"
    spans = chunk("structure", ChunkInput("Boats", text, "pdf", tuple(pages)), word_spans, {"size": 30, "small": 0})
    assert all("Commission" not in span.header for span in spans)
    assert {span.heading_path[0] for span in spans} == {"Commission of Harbours"}
