"""The atoms of blocks: the smallest stretches that packing keeps whole (sentences, rows, items, lines)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from workbench.ingestion.chunking.blocks import ITEM, Block, lines_of
from workbench.ingestion.chunking.ruler import Ruler
from workbench.ingestion.chunking.span import strip
from workbench.sentences import sentence_spans


@dataclass(frozen=True, slots=True)
class Atom:
    """A stretch that is never cut.

    ``clings`` when it should stay with the next one (a heading, a lead-in line); ``ends`` when a block or item ends.
    """

    start: int
    end: int
    clings: bool = False
    ends: bool = False
    metadata: dict[str, tuple[int, int]] = field(default_factory=dict)


def atoms_of(blocks: Iterable[Block], ruler: Ruler, room: int, whole: int | None = None) -> list[Atom]:
    """Return the atoms of blocks, each at most ``room`` tokens; a table or code block up to ``whole`` stays in one."""
    atoms: list[Atom] = []
    for block in blocks:
        atoms.extend(_block_atoms(block, ruler, room, room if whole is None else whole))
    return _joined(atoms, ruler, room)


def _block_atoms(block: Block, ruler: Ruler, room: int, whole: int) -> Iterator[Atom]:
    text = ruler.text
    if block.kind == "heading":
        for start, end in fitting(ruler, block.start, block.end, room):
            yield Atom(start, end, clings=end == block.end)
    elif block.kind in ("table", "code") and ruler.count(block.start, block.end) <= whole:
        yield Atom(block.start, block.end, ends=True)
    elif block.kind == "table":
        yield from _table_atoms(block, ruler, room)
    elif block.kind == "code":
        yield from (Atom(*span, ends=span[1] == block.end) for span in _line_spans(ruler, block.start, block.end, room))
    elif block.kind == "list":
        for start, end in _item_spans(text, block):
            if ruler.count(start, end) <= room:
                yield Atom(start, end, ends=True)
            else:
                yield from _sentence_atoms(ruler, start, end, room)
    else:
        yield from _sentence_atoms(ruler, block.start, block.end, room)


def _sentence_atoms(ruler: Ruler, start: int, end: int, room: int) -> Iterator[Atom]:
    for begin, stop in sentence_spans(ruler.text, start, end):
        for part in fitting(ruler, begin, stop, room):
            last = part[1] == end
            yield Atom(*part, clings=last and ruler.text[end - 1] in ":：", ends=last)


def _table_atoms(block: Block, ruler: Ruler, room: int) -> Iterator[Atom]:
    """Yield the rows of a table too long for one passage; all but the first remember where the table's header is."""
    note = {"table_header": strip(ruler.text, block.start, block.body)}
    for start, end in fitting(ruler, block.start, block.body, room):
        yield Atom(start, end, clings=True)
    for line in lines_of(ruler.text, block.body, block.end):
        for start, end in fitting(ruler, line.start, line.end, room):
            yield Atom(start, end, ends=True, metadata=note)


def _line_spans(ruler: Ruler, start: int, end: int, room: int) -> Iterator[tuple[int, int]]:
    for line in lines_of(ruler.text, start, end):
        if not line.blank:
            yield from fitting(ruler, line.start, line.end, room)


def _item_spans(text: str, block: Block) -> list[tuple[int, int]]:
    """Return the spans of a list's top items, each with the items nested under it."""
    starts = [line.start for line in lines_of(text, block.start, block.end) if ITEM.match(line.text)]
    return [strip(text, start, end) for start, end in zip(starts, [*starts[1:], block.end], strict=True)]


def fitting(ruler: Ruler, start: int, end: int, room: int) -> Iterator[tuple[int, int]]:
    """Yield ``text[start:end]`` in stripped stretches of at most ``room`` tokens, cut between words where possible."""
    while start < end:
        stop = ruler.reach(start, room, end)
        span = strip(ruler.text, start, stop)
        if span[0] < span[1]:
            yield span
        start = stop


def _joined(atoms: list[Atom], ruler: Ruler, room: int) -> list[Atom]:
    """Melt each clinging atom into the next one where both fit in the room."""
    joined: list[Atom] = []
    for atom in atoms:
        last = joined[-1] if joined else None
        if last is not None and last.clings and ruler.count(last.start, atom.end) <= room:
            joined[-1] = replace(atom, start=last.start, metadata={} if last.end != last.start else atom.metadata)
        else:
            joined.append(atom)
    return joined
