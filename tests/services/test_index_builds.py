"""Several indexes over the same documents: built without an upload, compared, switched, dropped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from workbench import Workbench
from workbench.errors import Cancelled, Conflict, InvalidInput, NotFound
from workbench.ingestion.chunking import CHUNKERS
from workbench.types import Progress

DOCS = {
    f"d{n}.md": f"# Topic {n}\n\n" + "\n\n".join(f"## Part {p}\n\n{'Word ' * 30}number {n}." for p in range(3))
    for n in range(4)
}


@pytest.fixture
def filled(wb: Workbench, folder: Callable[..., Path]) -> Workbench:
    """Four documents in the default index."""
    wb.ingest(folder(DOCS), source="Topics")
    return wb


@pytest.mark.parametrize("chunker", list(CHUNKERS))
def test_every_chunker_can_be_built_from_the_stored_documents_and_searched(filled: Workbench, chunker: str) -> None:
    filled.indexes.create("other", chunker=chunker)
    built = filled.indexes.build("other")
    assert (built.status, built.documents_count) == ("ready", 4) and built.passages_count >= 4
    hit = filled.search("number 3", index="other", limit=1)[0]
    assert hit.document_title == "Topic 3"
    assert (filled.documents.get(hit.document_id).text or "")[hit.start : hit.end] == hit.text


def test_a_build_reports_how_far_it_is_and_can_be_stopped_and_continued(filled: Workbench) -> None:
    filled.indexes.create("other", chunker="heading")
    with pytest.raises(Cancelled):
        filled.indexes.build("other", should_stop=lambda: True)
    assert filled.indexes.get("other").status == "building" and filled.indexes.count_missing("other") == 4
    steps: list[Progress] = []
    filled.indexes.build("other", on_progress=steps.append)
    assert steps[-1].done == steps[-1].total == 4
    assert filled.indexes.count_missing("other") == 0


def test_what_has_been_embedded_is_not_embedded_again(filled: Workbench, folder: Callable[..., Path]) -> None:
    filled.indexes.create("same", chunker="structure")
    into_same = filled.ingest(folder(DOCS), source="Topics", index="same")
    assert into_same.passages == filled.indexes.get("main").passages_count > 0
    assert into_same.embedded == 0  # every vector was there, by the passages' hashes
    filled.indexes.create("other", chunker="sentence", options={"size": 16})
    into_other = filled.ingest(folder(DOCS), source="Topics", index="other")
    assert 0 < into_other.embedded <= into_other.passages
    scores = {name: [hit.score for hit in filled.search("number 2", index=name)] for name in ("main", "same")}
    assert scores["main"] == scores["same"]


def test_indexes_are_compared_like_strategies(filled: Workbench) -> None:
    filled.indexes.create("small", chunker="sentence", options={"size": 16})
    filled.indexes.build("small")
    comparison = filled.compare("number 2", ["hybrid", "hybrid@small", "keyword@main"], limit=3)
    assert list(comparison.strategies) == ["hybrid", "hybrid@small", "keyword@main"]
    assert [result.index for result in comparison.strategies.values()] == ["main", "small", "main"]
    assert all(result[0].document_title == "Topic 2" for result in comparison.strategies.values())
    assert comparison.agreement["jaccard"]["hybrid|hybrid@small"] > 0  # by document: their passages differ
    weights = {"hybrid@small": {"vector_weight": 1.0}, "hybrid": {"vector_weight": 0.0}}
    shares = filled.compare("number 2", list(weights), parameters=weights).strategies
    assert shares["hybrid"][0].attribution["vector"].contribution == 0
    assert shares["hybrid@small"][0].attribution["vector"].contribution > 0


def test_a_search_reports_what_its_index_lacks(filled: Workbench, folder: Callable[..., Path]) -> None:
    filled.indexes.create("other", chunker="sentence")
    assert "other lacks 4 documents; run 'workbench indexes build other'" in filled.search("2", index="other").degraded
    filled.indexes.build("other")
    assert filled.compare("number 2", ["hybrid", "hybrid@other"]).strategies["hybrid@other"].degraded == ()
    filled.ingest(folder({"new.md": "Number 9 is new."}, "later"))
    compared = filled.compare("number 9", ["hybrid", "hybrid@other"]).strategies
    assert compared["hybrid"].degraded == ()
    assert compared["hybrid@other"].degraded == ("other lacks 1 document; run 'workbench indexes build other'",)


def test_an_index_can_be_named_with_the_strategy_but_not_two_of_them(filled: Workbench) -> None:
    assert filled.search("number 2", "keyword@main").index == "main"
    with pytest.raises(NotFound, match="Valid indexes: 'main'"):
        filled.search("number 2", "keyword@none")
    with pytest.raises(InvalidInput, match="use one of them"):
        filled.search("number 2", "keyword@main", index="other")
    with pytest.raises(InvalidInput, match="use keyword@INDEX"):
        filled.search("number 2", "keyword@")


def test_the_default_is_switched_in_one_step_and_the_old_index_dropped(filled: Workbench) -> None:
    filled.indexes.create("new", chunker="sentence")
    with pytest.raises(Conflict, match="There is already an index with that name"):
        filled.indexes.create("new", chunker="sentence")
    with pytest.raises(Conflict, match="finish building it"):
        filled.indexes.set_default("new")
    filled.indexes.build("new")
    filled.indexes.set_default("new")
    assert filled.search("number 1").index == "new"
    with pytest.raises(Conflict, match="make another one the default"):
        filled.indexes.delete("new")
    filled.indexes.delete("main")
    assert [index.name for index in filled.indexes.list()] == ["new"]
    assert filled.documents.count() == 4


def test_a_changed_embedding_model_needs_no_new_upload(filled: Workbench, make_settings: Callable[..., object]) -> None:
    with Workbench.open(settings=make_settings(embedding_model="minilm")) as changed:  # pyright: ignore
        assert changed.search("number 1").index == "main"
        changed.indexes.create("meaning", chunker="structure")
        built = changed.indexes.build("meaning")
        assert (built.embedding_model, built.dimensions, built.documents_count) == ("minilm", 384, 4)
        changed.indexes.set_default("meaning")
        assert changed.search("number 1", limit=1)[0].document_title == "Topic 1"


def test_the_cost_of_a_build_is_estimated_from_the_price_in_the_models_name(
    wb: Workbench, folder: Callable[..., Path]
) -> None:
    wb.ingest(folder({"a.txt": "word " * 799 + "word.", "b.txt": "word " * 799 + "end."}))  # 4,000 bytes and 3,999
    name = "endpoint:m?url=http://127.0.0.1:9/v1&tokens=none&price=0.5"
    wb.corpus.indexes.create("priced", chunker="structure", chunker_options={}, embedding_model=name, dimensions=8)
    expected = (
        "Embedding 2 documents, about 1,999 tokens, costs about $0.001; stored vectors of the same texts are reused."
    )
    assert wb.indexes.describe_cost("priced") == wb.indexes.describe_cost("not_yet", name) == expected
    assert wb.indexes.describe_cost("main") == wb.indexes.describe_cost("not_yet", "hash") == ""
    with pytest.raises(InvalidInput, match="makes other vectors than those of the index 'priced'"):
        wb.indexes.rename_model("priced", name.replace("endpoint:m", "endpoint:n"))
