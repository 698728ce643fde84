"""The built-in model: equal to an independent implementation, in order, in parallel, on any text."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.models.numpy_bert import REFERENCE, NumpyBert
from workbench.errors import Cancelled
from workbench.models.bert.encoder import BATCH_TOKENS, load_token_axes
from workbench.models.minilm import MINILM, MiniLMEncoder
from workbench.retrieval.stages.late_interaction import compute_max_sim

pytestmark = pytest.mark.slow

LONG = "Retrieval finds the passages that answer a question. " * 120  # 1080 tokens
MIXED = [LONG, "", "one", "a longer text about the ranking of passages", "🦮", "x " * 300, "two words"]


def test_equals_the_stored_reference_embedding(minilm: MiniLMEncoder) -> None:
    rows = json.loads(REFERENCE.read_text(encoding="utf-8"))
    found = minilm.encode([row["text"] for row in rows]).vectors
    np.testing.assert_allclose(found, [row["vector"] for row in rows], atol=1e-4)


@pytest.mark.parametrize("text", [LONG, "", "Größe 🦮 of the\ttext"], ids=["cut", "empty", "emoji"])
def test_equals_bert_computed_in_numpy(minilm: MiniLMEncoder, numpy_bert: NumpyBert, text: str) -> None:
    (batch,) = minilm.batches([text])
    np.testing.assert_allclose(batch.vectors[0], numpy_bert.embedding(text), atol=1e-4)
    np.testing.assert_allclose(batch.token_vectors[0], numpy_bert.hidden(text)[1:-1], atol=1e-4)


def test_gives_the_similarities_that_the_model_s_makers_publish(minilm: MiniLMEncoder) -> None:
    # https://sbert.net, "Quickstart", Sentence Transformer
    sentences = ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]
    vectors = minilm.encode(sentences).vectors
    published = [[1.0, 0.6660, 0.1046], [0.6660, 1.0, 0.1411], [0.1046, 0.1411, 1.0]]
    np.testing.assert_allclose(vectors @ vectors.T, published, atol=1e-4)


def test_texts_of_all_lengths_keep_their_order_and_do_not_touch_each_other(minilm: MiniLMEncoder) -> None:
    together = minilm.encode(MIXED * 3)
    for place, text in enumerate(MIXED * 3):
        np.testing.assert_allclose(together.vectors[place], minilm.encode([text]).vectors[0], atol=1e-5)
    assert together.token_bits is not None
    counts = [min(len(minilm.token_spans(text)), minilm.max_tokens) for text in MIXED * 3]
    assert [len(bits) for bits in together.token_bits] == [16 * count for count in counts]


def test_token_spans_cover_a_long_text_and_name_its_words(minilm: MiniLMEncoder) -> None:
    spans = minilm.token_spans(LONG)
    assert len(spans) > 4 * minilm.max_tokens
    assert LONG[slice(*spans[-2])] == "question"
    assert spans == sorted(spans)
    text = "🦮 Größe, 東京"
    assert [text[start:end] for start, end in minilm.token_spans(text)] == ["🦮", "Gr", "ö", "ße", ",", "東", "京"]


def test_half_a_character_and_nul_are_encoded_with_their_places_kept(minilm: MiniLMEncoder) -> None:
    text = "a\ud83e b\0c"
    assert np.isfinite(minilm.encode([text]).vectors).all()
    assert all(text[start:end].strip() for start, end in minilm.token_spans(text))
    assert minilm.token_spans(text)[0] == (0, 1)


def test_a_text_that_names_special_tokens_keeps_one_vector_a_token(minilm: MiniLMEncoder) -> None:
    query = minilm.encode_query("[CLS] and [SEP]")
    assert query.token_axes is not None
    assert len(query.token_spans) == len(query.token_axes) == 3


def test_a_query_has_its_vector_and_one_direction_for_each_token(minilm: MiniLMEncoder) -> None:
    query = minilm.encode_query("late interaction")
    assert query.token_axes is not None
    assert (query.vector.shape, query.token_axes.shape, query.token_axes.dtype) == ((384,), (2, 128), np.float32)
    np.testing.assert_allclose(np.linalg.norm(query.token_axes, axis=1), 1, rtol=1e-5)
    assert query.token_spans == ((0, 4), (5, 16))
    np.testing.assert_allclose(query.vector, minilm.encode(["late interaction"]).vectors[0], atol=1e-6)


def test_an_empty_query_has_a_vector_and_no_tokens(minilm: MiniLMEncoder) -> None:
    query = minilm.encode_query("")
    assert query.token_axes is not None
    assert query.token_axes.shape == (0, 128)
    assert np.linalg.norm(query.vector) == pytest.approx(1)


def test_bits_are_the_signs_of_the_centred_axes(minilm: MiniLMEncoder) -> None:
    (batch,) = minilm.batches(["bits keep the sign"])
    axes = load_token_axes()
    coordinates = (batch.token_vectors[0] - axes.mean) @ axes.axes.T
    (bits,) = minilm.encode(["bits keep the sign"]).token_bits or []
    clear = np.abs(coordinates) > 1e-4
    unpacked = np.unpackbits(np.frombuffer(bits, dtype=np.uint8)).reshape(-1, 128) == 1
    np.testing.assert_array_equal(unpacked[clear], (coordinates > 0)[clear])


def test_late_interaction_prefers_the_passage_that_answers(minilm: MiniLMEncoder) -> None:
    answers = "The licence costs 40 euros a year.", "A recipe for soup with leeks.", "Trains to the coast leave hourly."
    bits = minilm.encode(answers).token_bits or []
    query = minilm.encode_query("What is the price of a licence?")
    assert query.token_axes is not None
    scores = compute_max_sim(query.token_axes, bits)
    assert scores.argmax() == 0
    assert scores[0] > 1.3 * scores[1:].max()


def test_threads_get_what_one_caller_gets(minilm: MiniLMEncoder) -> None:
    texts = [f"text number {number} " * (number + 1) for number in range(12)]
    alone = [minilm.encode([text]).vectors[0] for text in texts]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda text: minilm.encode([text]).vectors[0], texts))
    np.testing.assert_allclose(together, alone, atol=1e-6)


def test_threads_that_start_together_open_one_session(models_dir: Path, minilm: MiniLMEncoder) -> None:
    fresh = MiniLMEncoder(models_dir, threads=1, passages="float")
    start = Barrier(4)

    def encode(_: int) -> tuple[int, NDArray[np.float32]]:
        start.wait()
        session = fresh._passes.queries  # pyright: ignore[reportPrivateUsage]
        return id(session), fresh.encode_query("same").vector

    with ThreadPoolExecutor(4) as pool:
        sessions, vectors = zip(*pool.map(encode, range(8)), strict=True)
    assert len(set(sessions)) == 1
    np.testing.assert_allclose(vectors, [minilm.encode_query("same").vector] * 8, atol=1e-6)


def test_every_batch_is_reported_and_the_caller_can_stop(minilm: MiniLMEncoder) -> None:
    texts = ["word " * 200] * (2 * BATCH_TOKENS // 200)
    sizes: list[int] = []
    minilm.encode(texts, on_batch=sizes.append)
    batches = [count for count in sizes if count]
    assert sum(batches) == len(texts)
    assert len(batches) > 1

    def stop(count: int) -> None:
        if count:
            raise Cancelled(f"stopped after {count}")

    with pytest.raises(Cancelled, match=f"stopped after {batches[0]}"):
        minilm.encode(texts, on_batch=stop)


def test_the_caller_can_stop_in_the_middle_of_a_batch(models_dir: Path, minilm: MiniLMEncoder) -> None:
    one_batch = ["word " * 240] * (BATCH_TOKENS // 242)
    alone = MiniLMEncoder(models_dir, threads=1, passages="float")

    def stop() -> None:
        raise Cancelled("stopped before the batch was done")

    with pytest.raises(Cancelled, match="before the batch was done"):
        list(alone.batches(one_batch, stop))
    np.testing.assert_allclose(alone.encode(["again"]).vectors, minilm.encode(["again"]).vectors, atol=1e-6)


def test_no_texts_give_no_vectors(minilm: MiniLMEncoder) -> None:
    encoded = minilm.encode([])
    assert (encoded.vectors.shape, encoded.token_bits) == ((0, 384), [])


def test_a_damaged_graph_is_built_again(tmp_path: Path, minilm: MiniLMEncoder) -> None:
    MINILM.published.graph_path(tmp_path, "float").write_bytes(b"half a file")
    vector = MiniLMEncoder(tmp_path).encode_query("again").vector
    np.testing.assert_allclose(vector, minilm.encode_query("again").vector, atol=1e-6)
