"""Pages of the sample's articles, printed, rotated by two degrees and blurred, with the place of each word."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from liteparse.parser import LiteParse
from PIL import Image, ImageFilter

from tests.ingestion import files
from workbench.sample import articles_dir
from workbench.types import ScannedPage, WordPlace

DOTS = 150
CHARACTERS = 2_400  # of an article, on its page
NO_PROSE = ("---", "```", "|", "$$")
MARKS = re.compile(r"[*`_\[\]()#>]+")


@dataclass(frozen=True)
class PrintedWord:
    """A word and its box in shares of the picture."""

    text: str
    box: tuple[float, float, float, float]


@dataclass(frozen=True)
class PrintedPage:
    """A page's picture and the words on it."""

    picture: Image.Image
    words: tuple[PrintedWord, ...]


def printed(count: int, turned: float = 2.0, blurred: float = 0.7) -> list[PrintedPage]:
    """Return the first pages of some articles as images, rotated counterclockwise and blurred."""
    chosen = sorted(articles_dir().rglob("*.md"))[:count]
    return [scanned(files.pdf([_story(path.read_text(encoding="utf-8"))]), turned, blurred) for path in chosen]


def scanned(data: bytes, turned: float, blurred: float) -> PrintedPage:
    """Print the first page of a PDF and scan it skewed."""
    parser = LiteParse(
        ocr_enabled=False, quiet=True, output_format="json", emit_word_boxes=True, image_mode="off",
        target_pages="1", extract_screenshots=True, dpi=DOTS,
    )  # fmt: skip
    result = parser.parse(data)
    page = result.pages[0]
    flat = Image.open(io.BytesIO(result.screenshots[0].image_bytes)).convert("L")
    picture = flat.rotate(turned, Image.Resampling.BICUBIC, expand=True, fillcolor=255)
    picture = picture.filter(ImageFilter.GaussianBlur(blurred))
    scale = flat.width / page.width
    words = []
    for word in (word for item in page.text_items for word in item.words):
        box = (word.x * scale, word.y * scale, (word.x + word.width) * scale, (word.y + word.height) * scale)
        words.append(PrintedWord(word.text, _turned(box, turned, flat.size, picture.size)))
    return PrintedPage(picture, tuple(words))


def scan_pdf(pages: Sequence[PrintedPage]) -> bytes:
    """Return a PDF whose pages are only images."""
    target = io.BytesIO()
    first, *others = (page.picture for page in pages)
    first.save(target, "PDF", resolution=DOTS, save_all=True, append_images=others, quality=85)
    return target.getvalue()


def bare(text: str) -> str:
    """Return a word's letters and digits, in lower case."""
    return "".join(character for character in text.casefold() if character.isalnum())


def marked(page: PrintedPage, scan: ScannedPage, text: str) -> list[tuple[PrintedWord, bool]]:
    """Return the words of a page that have letters or digits, and whether OCR marks each at its place."""
    return [(word, bool(places_of(word, scan, text))) for word in page.words if bare(word.text)]


def places_of(word: PrintedWord, scan: ScannedPage, text: str) -> list[WordPlace]:
    """Return the places that OCR gives this word at its printed position: over half of its width, in its line."""
    wanted = bare(word.text)
    left, top, right, bottom = word.box
    return [
        place
        for place in scan.words
        if min(right, place.right) - max(left, place.left) > 0.5 * (right - left)
        and top < (place.top + place.bottom) / 2 < bottom
        and wanted in bare(text[place.start : place.end])
    ]


def _story(markdown: str) -> list[str]:
    body = markdown.split("---\n", 2)[-1]
    paragraphs = [part.strip() for part in body.split("\n\n") if part.strip() and not part.startswith(NO_PROSE)]
    story: list[str] = []
    for part in paragraphs:
        if sum(map(len, story)) + len(part) > CHARACTERS:
            break
        story.append(escape(" ".join(MARKS.sub(" ", part).split())))
    return story


def _turned(
    box: tuple[float, float, float, float], angle: float, before: tuple[int, int], after: tuple[int, int]
) -> tuple[float, float, float, float]:
    """Return the bounding box, in shares of the image, of a box of the image before it was rotated."""
    sine, cosine = math.sin(math.radians(angle)), math.cos(math.radians(angle))
    left, top, right, bottom = box
    points = [(x - before[0] / 2, y - before[1] / 2) for x in (left, right) for y in (top, bottom)]
    xs = [(cosine * x + sine * y + after[0] / 2) / after[0] for x, y in points]
    ys = [(-sine * x + cosine * y + after[1] / 2) / after[1] for x, y in points]
    return min(xs), min(ys), max(xs), max(ys)
