"""OCR of page images, with the extra ``ocr``, offline."""

from __future__ import annotations
