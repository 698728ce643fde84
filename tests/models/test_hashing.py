"""The model without weights: neighbours can be predicted from the words."""

from __future__ import annotations

import math

import numpy as np
import pytest

from workbench.models.hashing import HashEncoder
from workbench.retrieval.stages.late_interaction import compute_max_sim

HASH = HashEncoder()


def test_similarity_is_the_cosine_of_the_word_counts() -> None:
    vectors = HASH.encode(["apple pear", "Apple plum", "apple apple apple apple pear", "kiwi"]).vectors
    query = HASH.encode_query("apple").vector
    expected = [1 / math.sqrt(2), 1 / math.sqrt(2), 2 / math.sqrt(4 + 1), 0]  # a word counts by its root: 4 times is 2
    np.testing.assert_allclose(vectors @ query, expected, atol=1e-6)


def test_the_text_that_shares_most_words_is_nearest_among_many() -> None:
    texts = [f"item{number} of group{number % 50} in box{number % 7}" for number in range(1000)]
    vectors = HASH.encode(texts).vectors
    for amount in (3, 417, 999):
        query = f"box{amount % 7} item{amount} group{amount % 50}"
        assert (vectors @ HASH.encode_query(query).vector).argmax() == amount


def test_a_shared_word_has_max_sim_one_and_others_about_none() -> None:
    query = HASH.encode_query("apple")
    assert query.token_axes is not None
    same, other = compute_max_sim(query.token_axes, HASH.encode(["an apple", "kiwi"]).token_bits or [])
    assert same == pytest.approx(1)
    assert abs(other) < 0.4


def test_any_text_has_a_vector_of_length_one() -> None:
    vectors = HASH.encode(["", " \n", "🦮", "a\0b", "\ud800", "'; --", "x " * 5000]).vectors
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)


def test_tokens_are_words_and_marks_and_long_texts_are_cut_only_when_encoded() -> None:
    assert HASH.token_spans("Is it 4?") == [(0, 2), (3, 5), (6, 7), (7, 8)]
    text = "word " * 1000
    assert len(HASH.token_spans(text)) == 1000
    assert [len(bits) for bits in HASH.encode([text]).token_bits or []] == [16 * HASH.max_tokens]


def test_batches_are_counted() -> None:
    sizes: list[int] = []
    HASH.encode(["text"] * 130, on_batch=sizes.append)
    assert sizes == [64, 64, 2]
