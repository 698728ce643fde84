"""Search and compare: one query and scope, with one or several strategies."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from workbench.errors import ConfigurationError, InvalidInput, ModelError, ScopeError, StatementRejected
from workbench.retrieval.hits import agreement, draft_teams
from workbench.retrieval.options import Ask
from workbench.retrieval.parameters import DEFAULT_RANKER, LLM_NAME, RANKER, RERANKER, TYPO_TOLERANCE
from workbench.retrieval.scope import note_undated, resolve
from workbench.retrieval.strategies import (
    STRATEGIES,
    asks_llm,
    check_index,
    check_parameters,
    describe_unregistered,
    split_strategy,
    strategy_named,
)
from workbench.services.checks import check_history, check_limit, check_query, check_similarity
from workbench.services.corpus import Corpus, import_framework, retry_on_primary, retry_read
from workbench.storage.documents import Documents, SourcePlace
from workbench.storage.ranking import filter_documents
from workbench.types import (
    EVERYWHERE_KEY,
    VECTOR,
    Comparison,
    Copy,
    Index,
    Interleaving,
    Passage,
    Promotion,
    ResolvedScope,
    Scope,
    SearchResult,
    Value,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from llama_index.core.query_engine import RetrieverQueryEngine
    from PIL.Image import Image

    from workbench.models.encoder import Encoder
    from workbench.retrieval.query import Encoding, Request
    from workbench.types import Parameter, ParameterValue, Ranker

# Documents missing from an index

MAX_AGE_S = 5.0  # recount after this time in any case: a write before a count may be committed after it


class MissingDocuments:
    """Caches which indexes are complete, and for which version of the documents; thread-safe."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._complete: dict[str, tuple[datetime | None, datetime | None, float]] = {}

    def find(self, index: Index) -> list[str]:
        """Return the ids of the documents whose current version is not in the index."""
        changed = self._documents.last_change()
        created_at, as_of, looked_at = self._complete.get(index.name, (None, None, float("-inf")))
        if (created_at, as_of) == (index.created_at, changed) and time.monotonic() - looked_at < MAX_AGE_S:
            return []
        lacking = self._documents.list_missing(index.name)
        if not lacking:
            self._complete[index.name] = (index.created_at, changed, time.monotonic())
        return lacking


# Requests


class Requests:
    """Builds the requests of all services that search."""

    def __init__(self, corpus: Corpus, draw_page: Callable[[Passage], Image] | None = None) -> None:
        """``draw_page`` draws the page of a passage, for the hits of all requests."""
        self._corpus, self._draw_page = corpus, draw_page

    def make(self, ask: Ask, *, remembered: bool = False) -> Request:
        """Return a new request.

        ``remembered`` skips the index look-up if an earlier request has made it. The search must then check whether the
        index has changed and repeat itself if so; strategies with an LLM therefore do not use it.

        Raises:
            InvalidInput: An unknown strategy or parameter. ScopeError: An unknown name in the scope.
            NotFound: No such index or ranker. ConfigurationError: A model is only partly configured.
        """
        import_framework()
        from workbench.retrieval.query import Request
        from workbench.retrieval.spelling import correct_words

        (ask, *_), _ = self.name_strategies(ask)
        scope = self.resolve(ask.scope)
        name, index = split_strategy(ask.strategy or ask.built_in, ask.index)
        strategy = strategy_named(name)
        checked = check_parameters(name, ask.parameters)
        needs_llm = asks_llm(name, checked, has_turns=bool(ask.history))
        remembered = remembered and not (needs_llm or strategy.own)
        chosen = self._corpus.last_seen_index(index) if remembered else self._corpus.index(index)
        if chosen.is_attached:  # another process may have synced it
            remembered, chosen = False, self._corpus.index(index)
            check_index(strategy, chosen)
        return Request(
            strategy=strategy,
            store=self._corpus.store(chosen),
            encoder=self._encoder(chosen),
            scope=note_undated(scope, chosen.name, self._corpus.sources),
            limit=ask.limit,
            parameters=checked,
            remembered=remembered,
            min_similarity=ask.min_similarity,
            llm=self._corpus.find_llm(_read_name(checked, LLM_NAME)) if needs_llm else None,
            cross_encoder=self._corpus.cross_encoder(_read_name(checked, RERANKER))
            if strategy.needs_reranker
            else None,
            kept_names=self._corpus.names(chosen),
            draw_page=self._draw_page,
            ranker=self.find_ranker(checked),
            fold_copies=ask.fold_copies,
            history=check_history(ask.history),
            correct=correct_words if strategy.uses_words and checked.get(TYPO_TOLERANCE.name, True) else None,
        )

    def resolve(self, scope: Scope | ResolvedScope) -> ResolvedScope:
        """Resolve a scope's names to ids; a resolved scope is returned unchanged. Raises ScopeError."""
        if isinstance(scope, ResolvedScope):
            return scope
        return resolve(scope, self._corpus.projects, self._corpus.sources)

    def are_within(self, logged: Sequence[Mapping[str, object]], scope: Scope | ResolvedScope) -> list[bool]:
        """Return for each scope of a logged call whether it searches a part of a scope, and only global sources beyond.

        A logged scope that is invalid, or names something that was deleted, is within the whole corpus only.
        """
        wanted = self.resolve(scope)
        if wanted.is_whole_corpus:
            return [True] * len(logged)
        everything = set(self._corpus.sources.ids())
        inside = everything if wanted.source_ids is None else set(wanted.source_ids)
        reachable = inside | self._find_searched_sources({"scope": "global"}, everything)
        searched = {repr(given): given for given in logged}
        sources = {key: self._find_searched_sources(given, everything) for key, given in searched.items()}
        return [not inside.isdisjoint(sources[repr(given)]) and sources[repr(given)] <= reachable for given in logged]

    def _find_searched_sources(self, given: Mapping[str, object], everything: set[str]) -> set[str]:
        """Return the sources that a logged scope selects; none if it is invalid."""
        tags = given.get("tags")
        try:
            scope = Scope(
                kind=given.get("scope") or "all",  # pyright: ignore[reportArgumentType] - checked by resolve
                project=str(given.get("project_id") or "") or None,
                folder=str(given.get("folder_name") or "") or None,
                tags=tuple(str(tag) for tag in tags) if isinstance(tags, list | tuple) else (),
                sources=(str(given["source_id"]),) if given.get("source_id") else None,
            )
            ids = self.resolve(scope).source_ids
        except ScopeError:
            return set()
        return everything if ids is None else set(ids)

    def check_usable(self, strategy: str, parameters: Mapping[str, ParameterValue] = MappingProxyType({})) -> None:
        """Raise ConfigurationError if a strategy lacks settings."""
        row = strategy_named(strategy)
        lacks = (row.needs_llm and self._corpus.find_llm(_read_name(parameters, LLM_NAME)) is None) or (
            row.needs_reranker and self._corpus.cross_encoder(_read_name(parameters, RERANKER)) is None
        )
        if lacks:
            raise ConfigurationError(f"The strategy {strategy!r} is not configured. {row.needs}")

    def usable(self) -> dict[str, str]:
        """Return every strategy with its missing settings, or "" if it is usable."""
        missing = dict.fromkeys(STRATEGIES, "")
        for name in missing:
            try:
                self.check_usable(name)
            except ConfigurationError as error:
                missing[name] = str(error)
        return missing

    def name_strategies(self, ask: Ask) -> tuple[list[Ask], Promotion | None]:
        """Return how to search with the given strategy, else with the promoted one, and that promotion.

        The rival of the promotion follows if the search interleaves and sets no parameters.
        """
        if ask.strategy is not None:
            return [ask], None
        scope = self.resolve(ask.scope)
        promoted = self._corpus.promotions.find_active(list_promotion_keys(scope))
        if promoted is None:
            return [replace(ask, strategy=ask.built_in, scope=scope)], None
        for name in filter(None, (promoted.strategy, promoted.rival.partition("@")[0])):
            if name not in STRATEGIES:
                raise ConfigurationError(describe_unregistered(name))
        parameters = {**promoted.parameters, **ask.parameters}
        index = ask.index or promoted.index
        asks = [replace(ask, strategy=promoted.strategy, scope=scope, index=index, parameters=parameters)]
        if promoted.rival and ask.interleaves and not ask.parameters:
            rival, own_index = split_strategy(promoted.rival, None)
            asks.append(replace(ask, strategy=rival, scope=scope, index=ask.index or own_index))
        return asks, promoted

    def find_ranker(self, parameters: Mapping[str, ParameterValue]) -> Ranker | None:
        """Return the ranker that a strategy's parameters name; None for a strategy without one. Raises NotFound."""
        from workbench.retrieval.ranker import load_default_ranker

        name = dict(parameters).get(RANKER.name)
        if name is None:
            return None
        return load_default_ranker() if name == DEFAULT_RANKER else self._corpus.rankers.get(str(name))

    def _encoder(self, index: Index) -> Encoder:
        """Return the index's model; if it fails to load, one that raises on use, as the keyword leg needs none."""
        from workbench.models.encoder import UnavailableEncoder

        try:
            return self._corpus.index_encoder(index)
        except ModelError as error:
            return UnavailableEncoder(index.embedding_model, str(error))


def _read_name(parameters: Mapping[str, ParameterValue], model: Parameter) -> str:
    """Return the reranker or LLM named in a strategy's parameters; "" for the configured one."""
    return str(dict(parameters).get(model.name, ""))


def list_promotion_keys(scope: ResolvedScope) -> list[str]:
    """Return the keys of promotions that apply to a scope, most specific first."""
    source = scope.source_ids[0] if scope.source_ids is not None and len(scope.source_ids) == 1 else None
    places = (("source", source), ("folder", scope.folder_id), ("project", scope.project_id))
    return [*(f"{kind}:{key}" for kind, key in places if key), EVERYWHERE_KEY]


MIN_COMPARED, MAX_COMPARED = 1, 12
DEFAULT_ASK = Ask()  # the strategy promoted everywhere, ten passages


class SearchService:
    """The operations ``search`` and ``compare``."""

    def __init__(self, corpus: Corpus, requests: Requests) -> None:
        self._corpus, self._requests = corpus, requests
        self._lacking = MissingDocuments(corpus.documents)

    def warm(self) -> None:
        """Load what the first search of the default index needs. Raises ModelError."""
        retry_on_primary(self._corpus, self._corpus.warm)

    def search(self, query: str, ask: Ask = DEFAULT_ASK, encodings: dict[str, Encoding] | None = None) -> SearchResult:
        """Return the best passages for a query, best first, with scores in 0..1; see ``Workbench.search``.

        ``encodings`` are encodings of the question by model, shared by several searches.
        """
        check_query(query)
        check_limit(ask.limit)
        check_similarity(ask.min_similarity)
        if not ask.interleaves:
            return self._result(query, ask, encodings)
        asks, promotion = self.name_strategies(ask)
        results = [self._result(query, one, encodings) for one in asks]
        return interleave(results, promotion, ask.limit) if promotion and len(results) > 1 else results[0]

    @retry_read
    def name_strategies(self, ask: Ask) -> tuple[list[Ask], Promotion | None]:
        """Return how to search, by ``Requests.name_strategies``."""
        return self._requests.name_strategies(ask)

    def compare(
        self,
        query: str,
        strategies: str | Sequence[str],
        ask: Ask = DEFAULT_ASK,
        parameters: Mapping[str, Mapping[str, object]] | None = None,
    ) -> Comparison:
        """Search with several strategies; see ``Workbench.compare``.

        Agreement is measured by passage, or by document if the indexes differ. If one strategy fails, the comparison
        fails.
        """
        check_query(query)
        check_limit(ask.limit)
        names = list(dict.fromkeys([strategies] if isinstance(strategies, str) else strategies))
        if not MIN_COMPARED <= len(names) <= MAX_COMPARED:
            raise InvalidInput(f"Compare from {MIN_COMPARED} to {MAX_COMPARED} strategies, not {len(names)}.")
        own_parameters, scope = parameters or {}, self._requests.resolve(ask.scope)
        encodings: dict[str, Encoding] = {}
        results: dict[str, SearchResult] = {}
        for name in names:
            strategy, own_index = split_strategy(name, None)
            own = own_parameters.get(name, own_parameters.get(strategy)) or {}
            own_ask = replace(ask, strategy=strategy, scope=scope, index=own_index or ask.index, parameters=own)
            results[name] = self._result(query, own_ask, encodings)
        results = _show_same_copies(results)
        one_index = len({result.index for result in results.values()}) == 1
        rankings = {
            name: [hit.passage_id for hit in result]
            if one_index
            else list(dict.fromkeys(hit.document_id for hit in result))
            for name, result in results.items()
        }
        return Comparison(query=query, strategies=results, agreement=agreement(rankings))

    def query_engine(self, ask: Ask = DEFAULT_ASK) -> RetrieverQueryEngine:
        """Return a LlamaIndex query engine for a strategy; it answers like ``ask``."""
        import_framework()
        from workbench.retrieval.answering.synthesis import CitingSynthesizer
        from workbench.retrieval.pipeline import build_engine

        request = self._requests.make(ask)
        request.llm = request.llm or self._corpus.llm
        engine = build_engine(request, CitingSynthesizer(request))
        engine.served = partial(retry_on_primary, self._corpus)
        return engine

    @retry_read
    def _result(self, query: str, ask: Ask, encodings: dict[str, Encoding] | None = None) -> SearchResult:
        """Run a search; ``encodings`` holds the question's encodings by model.

        If a cached index was dropped, rebuilt or replaced as the default, the search finds nothing or its tables are
        missing; the index is then looked up again and the search repeated.
        """
        import_framework()
        from workbench.retrieval.pipeline import run_search

        request = self._requests.make(ask, remembered=True)
        self._note_missing_documents(request)
        if request.remembered:
            try:
                result = run_search(request.question(query, encodings))
                if result.results:
                    return result
            except (StatementRejected, ModelError):
                pass
            request = self._requests.make(ask)
            self._note_missing_documents(request)
        return run_search(request.question(query, encodings))

    def _note_missing_documents(self, request: Request) -> None:
        """Add a note if the index is out of date, since an ingest fills only the default or a given index."""
        index = request.index
        if index.is_attached:
            note = request.store.describe_changes(request.scope)
            if note:
                request.trace.note(note)
            return
        if index.is_default or index.dataset is not None:
            return
        lacking = len(filter_documents(self._corpus.database, request.scope, self._lacking.find(index)))
        if lacking:
            documents = "1 document" if lacking == 1 else f"{lacking:,} documents"
            request.trace.note(f"{index.name} lacks {documents}; run 'workbench indexes build {index.name}'")


# Two strategies in one list

Ranked = TypeVar("Ranked", "Passage", "DocumentHit")


def _show_same_copies(results: Mapping[str, SearchResult]) -> dict[str, SearchResult]:
    """Return the results with the same one of several copies in all of them: that of the first result with any.

    Otherwise each strategy shows the copy that it scores best, and they seem to find different passages. A strategy
    that returns more text around a passage keeps its own.
    """
    shown: dict[str, Passage] = {}  # by the id of each of its copies
    changed: dict[str, SearchResult] = {}
    for name, result in results.items():
        hits = [_show_as(shown, hit) for hit in result]
        if len({hit.passage_id for hit in hits}) < len(hits):
            hits = list(result)
        for hit in hits:
            for key in (hit.passage_id, *(copy.passage_id for copy in hit.copies)):
                shown.setdefault(key, hit)
        changed[name] = replace(result, results=tuple(hits))
    return changed


MAX_LENGTH_CHANGE = 0.25  # of the texts of two copies


def _show_as(shown: Mapping[str, Passage], hit: Passage) -> Passage:
    """Return a hit as the copy of it that is shown already, if there is one, with its own rank, score and legs."""
    ids = (hit.passage_id, *(copy.passage_id for copy in hit.copies))
    best = next((shown[key] for key in ids if key in shown), hit)
    own = Copy(
        hit.passage_id, hit.document_id, hit.document_title, hit.source_id, hit.path, hit.url, hit.start, hit.end
    )
    copies = tuple(copy for copy in (*hit.copies, own) if copy.passage_id != best.passage_id)
    if best.passage_id == hit.passage_id or abs(len(best.text) - len(hit.text)) > MAX_LENGTH_CHANGE * len(hit.text):
        return hit
    return replace(
        best, rank=hit.rank, score=hit.score, match_type=hit.match_type, attribution=hit.attribution, copies=copies
    )


def draft(
    rankings: Sequence[Mapping[str, Ranked]], promotion: Promotion, query: str, limit: int
) -> tuple[list[Ranked], Interleaving]:
    """Return the results of a promoted strategy and of its rival in one list, by team draft.

    The result at rank n has the score of the promoted strategy's n-th one. The same words get the same list for a day,
    so that its pages fit together.
    """
    own, rival = rankings
    seed = f"{promotion.key} {datetime.now(UTC):%Y-%m-%d} {' '.join(query.split()).casefold()}"
    drafted = list(draft_teams(list(own), list(rival), seed).items())[:limit]
    scores = [result.score for result in (own or rival).values()]
    names, teams = (promotion.label, promotion.rival), dict[str, str]()
    results: list[Ranked] = []
    for place, (key, team) in enumerate(drafted):
        result = replace(rankings[team][key], score=scores[min(place, len(scores) - 1)])
        teams.setdefault(result.document_id, names[team])
        results.append(result)
    return results, Interleaving(promotion.key, names, teams)


def interleave(found: Sequence[SearchResult], promotion: Promotion, limit: int) -> SearchResult:
    """Return two searches as one; of the legs only the cosine is kept, so that nothing shows who found a passage."""
    first, second = found
    rankings = [{passage.passage_id: passage for passage in result} for result in found]
    drafted, interleaving = draft(rankings, promotion, first.query, limit)
    passages = [
        replace(
            one,
            rank=rank,
            attribution={name: leg for name, leg in one.attribution.items() if name == VECTOR},
            match_type="hybrid",
        )
        for rank, one in enumerate(drafted, start=1)
    ]
    steps = dict.fromkeys([*first.timings_ms, *second.timings_ms])
    return replace(
        first,
        results=tuple(passages),
        under_filled=len(passages) < limit,
        evidence=first.evidence if first.evidence.close else second.evidence,
        degraded=tuple(dict.fromkeys([*first.degraded, *second.degraded])),
        timings_ms={step: first.timings_ms.get(step, 0.0) + second.timings_ms.get(step, 0.0) for step in steps},
        interleaving=interleaving,
    )


# Search by document

PASSAGES_PER_ROUND = 50  # independent of the limit, so that all pages come from one ranking
MAX_DOCUMENTS = 100


@dataclass(frozen=True, slots=True)
class DocumentHit(Value):
    """A found document; ``passages`` are its matches, best first.

    ``score`` is the best passage's score; ``average_similarity`` is the mean cosine of the matches.
    """

    document_id: str
    title: str
    score: float
    average_similarity: float
    word_count: int
    passages: tuple[Passage, ...]
    place: SourcePlace
    copies: tuple[Copy, ...] = ()  # the best passages of documents that are folded under this one

    @property
    def best(self) -> Passage:
        """The best match."""
        return self.passages[0]


@dataclass(frozen=True, slots=True)
class DocumentResult(Value):
    """Documents for a query, best first; ``searched`` is the first round's result (scope, timings, degraded)."""

    documents: tuple[DocumentHit, ...]
    under_filled: bool
    searched: SearchResult


class DocumentSearch:
    """Search by document."""

    def __init__(self, corpus: Corpus, requests: Requests, search: SearchService) -> None:
        self._requests, self._search, self._facts = requests, search, Documents(corpus.reader)
        self.places = self._facts.places

    def search(self, query: str, ask: Ask = DEFAULT_ASK) -> DocumentResult:
        """Return the best documents, up to the limit; raises what a search raises."""
        check_limit(ask.limit, MAX_DOCUMENTS)
        if not ask.interleaves:
            return self._rank_documents(query, ask)
        asks, promotion = self._search.name_strategies(ask)
        found = [self._rank_documents(query, one) for one in asks]
        if promotion is None or len(found) == 1:
            return found[0]
        rankings = [{hit.document_id: hit for hit in result.documents} for result in found]
        drafted, interleaving = draft(rankings, promotion, query, ask.limit)
        searched = interleave([result.searched for result in found], promotion, ask.limit)
        searched = replace(searched, interleaving=interleaving)
        return DocumentResult(tuple(drafted), len(drafted) < ask.limit, searched)

    def _rank_documents(self, query: str, ask: Ask) -> DocumentResult:
        """Return the best documents of one strategy."""
        limit = ask.limit
        scope = self._requests.resolve(ask.scope)
        rounds: list[SearchResult] = []
        matches: dict[str, list[Passage]] = {}
        copies: dict[str, Copy] = {}  # of the best passage of a better document, by document
        while True:
            others = replace(scope, without_documents=(*matches, *copies))  # so that a long one cannot crowd out others
            result = self._search.search(query, replace(ask, scope=others, limit=PASSAGES_PER_ROUND))
            rounds.append(result)
            for passage in result:
                if passage.document_id in copies:
                    continue
                if passage.document_id not in matches:
                    for copy in passage.copies:
                        if copy.document_id not in (passage.document_id, *matches):
                            copies.setdefault(copy.document_id, copy)
                matches.setdefault(passage.document_id, []).append(passage)
            if len(matches) >= limit or result.under_filled:
                break
        chosen = dict(list(matches.items())[:limit])
        return DocumentResult(self._make_hits(chosen, copies), len(chosen) < limit, rounds[0])

    def _make_hits(self, matches: Mapping[str, list[Passage]], copies: Mapping[str, Copy]) -> tuple[DocumentHit, ...]:
        places = self.places(passages[0].source_id for passages in matches.values())
        words = self._facts.word_counts(matches)
        documents: list[DocumentHit] = []
        for document_id, passages in matches.items():
            best = passages[0]
            if best.source_id not in places or document_id not in words:
                continue  # deleted since the search
            score = min(best.score, documents[-1].score) if documents else best.score  # rounds are scaled apart
            similarities = [passage.similarity for passage in passages]
            documents.append(
                DocumentHit(
                    document_id,
                    best.document_title,
                    score,
                    sum(similarities) / len(similarities),
                    words[document_id],
                    tuple(passages),
                    places[best.source_id],
                    tuple(copy for copy in best.copies if copies.get(copy.document_id) == copy),
                )
            )
        return tuple(documents)
