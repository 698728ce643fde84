"""Chunkers that go by whole sections: one passage each, and small passages that know their section."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace

from workbench.ingestion.chunking.atoms import atoms_of
from workbench.ingestion.chunking.job import Job
from workbench.ingestion.chunking.packing import pack
from workbench.ingestion.chunking.span import Piece
from workbench.ingestion.chunking.structure import Section, merged, pieces_of, sections_of


def heading(job: Job) -> list[Piece]:
    """Make a passage of each section; a heading without text of its own stays with the section below it."""
    sections = merged(sections_of(job.blocks), job.ruler, job.size, small=0)
    return [piece for section in sections for piece in pieces_of(section, job, job.size)]


def hierarchical(job: Job) -> list[Piece]:
    """Cut small passages inside larger ones; ``parent`` is the larger one, returned when enough of it is found.

    A parent is a section of at most ``parent`` tokens (small neighbours joined, long ones parted evenly).
    """
    limit = max(job.size, int(job.options["parent"]))
    sections = merged(sections_of(job.blocks), job.ruler, limit, small=limit // 4)
    return [piece for section in sections for piece in _children(section, job, limit)]


def _children(section: Section, job: Job, limit: int) -> list[Piece]:
    atoms = atoms_of(section.blocks, job.ruler, job.size, whole=job.room)
    starts = [atom.start for atom in atoms]
    children: list[Piece] = []
    for parent in pack(atoms, job.ruler, limit):
        inside = atoms[bisect_left(starts, parent.start) : bisect_left(starts, parent.end)]
        children += (replace(child, parent=(parent.start, parent.end)) for child in pack(inside, job.ruler, job.size))
    return children
