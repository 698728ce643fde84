"""Hashes that say whether a stored run still stands: of the code that ranks, and of everything else it depends on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import workbench
from workbench.types import ParameterValue

# Everything that decides a ranking: the legs, their fusion and stages, the models, and the SQL they run.
RANKS = (
    "retrieval/**/*.py",
    "retrieval/ranker/*.json",
    "models/**/*.py",
    "services/requests.py",
    "services/search.py",
    *(
        f"storage/{name}.py"
        for name in (
            "embedded_text",
            "filters",
            "lexicon",
            "llama_store",
            "passages",
            "postings",
            "ranking",
            "rows",
            "said_names",
            "scores",
            "side_read",
            "surroundings",
            "term_ranking",
            "vector_store",
        )
    ),
    *(f"storage/sql/{name}.sql" for name in ("search", "spelling", "surroundings")),
)


@cache
def code_hash() -> str:
    """Return the hash of the source code that ranks; another version of it may answer otherwise."""
    root = Path(workbench.__file__).parent
    digest = hashlib.sha256()
    for path in ranking_files():
        digest.update(f"{path.relative_to(root).as_posix()}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def ranking_files() -> list[Path]:
    """Return the files whose change makes stored runs stale."""
    root = Path(workbench.__file__).parent
    return [path for pattern in RANKS for path in sorted(root.glob(pattern))]


def strategy_hash(strategy: str, parameters: Mapping[str, ParameterValue]) -> str:
    """Hash a strategy with all its parameters and the code that runs it."""
    return hash_of([strategy, sorted(parameters.items()), code_hash()])


def hash_of(value: object) -> str:
    """Hash anything JSON can hold."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
