"""The chunker that breaks where neighbouring sentences' embeddings part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from workbench.errors import InvalidInput
from workbench.ingestion.chunking.atoms import Atom, atoms_of
from workbench.ingestion.chunking.cutting_task import CuttingTask
from workbench.ingestion.chunking.headings import headed
from workbench.ingestion.chunking.packing import pack
from workbench.ingestion.chunking.span import Piece

SLICE = 512  # atoms whose vectors are in memory at once
BUFFER = 1  # sentences on either side that are embedded with each, to steady the comparison


def semantic(task: CuttingTask) -> list[Piece]:
    """Cut where the cosine distance between neighbours is in the top ``100 - percentile`` percent of the document.

    After Greg Kamradt's percentile breakpoints. Groups over ``size`` are parted evenly; groups under ``small`` tokens
    join the next one, and headings what follows them.
    """
    atoms = atoms_of(task.blocks, task.ruler, task.size, whole=task.room)
    if len(atoms) < 3:
        return headed(task, pack(atoms, task.ruler, task.size))
    far = np.concatenate([distances(vectors) for vectors in _embedded(task, atoms)])
    breaks = far > np.percentile(far, float(task.options["percentile"]))
    pieces: list[Piece] = []
    group: list[Atom] = [atoms[0]]
    for atom, parts in zip(atoms[1:], breaks, strict=True):
        if parts and task.ruler.count(group[0].start, group[-1].end) >= int(task.options["small"]):
            pieces.extend(pack(group, task.ruler, task.size))
            group = []
        group.append(atom)
    return headed(task, pieces + pack(group, task.ruler, task.size))


def distances(vectors: np.ndarray) -> np.ndarray:
    """Return 1 - cosine of each row and the next; a row of zeros is at distance 1 from anything."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = vectors / np.where(lengths == 0, 1, lengths)
    return 1 - np.sum(unit[:-1] * unit[1:], axis=1)


def _embedded(task: CuttingTask, atoms: Sequence[Atom]) -> Iterator[np.ndarray]:
    """Yield the vectors of all atoms, a few hundred at a time; each array begins with the last row of the one before.

    So neighbours' distances need no more than that many vectors in memory at once.
    """
    if task.embed is None:
        raise InvalidInput("The chunker 'semantic' compares sentences: pass the option 'embed'.")
    last = len(atoms) - 1
    before: list[np.ndarray] = []
    for first in range(0, len(atoms), SLICE):
        places = range(first, min(first + SLICE, len(atoms)))
        texts = [task.text[atoms[max(0, at - BUFFER)].start : atoms[min(last, at + BUFFER)].end] for at in places]
        vectors = np.asarray(task.embed(texts), dtype=np.float64)
        yield np.concatenate([*before, vectors])
        before = [vectors[-1:]]
