"""Words of a PDF page with their positions, for highlighting passages on the page image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.errors import UnreadableDocument

if TYPE_CHECKING:
    from liteparse.types import TextItem

PageBox = tuple[float, float, float, float]  # left, top, right, bottom as shares (0..1) of the page


@dataclass(frozen=True, slots=True)
class PageLine:
    """The words of a line on a page, with a box for each."""

    words: tuple[str, ...]
    boxes: tuple[PageBox, ...]


def read_page_lines(data: bytes, number: int, turned: int = 0) -> list[PageLine]:
    """Return the lines of a PDF page in the order in which the reader reads them.

    Args:
        data: Contents of the file.
        number: Page number, from 1.
        turned: Rotation of its text in degrees clockwise. Positions are those on the upright page.

    Raises:
        UnreadableDocument: There is no such page, or it is unreadable.
    """
    from liteparse.parser import LiteParse
    from liteparse.types import ParseError

    parser = LiteParse(
        ocr_enabled=False, quiet=True, image_mode="off", output_format="text",
        target_pages=str(number), emit_word_boxes=True,
        page_orientation_corrections=[(number, turned)] if turned else None,
    )  # fmt: skip
    try:
        pages = parser.parse(data).pages
    except ParseError as error:
        raise UnreadableDocument(f"Failed to read page {number}: {error}.") from error
    if not pages:
        raise UnreadableDocument(f"There is no page {number}.")
    page = pages[0]
    return [line for item in page.text_items if (line := _make_line(item, page.width, page.height)).words]


def _make_line(item: TextItem, width: float, height: float) -> PageLine:
    words = [word for word in item.words or () if word.text.strip()]
    boxes = tuple(
        (
            word.x / width,
            word.y / height,
            (word.x + word.width) / width,
            (word.y + word.height) / height,
        )
        for word in words
    )
    return PageLine(tuple(word.text for word in words), boxes)
