"""The place of a model that cannot be loaded: a call to it says why, and searches that need no model are served."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from workbench.errors import ModelError
from workbench.models.encoder import OnBatch


class UnavailableEncoder:
    """An encoder that raises the reason it was given, as ModelError."""

    dimensions = 0
    max_tokens = 0
    has_token_vectors = False
    languages: frozenset[str] | None = None

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self._reason = reason

    def encode(self, texts: Sequence[str], *, on_batch: OnBatch | None = None) -> NoReturn:
        """Raise ModelError."""
        raise ModelError(self._reason)

    def encode_query(self, text: str) -> NoReturn:
        """Raise ModelError."""
        raise ModelError(self._reason)

    def token_spans(self, text: str) -> NoReturn:
        """Raise ModelError."""
        raise ModelError(self._reason)

    def reads(self, text: str) -> NoReturn:
        """Raise ModelError."""
        raise ModelError(self._reason)
