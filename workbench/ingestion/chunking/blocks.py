"""Blocks of a Markdown text or source code (headings, paragraphs, lists, tables, code), with character spans."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

from workbench.ingestion.chunking.spans import BlockKind, LazySequence, TokenCounter, strip_span
from workbench.text import sentence_spans

FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?[ \t]*$")
HEADING_UNDERLINE = re.compile(r" {0,3}(=+|-{2,})$")
TABLE_RULE = re.compile(r" {0,3}\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?$")
LIST_ITEM = re.compile(r"[ \t]*(?:[-*+•]|\d{1,9}[.)])[ \t]+\S")
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
MARKUP = re.compile(r"\*\*|__|`|[ \t]#+$|\{#[^}]*\}$")
MAX_HEADING_CHARS = 120


@dataclass(frozen=True, slots=True)
class Block:
    """A block."""

    start: int  # first character
    end: int  # character after the last
    kind: BlockKind  # kind of block
    level: int = 0  # 1..6 for a heading, else 0
    path: tuple[str, ...] = ()  # headings above it, and its own if it is a heading
    body: int = 0  # start of a table's rows after the header rule, else ``start``


@dataclass(frozen=True, slots=True)
class Line:
    """A line without its newline, and its position."""

    start: int
    end: int
    text: str

    @property
    def blank(self) -> bool:
        """True if it contains only white space."""
        return not self.text or self.text.isspace()


class TextLines(LazySequence[Line]):
    """The lines of a text."""

    __slots__ = ("_starts", "_text")

    def __init__(self, text: str, start: int, end: int) -> None:
        self._text = text
        self._starts = array("I", (start,))
        place = text.find("\n", start, end)
        while place >= 0:
            self._starts.append(place + 1)
            place = text.find("\n", place + 1, end)
        self._starts.append(end + 1)

    def __len__(self) -> int:
        return len(self._starts) - 1

    def _make_item(self, place: int) -> Line:
        start, end = self._starts[place], self._starts[place + 1] - 1
        return Line(start, end, self._text[start:end])


def split_lines(text: str, start: int = 0, end: int | None = None) -> TextLines:
    """Split ``text[start:end]`` into lines with their positions in ``text``."""
    return TextLines(text, start, len(text) if end is None else end)


def parse_blocks(text: str) -> list[Block]:
    """Return the blocks in order; every non-blank character is in exactly one of them."""
    lines = split_lines(text)
    blocks: list[Block] = []
    index = 0
    while index < len(lines):
        if lines[index].blank:
            index += 1
            continue
        block, index = _parse_block(lines, index)
        blocks.append(block)
    return _add_paths(text, blocks)


def _parse_block(lines: TextLines, index: int) -> tuple[Block, int]:
    """Return the block that starts at a line, and the index of the line after it."""
    line = lines[index]
    fence = FENCE.match(line.text)
    if fence:
        after = _find_fence_end(lines, index, fence.group(1))
        return Block(line.start, lines[after - 1].end, "code", body=line.start), after
    heading = HEADING.match(line.text)
    if heading:
        return Block(line.start, line.end, "heading", len(heading.group(1))), index + 1
    if _is_table(lines, index):
        after = index + 2
        while after < len(lines) and not lines[after].blank and "|" in lines[after].text:
            after += 1
        body = lines[index + 2].start if after > index + 2 else lines[after - 1].end
        return Block(line.start, lines[after - 1].end, "table", body=body), after
    if LIST_ITEM.match(line.text):
        after = _find_list_end(lines, index)
        return Block(line.start, lines[after - 1].end, "list", body=line.start), after
    return _parse_paragraph(lines, index)


def _find_fence_end(lines: TextLines, index: int, mark: str) -> int:
    """Return the index of the line after a fence. An unclosed fence extends to the end, as in CommonMark."""
    for after in range(index + 1, len(lines)):
        text = lines[after].text.strip()
        if text.startswith(mark) and not text.strip(mark[0]):
            return after + 1
    return len(lines)


def _is_table(lines: TextLines, index: int) -> bool:
    if "|" not in lines[index].text or index + 1 >= len(lines):
        return False
    rule = lines[index + 1].text
    return "|" in rule and "-" in rule and TABLE_RULE.match(rule) is not None


def _find_list_end(lines: TextLines, index: int) -> int:
    """Return the line index after a list, which includes lazy and indented lines and a blank line before them."""
    after = index + 1
    while after < len(lines):
        line = lines[after]
        if line.blank:
            following = next((item for item in lines[after + 1 : after + 3] if not item.blank), None)
            if following is None or not (LIST_ITEM.match(following.text) or following.text[:2] in ("  ", "\t")):
                break
        elif _interrupts_paragraph(lines, after):
            break
        after += 1
    while lines[after - 1].blank:
        after -= 1
    return after


def _interrupts_paragraph(lines: TextLines, index: int) -> bool:
    text = lines[index].text
    return bool(FENCE.match(text) or HEADING.match(text) or _is_table(lines, index))


def _parse_paragraph(lines: TextLines, index: int) -> tuple[Block, int]:
    start = lines[index].start
    after = index + 1
    while after < len(lines) and not lines[after].blank:
        underline = HEADING_UNDERLINE.match(lines[after].text)
        if underline and after == index + 1:  # setext heading: one line underlined with = or -
            level = 1 if underline.group(1)[0] == "=" else 2
            return Block(start, lines[after].end, "heading", level), after + 1
        if LIST_ITEM.match(lines[after].text) or _interrupts_paragraph(lines, after):
            break
        after += 1
    return Block(start, lines[after - 1].end, "text", body=start), after


def heading_text(source: str) -> str:
    """Return a heading's words without markup, cut to 120 characters."""
    line = source.strip().split("\n")[0].lstrip("#").strip()
    return MARKUP.sub("", LINK.sub(r"\1", line)).strip()[:MAX_HEADING_CHARS].strip()


def _add_paths(text: str, blocks: list[Block]) -> list[Block]:
    """Give each block the headings above it. A heading ends those of the same or a lower level."""
    open_headings: list[tuple[int, str]] = []
    placed: list[Block] = []
    for block in blocks:
        if block.kind == "heading":
            while open_headings and open_headings[-1][0] >= block.level:
                open_headings.pop()
            words = heading_text(text[block.start : block.end])
            if words:
                open_headings.append((block.level, words))
        placed.append(replace(block, path=tuple(words for _, words in open_headings)))
    return placed


# --- Atoms: sentences, rows, items and lines ---


@dataclass(frozen=True, slots=True)
class Atom:
    """A span that is never cut."""

    start: int  # first character
    end: int  # character after the last
    clings: bool = False  # True if it should stay with the next atom (a heading, a lead-in line)
    ends: bool = False  # True if a block or item ends with it
    metadata: dict[str, tuple[int, int]] = field(default_factory=dict)  # spans to record in its passage


def split_atoms(blocks: Iterable[Block], ruler: TokenCounter, room: int, whole: int | None = None) -> list[Atom]:
    """Return the atoms of blocks, each of at most ``room`` tokens, or ``whole`` for an entire table or code block."""
    atoms: list[Atom] = []
    for block in blocks:
        atoms.extend(_block_atoms(block, ruler, room, room if whole is None else whole))
    return _join_clinging(atoms, ruler, room)


def _block_atoms(block: Block, ruler: TokenCounter, room: int, whole: int) -> Iterator[Atom]:
    text = ruler.text
    if block.kind == "heading":
        for start, end in split_to_fit(ruler, block.start, block.end, room):
            yield Atom(start, end, clings=end == block.end)
    elif block.kind in ("table", "code") and ruler.count(block.start, block.end) <= whole:
        yield Atom(block.start, block.end, ends=True)
    elif block.kind == "table":
        yield from _table_atoms(block, ruler, room)
    elif block.kind == "code":
        for line in split_lines(text, block.start, block.end):
            yield from (
                Atom(*span, ends=span[1] == block.end) for span in split_to_fit(ruler, line.start, line.end, room)
            )
    elif block.kind == "list":
        starts = [line.start for line in split_lines(text, block.start, block.end) if LIST_ITEM.match(line.text)]
        for start, end in pairwise((*starts, block.end)):  # top-level items and what is nested in them
            start, end = strip_span(text, start, end)
            if ruler.count(start, end) <= room:
                yield Atom(start, end, ends=True)
            else:
                yield from _sentence_atoms(ruler, start, end, room)
    else:
        yield from _sentence_atoms(ruler, block.start, block.end, room)


def _sentence_atoms(ruler: TokenCounter, start: int, end: int, room: int) -> Iterator[Atom]:
    for begin, stop in sentence_spans(ruler.text, start, end):
        for part in split_to_fit(ruler, begin, stop, room):
            last = part[1] == end
            yield Atom(*part, clings=last and ruler.text[end - 1] in ":：", ends=last)


def _table_atoms(block: Block, ruler: TokenCounter, room: int) -> Iterator[Atom]:
    """Yield the rows of a table that is too long for one passage; all but the first record the table's header."""
    note = {"table_header": strip_span(ruler.text, block.start, block.body)}
    for start, end in split_to_fit(ruler, block.start, block.body, room):
        yield Atom(start, end, clings=True)
    for line in split_lines(ruler.text, block.body, block.end):
        for start, end in split_to_fit(ruler, line.start, line.end, room):
            yield Atom(start, end, ends=True, metadata=note)


def split_to_fit(ruler: TokenCounter, start: int, end: int, room: int) -> Iterator[tuple[int, int]]:
    """Yield stripped parts of ``text[start:end]`` of at most ``room`` tokens, cut between words if possible."""
    while start < end:
        stop = ruler.reach(start, room, end)
        span = strip_span(ruler.text, start, stop)
        if span[0] < span[1]:
            yield span
        start = stop


def _join_clinging(atoms: list[Atom], ruler: TokenCounter, room: int) -> list[Atom]:
    """Merge each clinging atom into the next one if both fit."""
    joined: list[Atom] = []
    for atom in atoms:
        last = joined[-1] if joined else None
        if last is not None and last.clings and ruler.count(last.start, atom.end) <= room:
            joined[-1] = replace(atom, start=last.start, metadata={} if last.end != last.start else atom.metadata)
        else:
            joined.append(atom)
    return joined


# --- Blocks of source code ---

DEFINITION_LINE = re.compile(
    r"[ \t]*(?:(?:export|default|public|private|protected|internal|static|final|abstract|async|pub(?:\([^)]*\))?|"
    r"override|virtual|inline|unsafe|extern|sealed|partial|open|data)\s+)*"
    r"(?:def|class|function|fn|func|interface|struct|enum|trait|impl|module|namespace|type|object|sub|package|"
    r"CREATE\s+(?:OR\s+REPLACE\s+)?(?:TABLE|VIEW|FUNCTION|INDEX))\b[^\n]*"
)
CLOSING_LINE = re.compile(r"[ \t]*(?:[\])}]|end\b|else\b|elif\b|except\b|finally\b|catch\b|case\b)")
MAX_DEFINITION_CHARS = 80


def parse_code_blocks(text: str) -> list[Block]:
    """Return one block per run of lines separated by blank lines or definitions; all non-blank lines are covered.

    The path of a block consists of the first lines of the enclosing definitions and its own: ("class Stack:", "def
    push(self):").
    """
    blocks: list[Block] = []
    scope: list[tuple[int, str]] = []
    run: list[Line] = []
    for line in split_lines(text):
        if _starts_block(run, line):
            blocks.append(_close_run(run, scope))
            run = []
        if not line.blank or run:
            run.append(line)
    if any(not line.blank for line in run):
        blocks.append(_close_run(run, scope))
    return blocks


def indent_width(line: str) -> int:
    """Return the width of a line's indentation; a tab counts as four."""
    return len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())


def _starts_block(run: list[Line], line: Line) -> bool:
    """Return whether a line starts a new block: after a blank line, or at a definition without decorators above."""
    if not run or line.blank or CLOSING_LINE.match(line.text):
        return False
    if run[-1].blank:
        return True
    if not DEFINITION_LINE.match(line.text):
        return False
    above = run[-1].text.strip()
    return not above.startswith(("@", "#", "//", "/*", "*", "--", '"""')) and not above.endswith((",", "("))


def _close_run(run: list[Line], scope: list[tuple[int, str]]) -> Block:
    """Return the run as a block; ``scope``, the stack of open definitions, is updated with definitions in the run."""
    lines = [line for line in run if not line.blank]
    shallowest = min(indent_width(line.text) for line in lines)
    while scope and scope[-1][0] >= shallowest:
        scope.pop()
    path = tuple(name for _, name in scope)
    own = next((line for line in lines if DEFINITION_LINE.match(line.text)), None)
    if own is not None:
        name = own.text.strip().rstrip("{").strip()[:MAX_DEFINITION_CHARS]
        path = (*path, name)
        scope.append((indent_width(own.text), name))
    return Block(lines[0].start, lines[-1].end, "code", 0, path, lines[0].start)
