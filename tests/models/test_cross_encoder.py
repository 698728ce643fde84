"""Cross-encoders: a real ONNX graph in a local folder, and the messages if something is missing."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import onnx
import pytest
from onnx import TensorProto, helper
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from workbench import Workbench
from workbench.errors import ConfigurationError, ModelError
from workbench.models.cross_encoder import FrameworkCrossEncoder, load_cross_encoder

pytestmark = pytest.mark.slow

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "."]
DOCS = {"cats.md": "Cats purr softly.", "dogs.md": "Dogs bark at cats.", "fish.md": "Fish swim."}


@pytest.fixture
def overlap_model(tmp_path: Path) -> Path:
    """A model that counts the question's words in the passage, as a sum over pairs of tokens."""
    words = sorted({word for text in DOCS.values() for word in text.lower().strip(".").split()})
    vocabulary = {word: place for place, word in enumerate([*SPECIAL, *words])}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = Lowercase(), Whitespace()  # pyright: ignore
    tokenizer.post_processor = TemplateProcessing(  # pyright: ignore
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    node = helper.make_node
    nodes = [
        node("Unsqueeze", ["input_ids", "two"], ["columns"]),
        node("Unsqueeze", ["input_ids", "one"], ["rows"]),
        node("Equal", ["columns", "rows"], ["same"]),
        node("Greater", ["input_ids", "last_special"], ["is_word"]),
        node("Cast", ["is_word"], ["word"], to=TensorProto.INT64),
        node("Sub", ["unit", "token_type_ids"], ["first"]),
        node("Mul", ["word", "first"], ["asked"]),
        node("Mul", ["word", "token_type_ids"], ["told"]),
        node("Unsqueeze", ["asked", "two"], ["asked_columns"]),
        node("Unsqueeze", ["told", "one"], ["told_rows"]),
        node("Cast", ["same"], ["equal"], to=TensorProto.INT64),
        node("Mul", ["equal", "asked_columns"], ["half"]),
        node("Mul", ["half", "told_rows"], ["both"]),
        node("Cast", ["both"], ["pairs"], to=TensorProto.FLOAT),
        node("ReduceSum", ["pairs", "axes"], ["counts"], keepdims=0),
        node("Unsqueeze", ["counts", "one"], ["logits"]),
    ]
    values = {"one": [1], "two": [2], "axes": [1, 2], "last_special": [4], "unit": [1]}
    constants = [helper.make_tensor(key, TensorProto.INT64, [len(value)], value) for key, value in values.items()]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
        for name in ("input_ids", "token_type_ids")
    ]
    output = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 1])
    graph = helper.make_graph(nodes, "overlap", inputs, [output], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, str(tmp_path / "model.onnx"))
    return tmp_path


def test_a_local_graph_scores_question_and_passage_together(overlap_model: Path) -> None:
    model = load_cross_encoder(str(overlap_model))
    assert model.scores("Do cats purr?", ["Cats purr softly.", "Dogs bark at cats.", "Fish swim."]) == [2.0, 1.0, 0.0]
    assert model.scores("cats", []) == []
    assert len(model.scores("cats " * 5000, ["cats " * 5000] * 20)) == 20


def test_the_strategy_ranks_by_it(
    make_settings: Callable[..., object], folder: Callable[..., Path], overlap_model: Path
) -> None:
    with Workbench.open(settings=make_settings(reranker=str(overlap_model))) as wb:  # pyright: ignore
        wb.ingest(folder(DOCS, "animals"), source="Animals")
        result = wb.search("do cats purr", "cross-encoder", 3, parameters={"cross_weight": 1.0})
    assert [hit.document_title for hit in result] == ["cats", "dogs", "fish"]
    assert [hit.attribution["cross-encoder"].score for hit in result] == [2.0, 1.0, 0.0]
    assert [hit.score for hit in result] == [1.0, 0.5, 0.0] and result.degraded == ()


def test_a_damaged_graph_is_reported_and_the_order_is_that_of_hybrid(
    make_settings: Callable[..., object], folder: Callable[..., Path], overlap_model: Path
) -> None:
    (overlap_model / "model.onnx").write_bytes(b"damaged")
    with pytest.raises(ModelError, match="check WORKBENCH_RERANKER"):
        load_cross_encoder(str(overlap_model)).scores("cats", ["cats"])
    with Workbench.open(settings=make_settings(reranker=str(overlap_model))) as wb:  # pyright: ignore
        wb.ingest(folder(DOCS, "animals"), source="Animals")
        result = wb.search("do cats purr", "cross-encoder", 3)
        assert [hit.passage_id for hit in result] == [hit.passage_id for hit in wb.search("do cats purr", "hybrid", 3)]
    assert result.degraded[0].startswith("cross-encoder: The reranker")


@pytest.mark.parametrize(
    ("name", "says"),
    [("owner/model", r"rag-workbench\[huggingface\]"), ("/no/such/folder", "Folder not found: /no/such/folder")],
)
def test_a_model_that_does_not_load_is_reported_on_use(
    make_settings: Callable[..., object], name: str, says: str
) -> None:
    with Workbench.open(settings=make_settings(reranker=name)) as wb:  # pyright: ignore
        with pytest.raises(ConfigurationError, match=says):
            wb.search("cats", "cross-encoder")
        assert says.replace("\\", "") in wb.requests.usable()["cross-encoder"]
        assert len(wb.search("cats", "rerank")) == 0


PACKAGE = '''
"""The package in small: a CrossEncoder that reads question and passage together, by the words they share."""
LOADED = []


class CrossEncoder:
    def __init__(self, name):
        LOADED.append(name)

    def predict(self, pairs):
        if pairs and pairs[0][0] == "break":
            raise RuntimeError("out of memory")
        words = [[set(text.lower().strip(".").split()) for text in pair] for pair in pairs]
        counts = [float(len(asked & told)) for asked, told in words]
        return counts[1:] if pairs[0][0] == "too few" else [float("nan")] if pairs[0][0] == "nan" else counts
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The interface of sentence-transformers without the package, which would require torch."""
    (tmp_path / "installed").mkdir()
    (tmp_path / "installed" / "sentence_transformers.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(str(tmp_path / "installed"))
    monkeypatch.delitem(sys.modules, "sentence_transformers", raising=False)
    made = importlib.import_module("sentence_transformers")
    monkeypatch.setitem(sys.modules, "sentence_transformers", made)  # forgotten after the test
    return made


def test_a_model_by_name_is_loaded_once_and_at_the_first_question(package: ModuleType) -> None:
    model = load_cross_encoder("owner/model")
    assert isinstance(model, FrameworkCrossEncoder) and (model.name, package.LOADED) == ("owner/model", [])
    with ThreadPoolExecutor(4) as threads:
        scores = list(threads.map(lambda _: model.scores("do cats purr", list(DOCS.values())), range(8)))
    assert scores == [[2.0, 1.0, 0.0]] * 8
    assert package.LOADED == ["owner/model"]


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("break", r"failed \(out of memory\); check WORKBENCH_RERANKER"),
        ("too few", "did not return one number for each passage"),
        ("nan", "did not return one number for each passage"),
    ],
)
def test_a_model_by_name_that_fails_is_reported_in_a_sentence(package: ModuleType, query: str, says: str) -> None:
    with pytest.raises(ModelError, match=f"The reranker 'owner/model' {says}"):
        load_cross_encoder("owner/model").scores(query, ["Cats purr."])


def test_the_strategy_ranks_by_a_model_by_name(
    make_settings: Callable[..., object], folder: Callable[..., Path], package: ModuleType
) -> None:
    with Workbench.open(settings=make_settings(reranker="owner/model")) as wb:  # pyright: ignore
        wb.ingest(folder(DOCS, "animals"), source="Animals")
        result = wb.search("do cats purr", "cross-encoder", 3, parameters={"cross_weight": 1.0})
    assert [hit.attribution["cross-encoder"].score for hit in result] == [2.0, 1.0, 0.0]
    assert [hit.document_title for hit in result] == ["cats", "dogs", "fish"] and result.degraded == ()
