"""The postings of an index: which passages have a term, how often, and how long they are.

They lie in blocks of up to 128, so that a question's terms are read as a few pieces of memory and scored by NumPy; the
migration ``0040_postings_in_blocks`` says how a block is made and kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from workbench.storage.database import Connection
from workbench.storage.statements import statement

Ids = NDArray[np.int64]
Postings = NDArray[np.void]  # one dimension of POSTING

POSTING = np.dtype([("passage", ">u4"), ("frequency", ">u2"), ("length", ">u2")])


def postings_of_terms(connection: Connection, index: str, terms: Sequence[int]) -> dict[int, Postings]:
    """Return all postings of given terms (by their ids); terms that no passage has are left out."""
    return _read(connection, index, "postings_of_terms", {"term_ids": list(terms)})


def postings_of_passages(
    connection: Connection, index: str, terms: Sequence[int], ids: Ids | Sequence[int]
) -> dict[int, Postings]:
    """Return the postings of given terms in given passages; terms that none of them has are left out."""
    wanted = np.unique(np.asarray(ids, dtype=np.int64))
    if not len(wanted) or not terms:
        return {}
    blocks = _read(connection, index, "postings_of_passages", {"term_ids": list(terms), "ids": wanted.tolist()})
    held = {term: among(postings, wanted) for term, postings in blocks.items()}
    return {term: postings for term, postings in held.items() if len(postings)}


def among(postings: Postings, ids: Ids) -> Postings:
    """Return the postings whose passage is one of ``ids``."""
    return postings[np.isin(postings["passage"].astype(np.int64), ids)]


def _read(connection: Connection, index: str, name: str, parameters: Mapping[str, object]) -> dict[int, Postings]:
    rows = connection.execute(statement(name, index), parameters, binary=True).fetchall()
    return {row["term_id"]: np.frombuffer(row["entries"], POSTING) for row in rows}
