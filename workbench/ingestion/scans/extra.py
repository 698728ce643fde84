"""The extra that reads scans: whether it is installed, and the sentence that names it where it is not."""

from __future__ import annotations

from importlib.util import find_spec

ADVICE = "Install the extra that reads scans: pip install 'rag-workbench[ocr]'."


def reads_scans() -> bool:
    """Tell whether the extra ``ocr`` is installed."""
    try:
        return find_spec("rapidocr") is not None
    except (ImportError, ValueError):  # ValueError: a module that was put there without a specification
        return False
