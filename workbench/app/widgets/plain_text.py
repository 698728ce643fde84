"""Markdown as running text, for places that show a sentence and no form."""

from __future__ import annotations

import re

_SIGNS = (
    (re.compile(r"^```.*$", re.M), ""),  # fences
    (re.compile(r"^\s{0,3}#{1,6}\s+(.+?)\s*#*$", re.M), r"\1 —"),
    (re.compile(r"^\s*\|?[\s:|-]*-{3,}[\s:|-]*$", re.M), ""),  # a table's rule
    (re.compile(r"^(?:[ \t]*\|[ \t]?)+|(?:[ \t]?\|[ \t]*)+$", re.M), ""),
    (re.compile(r"[ \t]\|[ \t]"), " · "),
    (re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+", re.M), "· "),
    (re.compile(r"^\s*>\s?", re.M), ""),
    (re.compile(r"!?\[([^\]]*)\]\([^)]*\)"), r"\1"),
    (re.compile(r"\*\*|__|`"), ""),
    (re.compile(r"(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)"), ""),
    (re.compile(r"\s+"), " "),
)


def plain(text: str) -> str:
    """Return Markdown as running text on one line."""
    for pattern, replacement in _SIGNS:
        text = pattern.sub(replacement, text)
    return text.strip(" —")
