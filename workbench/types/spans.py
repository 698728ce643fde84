"""Spans: stretches of a text, counted in characters, from ``start`` to before ``end``."""

from __future__ import annotations

from typing import TypeAlias

Span: TypeAlias = tuple[int, int]  # start, end
PageSpan: TypeAlias = tuple[int, int, int]  # page from 1, start, end: the characters that stand on it
DocumentSpan: TypeAlias = tuple[str, int, int]  # document, start, end: a stretch of its text
