"""Models behind HTTP: a table of providers for each kind, and the client of embedding models and rerankers."""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from workbench.errors import ConfigurationError, ModelError
from workbench.models.encoder import (
    EncodedQuery,
    FloatArray,
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
    import httpx


MAX_RETRY_DELAY_S = 120.0  # if Retry-After requests more, the request fails
RETRY_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
MAX_MESSAGE_CHARS = 200  # of a provider's own message that ours quotes
OWN_KEY = "WORKBENCH_MODEL_API_KEY"  # for endpoints of no listed provider


# The client


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of a model, and how to authorise requests to it."""

    model: ModelName
    url: str  # base URL
    key: str  # "" if it needs none
    key_variable: str  # environment variable that the key came from
    key_header: str  # "Authorization" sends "Bearer KEY", any other header the key alone
    trusted_by: str = ""  # variable to set to this URL, so that the key is sent there; "" if it is sent


class JsonClient:
    """Posts JSON to one endpoint, with retries, a rate limit and a one-sentence error for each failure. Thread-safe."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._next = 0.0  # when the next request may be sent
        self._lock = threading.Lock()

    @cached_property
    def _client(self) -> httpx.Client:
        import httpx

        key, header = self._endpoint.key, self._endpoint.key_header
        headers = {header: f"Bearer {key}" if header == "Authorization" else key} if key else {}
        return httpx.Client(headers=headers, timeout=self._endpoint.model.read_number(TIMEOUT))

    def post(self, path: str, body: JsonObject) -> JsonValue:
        """Return the JSON answer.

        Raises:
            ModelError: The endpoint failed after all attempts, or did not answer with JSON.
        """
        import httpx

        retries = int(self._endpoint.model.read_number(RETRIES))
        for attempt in range(retries + 1):
            self._wait_turn()
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
                seconds, is_transient = self._endpoint.model.read_number(TIMEOUT), True
                failure = f"did not answer within {seconds:g} s; raise its option timeout"
            except httpx.HTTPError as error:
                failure, is_transient = f"is unreachable ({error}); start it or correct its URL", True
            if not is_transient or attempt == retries:
                raise ModelError(f"The model '{self._endpoint.model.text}' at {self._endpoint.url} {failure}.")
            delay = choose_retry_delay(response, 0.5 * 2**attempt * random.uniform(1, 1.25))  # spread over callers
            if delay > MAX_RETRY_DELAY_S:
                raise ModelError(
                    f"The model '{self._endpoint.model.text}' at {self._endpoint.url} {failure}; it asks to wait "
                    f"{delay:,.0f} s."
                )
            time.sleep(delay)
        raise AssertionError("unreachable")

    def _wait_turn(self) -> None:
        """Space requests evenly, so that there are at most ``RATE`` per minute; 0 means no limit."""
        if per_minute := self._endpoint.model.read_number(RATE):
            with self._lock:
                at = max(self._next, time.monotonic())
                self._next = at + 60 / per_minute
            time.sleep(max(0.0, at - time.monotonic()))

    def _describe_status(self, response: httpx.Response) -> str:
        status = response.status_code
        if status in (401, 403) and self._endpoint.trusted_by:
            return (
                f"needs a key ({status}), but {self._endpoint.key_variable} is only sent to its provider and to this "
                f"machine; to send it there, set {self._endpoint.trusted_by} to this URL"
            )
        if status in (401, 403):
            return f"rejected the API key ({status}); set {self._endpoint.key_variable or 'the key'}"
        if status == 404:
            return "does not know that model or address (404); correct its name or its option url"
        if status == 429:
            return "returned too many requests (429); set its option rate, or try later"
        quoted = " ".join(response.text.split())[:MAX_MESSAGE_CHARS]
        return f"failed ({status}: {quoted})" if quoted else f"failed ({status})"


def choose_retry_delay(response: httpx.Response | None, otherwise: float) -> float:
    """Return the seconds to wait before the next attempt: as the endpoint requests, or ``otherwise``."""
    try:
        wanted = float(response.headers["retry-after"]) if response is not None else math.nan
    except (KeyError, ValueError):
        wanted = math.nan
    return otherwise if math.isnan(wanted) else max(wanted, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """How the models of a provider are reached, and the fields of its requests and answers."""

    path: str  # of the request; may contain {model}
    url: str = ""  # base URL; "" if every user has another one
    key: str = ""  # environment variable of the API key
    key_header: str = "Authorization"
    url_variables: tuple[str, ...] = ()  # that name another base URL; if empty, such as VOYAGE_API_BASE
    has_model: bool = True  # whether a request names the model
    fixed: JsonObject = field(default_factory=dict)  # further fields
    batch: int = 64  # texts per request


def find_endpoint(
    model: ModelName, provider: Provider, variables: Mapping[str, str], *, any_url: bool = True
) -> Endpoint:
    """Return the endpoint of a model: its option ``url``, a variable, or the provider's URL.

    Names of models come from links and agents too, so a key is only sent to its provider, to the URL in the provider's
    variable, and to this machine.

    Args:
        model: The model.
        provider: Its provider.
        variables: Keys and URLs by environment variable.
        any_url: Whether texts may be sent to other URLs, without the key.

    Raises:
        ConfigurationError: There is no URL, it is not allowed, or the provider needs a key whose variable is not set.
    """
    names = provider.url_variables or tuple(filter(None, [provider.key.replace("_API_KEY", "_API_BASE")]))
    known = [variables.get(name, "") for name in names] + [provider.url]
    address = _add_protocol(model.read_text(URL) or next(filter(None, known), ""))
    if not address.startswith(("http://", "https://")):
        raise ConfigurationError(f"The model '{model.text}' needs a URL: add ?url=http://HOST:PORT to its name.")
    is_trusted = _is_among(address, known)
    if not is_trusted and not any_url:
        raise ConfigurationError(
            f"Passages are not sent to {address}, because it is not configured: set {names[0]} to this URL, or use "
            f"'{model.text}' as WORKBENCH_RERANKER or WORKBENCH_LLM_MODEL."
        )
    key = variables.get(provider.key, "") if provider.key else ""
    if not key and address == provider.url and provider.key:
        raise ConfigurationError(f"The model '{model.text}' needs an API key: set {provider.key}.")
    withheld = bool(key) and not is_trusted
    return Endpoint(
        model, address, "" if withheld else key, provider.key, provider.key_header, names[0] if withheld else ""
    )


def _add_protocol(address: str) -> str:
    return f"http://{address}" if address and "://" not in address else address  # OLLAMA_HOST may leave it out


def _is_among(address: str, known: Sequence[str]) -> bool:
    """Return whether a URL has the protocol, host and port of a known one, or is on this machine."""
    import httpx  # reads a URL as the client does

    try:
        url, *others = (httpx.URL(_add_protocol(one)) for one in (address, *filter(None, known)))
    except httpx.InvalidURL as error:
        raise ConfigurationError(f"Invalid URL of a model: {address} ({error}); correct it.") from error
    if url.host in ("localhost", "127.0.0.1", "::1"):
        return True
    return any((url.scheme, url.host, url.port) == (one.scheme, one.host, one.port) for one in others)


# Embedding models


def _read_data(answer: JsonValue) -> list[JsonValue]:
    """Return the vectors from an OpenAI-style response, in the order of their ``index``."""
    rows = {as_integer(row["index"]): row for row in map(as_object, as_items(as_object(answer)["data"]))}
    return [rows[place]["embedding"] for place in sorted(rows)]


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingProvider(Provider):
    """The embedding models of one provider."""

    texts: str = "input"  # field of the texts
    purpose: tuple[str, str, str] | None = None  # field of what the texts are, and its values: questions, passages
    dimensions: str = ""  # field of the length of a vector
    vectors: Callable[[JsonValue], Sequence[JsonValue]] = _read_data  # from the answer, in the order of the texts

    def make_body(self, model: ModelName, texts: list[str], *, is_query: bool) -> JsonObject:
        """Return the request for some texts."""
        body = dict(self.fixed)
        if self.purpose is not None:
            body[self.purpose[0]] = self.purpose[1 if is_query else 2]
        if self.dimensions and (dimensions := int(model.read_number(DIMENSIONS))):
            body[self.dimensions] = dimensions
        if self.texts == "requests":  # Gemini: one request for each text
            own: JsonObject = {"model": f"models/{model.model}", **body}
            return {"requests": [{**own, "content": {"parts": [{"text": text}]}} for text in texts]}
        return body | {self.texts: [*texts]} | ({"model": model.model} if self.has_model else {})


# Requests as the providers' references describe them: OpenAI "Create embeddings", Mistral "Embeddings", Voyage "Text
# embedding models", Jina "Embeddings", Cohere "Embed API (v2)", Gemini "batchEmbedContents", Ollama "Generate
# embeddings" and Text Embeddings Inference "/embed".
EMBEDDING_PROVIDERS: dict[str, EmbeddingProvider] = {
    "openai": EmbeddingProvider(
        url="https://api.openai.com/v1",
        path="/embeddings",
        key="OPENAI_API_KEY",
        url_variables=("OPENAI_API_BASE", "OPENAI_BASE_URL"),
        fixed={"encoding_format": "float"},
        dimensions="dimensions",
    ),
    "endpoint": EmbeddingProvider(  # TEI, vLLM, LM Studio, LiteLLM and others
        path="/embeddings", key=OWN_KEY, fixed={"encoding_format": "float"}, dimensions="dimensions"
    ),
    "tei": EmbeddingProvider(
        path="/embed",
        key=OWN_KEY,
        has_model=False,
        texts="inputs",
        fixed={"truncate": True, "normalize": True},
        vectors=as_items,
        batch=32,
    ),
    "cohere": EmbeddingProvider(
        url="https://api.cohere.com",
        path="/v2/embed",
        key="COHERE_API_KEY",
        texts="texts",
        purpose=("input_type", "search_query", "search_document"),
        fixed={"embedding_types": ["float"], "truncate": "END"},
        dimensions="output_dimension",
        vectors=lambda answer: as_items(as_object(as_object(answer)["embeddings"])["float"]),
    ),
    "voyage": EmbeddingProvider(
        url="https://api.voyageai.com",
        path="/v1/embeddings",
        key="VOYAGE_API_KEY",
        purpose=("input_type", "query", "document"),
        dimensions="output_dimension",
    ),
    "jina": EmbeddingProvider(
        url="https://api.jina.ai",
        path="/v1/embeddings",
        key="JINA_API_KEY",
        purpose=("task", "retrieval.query", "retrieval.passage"),
        fixed={"embedding_type": "float", "truncate": True},
        dimensions="dimensions",
    ),
    "mistral": EmbeddingProvider(
        url="https://api.mistral.ai", path="/v1/embeddings", key="MISTRAL_API_KEY", dimensions="output_dimension"
    ),
    "gemini": EmbeddingProvider(
        url="https://generativelanguage.googleapis.com",
        path="/v1beta/models/{model}:batchEmbedContents",
        key="GEMINI_API_KEY",
        key_header="x-goog-api-key",
        texts="requests",
        purpose=("taskType", "RETRIEVAL_QUERY", "RETRIEVAL_DOCUMENT"),
        dimensions="outputDimensionality",
        vectors=lambda answer: [as_object(row)["values"] for row in as_items(as_object(answer)["embeddings"])],
    ),
    "ollama": EmbeddingProvider(
        url="http://127.0.0.1:11434",
        path="/api/embed",
        url_variables=("OLLAMA_HOST",),
        fixed={"truncate": True},
        dimensions="dimensions",
        vectors=lambda answer: as_items(as_object(answer)["embeddings"]),
        batch=32,
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
        self.batch_size = int(model.read_number(BATCH)) or provider.batch
        self._client = JsonClient(find_endpoint(model, provider, variables))

    def encode_batches(self, batches: Sequence[Sequence[str]]) -> Iterator[FloatArray]:
        """Yield the vectors of each batch; several are encoded at once if the option ``concurrency`` allows it."""
        workers = min(int(self._model.read_number(CONCURRENCY)), len(batches))
        if workers < 2:
            yield from super().encode_batches(batches)
            return
        pool = ThreadPoolExecutor(workers, thread_name_prefix="embed")
        try:
            yield from pool.map(self.encode_batch, batches)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def encode_batch(self, texts: Sequence[str]) -> FloatArray:
        return self._vectors(texts, is_query=False)

    def encode_query(self, text: str) -> EncodedQuery:
        return EncodedQuery(self._vectors([text], is_query=True)[0])

    def _vectors(self, texts: Sequence[str], *, is_query: bool) -> FloatArray:
        """Return vectors of length 1, of shape (texts, dimensions)."""
        prefix = self._model.prefixes[0 if is_query else 1]
        sent = [prefix + (text if text.strip() else ".") for text in texts]  # endpoints reject blank texts
        path = self._provider.path.replace("{model}", self._model.model)
        answer = self._client.post(path, self._provider.make_body(self._model, sent, is_query=is_query))
        try:
            lists = [list(map(as_number, as_items(row))) for row in self._provider.vectors(answer)]
            rows = np.array(lists, dtype=np.float32).reshape(len(lists), -1)
        except (KeyError, TypeError, ValueError):
            rows = np.zeros((0, 0), dtype=np.float32)
        if rows.shape[0] != len(texts) or not rows.size or not np.isfinite(rows).all():
            raise ModelError(
                f"The embedding model '{self.name}' did not return one vector of numbers for each text, each with an "
                "index of its own."
            )
        if rows.shape[1] != self.__dict__.setdefault("_vector_length", rows.shape[1]):
            raise ModelError(
                f"The embedding model '{self.name}' returned {rows.shape[1]:,} dimensions, and "
                f"{self._vector_length:,} before."
            )
        if not rows.any():
            raise ModelError(f"The embedding model '{self.name}' returned vectors of zeros only.")
        return normalise_rows(rows)


# Chat models. Each provider has an API that is compatible with OpenAI's "Chat Completions"; ``path`` follows the URL.
LLM_PROVIDERS: dict[str, Provider] = {
    "openai": replace(EMBEDDING_PROVIDERS["openai"], path=""),
    "anthropic": Provider(url="https://api.anthropic.com", path="/v1", key="ANTHROPIC_API_KEY"),
    "cohere": Provider(url="https://api.cohere.ai", path="/compatibility/v1", key="COHERE_API_KEY"),
    "gemini": Provider(url="https://generativelanguage.googleapis.com", path="/v1beta/openai", key="GEMINI_API_KEY"),
    "mistral": Provider(url="https://api.mistral.ai", path="/v1", key="MISTRAL_API_KEY"),
    "ollama": replace(EMBEDDING_PROVIDERS["ollama"], path="/v1"),
    "endpoint": Provider(path="", key=OWN_KEY),  # vLLM, LM Studio, LiteLLM and others
}


# Rerankers


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankProvider(Provider):
    """The rerankers of one provider."""

    texts: str = "documents"  # field of the texts
    limit: str = "top_n"  # field of the number of texts to return; "" for all
    rows: str = "results"  # field of the answer's rows, each with ``index`` and a score; "" if it is a list
    score: str = "relevance_score"  # field of a row
    batch: int = 1000


# Cohere "Rerank API (v2)", Jina "Reranker", Voyage "Rerankers", Text Embeddings Inference "/rerank"; vLLM and Infinity
# take the shape of Jina and Cohere.
RERANK_PROVIDERS: dict[str, RerankProvider] = {
    "cohere": RerankProvider(url="https://api.cohere.com", path="/v2/rerank", key="COHERE_API_KEY"),
    "jina": RerankProvider(
        url="https://api.jina.ai", path="/v1/rerank", key="JINA_API_KEY", fixed={"return_documents": False}
    ),
    "voyage": RerankProvider(
        url="https://api.voyageai.com", path="/v1/rerank", key="VOYAGE_API_KEY", limit="", rows="data"
    ),
    "endpoint": RerankProvider(path="/rerank", key=OWN_KEY),  # vLLM, Infinity, LiteLLM and others
    "tei": RerankProvider(
        path="/rerank",
        key=OWN_KEY,
        has_model=False,
        texts="texts",
        limit="",
        fixed={"truncate": True},
        rows="",
        score="score",
        batch=32,
    ),
}


class EndpointReranker:
    """A reranker behind HTTP, as a cross-encoder. Thread-safe."""

    def __init__(self, model: ModelName, variables: Mapping[str, str], *, any_url: bool = True) -> None:
        """Set the model; keys and URLs come from ``variables``, and ``any_url`` allows a URL that is not among them.

        Raises:
            ConfigurationError: It needs a key or a URL that is not set, or its URL is not allowed.
        """
        self.name = model.text
        self._model, self._provider = model, RERANK_PROVIDERS[model.family]
        self._client = JsonClient(find_endpoint(model, self._provider, variables, any_url=any_url))

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return the model's score of each text.

        Raises:
            ModelError: The endpoint failed, or did not return one number for each text.
        """
        provider, scores = self._provider, list[float]()
        for start in range(0, len(texts), provider.batch):
            batch = [text if text.strip() else "." for text in texts[start : start + provider.batch]]
            body: JsonObject = {"query": query, provider.texts: batch, **provider.fixed}
            body |= {"model": self._model.model} if provider.has_model else {}
            body |= {provider.limit: len(batch)} if provider.limit else {}
            scores += self._read(self._client.post(provider.path, body), len(batch))
        return check_scores(self.name, scores, len(texts))

    def _read(self, answer: JsonValue, count: int) -> list[float]:
        try:
            listed = as_object(answer)[self._provider.rows] if self._provider.rows else answer
            rows = list(map(as_object, as_items(listed)))
            scores = {as_integer(row["index"]): as_number(row[self._provider.score]) for row in rows}
        except (KeyError, TypeError):
            return []
        return [scores[place] for place in range(count)] if scores.keys() == set(range(count)) else []
