"""One search request: what its legs and stages share, made anew for each, so that no scope is ever carried over."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from workbench.errors import ModelError
from workbench.models.encoder import READS_NOTHING, EncodedQuery, Encoder, FloatArray
from workbench.retrieval.bm25 import weigh
from workbench.retrieval.parameters import FIRST_DEPTH
from workbench.retrieval.ranker import FeatureSheet
from workbench.retrieval.strategy import Strategy
from workbench.storage.database import Connection
from workbench.storage.passages import IndexTotals, QueryTerm, TermWeights
from workbench.storage.ranking import EXACT_UP_TO, query_terms, scope_size, terms_in_scope
from workbench.storage.store import PassageStore
from workbench.telemetry import STEP, measured
from workbench.types import Index, Parameter, ParameterValue, Passage, Ranker, ResolvedScope, Value
from workbench.types.results import TimedStep

if TYPE_CHECKING:
    from PIL.Image import Image

    from workbench.models.cross_encoder import CrossEncoder
    from workbench.models.llm import Llm
    from workbench.retrieval.names import KeptNames, QuestionNames, SaidName

# --- The words of a question as a request keeps them: its terms, weighed, and what misspelt ones may mean ---


@dataclass(frozen=True, slots=True)
class Guess(Value):
    """A word that was typed and a known one it may mean; ``distance`` counts the slips between."""

    typed: str
    meant: str
    distance: int

    @property
    def similarity(self) -> float:
        """1 for equal words, less for each slip, the more so in short words."""
        return 1 - self.distance / max(len(self.typed), len(self.meant), 1)


@dataclass(frozen=True, slots=True)
class Words:
    """The question's terms, weighed against the whole index; ``guesses`` stand for words that no passage has."""

    terms: tuple[QueryTerm, ...]
    totals: IndexTotals
    weights: TermWeights
    guesses: tuple[Guess, ...] = ()


# --- The events of one search: time per stage, and which leg could not serve ---


@dataclass(slots=True)
class Trace:
    """The times and notes of one request, filled by its stages and read when its result is made; never shared."""

    timings_ms: dict[str, float] = field(default_factory=dict)
    degraded: list[str] = field(default_factory=list)
    has_more: bool = False  # whether there may be candidates beyond those that were looked at
    cut: int = 0  # passages that were found and left out below the cutoff that was asked for
    shared_ms: float = 0.0  # part of ``timings_ms`` that passed in another request, whose result this one reuses
    charged: set[str] = field(default_factory=set)  # queries whose embedding is in ``timings_ms``
    passed: dict[str, tuple[int, ...]] | None = None  # of a watched request: the passages after each step, in order

    @contextmanager
    def stage(self, step: TimedStep) -> Generator[None]:
        """Add the time of the block to a step's, in milliseconds."""
        began = time.perf_counter()
        try:
            with measured(STEP, step.value):
                yield
        finally:
            self.timings_ms[step.value] = self.timings_ms.get(step.value, 0.0) + (time.perf_counter() - began) * 1000

    def charge_shared(self, step: TimedStep, milliseconds: float) -> None:
        """Add the time of a step that another request did for this one as well."""
        self.timings_ms[step.value] = self.timings_ms.get(step.value, 0.0) + milliseconds
        self.shared_ms += milliseconds

    def note(self, reason: str) -> None:
        """Say once that part of the search could not serve."""
        if reason not in self.degraded:
            self.degraded.append(reason)


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


# --- The question's words as the keyword leg reads them: terms, weighed against the whole index ---

_WORD = re.compile(r"[^\W_]")


def read_words(request: Request, connection: Connection, query: str) -> Words:
    """Analyse the question as the passages were analysed, and weigh its terms; once a request."""
    if query not in request.words:
        request.words[query] = _read_words(request, connection, query)
    return request.words[query]


def _read_words(request: Request, connection: Connection, query: str) -> Words:
    index, scope = request.index, request.scope.place
    with request.trace.stage(TimedStep.KEYWORD):
        totals, terms = query_terms(connection, index.name, query)
        known = [term.id for term in terms if term.id is not None]
        if known and not scope.is_everything:
            # A word that the index has outside the scope alone is a word that nothing has: else a note, a correction
            # that is missing or a share of the question's words would tell that it is there.
            size = request.scope_size(connection)
            held = terms_in_scope(connection, index.name, known, scope, size)
            terms = tuple(term if term.id in held else replace(term, id=None) for term in terms)
    if not totals.passages:
        request.trace.note("keyword: the index holds no passages")
    elif not any(term.id is not None for term in terms):
        request.trace.note(
            f"keyword: {_why_nothing(query, terms, totals, 'index' if scope.is_everything else 'scope')}"
        )
    return Words(terms, totals, weigh(terms, totals))


def _why_nothing(query: str, terms: Sequence[QueryTerm], totals: IndexTotals, place: str) -> str:
    """Say why no term of the question can be looked up.

    A word that is no term in one of the index's languages is a stop word there: it occurs, and is not looked up.
    """
    if not _WORD.search(query):
        return "the question has no words to look up"
    reach: dict[int, int] = {}
    for term in terms:
        reach[term.position] = reach.get(term.position, 0) + term.passages
    if any(passages >= totals.passages for passages in reach.values()):
        return f"none of the question's words that can be looked up occur in the {place}"
    return "the question has only words too common to look up, such as 'the' and 'of'"
