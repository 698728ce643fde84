"""The words in the pictures of a page that has text of its own: charts, diagrams, screenshots."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from workbench.errors import Cancelled
from workbench.ingestion.ocr.images import Box
from workbench.ingestion.ocr.page_text import PageText, read_page, rows
from workbench.ingestion.ocr.recognition import ReadLine, recogniser
from workbench.types.results import WordPlace

if TYPE_CHECKING:
    from PIL.Image import Image

# --- The extra that reads scans: whether it is installed, and the sentence that names it where it is not ---

ADVICE = "Install the extra that reads scans: pip install 'rag-workbench[ocr]'."


def reads_scans() -> bool:
    """Tell whether the extra ``ocr`` is installed."""
    try:
        return find_spec("rapidocr") is not None
    except (ImportError, ValueError):  # ValueError: a module that was put there without a specification
        return False


SURE = 0.8  # mean confidence of a line that is kept: pictures have shapes that look like letters
APART = 6.0  # times the height of a line: white from top to bottom between two pictures
WORD = re.compile(r"[^\W\d_]{2}")  # without one a group is a page number, or marks of an axis
INK = 230  # of 255: what is lighter is paper
WHITE = 0.06  # of the page's height without ink between two pictures
LOWEST = 0.02  # of the page's height: a picture is higher than a rule or a page number
AROUND = 2  # pixels around the page's own text that are covered


@dataclass(frozen=True, slots=True)
class PictureWords:
    """Words of one picture in one line of text, and its middle as a share (0..1) of the page's height.

    ``places`` are the words' characters in ``text`` and their boxes on the page.
    """

    text: str
    middle: float
    places: tuple[WordPlace, ...] = ()


def picture_words(picture: Image, own_text: Sequence[Box]) -> list[PictureWords]:
    """Read the words of a page's picture that are not among its own text, whose boxes are in shares of the page."""
    from PIL import ImageDraw

    covered = picture.copy()
    draw = ImageDraw.Draw(covered)
    for left, top, right, bottom in own_text:
        draw.rectangle(
            (
                left * picture.width - AROUND,
                top * picture.height - AROUND,
                right * picture.width + AROUND,
                bottom * picture.height + AROUND,
            ),
            fill="white",
        )
    groups = (group for band in _bands(covered) for group in _read(covered, band))
    return [group for group in groups if WORD.search(group.text)]


def _read(page: Image, band: tuple[int, int]) -> list[PictureWords]:
    """Read a band of a page, from top to bottom in pixels: what is smaller takes less memory."""
    top, bottom = band
    lines, _ = recogniser().read(page.crop((0, top, page.width, bottom)))
    return [_words(group, top, page.size) for group in _groups([line for line in lines if _is_sure(line)])]


def _bands(page: Image) -> list[tuple[int, int]]:
    """Return the bands of a page that are inked, from top to bottom in pixels, those of a line's height left out."""
    rows_inked = np.flatnonzero((np.asarray(page.convert("L")) < INK).any(axis=1))
    if not len(rows_inked):
        return []
    breaks = np.flatnonzero(np.diff(rows_inked) > WHITE * page.height)
    tops = [int(rows_inked[0]), *(int(row) for row in rows_inked[breaks + 1])]
    bottoms = [*(int(row) for row in rows_inked[breaks]), int(rows_inked[-1])]
    margin = round(WHITE * page.height / 2)
    return [
        (max(0, top - margin), min(page.height, bottom + margin))
        for top, bottom in zip(tops, bottoms, strict=True)
        if bottom - top > LOWEST * page.height
    ]


def _is_sure(line: ReadLine) -> bool:
    letters = sum(len(word.text) for word in line.words)
    certainty = sum(len(word.text) * word.confidence for word in line.words)
    return letters > 1 and certainty >= SURE * letters


def _groups(lines: Sequence[ReadLine]) -> list[list[ReadLine]]:
    """Put lines of one picture together, from top to bottom."""
    groups: list[list[ReadLine]] = []
    reached = 0.0
    for line in sorted(lines, key=lambda line: line.box[1]):
        if not groups or line.box[1] - reached > APART * (line.box[3] - line.box[1]):
            groups.append([])
        groups[-1].append(line)
        reached = max(reached, line.box[3])
    return groups


def _words(group: Sequence[ReadLine], top: int, size: tuple[int, int]) -> PictureWords:
    """Write the lines of a picture that lie in a band ``top`` pixels down a page of a size in pixels."""
    width, height = size
    text, places = "", []
    for row in rows(group):
        text += ", " if text else ""
        for number, word in enumerate(word for line in row for word in line.words):
            text += " " if number else ""
            left, upper, right, lower = word.box
            places.append(
                WordPlace(
                    start=len(text),
                    end=len(text) + len(word.text),
                    left=_share(left, width),
                    top=_share(top + upper, height),
                    right=_share(right, width),
                    bottom=_share(top + lower, height),
                    confidence=round(word.confidence, 4),
                )
            )
            text += word.text
    middle = (top + (group[0].box[1] + max(line.box[3] for line in group)) / 2) / height
    return PictureWords(text, middle, tuple(places))


def _share(value: float, whole: int) -> float:
    return round(min(1.0, max(0.0, value / whole)), 5)


# --- The pages of one document that are read from their pictures, one after the other, and what is said of them ---

UNSURE = 0.9  # mean confidence of a page's words; pages below are named
OnPage = Callable[[int, int], None]  # (page of the document, pages); called before each, and may raise to stop


@dataclass(frozen=True, slots=True)
class ReadScans:
    """The pages that were read from their pictures, by number, and the numbers of those that failed."""

    pages: dict[int, PageText]
    failed: tuple[int, ...] = ()

    def metadata(self) -> dict[str, object]:
        """Return what the document's metadata say of them: which pages, how sure, and which are uncertain."""
        if not self.pages:
            return {}
        sizes = {number: len(page.text) for number, page in self.pages.items()}
        sure = sum(page.scan.confidence * sizes[number] for number, page in self.pages.items()) / sum(sizes.values())
        unsure = [number for number, page in self.pages.items() if page.scan.confidence < UNSURE]
        facts: dict[str, object] = {"scanned_pages": sorted(self.pages), "ocr_confidence": round(sure, 3)}
        return facts | ({"uncertain_pages": unsure} if unsure else {})


def read_scans(
    numbers: Iterable[int], total: int, picture: Callable[[int], Image], on_page: OnPage | None
) -> ReadScans:
    """Read pages of a document of ``total`` pages; one that fails costs that page. One picture is held at a time."""
    pages: dict[int, PageText] = {}
    failed: list[int] = []
    for number in numbers:
        if on_page is not None:
            on_page(number, total)
        try:
            page = read_page(picture(number), number)
        except Cancelled:
            raise
        except Exception:  # noqa: BLE001 - pictures and models fail in any way they like
            failed.append(number)
            continue
        if page is not None:
            pages[number] = page
    return ReadScans(pages, tuple(failed))
