"""The default chunker: passages that follow the document's structure, packed to about equal size."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from workbench.ingestion.chunking.blocks import Block, split_atoms
from workbench.ingestion.chunking.finish import has_words, pack_evenly
from workbench.ingestion.chunking.spans import Piece, TokenCounter, strip_span
from workbench.ingestion.chunking.task import CuttingTask, is_caption_line, leads_to_table

# --- Joining pieces with only headings ---


def join_headings(
    task: CuttingTask, pieces: Sequence[Piece], most: int | None = None, *, parts: bool = True
) -> list[Piece]:
    """Return pieces in order such that none has only headings or table names, if possible.

    Such a piece answers no question but ranks high. It joins the piece after it; the last one joins the piece before
    it. If together they exceed the room or ``most`` tokens, the other piece is split at a line break or between words.
    For overlapping pieces (without ``parts``) it stays whole, and its first half is repeated.
    """
    bare = [_is_only_heading(task, piece) for piece in pieces]
    if not any(bare) or all(bare):
        return list(pieces)

    def fits(piece: Piece) -> bool:
        return _fits_room(task, piece) if most is None else _fits_tokens(task, piece, most)

    def join(piece: Piece, start: int, end: int) -> list[Piece]:
        made = _join_or_split(task, piece, start, end, fits)
        if parts or len(made) < 2:
            return made
        repeated = [made[0], piece] if start < piece.start else [piece, made[1]]
        return repeated if repeated[1].start <= repeated[0].end else made  # else the text between them is lost

    joined: list[Piece] = []
    waiting: list[Piece] = []
    for piece, alone in zip(pieces, bare, strict=True):
        if alone:
            waiting.append(piece)
        else:
            joined += join(piece, waiting[0].start, piece.end) or [*waiting, piece] if waiting else [piece]
            waiting = []
    if waiting:
        joined[-1:] = join(joined[-1], joined[-1].start, waiting[-1].end) or [joined[-1], *waiting]
    return joined


def _is_only_heading(task: CuttingTask, piece: Piece) -> bool:
    """Return whether a piece has only headings, optionally followed by short lines that name a table."""
    start, end = strip_span(task.text, piece.start, piece.end)  # a piece may start with blank lines
    first = max(0, bisect_right(task.blocks, start, key=lambda block: block.start) - 1)
    last = bisect_left(task.blocks, end, key=lambda block: block.start)
    inside = task.blocks[first:last]
    if not inside:
        return False
    before_table = leads_to_table(task.text, task.blocks, last)
    return all(
        block.kind == "heading"
        or (
            before_table
            and is_caption_line(block, task.text[max(block.start, piece.start) : min(block.end, piece.end)])
        )
        for block in inside
    )


def _join_or_split(task: CuttingTask, piece: Piece, start: int, end: int, fits: Callable[[Piece], bool]) -> list[Piece]:
    """Return a piece extended to ``text[start:end]``, cut in two if necessary, or no piece if no cut fits."""
    parent = piece.parent and (min(piece.parent[0], start), max(piece.parent[1], end))
    whole = replace(piece, start=start, end=end, parent=parent)
    if fits(whole):
        return [whole]
    middle = task.ruler.reach(start, task.ruler.count(start, end) // 2, end)
    line = task.text.rfind("\n", max(start, piece.start) + 1, middle)
    middle = line if line > piece.start else middle
    spans = [strip_span(task.text, start, middle), strip_span(task.text, middle, end)]
    halves = [_note_table_header(task, replace(whole, start=first, end=last)) for first, last in spans if first < last]
    halves_word = task.ruler.inside_word(middle)
    return halves if not halves_word and all(fits(half) and not _is_only_heading(task, half) for half in halves) else []


def _note_table_header(task: CuttingTask, piece: Piece) -> Piece:
    """Return a piece with the span of the table header if it starts among a table's rows."""
    block = task.blocks[max(0, bisect_right(task.blocks, piece.start, key=lambda block: block.start) - 1)]
    if block.kind != "table" or not block.body <= piece.start < block.end:
        return piece
    return replace(piece, metadata={**piece.metadata, "table_header": strip_span(task.text, block.start, block.body)})


def _fits_tokens(task: CuttingTask, piece: Piece, most: int) -> bool:
    """Return whether a piece has words and at most ``most`` tokens."""
    start, end = strip_span(task.text, piece.start, piece.end)
    return has_words(task.text, start, end) and task.ruler.count(start, end) <= most


def _fits_room(task: CuttingTask, piece: Piece) -> bool:
    """Return whether a piece has words and fits the model together with any header."""
    start, end = strip_span(task.text, piece.start, piece.end)
    return has_words(task.text, start, end) and len(task.tokens(task.text[start:end])) <= task.room


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and the blocks under it, up to the next heading.

    Attributes:
        blocks: Its blocks.
        path: Headings above it and its own (the first, if several were joined).
    """

    blocks: tuple[Block, ...]
    path: tuple[str, ...]

    @property
    def start(self) -> int:
        """The first character of its first block."""
        return self.blocks[0].start

    @property
    def end(self) -> int:
        """The character after its last block."""
        return self.blocks[-1].end

    @property
    def only_heading(self) -> bool:
        """True if it has headings without text."""
        return all(block.kind == "heading" for block in self.blocks)


def chunk_by_structure(task: CuttingTask) -> list[Piece]:
    """Pack sentences and blocks within sections. Small sections join neighbours under the same parent."""
    sections = merge_sections(group_sections(task.blocks), task.ruler, task.size, int(task.options["small"]))
    return join_headings(task, [piece for section in sections for piece in cut_section(section, task, task.size)])


def cut_section(section: Section, task: CuttingTask, size: int) -> list[Piece]:
    """Cut a section into pieces of at most ``size`` tokens, keeping tables and code whole if there is room."""
    if task.ruler.count(section.start, section.end) <= size:
        return [Piece(section.start, section.end)]
    return pack_evenly(split_atoms(section.blocks, task.ruler, size, whole=task.room), task.ruler, size)


def group_sections(blocks: list[Block]) -> list[Section]:
    """Group blocks into sections, which start at a heading or a change of path (definitions in code)."""
    groups: list[list[Block]] = []
    for block in blocks:
        if not groups or block.kind == "heading" or block.path != groups[-1][-1].path:
            groups.append([])
        groups[-1].append(block)
    return [Section(tuple(group), group[0].path) for group in groups]


def merge_sections(sections: list[Section], ruler: TokenCounter, size: int, small: int) -> list[Section]:
    """Join related sections if both fit ``size`` tokens and one has fewer than ``small`` tokens."""
    joined: list[Section] = []
    for section in sections:
        if joined and _belongs_together(joined[-1], section, ruler, size, small):
            last = joined.pop()
            joined.append(Section(last.blocks + section.blocks, last.path))
        else:
            joined.append(section)
    return joined


def _belongs_together(last: Section, section: Section, ruler: TokenCounter, size: int, small: int) -> bool:
    below = section.path[: len(last.path)] == last.path
    if last.only_heading and below:
        return True  # a heading stays with the text after it
    if not (below or section.path[:-1] == last.path[:-1]):
        return False
    if min(ruler.count(last.start, last.end), ruler.count(section.start, section.end)) >= small:
        return False
    return ruler.count(last.start, section.end) <= size
