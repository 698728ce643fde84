"""Reads that go on where a server is lost: once more, without the shard or the replica that has just gone."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Protocol, TypeVar

from workbench.errors import StorageError

if TYPE_CHECKING:
    from workbench.services.corpus import Corpus

Got = TypeVar("Got")
Arguments = ParamSpec("Arguments")


class _Service(Protocol):
    """A service, as far as it knows the servers that it reads."""

    _corpus: Corpus


ReadingService = TypeVar("ReadingService", bound=_Service)


def once_more(corpus: Corpus, read: Callable[[], Got]) -> Got:
    """Read; where a server has just gone, read anew without it. Raises what ``read`` raises, where that fails too."""
    for _ in range(2):  # a shard goes, and then the replica turns out not to have heard of that
        try:
            return read()
        except StorageError:
            if not corpus.lost_a_server():
                raise
    return read()


def read_once_more(
    verb: Callable[Concatenate[ReadingService, Arguments], Got],
) -> Callable[Concatenate[ReadingService, Arguments], Got]:
    """Let a verb that only reads go on as ``once_more`` does."""

    @wraps(verb)
    def going_on(service: ReadingService, /, *values: Arguments.args, **named: Arguments.kwargs) -> Got:
        corpus = service._corpus  # pyright: ignore[reportPrivateUsage]
        return once_more(corpus, lambda: verb(service, *values, **named))

    return going_on
