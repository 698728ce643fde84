"""Latency of strategies and bare baselines, alternating on each question, so that noise affects both."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.vector_stores.postgres import PGVectorStore
from numpy.typing import NDArray

from benchmarks.loading import BenchCorpus
from benchmarks.statements import baseline
from benchmarks.synthetic_corpus import SyntheticCorpus
from workbench.models.encoder import TOKEN_AXES, EncodedQuery
from workbench.storage.database import Database, statement
from workbench.storage.passages import TermWeights
from workbench.storage.ranking import EXACT_UP_TO, fetch_query_terms, nearest, rank_by_terms
from workbench.types import Index, ResolvedScope, SearchResult, Value

RESULT_LIMIT = 10
LEG_LIMIT = 50  # passages per leg of hybrid
QUERY_TOKENS = 12
WARM_UP_QUESTIONS = 5

EncodedQuestion = tuple[str, NDArray[np.float32]]
TimedCall = Callable[[EncodedQuestion], object]


# As in the framework's documentation: pgvector's HNSW defaults, full vectors, English full text.
HNSW_DEFAULTS = {
    "hnsw_m": 16,
    "hnsw_ef_construction": 64,
    "hnsw_ef_search": 40,
    "hnsw_dist_method": "vector_cosine_ops",
}


def copy_to_framework(database: Database, index: Index) -> PGVectorStore:
    """Copy an index's passages to the framework's own table and return its store; HNSW is built at the end."""
    import psycopg
    from psycopg.conninfo import conninfo_to_dict
    from sqlalchemy import create_engine
    from sqlalchemy.ext.asyncio import create_async_engine

    arguments: dict[str, object] = {
        key: value for key, value in conninfo_to_dict(database.url).items() if value is not None
    }
    arguments["cursor_factory"] = psycopg.ClientCursor  # the framework binds a parameter in SET, which servers reject
    sync_engine = create_engine("postgresql+psycopg://", connect_args=arguments)
    async_engine = create_async_engine("postgresql+psycopg://", connect_args=arguments | {"cursor_factory": None})
    store = PGVectorStore(
        table_name=f"framework_{index.name}",
        embed_dim=index.dimensions,
        hybrid_search=True,
        hnsw_kwargs=None,
        engine=sync_engine,
        async_engine=async_engine,
    )
    database.rows(baseline("framework_drop", index.name))
    store._initialize()  # pyright: ignore[reportPrivateUsage]
    database.rows(baseline("framework_copy", index.name))
    store.hnsw_kwargs = dict(HNSW_DEFAULTS)
    store._create_hnsw_index()  # pyright: ignore[reportPrivateUsage]
    database.autocommit(baseline("framework_analyse", index.name))
    return store


@dataclass(frozen=True, slots=True)
class Latency(Value):
    """Milliseconds of a strategy and its baseline over the same questions; ``ratio`` is the ratio of the medians."""

    p50_ms: float
    p95_ms: float
    baseline: str
    baseline_p50_ms: float
    ratio: float


class MemoryBM25(BaseRetriever):
    """BM25 in memory (bm25s) as a LlamaIndex retriever of the best ``LEG_LIMIT`` texts."""

    def __init__(self, texts: Sequence[str]) -> None:
        """Index the texts."""
        import bm25s

        super().__init__()
        self._nodes = [TextNode(text=text) for text in texts]
        self._bm25 = bm25s.BM25(k1=1.5, b=0.75)
        self._bm25.index(bm25s.tokenize(list(texts), stopwords=[], show_progress=False), show_progress=False)

    def rank(self, question: str, limit: int) -> list[tuple[int, float]]:
        """Return places and scores of the best texts."""
        import bm25s

        tokens = bm25s.tokenize([question], stopwords=[], show_progress=False)
        places, scores = self._bm25.retrieve(tokens, k=min(limit, len(self._nodes)), show_progress=False)
        return list(zip(places[0].tolist(), scores[0].tolist(), strict=True))

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        ranking = self.rank(query_bundle.query_str, LEG_LIMIT)
        return [NodeWithScore(node=self._nodes[place], score=score) for place, score in ranking]


class Bench:
    """Questions on one corpus, and timed ways to answer them.

    Questions are embedded beforehand: the model's few milliseconds are constant and would hide differences.
    """

    def __init__(self, corpus: BenchCorpus, synthetic: SyntheticCorpus, questions: int) -> None:
        self._workbench, self._index = corpus.wb, corpus.index
        self._store = corpus.wb.corpus.store(corpus.index)
        self._small = ResolvedScope(source_ids=(corpus.small.id,))
        self.questions = synthetic.questions(questions)
        rng = np.random.default_rng(11)
        self._encoded = {
            text: EncodedQuery(vector, _random_axes(rng), _make_spans(text)) for text, vector in self.questions
        }

    def strategy(
        self,
        name: str,
        *,
        scoped: bool = False,
        parameters: Mapping[str, object] | None = None,
        limit: int = RESULT_LIMIT,
    ) -> Callable[[EncodedQuestion], SearchResult]:
        """Return a timed call of a strategy, through the regular search service."""
        from workbench.retrieval.options import Ask
        from workbench.retrieval.pipeline import run_search as served
        from workbench.retrieval.query import Encoding

        requests = self._workbench.requests
        scope = self._small if scoped else ResolvedScope()

        def run(question: EncodedQuestion) -> SearchResult:
            ask = Ask(name, limit, scope, self._index.name, parameters or {})
            request = requests.make(ask, remembered=True)
            query = request.question(question[0])
            query.encodings[query.model_and_text] = Encoding(self._encoded[question[0]])
            return served(query)

        return run

    def raw_vector(self, limit: int = RESULT_LIMIT) -> TimedCall:
        """Return a timed call of the bare vector statement, with the same ef_search."""
        nearest_ones = baseline("nearest", self._index.name)

        def run(question: EncodedQuestion) -> object:
            parameters = {"vector": format_vector(question[1]), "limit": limit, "index": self._index.name}
            with self._store.reading() as connection:
                return connection.execute(nearest_ones, parameters).fetchall()

        return run

    def raw_keyword(self, limit: int = LEG_LIMIT) -> TimedCall:
        """Return a timed call of only the keyword leg, with terms weighted beforehand."""
        weights = self._weights()

        def run(question: EncodedQuestion) -> object:
            with self._store.reading() as connection:
                return rank_by_terms(connection, self._index.name, weights[question[0]], ResolvedScope(), limit, size=0)

        return run

    def plain_keyword(self, limit: int = LEG_LIMIT) -> TimedCall:
        """Return a timed call of BM25 in plain SQL, which reads every posting of every term."""
        weights = self._weights()
        self._keep_plain_postings()

        def run(question: EncodedQuestion) -> object:
            terms = weights[question[0]]
            parameters = {
                "term_ids": list(terms.ids),
                "weights": list(terms.weights),
                "a": terms.a,
                "c": terms.c,
                "limit": limit,
            }
            with self._store.reading() as connection:
                return connection.execute(baseline("bm25", self._index.name), parameters).fetchall()

        return run

    def _keep_plain_postings(self) -> None:
        """Copy the postings to one row each, for plain SQL."""
        database = self._workbench.corpus.database
        for step in ("plain_drop", "plain", "plain_index"):
            database.rows(baseline(step, self._index.name))
        database.autocommit(baseline("plain_analyse", self._index.name))

    def _weights(self) -> dict[str, TermWeights]:
        from workbench.retrieval.bm25 import weigh_terms

        weights = {}
        with self._store.reading() as connection:
            for text, _ in self.questions:
                asked = fetch_query_terms(connection, self._index.name, text, ResolvedScope(), 0)
                weights[text] = weigh_terms(asked.terms, asked.totals)
        return weights

    def legs_alone(self) -> TimedCall:
        """Return a timed call of the two legs of hybrid: the bare vector statement and the workbench's keyword leg."""
        vector, keyword = self.raw_vector(LEG_LIMIT), self.raw_keyword(LEG_LIMIT)
        return lambda question: (vector(question), keyword(question))

    def raw_both(self, plain: TimedCall) -> TimedCall:
        """Return a timed call of a plain SQL hybrid: the bare vector statement and ``plain``, BM25 in SQL."""
        vector = self.raw_vector(LEG_LIMIT)
        return lambda question: (vector(question), plain(question))

    def framework_store(self) -> PGVectorStore:
        """Return LlamaIndex's store over a copy of the passages in its own table."""
        return copy_to_framework(self._workbench.corpus.database, self._index)

    def query_fusion(self, store: PGVectorStore, texts: Sequence[str]) -> TimedCall:
        """Return a timed call of LlamaIndex's QueryFusionRetriever over bm25s in memory and pgvector's graph."""
        from llama_index.core import MockEmbedding, VectorStoreIndex
        from llama_index.core.llms import MockLLM
        from llama_index.core.retrievers import QueryFusionRetriever
        from llama_index.core.retrievers.fusion_retriever import FUSION_MODES

        index = VectorStoreIndex.from_vector_store(store, embed_model=MockEmbedding(self._index.dimensions))
        legs = [index.as_retriever(similarity_top_k=LEG_LIMIT), MemoryBM25(texts)]
        fusion = QueryFusionRetriever(
            legs, llm=MockLLM(), mode=FUSION_MODES.RECIPROCAL_RANK, similarity_top_k=RESULT_LIMIT, num_queries=1,
            use_async=False,
        )  # fmt: skip
        return lambda question: fusion.retrieve(QueryBundle(question[0], embedding=question[1].tolist()))

    def framework_hybrid(self, store: PGVectorStore) -> TimedCall:
        """Return a timed call of LlamaIndex's own hybrid over its own table."""
        from llama_index.core.vector_stores.types import VectorStoreQuery, VectorStoreQueryMode

        def run(question: EncodedQuestion) -> object:
            return store.query(
                VectorStoreQuery(
                    query_embedding=question[1].tolist(),
                    query_str=question[0],
                    similarity_top_k=RESULT_LIMIT,
                    mode=VectorStoreQueryMode.HYBRID,
                )
            )

        return run

    def memory_bm25(self, texts: Sequence[str]) -> TimedCall:
        """Return a timed call of an in-memory BM25 (bm25s) over the same texts."""
        memory = MemoryBM25(texts)
        return lambda question: memory.rank(question[0], RESULT_LIMIT)

    def time_pair(self, timed: TimedCall, baseline: TimedCall, name: str) -> Latency:
        """Time a call and its baseline over all questions, alternating the order, as the second has warm pages."""
        ours, theirs = [], []
        for question in self.questions[:WARM_UP_QUESTIONS]:
            timed(question)
            baseline(question)
        for place, question in enumerate(self.questions):
            pair = [(timed, ours), (baseline, theirs)]
            for call, times in pair if place % 2 else reversed(pair):
                times.append(_measure_ms(call, question))
        p50, p95, base = np.percentile(ours, 50), np.percentile(ours, 95), np.percentile(theirs, 50)
        return Latency(round(p50, 3), round(p95, 3), name, round(base, 3), round(p50 / base, 3))

    def recall(self, questions: Sequence[EncodedQuestion]) -> float:
        """Return the recall of the true ten nearest passages."""
        hits = 0
        for question in questions:
            exact = statement("vector_exact", self._index.name, scope="scope_everything")
            parameters = {"vector": format_vector(question[1]), "limit": RESULT_LIMIT}
            with self._store.reading() as connection:
                truth = {row["id"] for row in connection.execute(exact, parameters).fetchall()}
                size = EXACT_UP_TO + 1 if self._index.has_graph else 0
                found = nearest(connection, self._index.name, question[1], ResolvedScope(), RESULT_LIMIT, size)
            hits += len(truth & found.scores.keys())
        return hits / (len(questions) * RESULT_LIMIT)


def _measure_ms(timed: TimedCall, question: EncodedQuestion) -> float:
    began = time.perf_counter()
    timed(question)
    return (time.perf_counter() - began) * 1000


def format_vector(vector: NDArray[np.float32]) -> str:
    """Format a vector as text, for binding."""
    return "[" + ",".join([f"{value:.5g}" for value in vector.tolist()]) + "]"


def _random_axes(rng: np.random.Generator) -> NDArray[np.float32]:
    axes = rng.standard_normal((QUERY_TOKENS, TOKEN_AXES)).astype(np.float32)
    return axes / np.linalg.norm(axes, axis=1, keepdims=True)


def _make_spans(text: str) -> tuple[tuple[int, int], ...]:
    width = max(1, len(text) // QUERY_TOKENS)
    return tuple((place * width, (place + 1) * width) for place in range(QUERY_TOKENS))
