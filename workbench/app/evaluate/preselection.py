"""The test set that a form begins with."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evals.test_sets.store import TestSetInfo

NEVER = datetime.min.replace(tzinfo=UTC)


def preselected(test_sets: Sequence[TestSetInfo]) -> str:
    """Return the id of the test set to begin with, "" without any.

    It is the one over the person's own documents that was changed last; else the one that was changed last.
    """
    best = max(test_sets, key=lambda info: (info.source_id is None, info.updated_at or NEVER), default=None)
    return best.id if best else ""
