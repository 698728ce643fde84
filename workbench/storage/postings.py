"""The postings of an index: which passages have a term, how often, and how long they are.

They lie in blocks of up to 128, so that a question's terms are read as a few pieces of memory and scored by NumPy; the
schema (``schema.sql``) says how a block is made and kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from workbench.storage.database import Connection, numbers_value
from workbench.storage.statements import statement

Ids = NDArray[np.int64]
Postings = NDArray[np.void]  # one dimension of POSTING

POSTING = np.dtype([("passage", ">u4"), ("frequency", ">u2"), ("length", ">u2")])
# Passages whose numbers lie no further apart are looked up as one run: a block of a term holds 128.
SAME_RUN = 64
# Numbers for each passage up to which passages are marked in a table of all numbers, to pick postings by: for 10,000 of
# a million and 100,000 postings .3 ms in place of 5.3, which sorting takes.
LAID_OUT = 1000


def postings_of_terms(connection: Connection, index: str, terms: Sequence[int]) -> dict[int, Postings]:
    """Return all postings of given terms (by their ids); terms that no passage has are left out."""
    return _read(connection, index, "postings_of_terms", {"term_ids": numbers_value(terms)})


def postings_of_passages(
    connection: Connection, index: str, terms: Sequence[int], ids: Ids | Sequence[int]
) -> dict[int, Postings]:
    """Return the postings of given terms in given passages; terms that none of them has are left out."""
    wanted = np.unique(np.asarray(ids, dtype=np.int64))
    if not len(wanted) or not terms:
        return {}
    runs = runs_of(wanted)
    values = {
        "term_ids": numbers_value(terms),
        "firsts": numbers_value(first for first, _ in runs),
        "lasts": numbers_value(last for _, last in runs),
        "befores": numbers_value([-1, *(last for _, last in runs[:-1])]),
    }
    blocks = _read(connection, index, "postings_of_passages", values)
    held = {term: among(postings, wanted) for term, postings in blocks.items()}
    return {term: postings for term, postings in held.items() if len(postings)}


def runs_of(ids: Ids) -> list[tuple[int, int]]:
    """Return first and last of each run of sorted ids, cut where more than ``SAME_RUN`` lie between two."""
    cuts = np.flatnonzero(np.diff(ids) > SAME_RUN)
    firsts, lasts = ids[np.concatenate([[0], cuts + 1])], ids[np.concatenate([cuts, [len(ids) - 1]])]
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))


def among(postings: Postings, ids: Ids) -> Postings:
    """Return the postings whose passage is one of ``ids``, which are sorted."""
    passages = postings["passage"].astype(np.int64)
    laid_out = len(ids) and ids[-1] - ids[0] <= LAID_OUT * len(ids)
    return postings[np.isin(passages, ids, kind="table" if laid_out else None)]


def _read(connection: Connection, index: str, name: str, parameters: Mapping[str, object]) -> dict[int, Postings]:
    rows = connection.execute(statement(name, index), parameters, binary=True).fetchall()
    return {row["term_id"]: np.frombuffer(row["entries"], POSTING) for row in rows}
