"""LlamaIndex can use any encoder as one of its embeddings."""

from __future__ import annotations

import asyncio

import numpy as np

from workbench.models.hashing import HashEncoder
from workbench.models.llamaindex import WorkbenchEmbedding


def test_the_framework_gets_the_encoder_s_vectors() -> None:
    embedding = WorkbenchEmbedding(HashEncoder())
    texts = [f"text number {number}" for number in range(300)]
    np.testing.assert_allclose(embedding.get_text_embedding_batch(texts), HashEncoder().encode(texts).vectors)
    np.testing.assert_allclose(embedding.get_query_embedding("query"), HashEncoder().encode_query("query").vector)
    assert embedding.model_name == "hash"


def test_asynchronous_calls_give_the_same() -> None:
    embedding = WorkbenchEmbedding(HashEncoder())
    assert asyncio.run(embedding.aget_query_embedding("query")) == embedding.get_query_embedding("query")
    assert asyncio.run(embedding.aget_text_embedding_batch(["a", "b"])) == embedding.get_text_embedding_batch(
        ["a", "b"]
    )
