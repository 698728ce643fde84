"""Chunkers that go by whole sections: one passage each, and small passages that know their section."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace

from workbench.ingestion.chunking.atoms import atoms_of
from workbench.ingestion.chunking.cutting_task import CuttingTask
from workbench.ingestion.chunking.headings import headed
from workbench.ingestion.chunking.packing import pack
from workbench.ingestion.chunking.span import Piece
from workbench.ingestion.chunking.structure import Section, merged, pieces_of, sections_of


def heading(task: CuttingTask) -> list[Piece]:
    """Make a passage of each section; a heading without text of its own stays with the section below it."""
    sections = merged(sections_of(task.blocks), task.ruler, task.size, small=0)
    return headed(task, [piece for section in sections for piece in pieces_of(section, task, task.size)])


def hierarchical(task: CuttingTask) -> list[Piece]:
    """Cut small passages inside larger ones; ``parent`` is the larger one, returned when enough of it is found.

    A parent is a section of at most ``parent`` tokens (small neighbours joined, long ones parted evenly).
    """
    limit = max(task.size, int(task.options["parent"]))
    sections = merged(sections_of(task.blocks), task.ruler, limit, small=limit // 4)
    return headed(task, [piece for section in sections for piece in _children(section, task, limit)])


def _children(section: Section, task: CuttingTask, limit: int) -> list[Piece]:
    atoms = atoms_of(section.blocks, task.ruler, task.size, whole=task.room)
    starts = [atom.start for atom in atoms]
    children: list[Piece] = []
    for parent in pack(atoms, task.ruler, limit):
        inside = atoms[bisect_left(starts, parent.start) : bisect_left(starts, parent.end)]
        children += (replace(child, parent=(parent.start, parent.end)) for child in pack(inside, task.ruler, task.size))
    return children
