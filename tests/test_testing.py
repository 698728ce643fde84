"""The conformance suites pass our own objects and name the rules that broken ones break; the fixture fails a test."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nltk.pathsec import open as open_strictly

from tests.evals.conftest import lines
from tests.ingestion.tokens import chunk
from workbench import Workbench
from workbench.errors import InvalidInput
from workbench.ingestion.chunking import CHUNKERS, ChunkInput
from workbench.models.encoder import EncodedTexts
from workbench.models.hashing import HashEncoder
from workbench.models.minilm import MiniLMEncoder
from workbench.testing import ConformanceError, check_chunker, check_encoder, check_strategy

QUESTIONS = ["Why do cats purr?", "Who guards the house?"]
DOCUMENTS = {"cats.md": "# Cats\n\nCats purr when content.\n", "dogs.md": "# Dogs\n\nDogs guard the house.\n"}


def find(question: str, limit: int) -> list[tuple[str, str, float]]:
    """A retriever that follows all rules."""
    hits = [("cats", "Cats purr when content.", 0.9), ("dogs", "Dogs guard the house.", 0.4)]
    return hits[:limit]


@pytest.mark.parametrize("strategy", ["keyword", "vector", "hybrid", "rerank", "mmr"])
def test_our_own_strategies_keep_the_rules(wb: Workbench, folder: Callable[..., Path], strategy: str) -> None:
    wb.ingest(folder(DOCUMENTS))
    check_strategy(wb.query_engine(strategy), QUESTIONS)


def test_a_function_that_keeps_the_rules_passes() -> None:
    check_strategy(find, QUESTIONS)


CALLS: list[str] = []


def count_calls(question: str, limit: int) -> list[tuple[str, str, float]]:
    """Return something else each time."""
    CALLS.append(question)
    return [(str(len(CALLS)), "text", 1.0)]


def fail_on_signs(question: str, limit: int) -> object:
    """Fail on a question without letters."""
    if not question[0].isalpha():
        raise KeyError(question)
    return find(question, limit)


@pytest.mark.parametrize(
    ("retriever", "fault"),
    [
        (lambda question, limit: [], "no hits, though the question has some"),
        (lambda question, limit: [*find(question, limit)] * 2, "2 hits are repeated"),
        (lambda question, limit: [("a", "x", 0.1), ("b", "y", 0.7)][:limit], "scores rise with rank"),
        (lambda question, limit: [("a", "x", 0.1), ("b", "y", None)][:limit], "1 hits have no score"),
        (lambda question, limit: find(question, 2), "2 hits for a limit of 1"),
        (lambda question, limit: [3.5], r"1 unreadable hits \(the first: it is a float\)"),
        (fail_on_signs, r"\?: it failed with KeyError"),
        (count_calls, "asked again, the same question returns other hits"),
    ],
    ids=["none", "repeated", "rising", "unscored", "too many", "unreadable", "failing", "changing"],
)
def test_a_broken_retriever_is_named(retriever: object, fault: str) -> None:
    with pytest.raises(ConformanceError, match=fault):
        check_strategy(retriever, QUESTIONS)


def test_what_cannot_be_checked_is_one_sentence() -> None:
    with pytest.raises(InvalidInput, match="at least one question"):
        check_strategy(find, [])
    with pytest.raises(InvalidInput, match="Invalid chunker 3: pass"):
        check_chunker(3)


def test_our_own_encoders_keep_the_rules(test_home: Path) -> None:
    check_encoder(HashEncoder())
    check_encoder(MiniLMEncoder(test_home / "models"))


class Broken(HashEncoder):
    """An encoder with one fault."""

    def __init__(self, fault: str) -> None:
        super().__init__()
        self._fault = fault

    def encode(self, texts: Sequence[str], *, on_batch: Any = None) -> EncodedTexts:
        """Encode with the fault."""
        good = super().encode(texts, on_batch=None if self._fault == "silent" else on_batch)
        changes: dict[str, Callable[[], np.ndarray]] = {
            "long": lambda: good.vectors * 2,
            "short": lambda: good.vectors[:-1],
            "double": lambda: good.vectors.astype(np.float64),
            "sorted": lambda: good.vectors[np.argsort(list(texts))],
        }
        bits = None if self._fault == "no bits" else good.token_bits
        return EncodedTexts(changes.get(self._fault, lambda: good.vectors)(), bits)

    def reads(self, text: str) -> float:
        """Return a share, or a number above 1."""
        return 7.0 if self._fault == "reads" else super().reads(text)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("long", "a vector does not have length 1"),
        ("short", r"have the shape \(2, 512\) instead of \(3, 512\)"),
        ("double", "vectors are float64 instead of float32"),
        ("sorted", "the vector of a text depends on its order or batch"),
        ("silent", "on_batch counted 0 of 3 texts"),
        ("no bits", "token vectors are not one bytes object per text"),
        ("reads", "reads returns 7.0"),
    ],
)
def test_a_broken_encoder_is_named(fault: str, message: str) -> None:
    with pytest.raises(ConformanceError, match=message):
        check_encoder(Broken(fault))


@pytest.mark.parametrize("name", CHUNKERS)
def test_our_own_chunkers_keep_the_rules(name: str) -> None:
    encoder = HashEncoder()
    options = {"embed": lambda texts: encoder.encode(texts).vectors} if CHUNKERS[name].needs_embed else {}

    def cut(text: str) -> list[tuple[int, int]]:
        passages = chunk(name, ChunkInput("Rivers", text), encoder.token_spans, options)
        return [(passage.start, passage.end) for passage in passages]

    check_chunker(cut)


def test_the_sentence_splitter_of_llamaindex_keeps_the_rules() -> None:
    from llama_index.core.node_parser import SentenceSplitter

    check_chunker(SentenceSplitter(chunk_size=100, chunk_overlap=0))


@pytest.mark.parametrize(
    ("cut", "fault"),
    [
        (lambda text: [text[: len(text) // 2]], "words are in no passage"),
        (lambda text: [text.upper()], "a passage is not part of the text: '# RIVERS"),
        (lambda text: [(0, len(text)), (3, 3)], "a passage is blank"),
        (lambda text: [(5, len(text)), (0, 5)], "not in the order of the text"),
        (lambda text: [(0, len(text) + 1)], "a span is outside the text"),
        (lambda text: [text or "none"] + ([] if text.strip() else ["words"]), "not part of the text: 'words'"),
        (lambda text: 1 / 0, r"it failed \(ZeroDivisionError: division by zero\)"),
    ],
    ids=["lost", "changed", "blank", "order", "outside", "invented", "failing"],
)
def test_a_broken_chunker_is_named(cut: object, fault: str) -> None:
    with pytest.raises(ConformanceError, match=fault):
        check_chunker(cut)


def test_a_long_passage_is_named() -> None:
    with pytest.raises(ConformanceError, match="characters, more than 100"):
        check_chunker(lambda text: [text], max_chars=100)


FILE = """
[test_sets.animals]
from = "animals"

[experiments.nightly]
test_set = "animals"
strategies = ["keyword"]
metrics = ["hit@1"]

[[experiments.nightly.bars]]
min = {least}
"""


def test_the_fixture_fails_a_test_below_its_bar(database_url: str, tmp_path: Path, folder: Callable[..., Path]) -> None:
    corpus = lines([{"_id": "cats", "title": "Cats", "text": "Cats purr."}, {"_id": "x", "title": "X", "text": "No."}])
    queries = lines([{"_id": "q1", "text": "purr?"}, {"_id": "q2", "text": "unknown?"}])
    folder({"corpus.jsonl": corpus, "queries.jsonl": queries, "qrels.tsv": "q1\tcats\t1\nq2\tx\t1"}, "animals")
    (tmp_path / "low.toml").write_text(FILE.format(least=0.5))
    (tmp_path / "high.toml").write_text(FILE.format(least=0.75))
    (tmp_path / "test_it.py").write_text(
        "def test_low(workbench_check):\n    workbench_check('low.toml', apply=True)\n\n"
        "def test_high(workbench_check):\n    workbench_check('high.toml')\n"
    )
    own = {"WORKBENCH_HOME": str(tmp_path), "WORKBENCH_DATABASE_URL": database_url, "WORKBENCH_EMBEDDING_MODEL": "hash"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:nbval", "-p", "no:cacheprovider", "test_it.py"]
    ran = subprocess.run(command, cwd=tmp_path, env=os.environ | own, capture_output=True, text=True, check=False)
    assert "1 failed, 1 passed" in ran.stdout, ran.stdout + ran.stderr
    assert "nightly, keyword, hit@1, at least 0.75: 0.5000 is below 0.75" in ran.stdout


def test_data_that_uv_linked_are_a_sentence_with_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nltk.data.path", [str(tmp_path)])
    words = tmp_path / "words"
    words.write_text("the", encoding="utf-8")
    os.link(words, tmp_path / "cached")

    def cut(text: str) -> list[str]:
        return open_strictly(str(words)).read().split()

    with pytest.raises(
        ConformanceError, match="run: uv pip install --link-mode copy --reinstall-package llama-index-c"
    ):
        check_chunker(cut)
