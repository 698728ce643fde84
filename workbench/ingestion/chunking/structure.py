"""The default chunker: passages that follow the document's own structure, packed to about the same size."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.ingestion.chunking.atoms import atoms_of
from workbench.ingestion.chunking.blocks import Block
from workbench.ingestion.chunking.cutting_task import CuttingTask
from workbench.ingestion.chunking.headings import headed
from workbench.ingestion.chunking.packing import pack
from workbench.ingestion.chunking.ruler import Ruler
from workbench.ingestion.chunking.span import Piece


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
