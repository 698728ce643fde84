"""Chunkers that go by sentences alone: packed, and each by itself with its neighbours noted."""

from __future__ import annotations

from workbench.ingestion.chunking.atoms import Atom, atoms_of, fitting
from workbench.ingestion.chunking.job import Job
from workbench.ingestion.chunking.packing import pack_full
from workbench.ingestion.chunking.span import Piece
from workbench.ingestion.chunking.structure import Section, sections_of
from workbench.sentences import sentence_spans


def sentence(job: Job) -> list[Piece]:
    """Fill passages with sentences one after the other, whatever headings lie between them."""
    spans = sentence_spans(job.text)
    atoms = [Atom(*part) for start, end in spans for part in fitting(job.ruler, start, end, job.size)]
    return pack_full(atoms, job.ruler, job.size)


def window(job: Job) -> list[Piece]:
    """Make every sentence a passage; "window" in its metadata is the span with ``neighbours`` on either side.

    The neighbours are of the same section. The window is for showing and answering, so the encoder's limit does not
    bind it.
    """
    return [piece for section in sections_of(job.blocks) for piece in _windows(section, job)]


def _windows(section: Section, job: Job) -> list[Piece]:
    reach = int(job.options["neighbours"])
    atoms = atoms_of(section.blocks, job.ruler, job.size, whole=job.room)
    pieces: list[Piece] = []
    for index, atom in enumerate(atoms):
        first, last = atoms[max(0, index - reach)], atoms[min(len(atoms) - 1, index + reach)]
        pieces.append(Piece(atom.start, atom.end, metadata={**atom.metadata, "window": (first.start, last.end)}))
    return pieces
