"""One search request: what its legs and stages share, made anew for each, so that no scope is ever carried over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from workbench.models.encoder import EncodedQuery, Encoder
from workbench.retrieval.trace import Trace
from workbench.storage.vector_store import PassageStore
from workbench.types import Leg, ResolvedScope

if TYPE_CHECKING:
    from workbench.models.cross_encoder import CrossEncoder
    from workbench.models.llm import Llm


@dataclass(slots=True)
class Request:
    """``limit`` is how many passages are asked for; ``parameters`` are the strategy's, already checked.

    ``min_similarity`` is the least cosine between query and passage, judged before the cut to the limit, so that as
    many as asked are found where as many reach it; 0 asks for none. ``index_name`` is the index that was asked for,
    None for the default one; with ``remembered`` it was not looked up for this request, so passages are only shown if
    it is still the same.
    """

    store: PassageStore
    encoder: Encoder
    scope: ResolvedScope
    limit: int
    parameters: Mapping[str, Any]
    index_name: str | None = None
    remembered: bool = False
    min_similarity: float = 0.0
    llm: Llm | None = None
    cross_encoder: CrossEncoder | None = None
    trace: Trace = field(default_factory=Trace)
    words: dict[str, Any] = field(default_factory=dict)  # the keyword leg's reading of each query, see keyword.py
    _held: int | None = None
    _encoded: dict[str, EncodedQuery] = field(default_factory=dict)

    def share_encoded(self, encoded: dict[str, EncodedQuery]) -> None:
        """Use embedded queries of other requests with the same model, and give them ours."""
        self._encoded = encoded

    def held(self, connection: Any) -> int:
        """Return how many passages the scope holds as the store counts them, counted once a request; 0 for all."""
        if self._held is None:
            self._held = 0 if self.scope.is_everything else self.store.held(connection, self.scope)
        return self._held

    def similar_enough(self, cosine: float) -> bool:
        """Tell whether a passage of that cosine may be shown."""
        return self.min_similarity <= 0 or cosine >= self.min_similarity

    def encoded(self, query: str) -> EncodedQuery:
        """Return the query as the model sees it, computed once a request."""
        if query not in self._encoded:
            with self.trace.stage("embed"):
                self._encoded[query] = self.encoder.encode_query(query)
        return self._encoded[query]


@dataclass(frozen=True, slots=True)
class Hit:
    """A candidate with what each leg says; ``score`` is the sum of the legs' contributions."""

    id: int
    score: float
    legs: Mapping[str, Leg]
