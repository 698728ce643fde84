"""Reading pages that are pictures: upright, word by word, in reading order; with the extra ``ocr``, offline."""

from __future__ import annotations
