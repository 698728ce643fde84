"""Source positions of parsed Markdown, in characters, and the tints of passages on a text.

markdown-it gives the lines of blocks and the content of inline tokens. Our inline parser records the scanner's position
for each token, and the content is then searched in the text from there.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType

from workbench.app.widgets.elements import TextRun
from workbench.types import JsonObject, JsonValue, Span

_START_KEY, _END_KEY = "at", "before"  # keys of a token's start, or its end, in its block's content


class _RecordingState(StateInline):
    """Scanner state that records its position in every token."""

    def pushPending(self) -> Token:
        token = super().pushPending()
        token.meta[_END_KEY] = self.pos
        return token

    def push(self, ttype: str, tag: str, nesting: Literal[-1, 0, 1]) -> Token:
        token = super().push(ttype, tag, nesting)
        token.meta[_START_KEY] = self.pos
        return token


class RecordingParser(ParserInline):
    """The inline parser of markdown-it with recorded positions."""

    def parse(self, src: str, md: MarkdownIt, env: EnvType, tokens: list[Token]) -> list[Token]:
        """Parse like the base class, but with our state."""
        state = _RecordingState(src, md, env, tokens)
        self.tokenize(state)
        for rule in self.ruler2.getRules(""):
            rule(state)
        return state.tokens


class SourceLines:
    """The lines of a text, and how far each has been read, so that the cells of a row are found in order."""

    def __init__(self, text: str) -> None:
        """Split a text with newlines as line ends."""
        self.text = text
        self._starts = [0]
        while (end := text.find("\n", self._starts[-1])) >= 0:
            self._starts.append(end + 1)
        self._read: dict[int, int] = {}

    def span(self, first: int, last: int) -> tuple[int, int]:
        """Return the span of lines ``first`` (inclusive) to ``last`` (exclusive), without the last newline."""
        start = self._starts[min(first, len(self._starts) - 1)]
        end = self._starts[last] - 1 if last < len(self._starts) else len(self.text)
        return start, max(start, end)

    def place(self, line: int, words: str) -> tuple[int, int] | None:
        """Return the span of words in a line, after those found before; None if they are not there."""
        start, end = self.span(line, line + 1)
        at = self.text.find(words, max(start, self._read.get(line, start)), end)
        if at < 0:
            return None
        self._read[line] = at + len(words)
        return at, at + len(words)

    def runs(self, content: str, line: int) -> tuple[TextRun, ...]:
        """Return code as runs; its lines start at ``line``, after any prefix of a quote or list."""
        start = self._starts[min(line, len(self._starts) - 1)]
        if self.text.startswith(content, start):
            return (TextRun(content, start, start + len(content)),)
        runs: list[TextRun] = []
        for number, words in enumerate(content.splitlines(keepends=True)):
            first, last = self.span(line + number, line + number + 1)
            bare = words.removesuffix("\n")
            at = last - len(bare) if self.text.endswith(bare, first, last) else first
            runs.append(TextRun(words, max(first, at), min(last + 1, len(self.text))))
        return tuple(runs)


@dataclass(frozen=True, slots=True)
class ContentMap:
    """Maps a block's content to the document; ``pieces`` are (position in content, in document), in order."""

    content: str
    pieces: tuple[tuple[int, int], ...]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the span in the document for a span of the content."""
        return self._one(start), self._one(max(start, end - 1)) + (end > start)

    def _one(self, place: int) -> int:
        own, other = self.pieces[bisect_right(self.pieces, place, key=lambda piece: piece[0]) - 1]
        return other + place - own


def map_content(lines: SourceLines, token: Token) -> ContentMap | None:
    """Return the positions of an inline token's content; None if a line of it is not found verbatim."""
    if token.map is None:
        return None
    pieces: list[tuple[int, int]] = []
    at = 0
    for number, words in enumerate(token.content.split("\n")):
        for part in _split_cell(words):
            found = lines.place(token.map[0] + number, part)
            if found is None:
                return None
            pieces.append((at, found[0]))
            at += len(part)
        at += 1
    return ContentMap(token.content, tuple(pieces))


def _split_cell(words: str) -> Iterator[str]:
    """Yield a cell's text split before each bar, which is escaped in the source."""
    start = 0
    for place, sign in enumerate(words):
        if sign == "|" and place > start:
            yield words[start:place]
            start = place
    yield words[start:]


class TokenCursor:
    """Finds the tokens of one block, in order."""

    def __init__(self, places: ContentMap | None, fallback: tuple[int, int]) -> None:
        """Start at the block's first character; ``fallback`` is used for text that is not found."""
        self._places, self._fallback, self._at = places, fallback, 0
        self._content = places.content.replace("\n", " ") if places else ""  # as in a code span

    def run(self, token: Token, shown: str, written: str) -> TextRun:
        """Return the run of a token: ``shown`` in the rendered text, ``written`` in the document."""
        places = self._places
        at = _find_token(self._content, token, written.replace("\n", " "), self._at)
        if places is None or at < 0:
            return TextRun(shown, *self._fallback) if shown else TextRun("", 0, 0)
        self._at = at + len(written)
        return TextRun(shown, *places.span(at, at + len(written)))


def _find_token(content: str, token: Token, written: str, cursor: int) -> int:
    before, at = token.meta.get(_END_KEY), token.meta.get(_START_KEY)
    if isinstance(before, int):  # plain text ends at or before the next special character
        return content.rfind(written, cursor, before)
    if isinstance(at, int):  # emphasis markers may be joined with the text before them
        return content.find(written, max(cursor, at - len(written) if token.type == "text" else at))
    return -1


def flatten_tokens(tokens: Sequence[Token]) -> str:
    """Return the text of tokens, such as an image's alt text."""
    return "".join(token.content if not token.children else flatten_tokens(token.children) for token in tokens)


# Parts of long documents

PART_CHARS = 150_000  # characters shown at once
_FENCE_PATTERN = re.compile(r"^ {0,3}(`{3,}(?!.*`)|~{3,})", re.MULTILINE)
_HEADING_PATTERN = re.compile(r"^#{1,6} ", re.MULTILINE)
_GAP_PATTERN = re.compile(r"\n\n(?=\S)")


def choose_part(text: str, wanted: int | None, place: Span | None, size: int = PART_CHARS) -> Span:
    """Return the part of a text to show, cut at blocks.

    Args:
        text: The text; it is shown whole up to twice ``size``.
        wanted: Approximate start.
        place: Without ``wanted``, the span to show in the middle.
        size: Characters of a part.
    """
    if len(text) <= 2 * size:
        return 0, len(text)
    if wanted is None or wanted >= len(text):
        wanted = min(place[0] - size // 2 if place else 0, len(text) - size)
    start = find_block_start(text, wanted, size // 4)
    if len(text) - start <= size * 5 // 4:
        return start, len(text)
    end = find_block_start(text, start + size, size // 4)
    if place and start <= place[0] < start + size < place[1]:  # a found span is not cut
        end = max(end, min(place[1], start + 2 * size))
    return start, end


def find_block_start(text: str, wanted: int, slack: int) -> int:
    """Return the start of a block at ``wanted`` or up to ``slack`` characters before it.

    Headings are preferred, then gaps between blocks, then lines; within code, the start of the code.
    """
    if wanted <= 0:
        return 0
    opening, closed = _find_fences(text, wanted)
    if opening is None and _starts_block(text, wanted):
        return wanted
    lowest = max(0, wanted - slack)
    if opening is not None and opening >= lowest:
        return opening
    if opening is None:
        lowest = max(lowest, closed)
        for pattern in (_HEADING_PATTERN, _GAP_PATTERN):
            places = [
                match.end() if pattern is _GAP_PATTERN else match.start()
                for match in pattern.finditer(text, lowest, wanted)
            ]
            if places:
                return places[-1]
    line = text.rfind("\n", max(0, wanted - slack), wanted) + 1
    return line or wanted


def _starts_block(text: str, place: int) -> bool:
    """Return whether a block starts at a position outside code."""
    if text[place - 1] != "\n":
        return False
    return text[place - 2 : place] == "\n\n" or bool(
        _HEADING_PATTERN.match(text, place) or _FENCE_PATTERN.match(text, place)
    )


def _find_fences(text: str, wanted: int) -> tuple[int | None, int]:
    """Return the start of the code around ``wanted`` (None outside code), and the end of the code before it."""
    opening: re.Match[str] | None = None
    closed = 0
    for fence in _FENCE_PATTERN.finditer(text, 0, wanted):
        if opening is None:
            opening = fence
        elif fence[1][0] == opening[1][0] and len(fence[1]) >= len(opening[1]):
            opening, closed = None, fence.end()
    return (opening.start() if opening else None), closed


# Tints of passages


class TintedText:
    """The tinted pieces of a text, in order."""

    def __init__(self, text: str, spans: Sequence[Span], place: Span | None = None) -> None:
        """Split the text at the edges of passages."""
        self._starts: list[int] = []
        self._kinds: list[JsonObject] = []
        at = 0
        for stretch in split_by_passages(text, spans, place):
            self._starts.append(at)
            self._kinds.append({"kind": stretch["kind"], "passage": stretch["passage"]})
            at += len(str(stretch["text"]))

    def pieces(self, run: TextRun) -> list[JsonValue]:
        """Return a run split by tint; text outside passages stays a string."""
        if run.start == run.end or not run.text or not self._starts:
            return [run.text]
        first = self._number(run.start)
        if not run.is_exact:
            return [self._tint_text(first, run.text)]
        edges = [run.start, *self._starts[first + 1 : self._number(run.end - 1) + 1], run.end]
        return [
            self._tint_text(first + n, run.text[edges[n] - run.start : edges[n + 1] - run.start])
            for n in range(len(edges) - 1)
        ]

    def whole(self, span: Span) -> JsonValue:
        """Return the tint of the first character of an element that is marked as a whole."""
        return self._kinds[self._number(span[0])]["kind"] if self._starts and span[0] < span[1] else None

    def _number(self, place: int) -> int:
        return max(0, bisect_right(self._starts, place) - 1)

    def _tint_text(self, number: int, text: str) -> JsonValue:
        kind = self._kinds[number]
        return text if kind["kind"] == "bare" else {"text": text, **kind}


def split_by_passages(
    text: str, spans: Sequence[tuple[int, int]], place: tuple[int, int] | None = None
) -> list[JsonObject]:
    """Split ``text`` at every edge of the passages' spans.

    The kind of a piece is "found" in the found span, "overlap" in several passages, "odd" or "even" in one, and "bare"
    outside passages. ``passage`` is counted from 1.
    """
    edges = {0, len(text)}
    for start, end in (*spans, *([place] if place else [])):
        edges |= {min(max(start, 0), len(text)), min(max(end, 0), len(text))}
    ordered = sorted(edges)
    numbered = sorted(spans)
    cut: list[JsonObject] = []
    for start, end in pairwise(ordered):
        holders = [number for number, span in enumerate(numbered, start=1) if span[0] <= start and end <= span[1]]
        cut.append(
            {
                "text": text[start:end],
                "passage": holders[0] if holders else None,
                "kind": _piece_kind(start, end, holders, place),
            }
        )
    return cut


def _piece_kind(start: int, end: int, holders: Sequence[int], place: tuple[int, int] | None) -> str:
    if place and place[0] <= start and end <= place[1]:
        return "found"
    if len(holders) > 1:
        return "overlap"
    if not holders:
        return "bare"
    return "odd" if holders[0] % 2 else "even"
