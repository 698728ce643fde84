"""Where lines of text stand in a picture, looked for in bands across it: the model's memory grows with what it sees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from workbench.ingestion.scans.skew import Box

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from rapidocr import RapidOCR

DETECTED = 1280  # pixels of the longer side to find lines in: 960 loses print of 6 points
BAND = 256  # of these pixels that a band is high at most
SHARED = 64  # of them that two bands share: a line as high stands whole in one of them
STEP = 32  # pixels: the model takes multiples
SAME_LINE = 0.5  # of the lesser box that lies in the other: two bands saw one line


def line_places(engine: RapidOCR, colours: NDArray[np.uint8]) -> list[Box]:
    """Return the upright boxes, in pixels, of the lines in a picture (height, width, 3), in no order."""
    import cv2

    height, width = colours.shape[:2]
    scale = min(1.0, DETECTED / max(height, width))
    size = (_steps(width * scale), _steps(height * scale))
    looked_at = cv2.resize(colours, size).astype(np.uint8, copy=False)
    found: list[Box] = []
    for top, bottom in _bands(size[1]):
        found = _join_boxes(found, [_lower(box, top) for box in _places(engine, looked_at[top:bottom])])
    across, down = width / size[0], height / size[1]
    return [(left * across, top * down, right * across, bottom * down) for left, top, right, bottom in found]


def _steps(length: float) -> int:
    return max(STEP, round(length / STEP) * STEP)


def _bands(height: int) -> list[tuple[int, int]]:
    """Return bands from top to bottom, each sharing some rows of pixels with the one before."""
    bands = [(0, min(BAND, height))]
    while bands[-1][1] < height:
        top = bands[-1][1] - SHARED
        bands.append((top, min(top + BAND, height)))
    return bands


def _places(engine: RapidOCR, band: NDArray[np.uint8]) -> list[Box]:
    from rapidocr.main import RapidOCRError

    padding: dict[str, dict[str, int]] = {}
    try:
        _, detected = engine.detect_and_crop(band, padding)
    except RapidOCRError:  # it finds no text
        return []
    above = padding["padding_1"]["top"]  # rows that the engine set above a flat picture
    return [
        (*corners.min(axis=0) - (0, above), *corners.max(axis=0) - (0, above))
        for corners in (detected.boxes if detected.boxes is not None else ())
    ]


def _lower(box: Box, rows: int) -> Box:
    left, top, right, bottom = box
    return left, top + rows, right, bottom + rows


def _join_boxes(above: list[Box], band: list[Box]) -> list[Box]:
    """Put the boxes of the next band to those above; a line that both saw, whole or cut, is one box."""
    joined = list(band)
    kept: list[Box] = []
    for box in above:
        same = [other for other in joined if _is_same(box, other)]
        if not same:
            kept.append(box)
            continue
        boxes = [box, *same]
        joined = [other for other in joined if other not in same]
        lefts, tops, rights, bottoms = zip(*boxes, strict=True)
        joined.append((min(lefts), min(tops), max(rights), max(bottoms)))
    return kept + joined


def _is_same(one: Box, other: Box) -> bool:
    across = min(one[2], other[2]) - max(one[0], other[0])
    down = min(one[3], other[3]) - max(one[1], other[1])
    if across <= 0 or down <= 0:
        return False
    return across * down > SAME_LINE * min((box[2] - box[0]) * (box[3] - box[1]) for box in (one, other))
