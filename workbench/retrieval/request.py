"""One search request: what its legs and stages share, made anew for each, so that no scope is ever carried over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from workbench.errors import ModelError
from workbench.models.encoder import READS_NOTHING, EncodedQuery, Encoder, FloatArray
from workbench.retrieval.parameters import FIRST_DEPTH
from workbench.retrieval.ranker.scoring import FeatureSheet
from workbench.retrieval.strategy import Strategy
from workbench.retrieval.trace import Trace
from workbench.storage.database import Connection
from workbench.storage.ranking import EXACT_UP_TO, scope_size
from workbench.storage.store import PassageStore
from workbench.types import Index, Parameter, ParameterValue, Passage, Ranker, ResolvedScope
from workbench.types.results import TimedStep

if TYPE_CHECKING:
    from PIL.Image import Image

    from workbench.models.cross_encoder import CrossEncoder
    from workbench.models.llm import Llm
    from workbench.retrieval.names.names_said import QuestionNames, SaidName
    from workbench.retrieval.names.names_table import KeptNames
    from workbench.retrieval.question_words import Words


@dataclass(frozen=True, slots=True)
class Likenesses:
    """How like each word of a question is to its like in each passage: (passages, query tokens), -1..1.

    ``shares`` are what the query tokens count, summing to 1.
    """

    ids: tuple[int, ...]
    best: FloatArray
    shares: FloatArray


@dataclass(slots=True)
class Request:
    """``limit`` is how many passages are asked for; ``parameters`` are the strategy's, already checked.

    ``min_similarity`` is the least cosine between query and passage, judged before the cut to the limit, so that as
    many as asked are found where as many reach it; 0 asks for none. With ``remembered`` the index was not looked up
    for this request, so passages are only shown if it is still the same. ``words`` are the keyword leg's reading of
    each query, ``spreads`` say of each how far the nearest candidates stand out (``votes.spread``), ``names`` and
    ``titles`` which documents it names; ``kept_names`` is the index's table of names, None where names are only words.
    ``draw_page`` draws the page of a passage. ``ranker`` are the weights of the strategy ``learned``, ``likenesses``
    the word by word comparison of each query, ``sheet`` what the ranker was told of the candidates. ``depth`` is how
    many passages each leg brings at least; ``replies`` are what an LLM wrote for this request, by query.
    """

    strategy: Strategy
    store: PassageStore
    encoder: Encoder
    scope: ResolvedScope
    limit: int
    parameters: Mapping[str, ParameterValue]
    remembered: bool = False
    min_similarity: float = 0.0
    llm: Llm | None = None
    cross_encoder: CrossEncoder | None = None
    trace: Trace = field(default_factory=Trace)
    words: dict[str, Words] = field(default_factory=dict)
    encoded_queries: dict[str, EncodedQuery] = field(default_factory=dict)
    encoding_ms: dict[str, float] = field(default_factory=dict)  # by query; shared with requests that reuse the vectors
    spreads: dict[str, float | None] = field(default_factory=dict)
    kept_names: KeptNames | None = None
    names: dict[str, QuestionNames] = field(default_factory=dict)
    titles: dict[str, tuple[SaidName, ...]] = field(default_factory=dict)
    draw_page: Callable[[Passage], Image] | None = None
    ranker: Ranker | None = None
    likenesses: dict[str, Likenesses] = field(default_factory=dict)
    sheet: FeatureSheet | None = None
    depth: int = FIRST_DEPTH
    replies: dict[str, object] = field(default_factory=dict)
    _shares_read: dict[str, float] = field(default_factory=dict)
    _scope_size: int | None = None

    @property
    def index(self) -> Index:
        """The index that is searched."""
        return self.store.index

    @property
    def same_as(self) -> Index | None:
        """The index's row as it must still be for passages to be shown; None where it was just looked up."""
        return self.store.index if self.remembered else None

    def number(self, parameter: Parameter, otherwise: float | None = None) -> float:
        """Return a parameter that is a number; ``otherwise`` where the strategy does not declare it.

        Raises:
            ConfigurationError: the strategy does not declare it, and there is no ``otherwise``.
        """
        if otherwise is not None and parameter.name not in self.parameters:
            return otherwise
        return float(self.parameters[parameter.name])

    def is_on(self, parameter: Parameter, otherwise: bool | None = None) -> bool:
        """Return a parameter that is a switch, as ``number`` does."""
        return bool(self.number(parameter, otherwise))

    def scope_size(self, connection: Connection) -> int:
        """Return the size of the scope, counted once; for everything 0 if it is searched exactly, else a large one."""
        if self._scope_size is None:
            if self.scope.is_everything:
                self._scope_size = EXACT_UP_TO + 1 if self.index.has_graph else 0
            else:
                self._scope_size = scope_size(connection, self.index.name, self.scope)
        return self._scope_size

    def similar_enough(self, query: str, cosine: float, *, worded: bool = False) -> bool:
        """Tell whether a passage of that cosine may be shown; ``worded``: it has some of the question's words.

        A model's verdict on a question that it cannot read hides no passage that has the words.
        """
        if self.min_similarity <= 0 or cosine >= self.min_similarity:
            return True
        return worded and not self.can_read(query)

    def can_read(self, query: str) -> bool:
        """Tell whether the index's model can tell most of a query's words apart; True where it cannot be asked."""
        return self.share_read(query) > READS_NOTHING

    def encoded(self, query: str) -> EncodedQuery:
        """Return the query as the model sees it, computed once a request.

        A vector that another request computed is charged with the time it took there, so that the times of
        strategies that are compared contain the same step.

        Raises:
            ModelError: the index's model cannot be used.
        """
        if query not in self.encoded_queries:
            before = self.trace.timings_ms.get(TimedStep.EMBED, 0.0)
            with self.trace.stage(TimedStep.EMBED):
                self.encoded_queries[query] = self.encoder.encode_query(query)
            self.encoding_ms[query] = self.trace.timings_ms[TimedStep.EMBED] - before
            self.trace.charged.add(query)
        elif query in self.encoding_ms and query not in self.trace.charged:
            self.trace.charge_shared(TimedStep.EMBED, self.encoding_ms[query])
            self.trace.charged.add(query)
        return self.encoded_queries[query]

    def share_read(self, query: str) -> float:
        """Return the share 0..1 of a query that the index's model can tell apart; 1 where the model cannot load."""
        if query not in self._shares_read:
            try:
                self._shares_read[query] = self.encoder.reads(query)
            except ModelError:  # told where its vectors are needed
                self._shares_read[query] = 1.0
        return self._shares_read[query]
