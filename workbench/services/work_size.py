"""From which size on work is left to a job: nobody who asks for something else waits for it, nor does a tool."""

from __future__ import annotations

from pathlib import PurePath

LARGE = 150_000  # bytes: about two seconds of embedding on two cores; larger work becomes a job
PACKED, PACKED_TIMES = (".pdf", ".docx", ".pptx", ".xlsx", ".epub"), 5
PICTURES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp")  # of pages, which are read by OCR: seconds each


def work_bytes(name: str, size: int) -> int:
    """Return how many bytes of text a file of ``size`` bytes is as much work as, by its name's ending.

    Packed files hold several times their size in text; a picture is always too much to wait for.
    """
    suffix = PurePath(name).suffix.lower()
    if suffix in PICTURES:
        return LARGE + max(1, size)
    return size * (PACKED_TIMES if suffix in PACKED else 1)
