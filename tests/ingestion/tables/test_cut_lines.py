"""Lines that the parser cut at the columns of a nearby table are restored, and tables stay tables."""

from __future__ import annotations

from liteparse.types import AnnotationRect, LayoutBlock, LayoutCell, ParsedPage, TextItem

from workbench.ingestion.readers.pdf.layout import make_page_texts, restore_cut_lines, strip_running_lines

COLUMNS = (40.0, 230.0)
ROWS = (("Herring fleet", "Kirkwall"), ("Oyster fleet", "Stromness"), ("Crab fleet", "Tobermory"))
PROSE = (
    "Most of our boats are kept in sheds over the winter months, and the towns along",
    "this coast own the moorings that we use. They are in good condition and large enough.",
)
CUT = ("Most of our boats are kept in sheds over this coast own the moorings that we use. They are",
       "the winter months, and the towns along in good condition and large enough.")  # fmt: skip


def _item(text: str, left: float, top: float) -> TextItem:
    return TextItem(text=text, x=left, y=top, width=4.5 * len(text), height=10.0, font_name="Times", font_size=10.0)


def _row(texts: tuple[str, str], top: float, height: float = 10.0) -> list[LayoutCell]:
    return [
        LayoutCell(text=text, bbox=AnnotationRect(x=left, y=top, width=150, height=height))
        for text, left in zip(texts, COLUMNS, strict=True)
    ]


def _page(rows: list[list[LayoutCell]], items: list[TextItem], markdown: str) -> ParsedPage:
    box = AnnotationRect(x=40, y=100, width=420, height=100)
    block = LayoutBlock(kind="table", header=rows[0], rows=rows[1:], bbox=box)
    return ParsedPage(
        page_num=1, width=595, height=842, text=markdown, markdown=markdown, text_items=items, blocks=[block]
    )


def _table(rows: list[list[LayoutCell]]) -> str:
    lines = ["| " + " | ".join(cell.text for cell in row) + " |" for row in rows]
    return "\n".join([lines[0], "|---|---|", *lines[1:]])


def _with_prose() -> ParsedPage:
    rows = [_row(texts, 100 + 12 * place) for place, texts in enumerate(ROWS)] + [_row(CUT, 140, 24)]
    items = [
        _item(text, left, 100 + 12 * place)
        for place, texts in enumerate(ROWS)
        for text, left in zip(texts, COLUMNS, strict=True)
    ]
    return _page(rows, items + [_item(line, 40, 140 + 12 * place) for place, line in enumerate(PROSE)], _table(rows))


def test_prose_below_a_table_is_read_in_whole_lines_and_the_rows_above_it_stay_a_table() -> None:
    (text,) = strip_running_lines([make_page_texts(_with_prose())])
    table, prose = text.split("\n\n")
    assert table.splitlines()[0] == "| Herring fleet | Kirkwall |"
    assert table.splitlines()[-1] == "| Crab fleet | Tobermory |"
    assert prose == " ".join(PROSE)


def test_a_table_whose_cells_hold_whole_lines_stays_as_the_parser_has_it() -> None:
    rows = [_row(texts, 100 + 12 * place) for place, texts in enumerate(ROWS)]
    items = [
        _item(text, left, 100 + 12 * place)
        for place, texts in enumerate(ROWS)
        for text, left in zip(texts, COLUMNS, strict=True)
    ]
    page = _page(rows, items, _table(rows))
    assert restore_cut_lines(page, [page.markdown]) == [page.markdown]


def test_columns_of_prose_that_were_taken_for_a_table_are_read_one_after_the_other() -> None:
    left = (
        "The harbour opens at six and closes",
        "at ten in the evening, on all days",
        "but the first of January each year.",
    )
    right = (
        "Boats that lie here over night pay",
        "for a whole day, and crews may use",
        "the showers in the old fish market.",
    )
    mixed = [_row(("The harbour opens at six and", "closes Boats that lie here over night pay"), 100),
             _row(("at ten in the evening, on all", "days for a whole day, and crews may use"), 112),
             _row(("but the first of January each", "year. the showers in the old fish market."), 124)]  # fmt: skip
    items = [
        _item(text, column, 100 + 12 * place)
        for column, texts in ((40.0, left), (260.0, right))
        for place, text in enumerate(texts)
    ]
    page = _page(mixed, items, _table(mixed))
    (text,) = restore_cut_lines(page, [page.markdown])
    assert text.split("\n\n") == [" ".join(left), " ".join(right)]
