"""A test set by the name that people give it."""

from __future__ import annotations

from evals.test_set import TestSet
from evals.test_sets.folders import load_test_set
from evals.test_sets.store import TestSetStore
from workbench.errors import NotFound
from workbench.workbench import Workbench


def named_test_set(wb: Workbench, key: str) -> TestSet:
    """Return a stored test set by title or id, else the folder of that name, else the sample."""
    try:
        return TestSetStore(wb).load(TestSetStore(wb).info(key).id)
    except NotFound:
        return load_test_set(key)
