"""The context put before a passage for embedding and keyword search: the title and the headings above it."""

from __future__ import annotations

import re
from collections.abc import Sequence

HEADER_CHARACTERS = 160  # about 40 tokens of English: of MiniLM's 254 the default passage of 200 and its header fit
SEPARATOR = " > "
BLANKS = re.compile(r"\s+")


def context_header(title: str, heading_path: Sequence[str], budget: int = HEADER_CHARACTERS) -> str:
    """Join title and headings, outermost first, in at most ``budget`` characters.

    Where they do not fit, middle headings go first (an ellipsis marks them), then the ends are cut. A heading that
    repeats the one before it, or the title, is said once. Returns "" for no title and no heading.
    """
    parts = _without_repeats([title, *heading_path])
    if not parts or budget <= 0:
        return ""
    header = SEPARATOR.join(parts)
    if len(header) <= budget:
        return header
    for dropped in range(1, max(1, len(parts) - 1)):
        header = SEPARATOR.join([parts[0], "…", *parts[1 + dropped :]])
        if len(header) <= budget:
            return header
    if len(parts) == 1:
        return _cut(parts[0], budget)
    half = max(1, (budget - len(SEPARATOR)) // 2)
    last = _cut(parts[-1], max(half, budget - len(SEPARATOR) - len(parts[0])))
    first = _cut(parts[0], max(0, budget - len(SEPARATOR) - len(last)))
    return f"{first}{SEPARATOR}{last}"[:budget].strip()


def embedded_text(header: str, text: str) -> str:
    """Return what the encoder and the keyword index see: the header, a blank line, the passage."""
    return f"{header}\n\n{text}" if header else text


def _without_repeats(parts: Sequence[str]) -> list[str]:
    kept: list[str] = []
    for part in (BLANKS.sub(" ", part).strip() for part in parts):
        if part and (not kept or part.casefold() not in (kept[-1].casefold(), kept[0].casefold())):
            kept.append(part)
    return kept


def _cut(text: str, budget: int) -> str:
    """Cut to ``budget`` characters, at a word's end where one is near."""
    if len(text) <= budget:
        return text
    if budget <= 1:
        return "…"[:budget]
    piece = text[: budget - 1]
    space = len(piece) if text[budget - 1] == " " else piece.rfind(" ")
    return (piece[:space] if space > budget // 2 else piece).rstrip() + "…"
