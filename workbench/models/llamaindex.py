"""LlamaIndex's embeddings as encoders: packages installed by an extra, and the user's own objects by dotted path."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Sequence
from threading import Lock
from typing import cast

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding, Embedding
from pydantic import PrivateAttr

from workbench.errors import ConfigurationError, ModelError
from workbench.models.encoder import (
    EncodedQuery,
    Encoder,
    FloatArray,
    PlainEncoder,
    normalise_rows,
)
from workbench.models.model_names import MAX_TOKENS, ModelName, load_object

PACKAGES = {  # by family: the class in llama_index.embeddings, and what to install with pip
    "huggingface": ("HuggingFaceEmbedding", "'rag-workbench[huggingface]'"),
    "fastembed": ("FastEmbedEmbedding", "llama-index-embeddings-fastembed"),
}


def load_package_encoder(model: ModelName) -> FrameworkEncoder:
    """Return a model from a row of PACKAGES.

    Raises:
        ConfigurationError: The package is not installed; the message names what to install.
    """
    class_name, install = PACKAGES[model.family]
    try:
        module = importlib.import_module(f"llama_index.embeddings.{model.family}")
    except ImportError as error:
        raise ConfigurationError(
            f"The embedding model '{model.text}' needs a package that is not installed; run: pip install {install}."
        ) from error
    create = getattr(module, class_name)
    query, passage = model.prefixes
    own: dict[str, str] = {}
    if model.family == "huggingface":  # the class would add its own prefixes
        own = {"query_instruction": query, "text_instruction": passage}
        query = passage = ""
    arguments = {"model_name": model.model, **{key: value for key, value in own.items() if value}}
    return FrameworkEncoder(
        model.text, lambda: create(**arguments), int(model.read_number(MAX_TOKENS)), (query, passage)
    )


def load_own_encoder(model: ModelName) -> Encoder:
    """Return the encoder of a user: a LlamaIndex ``BaseEmbedding`` or an ``Encoder``. Raises ConfigurationError."""
    found = load_object(
        model.text,
        model.model,
        lambda one: isinstance(one, BaseEmbedding) or hasattr(one, "encode_query"),
        "a LlamaIndex BaseEmbedding or an Encoder of the workbench",
    )
    if not isinstance(found, BaseEmbedding):
        return cast("Encoder", found)
    return FrameworkEncoder(model.text, lambda: found, int(model.read_number(MAX_TOKENS)), model.prefixes)


class FrameworkEncoder(PlainEncoder):
    """Any LlamaIndex embedding as an encoder without token vectors.

    The embedding is created at first use, and its dimensions are found by embedding a short text.
    """

    def __init__(
        self, name: str, create: Callable[[], BaseEmbedding], max_tokens: int, prefixes: tuple[str, str] = ("", "")
    ) -> None:
        """Set ``create``, which returns the ``BaseEmbedding``, and the prefixes of queries and passages."""
        self.name = name
        self.max_tokens = max_tokens
        self._create, self._prefixes = create, prefixes
        self._lock = Lock()
        self._embedding: BaseEmbedding | None = None

    def encode_batch(self, texts: Sequence[str]) -> FloatArray:
        """Encode passages; a blank text is sent as a full stop, because endpoints reject it."""
        sent = [self._prefixes[1] + (text if text.strip() else ".") for text in texts]
        return self._vectors("get_text_embedding_batch", sent)

    def encode_query(self, text: str) -> EncodedQuery:
        """Encode a query, with the model's query instruction if it has one."""
        return EncodedQuery(
            self._vectors("get_query_embedding", self._prefixes[0] + (text if text.strip() else "."))[0]
        )

    def _vectors(self, method: str, argument: str | list[str]) -> FloatArray:
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
