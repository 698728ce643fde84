"""Cross-encoders: a real ONNX graph in a local folder, and what is said where there is none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

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
from workbench.models.cross_encoder import load_cross_encoder

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "."]
DOCS = {"cats.md": "Cats purr softly.", "dogs.md": "Dogs bark at cats.", "fish.md": "Fish swim."}


@pytest.fixture
def overlap_model(tmp_path: Path) -> Path:
    """A model that counts the question's words in the passage, which a sum over pairs of tokens can do."""
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


def test_a_damaged_graph_is_said_and_the_order_is_that_of_hybrid(
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
    [("owner/model", r"rag-workbench\[huggingface\]"), ("/no/such/folder", "There is no folder /no/such/folder")],
)
def test_what_cannot_be_loaded_is_said_when_it_is_asked_for(
    make_settings: Callable[..., object], name: str, says: str
) -> None:
    with Workbench.open(settings=make_settings(reranker=name)) as wb:  # pyright: ignore
        with pytest.raises(ConfigurationError, match=says):
            wb.search("cats", "cross-encoder")
        assert says.replace("\\", "") in wb.search_service.usable()["cross-encoder"]
        assert len(wb.search("cats", "rerank")) == 0
