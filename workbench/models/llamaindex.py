"""LlamaIndex's embedding packages as encoders: hosted, local and downloaded models, each behind an extra."""

from __future__ import annotations

import asyncio
import importlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Lock

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding, Embedding
from pydantic import PrivateAttr

from workbench.errors import ConfigurationError, ModelError
from workbench.models.encoder import EncodedQuery, EncodedTexts, Encoder, FloatArray, OnBatch, normalise_rows
from workbench.types.results import Span

TOKEN = re.compile(r"\w{1,6}|[^\w\s]")  # approximates subwords, since the model's tokenizer may not be accessible
DEFAULT_MAX_TOKENS = 384  # such packages rarely state the limit; most models read 512 of their own tokens
FRAMEWORK_BATCH_SIZE = 32


@dataclass(frozen=True, slots=True)
class ModelFamily:
    """A family of models."""

    module: str  # to import
    class_name: str
    extra: str  # that installs the module
    arguments: Callable[[str], dict[str, str | int]]  # of the class, by the model's name


FRAMEWORK_MODELS: dict[str, ModelFamily] = {
    "huggingface": ModelFamily(
        "llama_index.embeddings.huggingface", "HuggingFaceEmbedding", "huggingface", lambda model: {"model_name": model}
    ),
    # The package itself reads OPENAI_API_BASE and OPENAI_API_KEY.
    "openai": ModelFamily(
        "llama_index.embeddings.openai",
        "OpenAIEmbedding",
        "llm",
        lambda model: {"model_name": model, "max_retries": 2},
    ),
    "ollama": ModelFamily(
        "llama_index.embeddings.ollama", "OllamaEmbedding", "ollama", lambda model: {"model_name": model}
    ),
}


def load_framework_encoder(name: str, family: str, model: str) -> FrameworkEncoder:
    """Return ``model`` of ``family`` (a key of FRAMEWORK_MODELS); ``name`` is its setting.

    Raises:
        ConfigurationError: The package is not installed; the message names the extra.
    """
    entry = FRAMEWORK_MODELS[family]
    try:
        module = importlib.import_module(entry.module)
    except ImportError as error:
        raise ConfigurationError(
            f"The embedding model '{name}' needs a package that is not installed; "
            f"run: pip install 'rag-workbench[{entry.extra}]'."
        ) from error
    create = getattr(module, entry.class_name)
    return FrameworkEncoder(name, lambda: create(**entry.arguments(model)))


class FrameworkEncoder:
    """Any LlamaIndex embedding as an encoder; it has no token vectors, so late interaction is skipped.

    The embedding is created at first use, and its dimensions are found by embedding a short text.
    """

    has_token_vectors = False
    languages: frozenset[str] | None = None

    def __init__(self, name: str, create: Callable[[], BaseEmbedding], max_tokens: int = DEFAULT_MAX_TOKENS) -> None:
        """Set ``create``, which returns the ``BaseEmbedding``."""
        self.name = name
        self.max_tokens = max_tokens
        self._create = create
        self._lock = Lock()
        self._embedding: BaseEmbedding | None = None

    @property
    def dimensions(self) -> int:
        """Length of a vector, found by asking the model once."""
        return self._model_dimensions

    @cached_property
    def _model_dimensions(self) -> int:
        return self._vectors("get_text_embedding", "dimensions").shape[1]

    def encode(self, texts: Sequence[str], *, on_batch: OnBatch | None = None) -> EncodedTexts:
        """Encode passages in batches of 32; a blank text is sent as a full stop, because endpoints reject it."""
        rows: list[FloatArray] = []
        for start in range(0, len(texts), FRAMEWORK_BATCH_SIZE):
            batch = [text if text.strip() else "." for text in texts[start : start + FRAMEWORK_BATCH_SIZE]]
            rows.append(self._vectors("get_text_embedding_batch", batch))
            if on_batch is not None:
                on_batch(len(batch))
        return EncodedTexts(np.concatenate(rows) if rows else np.zeros((0, self.dimensions), dtype=np.float32))

    def encode_query(self, text: str) -> EncodedQuery:
        """Encode a query, with the model's query instruction if it has one."""
        return EncodedQuery(self._vectors("get_query_embedding", text if text.strip() else ".")[0])

    def token_spans(self, text: str) -> list[Span]:
        """Return pieces of at most six letters: an upper estimate of the model's own tokens."""
        return [match.span() for match in TOKEN.finditer(text)]

    def reads(self, text: str) -> float:
        """Return 1: these packages rarely expose their tokenizer."""
        return 1.0

    def _vectors(self, method: str, argument: str | list[str]) -> FloatArray:
        """Return one vector of length 1 for each text.

        Raises:
            ModelError: The model returned anything else.
        """
        answer = self._ask(method, argument)
        lists, count = ([answer], 1) if isinstance(argument, str) else (answer, len(argument))
        if len(lists) != count or len({np.size(row) for row in lists}) != 1:
            raise ModelError(f"The embedding model '{self.name}' did not return one vector for each text.")
        rows = np.asarray(lists, dtype=np.float32)
        return normalise_rows(rows)

    def _ask(self, method: str, argument: str | list[str]) -> list[float] | list[list[float]]:
        try:
            with self._lock:
                embedding = self._embedding = self._embedding or self._create()
            return getattr(embedding, method)(argument)
        except Exception as error:  # each package has its own errors
            raise ModelError(
                f"The embedding model '{self.name}' failed ({type(error).__name__}: {error}); "
                "check WORKBENCH_EMBEDDING_MODEL and that its endpoint answers."
            ) from error


# An encoder as a LlamaIndex embedding

EMBEDDING_BATCH_SIZE = 256  # texts per call; the encoder makes its own batches, better ones from more texts


class WorkbenchEmbedding(BaseEmbedding):
    """``BaseEmbedding`` for any encoder; asynchronous calls run in a thread."""

    _encoder: Encoder = PrivateAttr()

    def __init__(self, encoder: Encoder) -> None:
        super().__init__(model_name=encoder.name, embed_batch_size=EMBEDDING_BATCH_SIZE)
        self._encoder = encoder

    @classmethod
    def class_name(cls) -> str:
        """Return the name that LlamaIndex stores."""
        return "WorkbenchEmbedding"

    def _get_query_embedding(self, query: str) -> Embedding:
        return self._encoder.encode_query(query).vector.tolist()

    def _get_text_embedding(self, text: str) -> Embedding:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[Embedding]:
        return self._encoder.encode(texts).vectors.tolist()

    async def _aget_query_embedding(self, query: str) -> Embedding:
        return await asyncio.to_thread(self._get_query_embedding, query)

    async def _aget_text_embedding(self, text: str) -> Embedding:
        return await asyncio.to_thread(self._get_text_embedding, text)

    async def _aget_text_embeddings(self, texts: list[str]) -> list[Embedding]:
        return await asyncio.to_thread(self._get_text_embeddings, texts)
