"""The date that a document says of itself."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from datetime import date


def date_of(metadata: Mapping[str, object]) -> date | None:
    """Return the date a document says of itself, where it says one that can be read."""
    names = ("date", "lastUpdated", "lastmod", "modified", "published", "created")
    for value in itertools.chain.from_iterable((metadata.get(name),) for name in names):
        if isinstance(value, str):
            try:
                return date.fromisoformat(value[:10])
            except ValueError:
                continue
    return None
