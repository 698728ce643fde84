"""Images on pages that have text: which pages to read with OCR, and where to insert the words in their text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.ingestion.ocr.document import PictureWords
from workbench.ingestion.ocr.page_text import mean_confidence
from workbench.ingestion.readers.pdf.layout import PageTexts
from workbench.ingestion.readers.pdf.rebuilt import list_blocks
from workbench.types import ScannedPage, WordPlace

if TYPE_CHECKING:
    from liteparse.types import ParsedPage

    from workbench.ingestion.ocr.images import Box

MIN_IMAGE_SHARE = 0.04  # smallest share of the page covered by an image that is read; logos are smaller
MAX_IMAGE_PAGES = 40  # pages per file whose images are read, largest images first; each takes a second or two
CAPTION = re.compile(r"\W*(?:figure|fig\.|chart|exhibit|graph|abbildung|abb\.|figura|图|圖|図)\s*\d", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PageCharts:
    """The images of a page that has text.

    Attributes:
        share: Fraction (0..1) of the page covered by its largest image.
        text: Boxes of the page's own text, in shares of the page.
        captions: (index among the page's blocks, middle as a share of the page's height) of each caption.
    """

    share: float
    text: tuple[Box, ...]
    captions: tuple[tuple[int, float], ...]


NO_CHARTS = PageCharts(0.0, (), ())


def find_charts(page: ParsedPage) -> PageCharts:
    """Return data about the images of a page that was parsed with its complexity."""
    share = page.complexity.largest_image_coverage if page.complexity is not None else 0.0
    if share < MIN_IMAGE_SHARE or not page.width or not page.height:
        return NO_CHARTS
    boxes = tuple(
        (
            item.x / page.width,
            item.y / page.height,
            (item.x + item.width) / page.width,
            (item.y + item.height) / page.height,
        )
        for item in page.text_items
        if item.text.strip()
    )
    blocks, texts = list_blocks(page), page.markdown.split("\n\n")
    captions = tuple(
        (place, (block.box[1] + block.box[3]) / 2 / page.height)
        for place, (block, text) in enumerate(zip(blocks, texts, strict=False))
        if len(blocks) == len(texts) and block.box is not None and CAPTION.match(text)
    )
    return PageCharts(share, boxes, captions)


def select_largest(charts: Iterable[tuple[int, PageCharts]]) -> list[int]:
    """Return the numbers of the pages whose images are to be read, in page order."""
    shares = sorted(((chart.share, number) for number, chart in charts if chart.share), reverse=True)
    return sorted(number for _, number in shares[:MAX_IMAGE_PAGES])


def insert_picture_words(texts: PageTexts, charts: PageCharts, words: Sequence[PictureWords]) -> PageTexts:
    """Return a page's texts with the words of its images, each group after the nearest caption.

    Without a caption they become the last block.
    """
    blocks = list(texts.blocks)
    for group in words:
        if charts.captions:
            place = min(charts.captions, key=lambda caption: abs(caption[1] - group.middle))[0]
            between = "\n\n" if blocks[place].startswith("#") else " · "
            blocks[place] = f"{blocks[place]}{between}{group.text}"
        else:
            blocks.append(group.text)
    return PageTexts(texts.number, tuple(blocks), texts.margins)


def place_picture_words(text: str, number: int, words: Sequence[PictureWords]) -> ScannedPage | None:
    """Return the words of a page's images with their positions in its text, or None if it contains none of them."""
    places: list[WordPlace] = []
    after: dict[str, int] = {}  # of two images with the same words, the second comes after the first
    for group in words:
        start = text.find(group.text, after.get(group.text, 0))
        if start < 0:
            continue
        after[group.text] = start + len(group.text)
        places += [place.shift(start) for place in group.places]
    if not places:
        return None
    places.sort(key=lambda place: place.start)
    return ScannedPage(number, mean_confidence(places), tuple(places))
