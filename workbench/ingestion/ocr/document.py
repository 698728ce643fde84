"""OCR of a document: pages without text, and words in images on pages that have text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from workbench.errors import Cancelled
from workbench.ingestion.ocr.images import Box, to_share
from workbench.ingestion.ocr.page_text import PageText, group_rows, read_page
from workbench.ingestion.ocr.recognition import ReadLine, get_recogniser
from workbench.types import INSTALL_ADVICE as INSTALL_ADVICE
from workbench.types import SAVED_AS as SAVED_AS
from workbench.types import WordPlace

if TYPE_CHECKING:
    from PIL.Image import Image

# --- The extra ``ocr`` ---


def is_ocr_installed() -> bool:
    """Return whether the extra ``ocr`` is installed."""
    try:
        return find_spec("rapidocr") is not None
    except (ImportError, ValueError):  # ValueError: a module without a spec
        return False


MIN_LINE_CONFIDENCE = 0.8  # minimum mean confidence of a line, because images have shapes that look like letters
IMAGE_GAP_LINES = 6.0  # line heights; minimum white between two images side by side
WORD = re.compile(r"[^\W\d_]{2}")  # a group without a word is a page number or axis labels
MAX_INK_LEVEL = 230  # of 255; lighter pixels are paper
MIN_WHITE_SHARE = 0.06  # of the page's height; minimum white between two images
MIN_IMAGE_SHARE = 0.02  # of the page's height; images are taller than a rule or a page number
MASK_MARGIN_PX = 2  # pixels masked around the page's own text


@dataclass(frozen=True, slots=True)
class PictureWords:
    """Words of one image on a single line."""

    text: str  # the words
    middle: float  # middle of the image as a share (0..1) of the page's height
    places: tuple[WordPlace, ...] = ()  # position of each word in ``text``, and its box on the page


def read_picture_words(
    picture: Image, own_text: Sequence[Box], min_share: float = MIN_IMAGE_SHARE
) -> list[PictureWords]:
    """Read the words on a page image that are not part of its own text.

    Args:
        picture: Image of the page.
        own_text: Boxes of its own text, in shares of the page.
        min_share: Height of the lowest image that is read, as a share of the page's.
    """
    from PIL import ImageDraw

    covered = picture.copy()
    draw = ImageDraw.Draw(covered)
    for left, top, right, bottom in own_text:
        draw.rectangle(
            (
                left * picture.width - MASK_MARGIN_PX,
                top * picture.height - MASK_MARGIN_PX,
                right * picture.width + MASK_MARGIN_PX,
                bottom * picture.height + MASK_MARGIN_PX,
            ),
            fill="white",
        )
    groups = (group for band in _find_bands(covered, min_share) for group in _read_band(covered, band))
    return [group for group in groups if WORD.search(group.text)]


def _read_band(page: Image, band: tuple[int, int]) -> list[PictureWords]:
    """Read a horizontal band of a page, given in pixels. Bands need less memory than pages."""
    top, bottom = band
    lines, _ = get_recogniser().read(page.crop((0, top, page.width, bottom)))
    return [
        _join_lines(group, top, page.size) for group in _group_lines([line for line in lines if _is_confident(line)])
    ]


def _find_bands(page: Image, min_share: float) -> list[tuple[int, int]]:
    """Return the bands of a page that contain ink, in pixels, except those only as thick as a rule."""
    rows_inked = np.flatnonzero((np.asarray(page.convert("L")) < MAX_INK_LEVEL).any(axis=1))
    if not len(rows_inked):
        return []
    breaks = np.flatnonzero(np.diff(rows_inked) > MIN_WHITE_SHARE * page.height)
    tops = [int(rows_inked[0]), *(int(row) for row in rows_inked[breaks + 1])]
    bottoms = [*(int(row) for row in rows_inked[breaks]), int(rows_inked[-1])]
    margin = round(MIN_WHITE_SHARE * page.height / 2)
    return [
        (max(0, top - margin), min(page.height, bottom + margin))
        for top, bottom in zip(tops, bottoms, strict=True)
        if bottom - top > min_share * page.height
    ]


def _is_confident(line: ReadLine) -> bool:
    letters = sum(len(word.text) for word in line.words)
    certainty = sum(len(word.text) * word.confidence for word in line.words)
    return letters > 1 and certainty >= MIN_LINE_CONFIDENCE * letters


def _group_lines(lines: Sequence[ReadLine]) -> list[list[ReadLine]]:
    """Group lines by image, from top to bottom."""
    groups: list[list[ReadLine]] = []
    reached = 0.0
    for line in sorted(lines, key=lambda line: line.box[1]):
        if not groups or line.box[1] - reached > IMAGE_GAP_LINES * (line.box[3] - line.box[1]):
            groups.append([])
        groups[-1].append(line)
        reached = max(reached, line.box[3])
    return groups


def _join_lines(group: Sequence[ReadLine], top: int, size: tuple[int, int]) -> PictureWords:
    """Join the lines of an image in a band that starts ``top`` pixels down a page of the given size in pixels."""
    width, height = size
    text, places = "", []
    for row in group_rows(group):
        text += ", " if text else ""
        for number, word in enumerate(word for line in row for word in line.words):
            text += " " if number else ""
            left, upper, right, lower = word.box
            places.append(
                WordPlace(
                    start=len(text),
                    end=len(text) + len(word.text),
                    left=to_share(left, width),
                    top=to_share(top + upper, height),
                    right=to_share(right, width),
                    bottom=to_share(top + lower, height),
                    confidence=round(word.confidence, 4),
                )
            )
            text += word.text
    middle = (top + (group[0].box[1] + max(line.box[3] for line in group)) / 2) / height
    return PictureWords(text, middle, tuple(places))


# --- Pages read by OCR ---

MIN_PAGE_CONFIDENCE = 0.9  # mean confidence of a page's words; pages below it are reported
# Called with (page, pages, is_slow): after each page that was parsed, and before each that OCR reads, which is slow.
OnPage = Callable[[int, int, bool], None]  # may raise to stop


@dataclass(frozen=True, slots=True)
class ReadScans:
    """Pages read by OCR, by number, and the numbers of pages that failed."""

    pages: dict[int, PageText]
    failed: tuple[int, ...] = ()

    def metadata(self) -> dict[str, object]:
        """Return metadata on which pages were read by OCR, the confidence, and which pages are uncertain."""
        if not self.pages:
            return {}
        sizes = {number: len(page.text) for number, page in self.pages.items()}
        sure = sum(page.scan.confidence * sizes[number] for number, page in self.pages.items()) / sum(sizes.values())
        unsure = [number for number, page in self.pages.items() if page.scan.confidence < MIN_PAGE_CONFIDENCE]
        facts: dict[str, object] = {"scanned_pages": sorted(self.pages), "ocr_confidence": round(sure, 3)}
        return facts | ({"uncertain_pages": unsure} if unsure else {})


def read_scans(
    numbers: Iterable[int], total: int, picture: Callable[[int], Image], on_page: OnPage | None
) -> ReadScans:
    """Read pages by OCR, with one image in memory at a time. An error affects only its page.

    Args:
        numbers: Pages to read, from 1.
        total: Number of pages in the document.
        picture: Returns the image of a page.
        on_page: Called before each page; may raise to stop.
    """
    pages: dict[int, PageText] = {}
    failed: list[int] = []
    for number in numbers:
        if on_page is not None:
            on_page(number, total, True)
        try:
            page = read_page(picture(number), number)
        except Cancelled:
            raise
        except Exception:  # noqa: BLE001 - decoders and models raise any exception
            failed.append(number)
            continue
        if page is not None:
            pages[number] = page
    return ReadScans(pages, tuple(failed))
