"""Search and compare: one query, one or several strategies, one scope."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from workbench.errors import InvalidInput, ModelError, StatementRefused
from workbench.retrieval.first_import import import_framework
from workbench.retrieval.hits import agreement
from workbench.retrieval.options import Ask, named
from workbench.services.corpus import Corpus
from workbench.services.lacking import Lacking
from workbench.services.outages import once_more, read_once_more
from workbench.services.question import check_limit, check_query, check_similarity
from workbench.services.requests import Requests
from workbench.storage.ranking import documents_within
from workbench.types import Comparison, SearchResult

if TYPE_CHECKING:
    from llama_index.core.query_engine import RetrieverQueryEngine

    from workbench.models.encoder import EncodedQuery
    from workbench.retrieval.query import Request

FEWEST_COMPARED, MOST_COMPARED = 1, 12
AS_ASKED = Ask()  # the strategy promoted for everything, ten passages


@dataclass(frozen=True)
class EncodedQueries:
    """Vectors of queries that several searches share, and the milliseconds each took; by model, then by query."""

    vectors: dict[str, dict[str, EncodedQuery]] = field(default_factory=dict)
    encoding_ms: dict[str, dict[str, float]] = field(default_factory=dict)


class SearchService:
    """The verbs ``search`` and ``compare``."""

    def __init__(self, corpus: Corpus, requests: Requests) -> None:
        self._corpus, self._requests = corpus, requests
        self._lacking = Lacking(corpus.documents)

    def warm(self) -> None:
        """Load what the first search of the default index would wait for. Raises ModelError."""
        once_more(self._corpus, self._corpus.warm)

    def search(self, query: str, ask: Ask = AS_ASKED, encoded: EncodedQueries | None = None) -> SearchResult:
        """Return the best passages for a query, best first; scores fall with rank and lie in 0..1.

        ``encoded`` are queries that several searches share, so that a model reads each once.

        Raises:
            InvalidInput: an empty or overlong query, a limit outside 1..200, an unknown strategy or parameter.
            ScopeError: the scope names something that does not exist.
        """
        check_query(query)
        check_limit(ask.limit)
        check_similarity(ask.min_similarity)
        return self._result(query, ask, encoded)

    def compare(
        self,
        query: str,
        strategies: str | Sequence[str],
        ask: Ask = AS_ASKED,
        parameters: Mapping[str, Mapping[str, object]] | None = None,
    ) -> Comparison:
        """Answer one query by several strategies in place of the asked one; ``parameters`` by strategy name.

        "strategy@index" asks that index. Agreement is by passage; where the indexes differ, passages do too, and it
        is by document. A strategy that fails makes the comparison fail. Raises what ``search`` raises.
        """
        check_query(query)
        check_limit(ask.limit)
        names = list(dict.fromkeys([strategies] if isinstance(strategies, str) else strategies))
        if not FEWEST_COMPARED <= len(names) <= MOST_COMPARED:
            raise InvalidInput(f"Compare from {FEWEST_COMPARED} to {MOST_COMPARED} strategies, not {len(names)}.")
        own_parameters, scope = parameters or {}, self._requests.resolve(ask.scope)
        encoded = EncodedQueries()
        results: dict[str, SearchResult] = {}
        for name in names:
            strategy, own_index = named(name, None)
            own = own_parameters.get(name, own_parameters.get(strategy)) or {}
            own_ask = replace(ask, strategy=strategy, scope=scope, index=own_index or ask.index, parameters=own)
            results[name] = self._result(query, own_ask, encoded)
        one_index = len({result.index for result in results.values()}) == 1
        rankings = {
            name: [hit.passage_id for hit in result]
            if one_index
            else list(dict.fromkeys(hit.document_id for hit in result))
            for name, result in results.items()
        }
        return Comparison(query=query, strategies=results, agreement=agreement(rankings))

    def query_engine(self, ask: Ask = AS_ASKED) -> RetrieverQueryEngine:
        """Return a LlamaIndex query engine of a strategy, to build on; it answers as ``ask``."""
        from workbench.retrieval.answering.synthesis import CitingSynthesizer
        from workbench.retrieval.pipeline import build_engine

        request = self._requests.of(ask)
        request.llm = self._corpus.llm
        engine = build_engine(request, CitingSynthesizer(request))
        engine.served = partial(once_more, self._corpus)
        return engine

    @read_once_more
    def _result(self, query: str, ask: Ask, encoded: EncodedQueries | None = None) -> SearchResult:
        """Serve an ask; ``encoded`` are queries that requests to the same model share.

        A remembered index that was dropped, rebuilt or is no longer the default shows nothing, or its tables are
        gone: then the index is looked up and asked again.
        """
        import_framework()
        from workbench.retrieval.pipeline import run

        request = self._requests.of(ask, remembered=True)
        if encoded is not None:
            model = request.index.embedding_model
            request.encoded_queries = encoded.vectors.setdefault(model, {})
            request.encoding_ms = encoded.encoding_ms.setdefault(model, {})
        self._note_what_is_lacking(request)
        if request.remembered:
            try:
                result = run(query, request)
                if result.results:
                    return result
            except (StatementRefused, ModelError):
                pass
            request = self._requests.of(ask)
            self._note_what_is_lacking(request)
        return run(query, request)

    def _note_what_is_lacking(self, request: Request) -> None:
        """Say it where an index is not up to date: an ingest fills one index, the default one unless told otherwise."""
        index = request.index
        if index.is_default or index.dataset is not None:
            return
        lacking = len(documents_within(self._corpus.database, request.scope, self._lacking.missing(index)))
        if lacking:
            documents = "1 document" if lacking == 1 else f"{lacking:,} documents"
            request.trace.note(f"{index.name} lacks {documents}; run 'workbench indexes build {index.name}'")
