"""Cut source code so that functions and classes stay whole where they fit."""

from __future__ import annotations

from workbench.ingestion.chunking.job import Job
from workbench.ingestion.chunking.ruler import Ruler
from workbench.ingestion.chunking.span import Piece
from workbench.ingestion.chunking.structure import Section, merged, pieces_of, sections_of, structure


def code(job: Job) -> list[Piece]:
    """Keep a class whole while it fits, else its methods; small neighbours join. All but code goes to structure."""
    if job.document.document_type != "code":
        return structure(job)
    sections = whole_definitions(sections_of(job.blocks), job.ruler, job.size)
    sections = merged(sections, job.ruler, job.size, int(job.options["small"]))
    return [piece for section in sections for piece in pieces_of(section, job, job.size)]


def whole_definitions(sections: list[Section], ruler: Ruler, size: int) -> list[Section]:
    """Join each definition with all that is defined inside it, outermost first, where the whole fits the size."""
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
