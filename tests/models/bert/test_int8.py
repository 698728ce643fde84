"""Passages in 8 bits: close to full precision, independent of their batch, chosen by a stored trial."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from onnxruntime import InferenceSession

from workbench.errors import Cancelled
from workbench.models.bert.graph import Precision
from workbench.models.bert.session import choose_precision, load_precision_choice, machine_key
from workbench.models.minilm import MINILM, MiniLMEncoder

pytestmark = pytest.mark.slow

TEXTS = (
    "Passages are cut in the model's own tokens, so that nothing is truncated unseen. " * 9,
    "def reciprocal_rank(ranks):\n    return 1 / min(ranks) if ranks else 0.0",
    "The licence costs 40 euros a year.",
    "",
)


def test_vectors_and_token_bits_are_near_those_of_the_full_model(
    minilm: MiniLMEncoder, minilm_int8: MiniLMEncoder
) -> None:
    full, small = minilm.encode(TEXTS), minilm_int8.encode(TEXTS)
    assert ((full.vectors * small.vectors).sum(axis=1) > (0.997, 0.997, 0.996, 0.98)).all()  # no words, no anchor
    assert not np.allclose(full.vectors, small.vectors, atol=1e-5)
    for ours, theirs in zip(full.token_bits or [], small.token_bits or [], strict=True):
        assert len(ours) == len(theirs)
        different = np.unpackbits(np.frombuffer(ours, np.uint8) ^ np.frombuffer(theirs, np.uint8))
        assert different.mean() < 0.025 if len(ours) else True


def test_a_text_has_the_same_vector_alone_and_in_company(minilm_int8: MiniLMEncoder) -> None:
    together = minilm_int8.encode(TEXTS * 3)
    for place, text in enumerate(TEXTS * 3):
        alone = minilm_int8.encode([text])
        np.testing.assert_array_equal(together.vectors[place], alone.vectors[0])
        assert together.token_bits is not None
        assert alone.token_bits == [together.token_bits[place]]


def test_queries_stay_in_full_precision(minilm: MiniLMEncoder, minilm_int8: MiniLMEncoder) -> None:
    ours, theirs = (encoder.encode_query("Which licence do I need?") for encoder in (minilm, minilm_int8))
    np.testing.assert_allclose(ours.vector, theirs.vector, atol=1e-6)


def test_a_question_finds_passages_of_either_kind(minilm: MiniLMEncoder, minilm_int8: MiniLMEncoder) -> None:
    query = minilm.encode_query("What is the price of a licence?").vector
    mixed = np.concatenate([minilm.encode(TEXTS[:2]).vectors, minilm_int8.encode(TEXTS[2:3]).vectors])
    assert (mixed @ query).argmax() == 2


def test_every_text_is_reported_and_the_caller_can_stop(minilm_int8: MiniLMEncoder) -> None:
    counts: list[int] = []
    minilm_int8.encode(TEXTS * 3, on_batch=counts.append)
    assert sum(counts) == len(TEXTS * 3)

    def stop(count: int) -> None:
        raise Cancelled(f"stopped after {count}")

    with pytest.raises(Cancelled):
        minilm_int8.encode(TEXTS * 3, on_batch=stop)
    assert minilm_int8.encode(TEXTS).vectors.shape == (4, 384)


def test_the_trial_s_outcome_is_remembered_for_this_machine(models_dir: Path, tmp_path: Path) -> None:
    opened: list[Precision] = []

    def open_graph(precision: Precision) -> InferenceSession:
        opened.append(precision)
        return MINILM.published.open_session(models_dir, precision, 1)

    first = choose_precision("minilm", tmp_path, open_graph)
    assert opened == ["float", "int8"]
    stored = json.loads((tmp_path / "minilm-passages.json").read_text())
    assert (stored["precision"], stored["machine"]) == (first, machine_key())
    assert stored["cosine"] > 0.97
    assert choose_precision("minilm", tmp_path, open_graph) == first
    told = load_precision_choice("minilm", tmp_path)
    assert told is not None and told.precision == first and f"{told.times:g} times as fast here" in told.sentence
    assert opened == ["float", "int8"]


@pytest.mark.parametrize("left", ["half a fi", "[]", '{"machine": "another"}'])
def test_a_choice_of_another_machine_or_a_damaged_one_is_made_again(
    models_dir: Path, tmp_path: Path, left: str
) -> None:
    (tmp_path / "minilm-passages.json").write_text(left)
    chosen = choose_precision("minilm", tmp_path, lambda kind: MINILM.published.open_session(models_dir, kind, 1))
    assert json.loads((tmp_path / "minilm-passages.json").read_text())["precision"] == chosen


def test_integers_that_are_no_faster_are_not_taken(models_dir: Path, tmp_path: Path) -> None:
    full = MINILM.published.open_session(models_dir, "float", 1)
    assert choose_precision("minilm", tmp_path, lambda kind: full) == "float"
