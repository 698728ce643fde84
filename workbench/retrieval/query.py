"""A search request and its question, which legs and stages share.

Both are created per search, so no scope carries over to another search.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from llama_index.core.schema import NodeWithScore, QueryBundle

from workbench.errors import SETUP_HINT, ConfigurationError, ModelError
from workbench.models.encoder import MAX_UNREADABLE_SHARE, EncodedQuery, Encoder, FloatArray
from workbench.retrieval.bm25 import weigh_terms
from workbench.retrieval.llm_prompts import RETRIEVAL_SYSTEM, STANDALONE, quote_turns
from workbench.retrieval.names import MatchedName, NamesCache, QuestionNames, normalize_for_names
from workbench.retrieval.parameters import (
    AGENT_CUTOFF,
    ASK_LLM,
    CUTOFF,
    DOCUMENT_WEIGHT,
    FIRST_DEPTH,
    HISTORY,
    IGNORE_TURNS,
)
from workbench.retrieval.ranker import FeatureSheet
from workbench.retrieval.strategy import Strategy
from workbench.storage.database import Connection
from workbench.storage.passages import QueryTerm, ScopeTotals, TermWeights
from workbench.storage.ranking import EXACT_UP_TO, MAX_POSTINGS_AT_ONCE, count_scope, fetch_query_terms
from workbench.storage.store import PassageStore
from workbench.telemetry import EMBED, RERANK, SERVICE_NAME, STEP, measure
from workbench.text import normalise
from workbench.types import Index, Parameter, ParameterValue, Passage, Ranker, ResolvedScope, TimedStep, Value

if TYPE_CHECKING:
    from PIL.Image import Image

    from workbench.models.cross_encoder import CrossEncoder
    from workbench.models.llm import Llm

# Words of a question


@dataclass(frozen=True, slots=True)
class Guess(Value):
    """A typed word and a known word that it may mean; ``distance`` is the number of typos between them."""

    typed: str
    meant: str
    distance: int

    @property
    def similarity(self) -> float:
        """1 for equal words; lower for each typo, and much lower for short words."""
        return 1 - self.distance / max(len(self.typed), len(self.meant), 1)


@dataclass(frozen=True, slots=True)
class Words:
    """The question's terms, weighted against the scope; ``guesses`` replace words missing from the scope."""

    terms: tuple[QueryTerm, ...]
    totals: ScopeTotals
    weights: TermWeights
    guesses: tuple[Guess, ...] = ()
    name_terms: frozenset[str] | None = None  # terms for matching titles; None if not read


# Times and notes of one search

_OPERATIONS = {
    TimedStep.EMBED: EMBED,
    **dict.fromkeys((TimedStep.RERANK, TimedStep.LEARNED, TimedStep.CROSS_ENCODER), RERANK),
}


@dataclass(slots=True)
class Trace:
    """Timings and notes of one request, written by its stages; never shared."""

    timings_ms: dict[str, float] = field(default_factory=dict)
    degraded: list[str] = field(default_factory=list)
    has_more: bool = False  # True if there may be more candidates
    cut: int = 0  # passages below the cutoff
    shared_ms: float = 0.0  # part of ``timings_ms`` spent in another request whose result is reused
    passed: dict[str, tuple[int, ...]] | None = None  # ids after each step of a traced request, ranked
    found: Sequence[NodeWithScore] = ()  # what the search found, best first

    @contextmanager
    def stage(self, step: TimedStep, model: str = "") -> Generator[None]:
        """Add the duration of the block to a step, in milliseconds; ``model`` is the one that works in it, if any."""
        began, provider = time.perf_counter(), model.partition(":")[0] if ":" in model else model and SERVICE_NAME
        try:
            with measure(_OPERATIONS.get(step, STEP), step.value, model=model, provider=provider):
                yield
        finally:
            self.timings_ms[step.value] = self.timings_ms.get(step.value, 0.0) + (time.perf_counter() - began) * 1000

    def charge_shared(self, step: TimedStep, milliseconds: float) -> None:
        """Add the time of a step that another request ran for this one as well."""
        self.timings_ms[step.value] = self.timings_ms.get(step.value, 0.0) + milliseconds
        self.shared_ms += milliseconds

    def note(self, reason: str) -> None:
        """Add a note about a failed part of the search, once."""
        if reason not in self.degraded:
            self.degraded.append(reason)


@dataclass(frozen=True, slots=True)
class TokenSimilarities:
    """Best similarity of each query token in each passage."""

    ids: tuple[int, ...]  # internal ids of the passages
    best: FloatArray  # similarities, -1..1, of shape (passages, query tokens)
    shares: FloatArray  # weights of the query tokens, which sum to 1


@dataclass(frozen=True, slots=True)
class Encoding:
    """An encoded question, and the encoding time in milliseconds."""

    query: EncodedQuery
    milliseconds: float = 0.0


# Settings of one search


@dataclass(slots=True)
class Request:
    """How to search: strategy, index, scope and models, without the question (see ``Query``)."""

    strategy: Strategy  # the strategy
    store: PassageStore  # passages of the index
    encoder: Encoder  # the embedding model of the index
    scope: ResolvedScope  # the part of the corpus to search
    limit: int  # number of passages to return
    parameters: Mapping[str, ParameterValue]  # checked parameters of the strategy
    remembered: bool = False  # true if the index row is cached; then passages are only shown if it is still the same
    min_similarity: float = 0.0  # minimum cosine of question and passage, applied before the limit; 0 for none
    llm: Llm | None = None  # the language model, if the strategy or an answer needs one
    cross_encoder: CrossEncoder | None = None  # the cross-encoder, if the strategy needs one
    trace: Trace = field(default_factory=Trace)  # times and notes of the search
    kept_names: NamesCache | None = None  # the index's table of names; None to treat names as plain words
    draw_page: Callable[[Passage], Image] | None = None  # draws the page of a passage
    ranker: Ranker | None = None  # weights of the strategy ``learned``
    # Adds corrections for unknown words; None to look up words as typed.
    correct: Callable[[Request, Connection, str, Words], Words] | None = None
    depth: int = FIRST_DEPTH  # minimum number of passages that each leg fetches
    fold_copies: bool = False  # fold passages with nearly the same text under the best one
    history: tuple[str, ...] = ()  # earlier turns of the conversation, oldest first
    _scope_size: int | None = None

    @property
    def index(self) -> Index:
        return self.store.index

    @property
    def rank_limit(self) -> int:
        """Number of passages to rank, so that ``limit`` remain after copies are folded."""
        return max(self.limit, FIRST_DEPTH) if self.fold_copies else self.limit

    @property
    def folds_when_found(self) -> bool:
        """True if the retriever folds copies, since no stage follows that may change the order."""
        return self.fold_copies and not self.strategy.stages and self.depth <= FIRST_DEPTH

    @property
    def same_as(self) -> Index | None:
        """The cached index row that must still be current for passages to be shown; None if it was just looked up."""
        return self.store.index if self.remembered else None

    def question(self, asked: str | QueryBundle, encodings: dict[str, Encoding] | None = None) -> Query:
        """Return a question for this request, rewritten with the earlier turns; a ``Query`` is returned unchanged.

        Args:
            asked: The question, as text or LlamaIndex's bundle.
            encodings: Its encodings by ``model_and_text``, shared between requests with the same question.
        """
        if isinstance(asked, Query):
            return asked
        text = asked if isinstance(asked, str) else asked.query_str
        return Query(self, rewrite_turn(self, text), encodings, corrects_typos=True, typed=text)

    def use_answer_cutoff(self, chosen: Mapping[str, object]) -> None:
        """Leave passages far below the best out of an answer, unless ``chosen`` or the strategy has a cutoff."""
        if CUTOFF.name not in chosen and self.float_param(CUTOFF, otherwise=AGENT_CUTOFF) == 0:
            self.parameters = {**self.parameters, CUTOFF.name: AGENT_CUTOFF}

    def float_param(self, parameter: Parameter, otherwise: float | None = None) -> float:
        """Return the value of a numeric parameter.

        Args:
            otherwise: The value if the strategy does not declare the parameter.

        Raises:
            ConfigurationError: The strategy does not declare it and ``otherwise`` is None.
        """
        if otherwise is not None and parameter.name not in self.parameters:
            return otherwise
        return float(self.parameters[parameter.name])

    def bool_param(self, parameter: Parameter) -> bool:
        """Return the value of a boolean parameter, as ``float_param`` does."""
        return bool(self.float_param(parameter))

    def scope_size(self, connection: Connection) -> int:
        """Return the number of passages in scope, cached.

        The full scope is not counted: the result is 0 if the index is searched exactly, else a large number.
        """
        if self._scope_size is None:
            if self.scope.is_everything:
                self._scope_size = EXACT_UP_TO + 1 if self.index.has_graph else 0
            else:
                self._scope_size = count_scope(connection, self.index.name, self.scope)
        return self._scope_size


# The question and its state


class Query(QueryBundle):
    """A question in one request: LlamaIndex's query bundle with the state of the search.

    Words, names and encoding are computed on first use and cached.

    Attributes:
        typed: The question as it was given; ``text`` is normalised like the texts of documents, and may contain words
            of earlier turns.
        request: The request.
        encodings: Encodings by model and text, shared between requests with the same question.
        names: Names in the question (``name_matching.read_names``), once read.
        reply: Text that an LLM wrote for the question: a hypothetical answer, or a list of rephrasings.
        spread: Spread of the nearest candidates (``legs.compute_spread``); None until both legs are read.
        titles: Titles in the question that caused documents to be preferred; None if not looked up.
        token_similarities: Token similarities of the candidates that late interaction compared.
        sheet: Features of the candidates of the learned ranker.
    """

    def __init__(
        self,
        request: Request,
        text: str,
        encodings: dict[str, Encoding] | None = None,
        *,
        corrects_typos: bool = False,
        typed: str = "",
    ) -> None:
        """``corrects_typos`` is False for a text written by a model."""
        super().__init__(query_str=normalise(text) or text)
        self.typed = typed or text
        self.request = request
        self.encodings: dict[str, Encoding] = {} if encodings is None else encodings
        self.names: QuestionNames | None = None
        self.reply: object = None
        self.spread: float | None = None
        self.titles: tuple[MatchedName, ...] | None = None
        self.token_similarities: TokenSimilarities | None = None
        self.sheet: FeatureSheet | None = None
        self._corrects_typos = corrects_typos
        self._words: Words | None = None
        self._share_read: float | None = None
        self._is_charged = False

    @property
    def text(self) -> str:
        return self.query_str

    def rebind(self, request: Request, vector: FloatArray | None = None, words: Words | None = None) -> Query:
        """Return the same question for another request, without the state of a search.

        Args:
            vector: Replaces the question's vector.
            words: Replace the question's words.
        """
        query = Query(request, self.text, self.encodings, corrects_typos=self._corrects_typos, typed=self.typed)
        query.names, query.reply = self.names, self.reply
        query._words = self._words if words is None else words
        query._share_read, query._is_charged = self._share_read, self._is_charged
        if vector is not None:
            own = self.encoded
            moved = EncodedQuery(vector, own.token_axes, own.token_spans)
            query.encodings, query._is_charged = {self.model_and_text: Encoding(moved)}, True
        return query

    @property
    def encoded(self) -> EncodedQuery:
        """The question encoded by the index's model.

        If another request computed the vector, the time it took there is charged, so that the timings of compared
        strategies contain the same steps.

        Raises:
            ModelError: The index's model is unavailable.
        """
        trace = self.request.trace
        known = self.encodings.get(self.model_and_text)
        if known is None:
            before = trace.timings_ms.get(TimedStep.EMBED, 0.0)
            with trace.stage(TimedStep.EMBED, self.request.index.embedding_model):
                encoded = self.request.encoder.encode_query(self.text)
            known = Encoding(encoded, trace.timings_ms[TimedStep.EMBED] - before)
            self.encodings[self.model_and_text] = known
        elif not self._is_charged and known.milliseconds:
            trace.charge_shared(TimedStep.EMBED, known.milliseconds)
        self._is_charged = True
        return known.query

    @property
    def share_read(self) -> float:
        """Share (0..1) of the question that the index's model can read; 1 if the model does not load."""
        if self._share_read is None:
            try:
                self._share_read = self.request.encoder.reads(self.text)
            except ModelError:  # reported when its vectors are needed
                self._share_read = 1.0
        return self._share_read

    @property
    def can_read(self) -> bool:
        """Whether the index's model can read most of the words; True if it does not load."""
        return self.share_read > MAX_UNREADABLE_SHARE

    def is_similar_enough(self, cosine: float, *, has_words: bool = False) -> bool:
        """Return whether a passage may be shown.

        Args:
            cosine: Similarity of question and passage.
            has_words: Whether the passage contains words of the question. Such passages are never hidden if the model
                cannot read the question.
        """
        least = self.request.min_similarity
        return least <= 0 or cosine >= least or (has_words and not self.can_read)

    @property
    def words(self) -> Words:
        """The question's words, read over a separate connection if not yet known."""
        if self._words is None:
            with self.request.store.reading() as connection:
                return self.read_words(connection)
        return self._words

    def read_words(self, connection: Connection) -> Words:
        """Return the terms of the question, weighted against the scope, with corrections for unknown ones."""
        if self._words is None:
            words = _read_words(self.request, connection, self.text)
            if self._is_joined:
                words = weigh_earlier_terms(words, len(_TYPED_WORDS.findall(normalise(self.typed))))
            correct = self.request.correct if self._corrects_typos else None
            self._words = words if correct is None else correct(self.request, connection, self.text, words)
            _note_no_terms(self.request, self.text, self._words)
        return self._words

    @property
    def _is_joined(self) -> bool:
        """Whether earlier questions of a conversation follow the question in ``text``."""
        request = self.request
        by_llm = request.parameters.get(HISTORY.name) == ASK_LLM
        return bool(request.history) and not by_llm and self.text.startswith(f"{normalise(self.typed)} ")

    @property
    def model_and_text(self) -> str:
        """The key of its encoding in ``encodings``."""
        return f"{self.request.index.embedding_model}\n{self.text}"


# A question with the earlier turns of its conversation

MAX_STANDALONE_CHARS = 300  # longer questions by an LLM are cut
MAX_TURN_CHARS = 500  # of an earlier question
TURNS_JOINED = 2  # earlier questions
EARLIER_WEIGHT = 1 / 3  # of a term that only earlier questions have
_TYPED_WORDS = re.compile(r"[^\W_]+")


def rewrite_turn(request: Request, question: str) -> str:
    """Return the question to search for, given the earlier turns, by the strategy's parameter ``history``.

    Raises:
        ConfigurationError: An LLM is to rewrite it, and none is configured.
    """
    way = request.parameters.get(HISTORY.name, HISTORY.default)
    if not request.history or way == IGNORE_TURNS:
        return question
    if way == ASK_LLM and (standalone := _ask_llm_to_rewrite(request, question)):
        return standalone
    return join_turns(request.history, question)


def join_turns(history: Sequence[str], question: str) -> str:
    """Return a question, followed by the user's last questions; answers of the other side are left out."""
    return " ".join([question, *(turn[:MAX_TURN_CHARS] for turn in history[::2][-TURNS_JOINED:])])


def weigh_earlier_terms(words: Words, count: int) -> Words:
    """Return the terms of joined questions; those that are not among the first ``count`` words count less."""
    terms = [term for term in words.terms if term.id is not None]
    weights = tuple(
        weight if term.position <= count else weight * EARLIER_WEIGHT
        for term, weight in zip(terms, words.weights.weights, strict=True)
    )
    return replace(words, weights=replace(words.weights, weights=weights))


def _ask_llm_to_rewrite(request: Request, question: str) -> str:
    """Return the question as an LLM rewrites it; "" with a note if it fails."""
    if request.llm is None:
        raise ConfigurationError(f"The parameter history=llm needs an LLM: {SETUP_HINT}; or use history=join.")
    began = time.perf_counter()
    try:
        prompt = STANDALONE.format(question=quote_turns(request.history, question))
        return " ".join(request.llm.complete(RETRIEVAL_SYSTEM, prompt).split())[:MAX_STANDALONE_CHARS]
    except ModelError as error:
        request.trace.note(f"history: {error} Earlier questions were joined instead.")
        return ""
    finally:
        request.trace.charge_shared(TimedStep.LLM, (time.perf_counter() - began) * 1000)


# Terms of a question for the keyword leg

_WORD = re.compile(r"[^\W_]")


def _read_words(request: Request, connection: Connection, query: str) -> Words:
    index, scope = request.index, request.scope.place
    matches_names = request.scope.names != "ignore" and request.float_param(DOCUMENT_WEIGHT, otherwise=0.0) > 0
    with request.trace.stage(TimedStep.KEYWORD):
        found = fetch_query_terms(
            connection,
            index.name,
            query,
            scope,
            request.scope_size(connection),
            names=normalize_for_names(query) if matches_names else "",
            at_once=MAX_POSTINGS_AT_ONCE if request.strategy.uses_words and scope.is_everything else 0,
        )
    name_terms = found.name_terms if matches_names else None
    return Words(found.terms, found.totals, weigh_terms(found.terms, found.totals), name_terms=name_terms)


def _note_no_terms(request: Request, query: str, words: Words) -> None:
    place = "index" if request.scope.place.is_everything else "scope"
    if not words.totals.passages:
        request.trace.note(f"keyword: the {place} has no passages")
    elif not any(term.id is not None for term in words.terms):
        request.trace.note(f"keyword: {_explain_no_terms(query, words.terms, words.totals, place)}")


def _explain_no_terms(query: str, terms: Sequence[QueryTerm], totals: ScopeTotals, place: str) -> str:
    """Explain why no term of the question can be looked up.

    A word that is not a term in one of the scope's languages is a stop word there: it occurs, but is not looked up.
    """
    if not _WORD.search(query):
        return "the question has no words to look up"
    reach: dict[int, int] = {}
    for term in terms:
        reach[term.position] = reach.get(term.position, 0) + term.passages
    if any(passages >= totals.passages for passages in reach.values()):
        return f"none of the question's words occur in the {place}"
    return "the question has only stop words, such as 'the' and 'of'"
