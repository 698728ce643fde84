"""The context put before a passage for embedding and keyword search: its document, the headings and what names it."""

from __future__ import annotations

import re
from collections.abc import Sequence

HEADER_CHARACTERS = 160  # about 40 tokens of English: of MiniLM's 254 the default passage of 200 and its header fit
SEPARATOR = " > "
SAYS = " — "
LEAST_SAID = 24  # characters; a shorter piece of a description says nothing
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


def with_sayings(header: str, sayings: str, budget: int = HEADER_CHARACTERS) -> str:
    """Put a document's description after the header, both in ``budget`` characters, where it is worth a few words."""
    room = budget - len(header) - len(SAYS)
    if not sayings or room < LEAST_SAID:
        return header
    ending = _cut(sayings, room).strip()
    return f"{header}{SAYS}{ending}" if header else ending


def _without_repeats(parts: Sequence[str]) -> list[str]:
    distinct: list[str] = []
    for part in (BLANKS.sub(" ", part).strip() for part in parts):
        if part and (not distinct or part.casefold() not in (distinct[-1].casefold(), distinct[0].casefold())):
            distinct.append(part)
    return distinct


def _cut(text: str, budget: int) -> str:
    """Cut to ``budget`` characters, at a word's end where one is near."""
    if len(text) <= budget:
        return text
    if budget <= 1:
        return "…"[:budget]
    piece = text[: budget - 1]
    space = len(piece) if text[budget - 1] == " " else piece.rfind(" ")
    return (piece[:space] if space > budget // 2 else piece).rstrip() + "…"
