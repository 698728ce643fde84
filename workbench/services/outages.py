"""Reads that are repeated on the primary if the replica they used has just been lost."""

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
    """A service that reads from a corpus."""

    _corpus: Corpus


ReadingService = TypeVar("ReadingService", bound=_Service)


def retry_on_primary(corpus: Corpus, read: Callable[[], Got]) -> Got:
    """Call ``read``; if the replica is lost during the call, repeat it on the primary."""
    try:
        return read()
    except StorageError:
        if not corpus.has_lost_its_replica:
            raise
    return read()


def retry_read(
    verb: Callable[Concatenate[ReadingService, Arguments], Got],
) -> Callable[Concatenate[ReadingService, Arguments], Got]:
    """Decorate a read-only method, so that it is repeated on the primary if the replica is lost."""

    @wraps(verb)
    def read_with_retry(service: ReadingService, /, *values: Arguments.args, **named: Arguments.kwargs) -> Got:
        corpus = service._corpus  # pyright: ignore[reportPrivateUsage]
        return retry_on_primary(corpus, lambda: verb(service, *values, **named))

    return read_with_retry
