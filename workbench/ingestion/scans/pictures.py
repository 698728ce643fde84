"""Pictures of pages: a PDF's pages drawn one at a time, and the pages of picture files (a TIFF may have several)."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from workbench.errors import UnreadableDocument

if TYPE_CHECKING:
    from PIL.Image import Image

DOTS = 150  # to the inch, of a drawn page
LONGEST = 2000  # pixels of a picture's longer side
POINTS = 72  # to the inch
PDF = "application/pdf"


def page_picture(
    data: bytes,
    media_type: str,
    number: int,
    points: tuple[float, float] | None = None,
    turned: int = 0,
    dots: float = DOTS,
) -> Image:
    """Return the picture of a page (from 1) of a file; ``points`` are a PDF page's width and height, where known.

    ``turned`` are the degrees, with the clock, by which a PDF page's text is turned; it is drawn upright, at ``dots``
    to the inch.

    Raises:
        UnreadableDocument: there is no such page, or it cannot be drawn.
    """
    return _pdf_page(data, number, points, turned, dots) if media_type == PDF else picture_page(data, number)


def picture_pages(data: bytes) -> int:
    """Return how many pages a picture file has, a damaged last one counted.

    Raises:
        UnreadableDocument: it is no picture, or damaged from its beginning.
    """
    from PIL import Image

    try:
        with Image.open(io.BytesIO(data)) as file:
            return _count(file) if file.format == "TIFF" else 1
    except Exception as error:  # its readers fail in any way they like
        raise UnreadableDocument(f"It is no picture that can be opened: {error}.") from error


def _count(file: Image) -> int:
    count = 1
    while True:
        try:
            file.seek(count)
        except EOFError:
            return count
        except Exception:  # noqa: BLE001 - the next page is damaged, and with it the way to all after it
            return count + 1
        count += 1


def picture_page(data: bytes, number: int) -> Image:
    """Return a page (from 1) of a picture file, the right way up, in colours and no larger than is read.

    Raises:
        UnreadableDocument: there is no such page, or it is damaged.
    """
    from PIL import Image, ImageOps

    try:
        with Image.open(io.BytesIO(data)) as file:
            if number > 1:
                file.seek(number - 1)
            file.draft("RGB", (LONGEST, LONGEST))  # a large JPEG is made smaller while it is decoded
            picture = _on_white(ImageOps.exif_transpose(file))
            picture.thumbnail((LONGEST, LONGEST), Image.Resampling.LANCZOS)
            return picture
    except Exception as error:  # its readers fail in any way they like
        raise UnreadableDocument(f"Page {number} cannot be drawn: {error}.") from error


def _on_white(picture: Image) -> Image:
    from PIL import Image

    if picture.mode not in ("RGBA", "LA", "PA") and "transparency" not in picture.info:
        return picture.convert("RGB")
    see_through = picture.convert("RGBA")
    paper = Image.new("RGBA", see_through.size, "white")
    paper.alpha_composite(see_through)
    return paper.convert("RGB")


def _pdf_page(data: bytes, number: int, points: tuple[float, float] | None, turned: int, most: float) -> Image:
    from liteparse.parser import LiteParse
    from liteparse.types import ParseError
    from PIL import Image

    dots = most if points is None else min(most, LONGEST * POINTS / max(1.0, *points))
    parser = LiteParse(
        ocr_enabled=False, quiet=True, image_mode="off", output_format="text",
        target_pages=str(number), extract_screenshots=True, dpi=dots,
        page_orientation_corrections=[(number, turned)] if turned else None,
    )  # fmt: skip
    try:
        drawn = parser.parse(data).screenshots
        if not drawn:
            raise UnreadableDocument(f"There is no page {number}.")
        with Image.open(io.BytesIO(drawn[0].image_bytes)) as picture:
            return picture.convert("RGB")
    except (ParseError, OSError) as error:
        raise UnreadableDocument(f"Page {number} cannot be drawn: {error}.") from error
