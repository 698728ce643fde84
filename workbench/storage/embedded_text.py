"""The text of a passage that the model reads: its context, a blank line, and the text, its tables without their rules.

A bar between two cells says nothing, and each takes the place of a word in what a model can read. Bars and rules are
blanked, not taken out, so that each character keeps its place.
"""

from __future__ import annotations

import re

BAR = re.compile(r"(?<!\\)\|")
RULE = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*")


def embedded_text(context: str, text: str) -> str:
    """Return what the model reads of a passage with this context ("" for none)."""
    words = without_rules(text)
    return f"{context}\n\n{words}" if context else words


def without_rules(text: str) -> str:
    """Blank the bars between cells and the rules under headers, in lines that begin or end with a bar.

    The result is as long as the text.
    """
    if "|" not in text:
        return text
    return "\n".join(_blanked(line) if _is_row(line) else line for line in text.split("\n"))


def _is_row(line: str) -> bool:
    bare = line.strip()
    return bare.startswith("|") or bare.endswith("|")


def _blanked(line: str) -> str:
    return " " * len(line) if RULE.fullmatch(line) else BAR.sub(" ", line)
