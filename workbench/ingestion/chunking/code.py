"""The chunker of source code: functions and classes stay whole where they fit."""

from __future__ import annotations

from workbench.ingestion.chunking.cutting_task import CuttingTask
from workbench.ingestion.chunking.ruler import Ruler
from workbench.ingestion.chunking.span import Piece
from workbench.ingestion.chunking.structure import Section, merged, pieces_of, sections_of, structure


def code(task: CuttingTask) -> list[Piece]:
    """Keep a class whole while it fits, else its methods; small neighbours join. All but code goes to structure."""
    if task.document.document_type != "code":
        return structure(task)
    sections = whole_definitions(sections_of(task.blocks), task.ruler, task.size)
    sections = merged(sections, task.ruler, task.size, int(task.options["small"]))
    return [piece for section in sections for piece in pieces_of(section, task, task.size)]


def whole_definitions(sections: list[Section], ruler: Ruler, size: int) -> list[Section]:
    """Join each definition with all that is defined inside it, outermost first, where these fit ``size`` tokens."""
    whole: list[Section] = []
    index = 0
    while index < len(sections):
        section = sections[index]
        after = index + 1
        while after < len(sections) and section.path and sections[after].path[: len(section.path)] == section.path:
            after += 1
        if ruler.count(section.start, sections[after - 1].end) > size:
            after = index + 1
        blocks = tuple(block for inner in sections[index:after] for block in inner.blocks)
        whole.append(Section(blocks, section.path))
        index = after
    return whole
