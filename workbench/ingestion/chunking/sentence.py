"""Chunkers that go by sentences alone: packed, and each by itself with its neighbours noted."""

from __future__ import annotations

from dataclasses import replace

from workbench.ingestion.chunking.atoms import Atom, atoms_of, fitting
from workbench.ingestion.chunking.cutting_task import CuttingTask
from workbench.ingestion.chunking.headings import headed
from workbench.ingestion.chunking.packing import pack_full
from workbench.ingestion.chunking.span import Piece
from workbench.ingestion.chunking.structure import Section, sections_of
from workbench.sentences import sentence_spans


def sentence(task: CuttingTask) -> list[Piece]:
    """Fill passages with sentences one after the other, whatever headings lie between them; none is only headings."""
    spans = sentence_spans(task.text)
    atoms = [Atom(*part) for start, end in spans for part in fitting(task.ruler, start, end, task.size)]
    return headed(task, pack_full(atoms, task.ruler, task.size))


def window(task: CuttingTask) -> list[Piece]:
    """Make every sentence a passage, with headings before it; "window" in its metadata: ``neighbours`` on either side.

    The neighbours are of the same section. The window is for showing and answering, so the encoder's limit does not
    bind it.
    """
    pieces = [piece for section in sections_of(task.blocks) for piece in _windows(section, task)]
    return [_within_window(piece) for piece in headed(task, pieces)]


def _within_window(piece: Piece) -> Piece:
    first, last = piece.metadata["window"]
    return replace(piece, metadata={**piece.metadata, "window": (min(first, piece.start), max(last, piece.end))})


def _windows(section: Section, task: CuttingTask) -> list[Piece]:
    reach = int(task.options["neighbours"])
    atoms = atoms_of(section.blocks, task.ruler, task.size, whole=task.room)
    pieces: list[Piece] = []
    for index, atom in enumerate(atoms):
        first, last = atoms[max(0, index - reach)], atoms[min(len(atoms) - 1, index + reach)]
        pieces.append(Piece(atom.start, atom.end, metadata={**atom.metadata, "window": (first.start, last.end)}))
    return pieces
