"""A test set by the name that people give it."""

from __future__ import annotations

from dataclasses import replace

from evals.gateway import measured_scope
from evals.test_set import TestSet
from evals.test_sets.folders import load_test_set
from evals.test_sets.store import TestSetStore
from workbench.errors import InvalidInput, NotFound
from workbench.types import Scope
from workbench.workbench import Workbench


def named_test_set(wb: Workbench, key: str, scope: Scope | None = None) -> TestSet:
    """Return a stored test set by title or id, else the folder of that name, else the sample.

    Args:
        scope: Searched in place of the test set's own scope, unless it is None or everything.

    Raises:
        InvalidInput: no such test set, or a scope for one with a corpus of its own.
        ScopeError: an unknown name in the scope.
    """
    try:
        test_set = TestSetStore(wb).load(TestSetStore(wb).info(key).id)
    except NotFound:
        test_set = load_test_set(key)
    if scope is None or scope == Scope():
        return test_set
    if test_set.corpus is not None:
        raise InvalidInput(
            f"{test_set.name!r} has a corpus of its own, which a scope cannot narrow; leave the scope options out."
        )
    return replace(test_set, scope=measured_scope(wb, scope))
