"""Embedding models and rerankers behind HTTP: a table of providers for each, and one client that all share."""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from workbench.errors import ConfigurationError, ModelError
from workbench.models.encoder import (
    EncodedQuery,
    EncodedTexts,
    FloatArray,
    OnBatch,
    PlainEncoder,
    check_scores,
    normalise_rows,
)
from workbench.models.model_names import (
    BATCH,
    CONCURRENCY,
    DIMENSIONS,
    MAX_TOKENS,
    RATE,
    RETRIES,
    TIMEOUT,
    URL,
    ModelName,
)
from workbench.types import JsonObject, JsonValue, as_integer, as_items, as_number, as_object, mark_slow_step

if TYPE_CHECKING:
    from types import TracebackType

    import httpx


MAX_RETRY_DELAY_S = 30.0  # whatever Retry-After requests
RETRY_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
MAX_MESSAGE_CHARS = 200  # of a provider's own message that ours quotes
OWN_KEY = "WORKBENCH_MODEL_API_KEY"  # for endpoints of no listed provider


# The client


class RateLimit:
    """Spaces requests evenly, so that there are at most ``per_minute``; 0 means no limit. Thread-safe."""

    def __init__(self, per_minute: float) -> None:
        self._interval = 60 / per_minute if per_minute else 0.0
        self._next = 0.0
        self._lock = threading.Lock()

    def wait(self) -> None:
        """Return when the next request may be sent."""
        if not self._interval:
            return
        with self._lock:
            at = max(self._next, time.monotonic())
            self._next = at + self._interval
        time.sleep(max(0.0, at - time.monotonic()))


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of a model, and how to authorise requests to it."""

    model: ModelName
    url: str  # base URL
    key: str  # "" if it needs none
    key_variable: str  # environment variable that the key came from
    key_header: str  # "Authorization" sends "Bearer KEY", any other header the key alone

    @property
    def headers(self) -> dict[str, str]:
        """The headers of a request."""
        if not self.key:
            return {}
        return {self.key_header: f"Bearer {self.key}" if self.key_header == "Authorization" else self.key}


class JsonClient:
    """Posts JSON to one endpoint, with retries, a rate limit and a one-sentence error for each failure. Thread-safe."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._rate = RateLimit(endpoint.model.read_number(RATE))

    @cached_property
    def _client(self) -> httpx.Client:
        import httpx

        return httpx.Client(headers=self._endpoint.headers, timeout=self._endpoint.model.read_number(TIMEOUT))

    def post(self, path: str, body: JsonObject) -> JsonValue:
        """Return the JSON answer.

        Raises:
            ModelError: The endpoint failed after all attempts, or did not answer with JSON.
        """
        import httpx

        retries = int(self._endpoint.model.read_number(RETRIES))
        for attempt in range(retries + 1):
            self._rate.wait()
            response: httpx.Response | None = None
            try:
                with mark_slow_step():  # ends with its timeout
                    answer = self._client.post(self._endpoint.url.rstrip("/") + path, json=body)
                if answer.status_code < 300:
                    return answer.json()
                failure, is_transient = self._describe_status(answer), answer.status_code in RETRY_STATUSES
                response = answer
            except ValueError:
                failure, is_transient = "did not answer with JSON; check its URL", False
            except httpx.TimeoutException:
                failure = (
                    f"did not answer within {self._endpoint.model.read_number(TIMEOUT):g} s; raise its option timeout"
                )
                is_transient = True
            except httpx.HTTPError as error:
                failure = f"is unreachable ({error}); start it or correct its URL"
                is_transient = True
            if not is_transient or attempt == retries:
                raise ModelError(f"The model '{self._endpoint.model.text}' at {self._endpoint.url} {failure}.")
            time.sleep(_retry_delay(response, attempt))
        raise AssertionError("unreachable")

    def _describe_status(self, response: httpx.Response) -> str:
        status = response.status_code
        if status in (401, 403):
            return f"rejected the API key ({status}); set {self._endpoint.key_variable or 'the key'}"
        if status == 404:
            return "does not know that model or address (404); correct its name or its option url"
        if status == 429:
            return "returned too many requests (429); set its option rate, or try later"
        quoted = " ".join(response.text.split())[:MAX_MESSAGE_CHARS]
        return f"failed ({status}: {quoted})" if quoted else f"failed ({status})"

    def close(self) -> None:
        """Close the connections."""
        if "_client" in self.__dict__:
            self._client.close()

    def __enter__(self) -> JsonClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _retry_delay(response: httpx.Response | None, attempt: int) -> float:
    """Return the seconds to wait: as the endpoint requests, otherwise 0.5, 1, 2, ... plus up to a quarter."""
    try:
        wanted = float(response.headers["retry-after"]) if response is not None else math.nan
    except (KeyError, ValueError):
        wanted = math.nan
    if math.isnan(wanted):
        wanted = 0.5 * 2**attempt * random.uniform(1, 1.25)
    return min(max(wanted, 0.0), MAX_RETRY_DELAY_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """The address and authorisation of a provider's models."""

    title: str
    url: str = ""  # base URL; "" if every user has another one
    key: str = ""  # environment variable of the API key
    key_header: str = "Authorization"
    url_variables: tuple[str, ...] = ()  # environment variables that name another base URL


def find_endpoint(model: ModelName, provider: Provider, variables: Mapping[str, str]) -> Endpoint:
    """Return the endpoint of a model: its option ``url``, a variable, or the provider's URL.

    Raises:
        ConfigurationError: There is no URL, or the provider needs a key and its variable is not set.
    """
    named = (variables.get(name, "") for name in provider.url_variables)
    address = model.read_text(URL) or next(filter(None, named), "") or provider.url
    if address and "://" not in address:  # OLLAMA_HOST may leave the protocol out
        address = f"http://{address}"
    if not address.startswith(("http://", "https://")):
        raise ConfigurationError(f"The model '{model.text}' needs a URL: add ?url=http://HOST:PORT to its name.")
    key = variables.get(provider.key, "") if provider.key else ""
    if not key and address == provider.url and provider.key:
        raise ConfigurationError(f"The model '{model.text}' needs an API key: set {provider.key}.")
    return Endpoint(model, address, key, provider.key, provider.key_header)


# Embedding models


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingProvider(Provider):
    """The request and response format of one provider's embedding models."""

    path: str  # of the request; may contain {model}
    body: Callable[[ModelName, list[str], bool], JsonObject]  # of a request, for texts, and whether they are questions
    vectors: Callable[[JsonValue], Sequence[JsonValue]]  # from the answer, in the order of the texts
    batch: int = 64  # texts per request


def _with_dimensions(body: JsonObject, model: ModelName, field: str) -> JsonObject:
    dimensions = int(model.read_number(DIMENSIONS))
    return {**body, field: dimensions} if dimensions else body


def _openai_body(model: ModelName, texts: list[str], is_query: bool) -> JsonObject:
    del is_query
    return _with_dimensions({"model": model.model, "input": [*texts], "encoding_format": "float"}, model, "dimensions")


def _mistral_body(model: ModelName, texts: list[str], is_query: bool) -> JsonObject:
    del is_query
    return _with_dimensions({"model": model.model, "input": [*texts]}, model, "output_dimension")


def _voyage_body(model: ModelName, texts: list[str], is_query: bool) -> JsonObject:
    body: JsonObject = {"model": model.model, "input": [*texts], "input_type": "query" if is_query else "document"}
    return _with_dimensions(body, model, "output_dimension")


def _jina_body(model: ModelName, texts: list[str], is_query: bool) -> JsonObject:
    task = "retrieval.query" if is_query else "retrieval.passage"
    body: JsonObject = {
        "model": model.model,
        "input": [*texts],
        "task": task,
        "embedding_type": "float",
        "truncate": True,
    }
    return _with_dimensions(body, model, "dimensions")


def _cohere_body(model: ModelName, texts: list[str], is_query: bool) -> JsonObject:
    body: JsonObject = {
        "model": model.model,
        "texts": [*texts],
        "input_type": "search_query" if is_query else "search_document",
        "embedding_types": ["float"],
        "truncate": "END",
    }
    return _with_dimensions(body, model, "output_dimension")


def _gemini_body(model: ModelName, texts: list[str], is_query: bool) -> JsonObject:
    task = "RETRIEVAL_QUERY" if is_query else "RETRIEVAL_DOCUMENT"

    def request(text: str) -> JsonObject:
        body: JsonObject = {"model": f"models/{model.model}", "content": {"parts": [{"text": text}]}, "taskType": task}
        return _with_dimensions(body, model, "outputDimensionality")

    return {"requests": [request(text) for text in texts]}


def _ollama_body(model: ModelName, texts: list[str], is_query: bool) -> JsonObject:
    del is_query
    return _with_dimensions({"model": model.model, "input": [*texts], "truncate": True}, model, "dimensions")


def _tei_body(model: ModelName, texts: list[str], is_query: bool) -> JsonObject:
    del model, is_query  # a server of TEI has one model
    return {"inputs": [*texts], "truncate": True, "normalize": True}


def _read_data(answer: JsonValue) -> list[JsonValue]:
    """Return the vectors from an OpenAI-style response, in the order of their ``index``."""
    rows = sorted(map(as_object, as_items(as_object(answer)["data"])), key=lambda row: as_integer(row["index"]))
    return [row["embedding"] for row in rows]


# Requests as the providers' references describe them: OpenAI "Create embeddings", Mistral "Embeddings", Voyage "Text
# embedding models", Jina "Embeddings", Cohere "Embed API (v2)", Gemini "batchEmbedContents", Ollama "Generate
# embeddings" and Text Embeddings Inference "/embed".
EMBEDDING_PROVIDERS: dict[str, EmbeddingProvider] = {
    "openai": EmbeddingProvider(
        title="OpenAI, or the compatible endpoint in OPENAI_API_BASE",
        url="https://api.openai.com/v1",
        path="/embeddings",
        body=_openai_body,
        vectors=_read_data,
        key="OPENAI_API_KEY",
        url_variables=("OPENAI_API_BASE", "OPENAI_BASE_URL"),
    ),
    "endpoint": EmbeddingProvider(
        title="any OpenAI-compatible endpoint: TEI, vLLM, LM Studio, LiteLLM; needs ?url=",
        path="/embeddings",
        body=_openai_body,
        vectors=_read_data,
        key=OWN_KEY,
    ),
    "tei": EmbeddingProvider(
        title="Text Embeddings Inference; needs ?url=",
        path="/embed",
        body=_tei_body,
        vectors=as_items,
        key=OWN_KEY,
        batch=32,
    ),
    "cohere": EmbeddingProvider(
        title="Cohere",
        url="https://api.cohere.com",
        path="/v2/embed",
        body=_cohere_body,
        vectors=lambda answer: as_items(as_object(as_object(answer)["embeddings"])["float"]),
        key="COHERE_API_KEY",
    ),
    "voyage": EmbeddingProvider(
        title="Voyage",
        url="https://api.voyageai.com",
        path="/v1/embeddings",
        body=_voyage_body,
        vectors=_read_data,
        key="VOYAGE_API_KEY",
    ),
    "jina": EmbeddingProvider(
        title="Jina",
        url="https://api.jina.ai",
        path="/v1/embeddings",
        body=_jina_body,
        vectors=_read_data,
        key="JINA_API_KEY",
    ),
    "mistral": EmbeddingProvider(
        title="Mistral",
        url="https://api.mistral.ai",
        path="/v1/embeddings",
        body=_mistral_body,
        vectors=_read_data,
        key="MISTRAL_API_KEY",
    ),
    "gemini": EmbeddingProvider(
        title="Gemini",
        url="https://generativelanguage.googleapis.com",
        path="/v1beta/models/{model}:batchEmbedContents",
        body=_gemini_body,
        vectors=lambda answer: [as_object(row)["values"] for row in as_items(as_object(answer)["embeddings"])],
        key="GEMINI_API_KEY",
        key_header="x-goog-api-key",
    ),
    "ollama": EmbeddingProvider(
        title="Ollama",
        url="http://127.0.0.1:11434",
        path="/api/embed",
        body=_ollama_body,
        vectors=lambda answer: as_items(as_object(answer)["embeddings"]),
        batch=32,
        url_variables=("OLLAMA_HOST",),
    ),
}


class EndpointEncoder(PlainEncoder):
    """An embedding model behind HTTP as an encoder; nothing is sent before the first text. Thread-safe."""

    def __init__(self, model: ModelName, variables: Mapping[str, str]) -> None:
        """Set the model; keys and URLs come from ``variables``.

        Raises:
            ConfigurationError: It needs a key or a URL that is not set.
        """
        provider = EMBEDDING_PROVIDERS[model.family]
        self.name = model.text
        self.max_tokens = int(model.read_number(MAX_TOKENS))
        self._model, self._provider = model, provider
        self._batch = int(model.read_number(BATCH)) or provider.batch
        self._client = JsonClient(find_endpoint(model, provider, variables))

    def encode(self, texts: Sequence[str], *, on_batch: OnBatch | None = None) -> EncodedTexts:
        """Encode passages in batches, several at the same time if the option ``concurrency`` allows it."""
        batches = [list(texts[start : start + self._batch]) for start in range(0, len(texts), self._batch)]
        rows: list[FloatArray] = []
        for batch, vectors in zip(batches, self._answers(batches), strict=True):
            rows.append(vectors)
            if on_batch is not None:
                on_batch(len(batch))
        return self.collect(rows)

    def _answers(self, batches: list[list[str]]) -> Iterator[FloatArray]:
        workers = min(int(self._model.read_number(CONCURRENCY)), len(batches))
        if workers < 2:
            yield from (self._vectors(batch, is_query=False) for batch in batches)
            return
        pool = ThreadPoolExecutor(workers, thread_name_prefix="embed")
        try:
            yield from pool.map(lambda batch: self._vectors(batch, is_query=False), batches)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def encode_query(self, text: str) -> EncodedQuery:
        """Encode a question."""
        return EncodedQuery(self._vectors([text], is_query=True)[0])

    def _vectors(self, texts: list[str], *, is_query: bool) -> FloatArray:
        """Return vectors of length 1, of shape (texts, dimensions)."""
        prefix = self._model.prefixes[0 if is_query else 1]
        sent = [prefix + (text if text.strip() else ".") for text in texts]  # endpoints reject blank texts
        path = self._provider.path.replace("{model}", self._model.model)
        answer = self._client.post(path, self._provider.body(self._model, sent, is_query))
        return read_vectors(self.name, self._provider.vectors, answer, len(texts))


def read_vectors(
    name: str, read: Callable[[JsonValue], Sequence[JsonValue]], answer: JsonValue, count: int
) -> FloatArray:
    """Return the vectors of an answer, scaled to length 1, of shape (count, dimensions).

    Raises:
        ModelError: The answer does not have one finite vector of the same length for each text.
    """
    try:
        lists = [list(map(as_number, as_items(row))) for row in read(answer)]
        rows = np.array(lists, dtype=np.float32).reshape(len(lists), -1)
    except (KeyError, TypeError, ValueError):
        rows = np.zeros((0, 0), dtype=np.float32)
    if rows.shape[0] != count or not rows.size or not np.isfinite(rows).all():
        raise ModelError(f"The embedding model '{name}' did not return one vector for each text.")
    return normalise_rows(rows)


# Rerankers


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankProvider(Provider):
    """The request and response format of one provider's rerankers."""

    path: str = "/rerank"
    body: Callable[[str, str, list[str]], JsonObject]  # of a request, for a model, a question and texts
    rows: Callable[[JsonValue], JsonValue]  # of the answer, each with ``index`` and a score
    score: str = "relevance_score"  # field of a row
    batch: int = 1000  # texts per request


def _rerank_body(model: str, query: str, texts: list[str]) -> JsonObject:
    return {"model": model, "query": query, "documents": [*texts], "top_n": len(texts)}


def _read_results(answer: JsonValue) -> JsonValue:
    return as_object(answer)["results"]


# Cohere "Rerank API (v2)", Jina "Reranker", Voyage "Rerankers", Text Embeddings Inference "/rerank"; vLLM and Infinity
# take the shape of Jina and Cohere.
RERANK_PROVIDERS: dict[str, RerankProvider] = {
    "cohere": RerankProvider(
        title="Cohere",
        url="https://api.cohere.com",
        path="/v2/rerank",
        body=_rerank_body,
        rows=_read_results,
        key="COHERE_API_KEY",
    ),
    "jina": RerankProvider(
        title="Jina",
        url="https://api.jina.ai",
        path="/v1/rerank",
        body=lambda model, query, texts: {**_rerank_body(model, query, texts), "return_documents": False},
        rows=_read_results,
        key="JINA_API_KEY",
    ),
    "voyage": RerankProvider(
        title="Voyage",
        url="https://api.voyageai.com",
        path="/v1/rerank",
        body=lambda model, query, texts: {"model": model, "query": query, "documents": [*texts]},
        rows=lambda answer: as_object(answer)["data"],
        key="VOYAGE_API_KEY",
    ),
    "endpoint": RerankProvider(
        title="vLLM, Infinity, LiteLLM and others with a Cohere-compatible API; needs ?url=",
        body=_rerank_body,
        rows=_read_results,
        key=OWN_KEY,
    ),
    "tei": RerankProvider(
        title="Text Embeddings Inference; needs ?url=",
        body=lambda _, query, texts: {"query": query, "texts": [*texts], "truncate": True},
        rows=lambda answer: answer,
        score="score",
        key=OWN_KEY,
        batch=32,
    ),
}


class EndpointReranker:
    """A reranker behind HTTP, as a cross-encoder. Thread-safe."""

    def __init__(self, model: ModelName, variables: Mapping[str, str]) -> None:
        """Set the model; keys and URLs come from ``variables``.

        Raises:
            ConfigurationError: It needs a key or a URL that is not set.
        """
        self.name = model.text
        self._model, self._provider = model, RERANK_PROVIDERS[model.family]
        self._client = JsonClient(find_endpoint(model, self._provider, variables))

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return the model's score of each text.

        Raises:
            ModelError: The endpoint failed, or did not return one number for each text.
        """
        bounds = [*range(0, len(texts), self._provider.batch), len(texts)]
        scores: list[float] = []
        for start, end in pairwise(bounds):
            batch = [text if text.strip() else "." for text in texts[start:end]]
            answer = self._client.post(self._provider.path, self._provider.body(self._model.model, query, batch))
            scores += self._read(answer, len(batch))
        return check_scores(self.name, scores, len(texts))

    def _read(self, answer: JsonValue, count: int) -> list[float]:
        try:
            rows = list(map(as_object, as_items(self._provider.rows(answer))))
            scores = {as_integer(row["index"]): as_number(row[self._provider.score]) for row in rows}
        except (KeyError, TypeError):
            return []
        return [scores[place] for place in range(count)] if scores.keys() == set(range(count)) else []
