"""Estimates of disk space and time before a benchmark starts, based on measured figures."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from workbench.errors import ConfigurationError
from workbench.formatting import size_text

MAX_COPIED_PASSAGES = 200_000  # larger corpora are not copied for baselines (plain postings, LlamaIndex, bm25s)
# Measured on two cores (EPYC) with an embedded server, under other load, except the two estimated sizes.
INDEX_BYTES = 9_500  # per passage in the index, with its graph
DOCUMENT_BYTES = 1_500  # per passage for its text and metadata in the document; estimated
COPY_BYTES = 20_000  # per passage for copies of the baselines: a row per posting, and LlamaIndex's table; estimated
MAX_LOG_BYTES = 4_000_000_000  # max_wal_size of the embedded server
LOAD_MS = 0.95  # per passage, to write it
GRAPH_MS = 0.5  # per passage, to build the graph: .2 for small corpora, .5 for a million


def estimate_disk(passages: int, loaded: int = 0) -> int:
    """Return the maximum bytes that a run of this size uses, if ``loaded`` passages already exist."""
    missing = (passages - loaded) * (INDEX_BYTES + DOCUMENT_BYTES)
    return missing + (passages * COPY_BYTES if passages <= MAX_COPIED_PASSAGES else 0) + min(missing * 2, MAX_LOG_BYTES)


def estimate_seconds(passages: int, loaded: int = 0) -> float:
    """Return the estimated seconds for loading and building the graph, on a machine like the measured one."""
    return ((passages - loaded) * LOAD_MS + (passages * GRAPH_MS if loaded < passages else 0)) / 1000


def describe_needs(passages: int, loaded: int = 0) -> str:
    """Return a sentence on the disk space and time that a size needs."""
    if loaded >= passages:
        return f"{passages:,} passages: all already loaded"
    begun = f" ({loaded:,} already loaded)" if loaded else ""
    minutes = max(1, round(estimate_seconds(passages, loaded) / 60))
    return (
        f"{passages:,} passages{begun}: up to {size_text(estimate_disk(passages, loaded))} of disk"
        f" and about {minutes} min to load, more under other load"
    )


def check_disk(home: Path, sizes: Sequence[tuple[int, int]], keep: bool = False) -> None:
    """Check that the disk of ``home`` is large enough for the sizes (passages, passages already loaded).

    Without ``keep``, each size is deleted before the next, so the largest counts; with it, their sum does.

    Raises:
        ConfigurationError: There is not enough free disk space.
    """
    needs = [estimate_disk(passages, loaded) for passages, loaded in sizes]
    needed, free = sum(needs) if keep else max(needs, default=0), shutil.disk_usage(home).free
    if needed > free:
        raise ConfigurationError(
            f"The benchmark needs {size_text(needed)} of disk, but {home} has only {size_text(free)} free; "
            "make room, set WORKBENCH_HOME to a larger disk, or use fewer --passages."
        )
