"""Public ids: a prefix that says what it is, and 12 random hexadecimal digits."""

from __future__ import annotations

import uuid

PREFIXES = {
    "project": "proj",
    "folder": "fold",
    "source": "src",
    "document": "doc",
    "job": "job",
    "hand": "hand",
    "run": "run",
    "dataset": "set",
    "question": "q",
    "experiment": "exp",
}


def new_id(kind: str) -> str:
    """Return a new id for a kind of thing, such as ``src_4fd2c0a91b7e``."""
    return f"{PREFIXES[kind]}_{uuid.uuid4().hex[:12]}"
