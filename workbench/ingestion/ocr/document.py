"""OCR of a document: pages without text, and words in images on pages that have text.

Printed words are recognised by rapidocr with the models from its wheel. Nothing is downloaded: models are loaded from a
path, and a missing one raises an error before the engine starts.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from statistics import median, median_low
from typing import TYPE_CHECKING, Literal

import numpy as np

from workbench.errors import Cancelled, ConfigurationError
from workbench.ingestion.ocr.images import Box, UprightPage, deskew, to_share
from workbench.ingestion.text import normalise
from workbench.types import INSTALL_ADVICE as INSTALL_ADVICE
from workbench.types import SAVED_AS as SAVED_AS
from workbench.types import ScannedPage, WordPlace

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from PIL.Image import Image
    from rapidocr import RapidOCR

# --- Detection of lines, in bands to bound memory ---

DETECTION_SIDE_PX = 1280  # pixels of the longer side for detection; 960 loses 6-point print
MAX_BAND_PX = 256  # of these pixels; maximum height of a band
BAND_OVERLAP_PX = 64  # of these pixels; overlap of two bands, so that any lower line is whole in one of them
SIZE_MULTIPLE_PX = 32  # pixels; the model requires multiples
MIN_BOX_OVERLAP = 0.5  # share of the smaller box inside the other if both are the same line


def detect_lines(engine: RapidOCR, colours: NDArray[np.uint8]) -> list[Box]:
    """Return the bounding boxes, in pixels, of the lines in an image (height, width, 3), unordered."""
    import cv2

    height, width = colours.shape[:2]
    scale = min(1.0, DETECTION_SIDE_PX / max(height, width))
    size = (_round_to_multiple(width * scale), _round_to_multiple(height * scale))
    looked_at = cv2.resize(colours, size).astype(np.uint8, copy=False)
    found: list[Box] = []
    for top, bottom in _split_bands(size[1]):
        boxes = _detect_band_lines(engine, looked_at[top:bottom])
        found = _join_boxes(found, [(left, up + top, right, down + top) for left, up, right, down in boxes])
    across, down = width / size[0], height / size[1]
    return [(left * across, top * down, right * across, bottom * down) for left, top, right, bottom in found]


def _round_to_multiple(length: float) -> int:
    return max(SIZE_MULTIPLE_PX, round(length / SIZE_MULTIPLE_PX) * SIZE_MULTIPLE_PX)


def _split_bands(height: int) -> list[tuple[int, int]]:
    """Return bands from top to bottom, each overlapping the previous one."""
    bands = [(0, min(MAX_BAND_PX, height))]
    while bands[-1][1] < height:
        top = bands[-1][1] - BAND_OVERLAP_PX
        bands.append((top, min(top + MAX_BAND_PX, height)))
    return bands


def _detect_band_lines(engine: RapidOCR, band: NDArray[np.uint8]) -> list[Box]:
    from rapidocr.main import RapidOCRError

    padding: dict[str, dict[str, int]] = {}
    try:
        _, detected = engine.detect_and_crop(band, padding)
    except RapidOCRError:  # no text found
        return []
    above = padding["padding_1"]["top"]  # rows of padding added above a flat image
    return [
        (*corners.min(axis=0) - (0, above), *corners.max(axis=0) - (0, above))
        for corners in (detected.boxes if detected.boxes is not None else ())
    ]


def _join_boxes(above: list[Box], band: list[Box]) -> list[Box]:
    """Merge the boxes of the next band into those above. A line found in both, whole or cut, becomes one box."""
    joined = list(band)
    kept: list[Box] = []
    for box in above:
        same = [other for other in joined if _is_same_line(box, other)]
        if not same:
            kept.append(box)
            continue
        joined = [*(other for other in joined if other not in same), bounding_box([box, *same])]
    return kept + joined


def _is_same_line(one: Box, other: Box) -> bool:
    across = min(one[2], other[2]) - max(one[0], other[0])
    down = min(one[3], other[3]) - max(one[1], other[1])
    if across <= 0 or down <= 0:
        return False
    return across * down > MIN_BOX_OVERLAP * min((box[2] - box[0]) * (box[3] - box[1]) for box in (one, other))


MODEL_FILES = {
    "Det.model_path": "PP-OCRv6_det_small.onnx",
    "Cls.model_path": "ch_ppocr_mobile_v2.0_cls_mobile.onnx",
    "Rec.model_path": "PP-OCRv6_rec_small.onnx",
}
THREADS = 2
MAX_LINE_ASPECT = 20  # times its height; the recogniser squeezes wider lines until letters touch
MIN_LINE_CONFIDENCE = 0.5  # minimum mean confidence of a line segment
MIN_GAP_SHARE = 0.15  # of a line's height; minimum width of a gap between words
MIN_LINE_ASPECT = 2  # aspect ratio of a line with several letters
MIN_TURNED_SHARE = 0.3  # of the length of all lines; the classifier is often wrong about single lines
MIN_INK_SHARE = 0.04  # of the darkest column's ink; less is paper

Orientation = Literal["upright", "side", "head"]
_Pixels = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class ReadWord:
    """A recognised word."""

    text: str  # the word
    confidence: float  # confidence, 0..1
    box: Box  # box in pixels


@dataclass(frozen=True, slots=True)
class ReadLine:
    """Words of one line from left to right, and their bounding box in pixels."""

    words: tuple[ReadWord, ...]
    box: Box


class Recogniser:
    """The OCR engine and its models, used by one thread at a time."""

    def __init__(self, folder: Path) -> None:
        """Load the models in a folder.

        Raises:
            ConfigurationError: One of them is missing.
        """
        from rapidocr import RapidOCR

        missing = [name for name in MODEL_FILES.values() if not (folder / name).is_file()]
        if missing:
            raise ConfigurationError(
                f"OCR models are missing from the rapidocr package ({', '.join(missing)}). "
                "Reinstall it: pip install --force-reinstall rapidocr."
            )
        paths: dict[str, str | int | bool] = {option: str(folder / name) for option, name in MODEL_FILES.items()}
        threads: dict[str, str | int | bool] = {
            "EngineConfig.onnxruntime.intra_op_num_threads": THREADS,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
        }
        wishes: dict[str, str | int | bool] = {
            "Global.log_level": "critical",
            "Global.return_word_box": True,
            "Det.limit_type": "max",
            "Det.limit_side_len": DETECTION_SIDE_PX,
            "Rec.rec_batch_num": 1,  # larger batches are not faster on a CPU and need more memory
        }
        self._engine: RapidOCR = RapidOCR(params=paths | threads | wishes)
        self._turn = threading.Lock()

    def read(self, picture: Image) -> tuple[list[ReadLine], Orientation]:
        """Return the lines of text in an image, unordered, and its orientation.

        For "side", no lines are returned; rotate the image by a quarter turn. "head" means that it may be upside down;
        compare the lines.
        """
        from rapidocr.main import RapidOCRError

        rgb = picture if picture.mode == "RGB" else picture.convert("RGB")
        colours, grey = np.asarray(rgb), np.asarray(picture.convert("L"))
        with self._turn:
            try:
                bounds = [_pixel_bounds(place, grey) for place in detect_lines(self._engine, colours)]
                boxes = [box for box in bounds if box is not None]
                if _is_sideways(boxes):
                    return [], "side"
                pieces = [piece for box in boxes for piece in _split_wide_line(grey, box)]
                return self._read(colours, pieces) if pieces else ([], "upright")
            except RapidOCRError:  # no text found
                return [], "upright"

    def _read(self, colours: NDArray[np.uint8], boxes: Sequence[_Pixels]) -> tuple[list[ReadLine], Orientation]:
        crops = [colours[top:bottom, left:right] for left, top, right, bottom in boxes]
        turned, ways = self._engine.cls_and_rotate(crops)
        lying: Orientation = "head" if _may_be_upside_down(boxes, ways.cls_res or ()) else "upright"
        found = self._engine.recognize_txt(turned)
        texts, results = list(found.txts or ()), list(found.word_results)
        kept = [number for number, text in enumerate(texts) if text.strip() and results[number]]
        if not kept:
            return [], lying
        corners = np.array([[(le, to), (ri, to), (ri, bo), (le, bo)] for le, to, ri, bo in boxes], dtype=np.float32)
        chosen = replace(
            found,
            txts=tuple(texts[number] for number in kept),
            scores=[found.scores[number] for number in kept],
            word_results=tuple(results[number] for number in kept),
        )
        places = self._engine.calc_word_boxes([turned[number] for number in kept], corners[kept], chosen)
        lines = (
            ReadLine(_assemble_words(texts[number], pieces), boxes[number])
            for number, pieces in zip(kept, places, strict=True)
            if found.scores[number] >= MIN_LINE_CONFIDENCE
        )
        return [line for line in lines if any(map(str.isalnum, "".join(word.text for word in line.words)))], lying


@lru_cache(maxsize=1)
def get_recogniser() -> Recogniser:
    """Return the recogniser of this process, created on first use."""
    import rapidocr

    return Recogniser(Path(rapidocr.__file__).parent / "models")


def _is_sideways(boxes: Sequence[_Pixels]) -> bool:
    """Return whether most lines are vertical, weighted by length."""
    lengths = [(bottom - top, right - left) for left, top, right, bottom in boxes]
    tall = sum(height for height, width in lengths if height > MIN_LINE_ASPECT * width)
    return tall > sum(width for height, width in lengths if width > MIN_LINE_ASPECT * height)


def _may_be_upside_down(boxes: Sequence[_Pixels], ways: Sequence[tuple[str, float]]) -> bool:
    """Return whether the classifier considers many lines upside down, weighted by length."""
    lengths = [right - left for left, _, right, _ in boxes]
    turned = sum(length for length, (way, _) in zip(lengths, ways, strict=False) if way == "180")
    return turned > MIN_TURNED_SHARE * sum(lengths)


def _assemble_words(text: str, pieces: Sequence[tuple[str, float, Sequence[Sequence[float]]]]) -> tuple[ReadWord, ...]:
    """Assemble the words of a line from the engine's pieces (parts of words, single symbols)."""
    words: list[ReadWord] = []
    cursor, ended = 0, 0
    for piece, confidence, corners in pieces:
        start = text.find(piece, cursor)
        if start < 0 or not (normal := normalise(piece).strip()):
            continue
        cursor = start + len(piece)
        xs, ys = zip(*corners, strict=True)
        word = ReadWord(normal, float(confidence), (min(xs), min(ys), max(xs), max(ys)))
        if words and start == ended:
            words[-1] = _join_words(words[-1], word)
        else:
            words.append(word)
        ended = cursor
    return tuple(words)


def _join_words(first: ReadWord, second: ReadWord) -> ReadWord:
    sizes = len(first.text), len(second.text)
    confidence = (first.confidence * sizes[0] + second.confidence * sizes[1]) / sum(sizes)
    return ReadWord(first.text + second.text, confidence, bounding_box((first.box, second.box)))


def bounding_box(boxes: Sequence[Box]) -> Box:
    """Return the bounding box of some boxes."""
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)


def _pixel_bounds(place: Box, grey: NDArray[np.uint8]) -> _Pixels | None:
    """Return a detected line's box in whole pixels, or None if it is empty."""
    left, top = (max(0, int(value)) for value in place[:2])
    right, bottom = (int(np.ceil(value)) for value in place[2:])
    right, bottom = min(right, grey.shape[1]), min(bottom, grey.shape[0])
    return (left, top, right, bottom) if right - left > 1 and bottom - top > 1 else None


def _split_wide_line(grey: NDArray[np.uint8], box: _Pixels) -> list[_Pixels]:
    """Recursively split a line that is too wide to be read at once, between two words near its middle."""
    left, top, right, bottom = box
    height, width = bottom - top, right - left
    if width <= MAX_LINE_ASPECT * height:
        return [box]
    crop = grey[top:bottom, left:right].astype(np.float32)
    ink = np.abs(crop - np.median(crop)).sum(axis=0)
    edges = np.flatnonzero(np.diff(np.concatenate(([1], ink > MIN_INK_SHARE * ink.max(), [1]))))
    gaps = [
        (int(first), int(last))
        for first, last in zip(edges[::2], edges[1::2], strict=True)
        if last - first >= MIN_GAP_SHARE * height and first > height and last < width - height
    ]
    if not gaps:
        return [box]
    first, last = min(gaps, key=lambda gap: abs(sum(gap) - width) / 2 - (gap[1] - gap[0]))
    middle = left + (first + last) // 2
    return _split_wide_line(grey, (left, top, middle, bottom)) + _split_wide_line(grey, (middle, top, right, bottom))


# --- Reading order: paragraphs within columns ---

MIN_COLUMN_GAP = 0.8  # line heights; minimum white between two columns
MIN_COLUMN_WIDTH = 6.0  # line heights; a narrower column belongs to a table, whose rows stay together
MIN_PARAGRAPH_GAP = 0.25  # line heights above the median distance of rows that separate paragraphs
SIZE_RATIO = 1.3  # ratio of row heights that separates paragraphs
MIN_ROW_OVERLAP = 0.5  # of the lower line's height that lines of one row share

LineRow = tuple[ReadLine, ...]  # lines side by side, from left to right
Paragraph = tuple[LineRow, ...]


def order_paragraphs(lines: Sequence[ReadLine]) -> list[Paragraph]:
    """Return a page's lines as paragraphs in reading order."""
    if not lines:
        return []
    height = median(line.box[3] - line.box[1] for line in lines)
    return [
        paragraph
        for block in _split_blocks(list(lines), height)
        for paragraph in _split_paragraphs(group_rows(block), height)
    ]


def group_rows(lines: Sequence[ReadLine]) -> list[LineRow]:
    """Group lines that are side by side into rows: rows from top to bottom, lines in a row from left to right."""
    found: list[list[ReadLine]] = []
    for line in sorted(lines, key=lambda line: line.box[1] + line.box[3]):
        if found and _shares_row(found[-1][-1], line):
            found[-1].append(line)
        else:
            found.append([line])
    return [tuple(sorted(row, key=lambda line: line.box[0])) for row in found]


def _shares_row(one: ReadLine, other: ReadLine) -> bool:
    shared = min(one.box[3], other.box[3]) - max(one.box[1], other.box[1])
    return shared > MIN_ROW_OVERLAP * min(one.box[3] - one.box[1], other.box[3] - other.box[1])


def _split_blocks(lines: list[ReadLine], height: float) -> list[list[ReadLine]]:
    """Split lines into columns at vertical white, or else at the widest horizontal white, recursively."""
    if len(lines) < 4:
        return [lines]
    columns = _split_at_gaps(lines, 0, MIN_COLUMN_GAP * height)
    if len(columns) > 1 and all(_is_prose(column, height) for column in columns):
        return [block for column in columns for block in _split_blocks(column, height)]
    bands = _split_at_gaps(lines, 1, MIN_PARAGRAPH_GAP * height)
    if len(bands) == 1:
        return [lines]
    divided = [_split_blocks(band, height) for band in bands]
    if all(len(band) == 1 for band in divided):  # without columns, one block keeps the median distance of its rows
        return [lines]
    return [block for band in divided for block in band]


def _split_at_gaps(lines: Sequence[ReadLine], axis: int, gap: float) -> list[list[ReadLine]]:
    """Split lines at gaps of at least ``gap`` pixels along an axis (0 horizontal, 1 vertical)."""
    parts: list[list[ReadLine]] = []
    reached = float("-inf")
    for line in sorted(lines, key=lambda line: line.box[axis]):
        if line.box[axis] - reached >= gap:
            parts.append([])
        parts[-1].append(line)
        reached = max(reached, line.box[axis + 2])
    return parts


def _is_prose(column: Sequence[ReadLine], height: float) -> bool:
    return len(column) > 1 and median(line.box[2] - line.box[0] for line in column) >= MIN_COLUMN_WIDTH * height


def _split_paragraphs(rows_of_block: Sequence[LineRow], height: float) -> list[Paragraph]:
    boxes = [bounding_box([line.box for line in row]) for row in rows_of_block]
    white = [after[1] - before[3] for before, after in pairwise(boxes)]
    usual = median(white) if white else 0.0
    found: list[list[LineRow]] = []
    for number, row in enumerate(rows_of_block):
        if not number or white[number - 1] > usual + MIN_PARAGRAPH_GAP * height or _sizes_differ(boxes[number - 1 :]):
            found.append([])
        found[-1].append(row)
    return [tuple(paragraph) for paragraph in found]


def _sizes_differ(boxes: Sequence[Box]) -> bool:
    """Return whether the first two rows have different print sizes, like a heading and its text."""
    lesser, larger = sorted(bottom - top for _, top, _, bottom in boxes[:2])
    return larger > SIZE_RATIO * lesser


HEADING_HEIGHT_RATIO = 1.2  # times the median line height
FULL_ROW_SHARE = 0.75  # of a paragraph's width; a shorter row is followed by a line break
MAX_HEADING_ROWS = 2  # rows


@dataclass(frozen=True, slots=True)
class PageText:
    """The text of a page, and the OCR results with their positions in it."""

    text: str
    scan: ScannedPage


@dataclass(slots=True)
class _TextBuilder:
    """A text that grows word by word, and the positions of its words."""

    page: UprightPage
    text: str = ""
    places: list[WordPlace] = field(default_factory=list)

    def add(self, word: ReadWord) -> None:
        start = len(self.text)
        self.text += word.text
        box = self.page.on_original(word.box)
        self.places.append(WordPlace(start, len(self.text), *box, round(word.confidence, 4)))


def read_page(picture: Image, number: int) -> PageText | None:
    """Read a page image, even if it is sideways or upside down; return None if it has no text.

    Raises:
        ConfigurationError: The models of the extra are missing.
    """
    if len(picture.convert("L").getcolors() or ()) == 1:
        return None  # blank, as every second page of a scan may be
    page = deskew(picture)
    lines, side = get_recogniser().read(page.picture)
    if side == "side":
        page = deskew(picture, 1)
        lines, side = get_recogniser().read(page.picture)
    if side == "head":  # uncertain, so keep the orientation with more confident text
        other = deskew(picture, page.quarters + 2)
        others, _ = get_recogniser().read(other.picture)
        if _total_confidence(others) > _total_confidence(lines):
            page, lines = other, others
    return write_page(page, lines, number)


def _total_confidence(lines: Sequence[ReadLine]) -> float:
    return sum(len(word.text) * word.confidence for line in lines for word in line.words)


def write_page(page: UprightPage, lines: Sequence[ReadLine], number: int) -> PageText | None:
    """Return the lines of an upright page as text in reading order, or None if there are none."""
    if not lines:
        return None
    usual = median_low(line.box[3] - line.box[1] for line in lines)
    writer = _TextBuilder(page)
    for paragraph in order_paragraphs(lines):
        writer.text += "\n\n" if writer.text else ""
        lowest = min(line.box[3] - line.box[1] for row in paragraph for line in row)
        if len(paragraph) <= MAX_HEADING_ROWS and lowest >= HEADING_HEIGHT_RATIO * usual:
            writer.text += "## "
        _write_paragraph(writer, paragraph)
    return PageText(writer.text, ScannedPage(number, mean_confidence(writer.places), tuple(writer.places)))


def _write_paragraph(writer: _TextBuilder, paragraph: Paragraph) -> None:
    """Add a paragraph. Full rows are joined, and words divided at a row's end are restored."""
    left, _, right, _ = bounding_box([line.box for row in paragraph for line in row])
    before: LineRow | None = None
    for row in paragraph:
        words = [word for line in row for word in line.words]
        if before is not None:
            _write_break(
                writer, ends_full=before[-1].box[2] >= left + FULL_ROW_SHARE * (right - left), first=words[0].text
            )
        for number, word in enumerate(words):
            writer.text += " " if number else ""
            writer.add(word)
        before = row


def _write_break(writer: _TextBuilder, *, ends_full: bool, first: str) -> None:
    """Add the separator between two rows."""
    divided = writer.text[-1:] == "-" and writer.text[-2:-1].isalpha() and first[:1].islower()
    if ends_full and divided:
        writer.text = writer.text[:-1]
        last = writer.places[-1]
        writer.places[-1] = replace(last, end=last.end - 1)
    else:
        writer.text += " " if ends_full else "\n"


def mean_confidence(places: Iterable[WordPlace]) -> float:
    """Return the mean confidence (0..1) of words, weighted by length; 0 if there are no words."""
    sizes = [(place.end - place.start, place.confidence) for place in places]
    return round(sum(size * confidence for size, confidence in sizes) / max(1, sum(size for size, _ in sizes)), 4)


# --- The extra ``ocr`` ---


def is_ocr_installed() -> bool:
    """Return whether the extra ``ocr`` is installed."""
    try:
        return find_spec("rapidocr") is not None
    except (ImportError, ValueError):  # ValueError: a module without a spec
        return False


MIN_IMAGE_LINE_CONFIDENCE = 0.8  # minimum mean confidence of a line, because images have shapes that look like letters
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
    return letters > 1 and certainty >= MIN_IMAGE_LINE_CONFIDENCE * letters


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
