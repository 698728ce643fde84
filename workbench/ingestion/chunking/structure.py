"""The default chunker: passages that follow the document's own structure, packed to about the same size."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from workbench.ingestion.chunking.blocks import Block, atoms_of
from workbench.ingestion.chunking.finish import has_words, pack
from workbench.ingestion.chunking.spans import Piece, Ruler, strip
from workbench.ingestion.chunking.task import CuttingTask, is_naming, leads_to_table

# --- Pieces that only lead to others, joined to these: alone they answer nothing, and rank high ---


def headed(task: CuttingTask, pieces: Sequence[Piece], most: int | None = None, *, parts: bool = True) -> list[Piece]:
    """Return the pieces, in order, such that none only leads to others where that can be had.

    A heading or a line that names a table joins the piece after it, the last heading the piece before it. Where both
    together are more than there is room for, or than ``most`` tokens, the other piece is cut in two, at the end of a
    line or between words; of pieces that overlap (without ``parts``) it stays whole, and its first half is repeated.
    """
    bare = [_only_leads(task, piece) for piece in pieces]
    if not any(bare) or all(bare):
        return list(pieces)

    def fits(piece: Piece) -> bool:
        return _fits(task, piece) if most is None else _within(task, piece, most)

    def join(piece: Piece, start: int, end: int) -> list[Piece]:
        made = _joined(task, piece, start, end, fits)
        if parts or len(made) < 2:
            return made
        repeated = [made[0], piece] if start < piece.start else [piece, made[1]]
        return repeated if repeated[1].start <= repeated[0].end else made  # else what lies between them would be lost

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


def _only_leads(task: CuttingTask, piece: Piece) -> bool:
    """Tell whether a piece is headings, or headings and the short lines that name a table after them."""
    start, end = strip(task.text, piece.start, piece.end)  # a piece may begin with the blank lines before it
    first = max(0, bisect_right(task.blocks, start, key=lambda block: block.start) - 1)
    last = bisect_left(task.blocks, end, key=lambda block: block.start)
    inside = task.blocks[first:last]
    if not inside:
        return False
    before_table = leads_to_table(task.text, task.blocks, last)
    return all(
        block.kind == "heading"
        or (before_table and is_naming(block, task.text[max(block.start, piece.start) : min(block.end, piece.end)]))
        for block in inside
    )


def _joined(task: CuttingTask, piece: Piece, start: int, end: int, fits: Callable[[Piece], bool]) -> list[Piece]:
    """Return a piece that grows to ``text[start:end]``, cut in two where it must; nothing where no cut fits."""
    parent = piece.parent and (min(piece.parent[0], start), max(piece.parent[1], end))
    whole = replace(piece, start=start, end=end, parent=parent)
    if fits(whole):
        return [whole]
    middle = task.ruler.reach(start, task.ruler.count(start, end) // 2, end)
    line = task.text.rfind("\n", max(start, piece.start) + 1, middle)
    middle = line if line > piece.start else middle
    spans = [strip(task.text, start, middle), strip(task.text, middle, end)]
    halves = [_noted(task, replace(whole, start=first, end=last)) for first, last in spans if first < last]
    halves_word = task.ruler.inside_word(middle)
    return halves if not halves_word and all(fits(half) and not _only_leads(task, half) for half in halves) else []


def _noted(task: CuttingTask, piece: Piece) -> Piece:
    """Return a piece that begins among the rows of a table with the place of the table's header."""
    block = task.blocks[max(0, bisect_right(task.blocks, piece.start, key=lambda block: block.start) - 1)]
    if block.kind != "table" or not block.body <= piece.start < block.end:
        return piece
    return replace(piece, metadata={**piece.metadata, "table_header": strip(task.text, block.start, block.body)})


def _within(task: CuttingTask, piece: Piece, most: int) -> bool:
    """Tell whether a piece says something in at most so many tokens."""
    start, end = strip(task.text, piece.start, piece.end)
    return has_words(task.text, start, end) and task.ruler.count(start, end) <= most


def _fits(task: CuttingTask, piece: Piece) -> bool:
    """Tell whether a piece says something and is no longer than the model reads beside any header."""
    start, end = strip(task.text, piece.start, piece.end)
    return has_words(task.text, start, end) and len(task.tokens(task.text[start:end])) <= task.room


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and the blocks under it, up to the next heading; ``path`` includes its own (the first, when joined)."""

    blocks: tuple[Block, ...]
    path: tuple[str, ...]

    @property
    def start(self) -> int:
        """The character of the document's text at which its first block begins."""
        return self.blocks[0].start

    @property
    def end(self) -> int:
        """The character after its last block."""
        return self.blocks[-1].end

    @property
    def only_heading(self) -> bool:
        """True where headings have no text under them."""
        return all(block.kind == "heading" for block in self.blocks)


def structure(task: CuttingTask) -> list[Piece]:
    """Pack sentences and blocks within sections; small sections join neighbours under the same parent."""
    sections = merged(sections_of(task.blocks), task.ruler, task.size, int(task.options["small"]))
    return headed(task, [piece for section in sections for piece in pieces_of(section, task, task.size)])


def pieces_of(section: Section, task: CuttingTask, size: int) -> list[Piece]:
    """Cut one section into pieces of at most ``size`` tokens, keeping tables and code whole while there is room."""
    if task.ruler.count(section.start, section.end) <= size:
        return [Piece(section.start, section.end)]
    return pack(atoms_of(section.blocks, task.ruler, size, whole=task.room), task.ruler, size)


def sections_of(blocks: list[Block]) -> list[Section]:
    """Group blocks into sections: a heading begins one, and so does a change of path (code's definitions)."""
    groups: list[list[Block]] = []
    for block in blocks:
        if not groups or block.kind == "heading" or block.path != groups[-1][-1].path:
            groups.append([])
        groups[-1].append(block)
    return [Section(tuple(group), group[0].path) for group in groups]


def merged(sections: list[Section], ruler: Ruler, size: int, small: int) -> list[Section]:
    """Join related sections while both fit ``size`` tokens and one of them has fewer than ``small`` tokens."""
    joined: list[Section] = []
    for section in sections:
        if joined and _belongs(joined[-1], section, ruler, size, small):
            last = joined.pop()
            joined.append(Section(last.blocks + section.blocks, last.path))
        else:
            joined.append(section)
    return joined


def _belongs(last: Section, section: Section, ruler: Ruler, size: int, small: int) -> bool:
    below = section.path[: len(last.path)] == last.path
    if last.only_heading and below:
        return True  # a heading stays with what follows it
    if not (below or section.path[:-1] == last.path[:-1]):
        return False
    if min(ruler.count(last.start, last.end), ruler.count(section.start, section.end)) >= small:
        return False
    return ruler.count(last.start, section.end) <= size
