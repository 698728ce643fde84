"""Where the words of parsed Markdown stand in its text: the parser keeps lines of blocks, this module characters.

markdown-it gives a block's lines and an inline token's content; a parser of our own notes how far the scanner was when
it made a token, and the token's content is then looked up in the text from there.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType

from workbench.app.widgets.rendered.elements import TextRun

_AT, _BEFORE = "at", "before"  # a token begins at this character of its block's content, or ends before it


class _NotingState(StateInline):
    """The scanner's state, which notes its place in every token it makes."""

    def pushPending(self) -> Token:
        token = super().pushPending()
        token.meta[_BEFORE] = self.pos
        return token

    def push(self, ttype: str, tag: str, nesting: Literal[-1, 0, 1]) -> Token:
        token = super().push(ttype, tag, nesting)
        token.meta[_AT] = self.pos
        return token


class NotingParser(ParserInline):
    """The inline parser of markdown-it with the state that notes places."""

    def parse(self, src: str, md: MarkdownIt, env: EnvType, tokens: list[Token]) -> list[Token]:
        """Parse as the base does, which makes its state by name."""
        state = _NotingState(src, md, env, tokens)
        self.tokenize(state)
        for rule in self.ruler2.getRules(""):
            rule(state)
        return state.tokens


class SourceLines:
    """The lines of a text, and how far each was read, so that the cells of a table's row are met one after another."""

    def __init__(self, text: str) -> None:
        """Cut a text whose line ends are all newlines."""
        self.text = text
        self._starts = [0]
        while (end := text.find("\n", self._starts[-1])) >= 0:
            self._starts.append(end + 1)
        self._read: dict[int, int] = {}

    def span(self, first: int, last: int) -> tuple[int, int]:
        """Return the characters of lines ``first`` to before ``last``, without the last newline."""
        start = self._starts[min(first, len(self._starts) - 1)]
        end = self._starts[last] - 1 if last < len(self._starts) else len(self.text)
        return start, max(start, end)

    def place(self, line: int, words: str) -> tuple[int, int] | None:
        """Return where words stand in a line, after those that were looked up in it before."""
        start, end = self.span(line, line + 1)
        at = self.text.find(words, max(start, self._read.get(line, start)), end)
        if at < 0:
            return None
        self._read[line] = at + len(words)
        return at, at + len(words)

    def runs(self, content: str, line: int) -> tuple[TextRun, ...]:
        """Return code, whose lines lie from ``line`` on behind what their quote or list puts before them."""
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
class Places:
    """The characters of a block's content: ``pieces`` are (place in the content, place in the document), in order."""

    content: str
    pieces: tuple[tuple[int, int], ...]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the document's characters behind those of the content."""
        return self._one(start), self._one(max(start, end - 1)) + (end > start)

    def _one(self, place: int) -> int:
        own, other = self.pieces[bisect_right(self.pieces, place, key=lambda piece: piece[0]) - 1]
        return other + place - own


def places_of(lines: SourceLines, token: Token) -> Places | None:
    """Return where an inline token's content stands; None where a line of it is not found as it is."""
    if token.map is None:
        return None
    pieces: list[tuple[int, int]] = []
    at = 0
    for number, words in enumerate(token.content.split("\n")):
        for part in _parts(words):
            found = lines.place(token.map[0] + number, part)
            if found is None:
                return None
            pieces.append((at, found[0]))
            at += len(part)
        at += 1
    return Places(token.content, tuple(pieces))


def _parts(words: str) -> Iterator[str]:
    """Yield a cell's words cut before each bar: in the text a backslash stands before it."""
    start = 0
    for place, sign in enumerate(words):
        if sign == "|" and place > start:
            yield words[start:place]
            start = place
    yield words[start:]


class Cursor:
    """Looks up the tokens of one block, which come in the text's order."""

    def __init__(self, places: Places | None, fallback: tuple[int, int]) -> None:
        """Begin at the block's first character; ``fallback`` is the block's span, where words are not found."""
        self._places, self._fallback, self._at = places, fallback, 0
        self._content = places.content.replace("\n", " ") if places else ""  # as a code span has it

    def run(self, token: Token, shown: str, written: str) -> TextRun:
        """Return a token's text as ``shown``, which the document has as ``written``."""
        places = self._places
        at = _found(self._content, token, written.replace("\n", " "), self._at)
        if places is None or at < 0:
            return TextRun(shown, *self._fallback) if shown else TextRun("", 0, 0)
        self._at = at + len(written)
        return TextRun(shown, *places.span(at, at + len(written)))


def _found(content: str, token: Token, written: str, cursor: int) -> int:
    before, at = token.meta.get(_BEFORE), token.meta.get(_AT)
    if isinstance(before, int):  # plain words end where the next sign began, or a bracket or blanks before it
        return content.rfind(written, cursor, before)
    if isinstance(at, int):  # a sign of emphasis is joined with the words before it; others begin at their place
        return content.find(written, max(cursor, at - len(written) if token.type == "text" else at))
    return -1


def flat(tokens: Sequence[Token]) -> str:
    """Return the words of tokens, as of a picture's description."""
    return "".join(token.content if not token.children else flat(token.children) for token in tokens)
