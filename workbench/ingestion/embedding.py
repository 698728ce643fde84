"""Vectors for new passages: what the same text had before is used again, the rest goes through the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.models.encoder import Encoder, OnBatch
from workbench.storage.rows import NewPassage
from workbench.storage.vector_store import PassageStore


@dataclass(frozen=True, slots=True)
class EmbeddedPassages:
    """Passages with their vectors (passages, dimensions) and token bits; ``computed`` went through the model."""

    vectors: NDArray[np.float32]
    token_bits: list[bytes | None]
    computed: int


def embed(
    passages: Sequence[NewPassage],
    encoder: Encoder,
    stores: Sequence[PassageStore],
    on_batch: OnBatch | None = None,
) -> EmbeddedPassages:
    """Embed passages; ``stores`` are the indexes of the same model whose vectors may be used again."""
    hashes = [passage.passage_hash for passage in passages]
    known: dict[bytes, tuple[NDArray[np.float32], bytes | None]] = {}
    for store in stores:
        missing = list({key for key in hashes if key not in known})
        if missing:
            known |= store.known_embeddings(missing)
    first_place = {key: place for place, key in reversed(list(enumerate(hashes))) if key not in known}
    places = sorted(first_place.values())
    encoded = encoder.encode([passages[place].embedded_text for place in places], on_batch=on_batch)
    for row, place in enumerate(places):
        known[hashes[place]] = (encoded.vectors[row], encoded.token_bits[row] if encoded.token_bits else None)
    if not passages:
        return EmbeddedPassages(np.zeros((0, encoder.dimensions), dtype=np.float32), [], 0)
    return EmbeddedPassages(
        vectors=np.stack([known[key][0] for key in hashes]),
        token_bits=[known[key][1] for key in hashes],
        computed=len(places),
    )
