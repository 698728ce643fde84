"""A property that is computed once, without a lock: documents that are cut beside each other do not wait.

``functools.cached_property`` does the same from Python 3.12 on. In 3.11 it holds one lock for all objects of a class:
every other document of a process waited while one of 15 MB was measured.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Owner = TypeVar("Owner")
Computed = TypeVar("Computed")


class computed_once(Generic[Owner, Computed]):
    """Keep what a method returns in the object's ``__dict__``, where it is found before the method the next time."""

    def __init__(self, compute: Callable[[Owner], Computed]) -> None:
        self._compute, self._name = compute, compute.__name__
        self.__doc__ = compute.__doc__

    def __get__(self, owner: Owner, kind: type[Owner] | None = None) -> Computed:
        """Compute it; two threads that ask at once may both do so."""
        computed = self._compute(owner)
        owner.__dict__[self._name] = computed
        return computed
