"""Recognition of printed words with rapidocr and the models from its wheel.

Nothing is downloaded: models are loaded from a path, and a missing one raises an error before the engine starts.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from workbench.errors import ConfigurationError
from workbench.ingestion.ocr.images import Box
from workbench.ingestion.text import normalise

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
