"""MaxSim on bits, compared with arithmetic by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from workbench.errors import InvalidInput
from workbench.retrieval.stages.late_interaction import Match, align_tokens, compute_max_sim

ONES = bytes([255] * 16)  # all coordinates positive
ZEROS = bytes(16)  # all negative
HALF = bytes([255] * 8 + [0] * 8)  # the first 64 positive, the others negative
EVEN = np.full(128, 1 / math.sqrt(128), dtype=np.float32)  # same direction as ONES
FIRST = np.eye(128, dtype=np.float32)[0]  # along the first axis: +-1/sqrt(128) against any bits
ROOT = 1 / math.sqrt(128)


def test_a_passage_scores_the_mean_over_query_tokens_of_its_best_token() -> None:
    query = np.stack([EVEN, FIRST])
    scores = compute_max_sim(query, [ONES, ZEROS, HALF, ZEROS + ONES])
    expected = [(1 + ROOT) / 2, (-1 - ROOT) / 2, (0 + ROOT) / 2, (1 + ROOT) / 2]
    np.testing.assert_allclose(scores, expected, atol=1e-6)
    assert scores.dtype == np.float32


def test_weights_turn_the_mean_into_a_weighted_one() -> None:
    scores = compute_max_sim(np.stack([EVEN, FIRST]), [HALF, ONES], np.array([1, 3], dtype=np.float32))
    np.testing.assert_allclose(scores, [(1 * 0 + 3 * ROOT) / 4, (1 * 1 + 3 * ROOT) / 4], atol=1e-6)


def test_it_equals_the_plain_definition_on_random_passages() -> None:
    draw = np.random.default_rng(1)
    query = draw.normal(size=(7, 128)).astype(np.float32)
    query /= np.linalg.norm(query, axis=1, keepdims=True)
    passages = [draw.bytes(16 * count) for count in (1, 30, 254, 3)]
    for passage, score in zip(passages, compute_max_sim(query, passages), strict=True):
        signs = np.unpackbits(np.frombuffer(passage, np.uint8)).reshape(-1, 128) * 2.0 - 1
        assert score == pytest.approx((signs @ query.T / math.sqrt(128)).max(axis=0).mean(), abs=1e-5)


def test_passages_without_tokens_score_nothing_wherever_they_are() -> None:
    query = EVEN[None]
    np.testing.assert_allclose(compute_max_sim(query, [b"", ONES, b"", HALF, b""]), [0, 1, 0, 0, 0], atol=1e-6)
    assert compute_max_sim(query, []).shape == (0,)
    assert compute_max_sim(query, [b""]).tolist() == [0]


def test_a_query_without_tokens_or_weight_scores_nothing() -> None:
    assert compute_max_sim(np.zeros((0, 128), dtype=np.float32), [ONES]).tolist() == [0]
    assert compute_max_sim(EVEN[None], [ONES], np.zeros(1, dtype=np.float32)).tolist() == [0]


def test_the_alignment_names_the_best_token_and_its_similarity() -> None:
    matches = align_tokens(np.stack([EVEN, -EVEN]), ZEROS + HALF + ONES)
    assert [match.token for match in matches] == [2, 0]
    np.testing.assert_allclose([match.similarity for match in matches], [1, 1], atol=1e-6)
    assert align_tokens(EVEN[None], b"") == []
    assert isinstance(matches[0], Match)


def test_torn_bits_and_wrong_weights_are_refused() -> None:
    with pytest.raises(InvalidInput, match="16 bytes per token"):
        compute_max_sim(EVEN[None], [ONES[:-1]])
    with pytest.raises(InvalidInput, match="Expected 1 weights, one per query token, not 2"):
        compute_max_sim(EVEN[None], [ONES], np.ones(2, dtype=np.float32))
