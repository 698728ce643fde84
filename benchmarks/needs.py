"""The needs of one size of the bench, told before it begins: disk and minutes, from measured figures."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from workbench.errors import ConfigurationError
from workbench.formatting import size_text

MAX_COPIED_PASSAGES = (
    200_000  # passages up to which the corpus is also copied for baselines (plain postings, framework, bm25s)
)
# Measured on two cores (EPYC) with an embedded server, beside other work, but for the two sizes that say so.
INDEX_BYTES = 9_500  # of a passage in the index, once its graph stands
DOCUMENT_BYTES = 1_500  # of its text in its document and of what is noted of it; reckoned
COPY_BYTES = 20_000  # of its copies for the baselines: a row a posting, and the framework's own table; reckoned
MAX_LOG_BYTES = 4_000_000_000  # the write-ahead log at most, as the embedded server is set (max_wal_size)
LOAD_MS = 0.95  # to write a passage
GRAPH_MS = 0.5  # to build the graph, for each passage: .2 for few, .5 for a million


def estimate_disk(passages: int, loaded: int = 0) -> int:
    """Return the bytes that a run of this size takes at most, where ``loaded`` of its passages are there already."""
    missing = (passages - loaded) * (INDEX_BYTES + DOCUMENT_BYTES)
    return missing + (passages * COPY_BYTES if passages <= MAX_COPIED_PASSAGES else 0) + min(missing * 2, MAX_LOG_BYTES)


def estimate_seconds(passages: int, loaded: int = 0) -> float:
    """Return the seconds that loading and the graph take on a machine like the one that was measured."""
    return ((passages - loaded) * LOAD_MS + (passages * GRAPH_MS if loaded < passages else 0)) / 1000


def describe_needs(passages: int, loaded: int = 0) -> str:
    """Tell what a size needs."""
    if loaded >= passages:
        return f"{passages:,} passages: all are loaded already"
    begun = f" ({loaded:,} are loaded already)" if loaded else ""
    minutes = max(1, round(estimate_seconds(passages, loaded) / 60))
    return (
        f"{passages:,} passages{begun}: up to {size_text(estimate_disk(passages, loaded))} of disk"
        f" and about {minutes} min to load, more beside other work"
    )


def check_disk(home: Path, sizes: Sequence[tuple[int, int]], keep: bool = False) -> None:
    """Refuse where the disk of ``home`` is too small for sizes given as (passages, passages loaded already).

    Without ``keep`` a size is deleted before the next one begins, so that the largest need counts, else their sum.

    Raises:
        ConfigurationError: it says how much is needed and how much is free.
    """
    needs = [estimate_disk(passages, loaded) for passages, loaded in sizes]
    needed, free = sum(needs) if keep else max(needs, default=0), shutil.disk_usage(home).free
    if needed > free:
        raise ConfigurationError(
            f"The bench needs {size_text(needed)} of disk and {size_text(free)} are free under {home}; "
            "make room, set WORKBENCH_HOME to a larger disk, or ask for fewer --passages."
        )
