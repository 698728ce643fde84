"""Pictures of pages: a PDF's pages drawn one at a time, and the pages of picture files (a TIFF may have several)."""

from __future__ import annotations

import io
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

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


# --- Pictures of pages turned upright: a scan's small skew, found from how sharply its lines of text stand apart ---

Box = tuple[float, float, float, float]  # left, top, right, bottom

LOOKED_AT = 700  # pixels of the longer side: enough to tell lines apart
WIDEST = 8.0  # degrees to either side
STEPS = (1.0, 0.2, 0.05)  # degrees, each within the step before
LEAST = 0.15  # degrees; less is left as it is


@dataclass(frozen=True, slots=True)
class UprightPage:
    """A page's picture turned by ``angle`` degrees against the clock, and the size it had before, in pixels.

    Before that it was turned by whole ``quarters`` against the clock.
    """

    picture: Image
    angle: float
    width: int
    height: int
    quarters: int = 0

    def on_original(self, box: Box) -> Box:
        """Return the smallest upright box, in shares (0..1) of the picture before, that holds a box of this one."""
        left, top, right, bottom = box
        sine, cosine = math.sin(math.radians(self.angle)), math.cos(math.radians(self.angle))
        across, down = self.picture.width / 2, self.picture.height / 2
        corners = ((left, top), (right, top), (right, bottom), (left, bottom))
        xs = [cosine * (x - across) - sine * (y - down) + self.width / 2 for x, y in corners]
        ys = [sine * (x - across) + cosine * (y - down) + self.height / 2 for x, y in corners]
        share = (
            _share(min(xs), self.width),
            _share(min(ys), self.height),
            _share(max(xs), self.width),
            _share(max(ys), self.height),
        )
        for _ in range(self.quarters):
            left, top, right, bottom = share
            share = (round(1 - bottom, 5), left, round(1 - top, 5), right)
        return share


def upright(picture: Image, quarters: int = 0) -> UprightPage:
    """Turn a page's picture by ``quarters`` against the clock, and then so that its lines of text lie level.

    One that is level stays as it is.
    """
    from PIL.Image import Resampling, Transpose

    ways = (None, Transpose.ROTATE_90, Transpose.ROTATE_180, Transpose.ROTATE_270)
    way = ways[quarters % len(ways)]
    picture = picture if way is None else picture.transpose(way)
    angle = skew(picture)
    if abs(angle) < LEAST:
        return UprightPage(picture, 0.0, picture.width, picture.height, quarters)
    turned = picture.rotate(angle, resample=Resampling.BICUBIC, expand=True, fillcolor=_paper(picture))
    return UprightPage(turned, angle, picture.width, picture.height, quarters)


def skew(picture: Image) -> float:
    """Return the degrees, against the clock, by which turning a page makes its lines level; 0 where it has none.

    The angle at which the ink of neighbouring rows of pixels differs most (W. Postl, Detection of linear oblique
    structures and skew scan in digitized documents, ICPR 1986).
    """
    from PIL.Image import Resampling, fromarray

    grey = picture.convert("L")
    grey.thumbnail((LOOKED_AT, LOOKED_AT), Resampling.BILINEAR)
    pixels = np.asarray(grey, dtype=np.float32)
    ink = fromarray(np.abs(pixels - np.median(pixels)).astype(np.uint8))
    best, reach = 0.0, WIDEST
    for step in STEPS:
        count = round(reach / step)
        angles = [best + step * number for number in range(-count, count + 1)]
        best = max(angles, key=lambda angle: (_sharpness(ink, angle), -abs(angle)))
        reach = step
    return best


def _sharpness(ink: Image, angle: float) -> float:
    from PIL.Image import Resampling

    rows = np.asarray(ink.rotate(angle, resample=Resampling.BILINEAR), dtype=np.float32).sum(axis=1)
    return float(np.square(np.diff(rows)).sum())


def _paper(picture: Image) -> int | tuple[int, ...]:
    """Return the colour that most of a picture has, to fill its corners with."""
    pixels = np.asarray(picture)
    if pixels.ndim == 2:
        return int(np.median(pixels))
    return tuple(int(value) for value in np.median(pixels.reshape(-1, pixels.shape[2]), axis=0))


def _share(value: float, whole: int) -> float:
    return round(min(1.0, max(0.0, value / whole)), 5)
