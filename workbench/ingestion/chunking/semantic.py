"""Break where neighbouring sentences' embeddings part."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.errors import InvalidInput
from workbench.ingestion.chunking.atoms import Atom, atoms_of
from workbench.ingestion.chunking.job import Job
from workbench.ingestion.chunking.packing import pack
from workbench.ingestion.chunking.span import Piece

BUFFER = 1  # sentences on either side that are embedded with each, to steady the comparison


def semantic(job: Job) -> list[Piece]:
    """Cut where the cosine distance between neighbours is in the top ``100 - percentile`` percent of the document.

    After Greg Kamradt's percentile breakpoints. Groups over ``size`` are parted evenly; groups under ``small`` tokens
    join the next one.
    """
    atoms = atoms_of(job.blocks, job.ruler, job.size, whole=job.room)
    if len(atoms) < 3:
        return pack(atoms, job.ruler, job.size)
    far = distances(_embedded(job, atoms))
    breaks = far > np.percentile(far, float(job.options["percentile"]))
    pieces: list[Piece] = []
    group: list[Atom] = [atoms[0]]
    for atom, parts in zip(atoms[1:], breaks, strict=True):
        if parts and job.ruler.count(group[0].start, group[-1].end) >= int(job.options["small"]):
            pieces.extend(pack(group, job.ruler, job.size))
            group = []
        group.append(atom)
    return pieces + pack(group, job.ruler, job.size)


def distances(vectors: np.ndarray) -> np.ndarray:
    """Return 1 - cosine of each row and the next; a row of zeros is at distance 1 from anything."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = vectors / np.where(lengths == 0, 1, lengths)
    return 1 - np.sum(unit[:-1] * unit[1:], axis=1)


def _embedded(job: Job, atoms: Sequence[Atom]) -> np.ndarray:
    if job.embed is None:
        raise InvalidInput("The chunker 'semantic' compares sentences: pass the option 'embed'.")
    last = len(atoms) - 1
    texts = [
        job.text[atoms[max(0, index - BUFFER)].start : atoms[min(last, index + BUFFER)].end]
        for index in range(len(atoms))
    ]
    return np.asarray(job.embed(texts), dtype=np.float64)
