"""Images of pages: rendered PDF pages and the pages of image files (a TIFF may have several)."""

from __future__ import annotations

import io
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from workbench.errors import UnreadableDocument

if TYPE_CHECKING:
    from PIL.Image import Image

RENDER_DPI = 150  # dots per inch of a rendered page
MAX_SIDE_PX = 2000  # pixels of an image's longer side
POINTS_PER_INCH = 72  # per inch
PDF_MEDIA_TYPE = "application/pdf"


def render_page(
    data: bytes,
    media_type: str,
    number: int,
    points: tuple[float, float] | None = None,
    turned: int = 0,
    dots: float = RENDER_DPI,
) -> Image:
    """Return the image of a page.

    Args:
        data: Contents of the file.
        media_type: Its media type.
        number: Page number, from 1.
        points: Width and height of a PDF page, if known.
        turned: Rotation of a PDF page's text in degrees clockwise. It is rendered upright.
        dots: Resolution in dots per inch.

    Raises:
        UnreadableDocument: There is no such page, or it is unreadable.
    """
    return (
        _render_pdf_page(data, number, points, turned, dots)
        if media_type == PDF_MEDIA_TYPE
        else load_image_page(data, number)
    )


def count_image_pages(data: bytes) -> int:
    """Return the number of pages in an image file; a damaged last page counts.

    Raises:
        UnreadableDocument: It is not an image, or its first page is damaged.
    """
    from PIL import Image

    try:
        with Image.open(io.BytesIO(data)) as file:
            return _count_frames(file) if file.format == "TIFF" else 1
    except Exception as error:  # decoders raise any exception
        raise UnreadableDocument(f"It is not an image that can be opened: {error}.") from error


def _count_frames(file: Image) -> int:
    count = 1
    while True:
        try:
            file.seek(count)
        except EOFError:
            return count
        except Exception:  # noqa: BLE001 - the next page is damaged, so later ones are unreachable
            return count + 1
        count += 1


def load_image_page(data: bytes, number: int) -> Image:
    """Return a page (from 1) of an image file, upright, in RGB, and scaled down to the size that is read.

    Raises:
        UnreadableDocument: There is no such page, or it is damaged.
    """
    from PIL import Image, ImageOps

    try:
        with Image.open(io.BytesIO(data)) as file:
            if number > 1:
                file.seek(number - 1)
            file.draft("RGB", (MAX_SIDE_PX, MAX_SIDE_PX))  # scales a large JPEG down while decoding
            picture = _flatten_on_white(ImageOps.exif_transpose(file))
            picture.thumbnail((MAX_SIDE_PX, MAX_SIDE_PX), Image.Resampling.LANCZOS)
            return picture
    except Exception as error:  # decoders raise any exception
        raise UnreadableDocument(f"Failed to render page {number}: {error}.") from error


def _flatten_on_white(picture: Image) -> Image:
    from PIL import Image

    if picture.mode not in ("RGBA", "LA", "PA") and "transparency" not in picture.info:
        return picture.convert("RGB")
    see_through = picture.convert("RGBA")
    paper = Image.new("RGBA", see_through.size, "white")
    paper.alpha_composite(see_through)
    return paper.convert("RGB")


def _render_pdf_page(data: bytes, number: int, points: tuple[float, float] | None, turned: int, most: float) -> Image:
    from liteparse.parser import LiteParse
    from liteparse.types import ParseError
    from PIL import Image

    dots = most if points is None else min(most, MAX_SIDE_PX * POINTS_PER_INCH / max(1.0, *points))
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
        raise UnreadableDocument(f"Failed to render page {number}: {error}.") from error


# --- Deskewing scans ---

Box = tuple[float, float, float, float]  # left, top, right, bottom

SKEW_SIDE_PX = 700  # pixels of the longer side, enough to separate lines
MAX_SKEW_DEG = 8.0  # degrees in either direction
SKEW_STEPS_DEG = (1.0, 0.2, 0.05)  # degrees; each refines the one before
MIN_SKEW_DEG = 0.15  # degrees; a smaller skew is ignored


@dataclass(frozen=True, slots=True)
class UprightPage:
    """A deskewed page image."""

    picture: Image  # the image
    angle: float  # degrees of rotation applied, counterclockwise
    width: int  # original width, in pixels
    height: int  # original height, in pixels
    quarters: int = 0  # quarter turns applied before the angle, counterclockwise

    def on_original(self, box: Box) -> Box:
        """Convert a box in this image to its bounding box in the original, as fractions (0..1) of its size."""
        left, top, right, bottom = box
        sine, cosine = math.sin(math.radians(self.angle)), math.cos(math.radians(self.angle))
        across, down = self.picture.width / 2, self.picture.height / 2
        corners = ((left, top), (right, top), (right, bottom), (left, bottom))
        xs = [cosine * (x - across) - sine * (y - down) + self.width / 2 for x, y in corners]
        ys = [sine * (x - across) + cosine * (y - down) + self.height / 2 for x, y in corners]
        share = (
            to_share(min(xs), self.width),
            to_share(min(ys), self.height),
            to_share(max(xs), self.width),
            to_share(max(ys), self.height),
        )
        for _ in range(self.quarters):
            left, top, right, bottom = share
            share = (round(1 - bottom, 5), left, round(1 - top, 5), right)
        return share


def deskew(picture: Image, quarters: int = 0) -> UprightPage:
    """Turn a page image by ``quarters`` counterclockwise, then deskew it if its lines are not level."""
    from PIL.Image import Resampling, Transpose

    ways = (None, Transpose.ROTATE_90, Transpose.ROTATE_180, Transpose.ROTATE_270)
    way = ways[quarters % len(ways)]
    picture = picture if way is None else picture.transpose(way)
    angle = measure_skew(picture)
    if abs(angle) < MIN_SKEW_DEG:
        return UprightPage(picture, 0.0, picture.width, picture.height, quarters)
    turned = picture.rotate(angle, resample=Resampling.BICUBIC, expand=True, fillcolor=_paper_colour(picture))
    return UprightPage(turned, angle, picture.width, picture.height, quarters)


def measure_skew(picture: Image) -> float:
    """Return the counterclockwise rotation, in degrees, that makes a page's lines level; 0 if it has none.

    This is the angle at which the ink of neighbouring pixel rows differs most (W. Postl, Detection of linear oblique
    structures and skew scan in digitized documents, ICPR 1986).
    """
    from PIL.Image import Resampling, fromarray

    grey = picture.convert("L")
    grey.thumbnail((SKEW_SIDE_PX, SKEW_SIDE_PX), Resampling.BILINEAR)
    pixels = np.asarray(grey, dtype=np.float32)
    ink = fromarray(np.abs(pixels - np.median(pixels)).astype(np.uint8))
    best, reach = 0.0, MAX_SKEW_DEG
    for step in SKEW_STEPS_DEG:
        count = round(reach / step)
        angles = [best + step * number for number in range(-count, count + 1)]
        best = max(angles, key=lambda angle: (_row_sharpness(ink, angle), -abs(angle)))
        reach = step
    return best


def _row_sharpness(ink: Image, angle: float) -> float:
    from PIL.Image import Resampling

    rows = np.asarray(ink.rotate(angle, resample=Resampling.BILINEAR), dtype=np.float32).sum(axis=1)
    return float(np.square(np.diff(rows)).sum())


def _paper_colour(picture: Image) -> int | tuple[int, ...]:
    """Return the most frequent colour of an image, to fill its corners with."""
    pixels = np.asarray(picture)
    if pixels.ndim == 2:
        return int(np.median(pixels))
    return tuple(int(value) for value in np.median(pixels.reshape(-1, pixels.shape[2]), axis=0))


def to_share(value: float, whole: int) -> float:
    """Return pixels as a share (0..1) of an image's side."""
    return round(min(1.0, max(0.0, value / whole)), 5)
