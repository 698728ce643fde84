"""An encoder as LlamaIndex's embedding, for its retrievers and stores; import it where it is used, it is slow."""

from __future__ import annotations

import asyncio

from llama_index.core.base.embeddings.base import BaseEmbedding, Embedding
from pydantic import PrivateAttr

from workbench.models.encoder import Encoder

EMBEDDING_BATCH = 256  # texts handed over at once; the encoder cuts its own batches, the better the more it sees


class WorkbenchEmbedding(BaseEmbedding):
    """``BaseEmbedding`` over any encoder; asynchronous calls run in a thread."""

    _encoder: Encoder = PrivateAttr()

    def __init__(self, encoder: Encoder) -> None:
        super().__init__(model_name=encoder.name, embed_batch_size=EMBEDDING_BATCH)
        self._encoder = encoder

    @classmethod
    def class_name(cls) -> str:
        """Return the name LlamaIndex stores."""
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
