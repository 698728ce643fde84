"""The main path: documents in, passages out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from workbench import Scope, Workbench
from workbench.errors import InvalidInput, NotFound, ScopeError, StatementRejected
from workbench.retrieval.strategies import STRATEGIES
from workbench.types import Progress

DOCS = {
    "cats.md": "# Cats\n\nCats purr when they are content. A cat sleeps most of the day.",
    "dogs.md": "# Dogs\n\nDogs bark at strangers. A dog guards the house.",
    "sub/fish.txt": "Fish swim in schools and breathe through gills.",
}


@pytest.mark.parametrize("strategy", [name for name, s in STRATEGIES.items() if not (s.needs_scope or s.needs)])
def test_every_strategy_finds_the_passage_with_the_words(
    wb: Workbench, folder: Callable[..., Path], strategy: str
) -> None:
    wb.ingest(folder(DOCS), source="Animals")
    hits = wb.search("cats purr", strategy=strategy, limit=2)
    assert hits[0].document_title == "Cats"
    assert 0 <= hits[0].score <= 1
    assert hits[0].attribution


def test_the_same_folder_again_embeds_nothing(wb: Workbench, folder: Callable[..., Path]) -> None:
    root = folder(DOCS)
    first = wb.ingest(root, source="Animals")
    again = wb.ingest(root, source="Animals")
    assert (first.added, first.unchanged) == (3, 0)
    assert (again.added, again.updated, again.unchanged, again.embedded) == (0, 0, 3, 0)


def test_a_changed_file_replaces_its_passages(wb: Workbench, folder: Callable[..., Path]) -> None:
    wb.ingest(folder(DOCS), source="Animals")
    report = wb.ingest(folder(DOCS | {"cats.md": "# Cats\n\nLions roar."}), source="Animals")
    assert (report.updated, report.unchanged) == (1, 2)
    assert "purr" not in " ".join(hit.text for hit in wb.search("purr", strategy="keyword"))
    assert wb.search("lions roar", strategy="keyword")[0].document_title == "Cats"


def test_a_broken_file_is_listed_and_the_rest_continues(wb: Workbench, folder: Callable[..., Path]) -> None:
    report = wb.ingest(folder(DOCS | {"broken.pdf": b"%PDF-1.7 broken", "empty.md": ""}), source="Animals")
    assert report.added == 3
    assert {failure.path for failure in report.failures} == {"broken.pdf", "empty.md"}
    assert all(failure.error.strip() for failure in report.failures)


def test_an_ingest_into_no_index_makes_no_source(wb: Workbench, folder: Callable[..., Path]) -> None:
    with pytest.raises(NotFound, match="Index not found: nowhere"):
        wb.ingest(folder(DOCS), source="Animals", index="nowhere")
    assert wb.sources.list() == []


def test_every_passage_is_a_span_of_its_document(wb: Workbench, folder: Callable[..., Path]) -> None:
    wb.ingest(folder(DOCS), source="Animals")
    for hit in wb.search("cat dog fish", limit=10):
        assert wb.documents.get(hit.document_id).text[hit.start : hit.end] == hit.text


def test_scores_fall_with_rank_and_contributions_add_up(wb: Workbench, folder: Callable[..., Path]) -> None:
    wb.ingest(folder(DOCS), source="Animals")
    for strategy in ("vector", "keyword", "hybrid", "rerank"):
        hits = wb.search("a dog guards the house", strategy=strategy)
        scores = [hit.score for hit in hits]
        assert scores == sorted(scores, reverse=True)
        for hit in hits:
            assert sum(leg.contribution for leg in hit.attribution.values()) == pytest.approx(hit.score, abs=1e-9)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"source": 5}, "Invalid source 5: expected its name or id as str, not int"),
        ({"project": 5}, "Invalid project 5: expected its name or id as str, not int"),
        ({"folder": b"x"}, "Invalid folder b'x': expected its name or id as str, not bytes"),
        ({"index": 5}, "Invalid index 5: expected its name or id as str, not int"),
        ({"tags": 5}, "Invalid tags 5: expected a list of str"),
        ({"tags": [5]}, "Invalid tag 5: expected str, not int"),
        ({"paths": 5}, "Invalid path 5: expected str or Path"),
        ({"paths": [None]}, "Invalid path None: expected str or Path"),
    ],
)
def test_an_ingest_of_the_wrong_type_is_refused_with_a_sentence(
    wb: Workbench, folder: Callable[..., Path], asked: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        wb.ingest(**{"paths": folder(DOCS), **asked})
    assert wb.sources.list() == []


def test_a_path_may_start_with_a_persons_home(
    wb: Workbench, folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(folder(DOCS).parent))
    assert wb.ingest(f"~/{folder(DOCS).name}").added == 3
    assert wb.jobs.enqueue_ingest([f"~/{folder(DOCS).name}"]).parameters["paths"] == [str(folder(DOCS))]


def test_tags_are_trimmed_even_if_the_source_exists(wb: Workbench, folder: Callable[..., Path]) -> None:
    root = folder({"a.md": "# A\n\nWords."})
    for _ in range(2):
        wb.ingest(root, source="S", tags=[" x ", ""])
    assert wb.sources.get("S").tags == ("x",)


def test_a_text_that_was_cut_within_an_emoji_is_stored(wb: Workbench) -> None:
    made = wb.documents.create(text="Zebras \ud83d run.", title="Cut", metadata={"by": "\ud83d"}).document
    assert (made.text, made.metadata) == ("Zebras \ufffd run.", {"by": "\ufffd"})
    assert wb.search("zebras")[0].document_id == made.id


def test_an_ingest_whose_source_is_deleted_ends_with_a_sentence(wb: Workbench, folder: Callable[..., Path]) -> None:
    source = wb.sources.create("Garden")
    files = {f"{number}.md": f"Herb {number} is rosemary." for number in range(40)}

    def delete(progress: Progress) -> None:
        if any(each.id == source.id for each in wb.sources.list()):
            wb.sources.delete(source.id)

    with pytest.raises(StatementRejected, match=r"^The source has just been deleted; choose or create another one"):
        wb.ingest(folder(files), source="Garden", on_progress=delete)
    assert (wb.sources.count(), wb.documents.count(), wb.search("rosemary").results) == (0, 0, ())


def test_deleting_a_source_leaves_nothing_that_answers(wb: Workbench, folder: Callable[..., Path]) -> None:
    wb.ingest(folder(DOCS), source="Animals")
    gone = wb.sources.delete("Animals")
    assert (gone.documents, gone.passages) == (3, 3)
    assert all(len(wb.search("cats", strategy=name)) == 0 for name in ("vector", "keyword", "hybrid", "rerank"))


def test_an_empty_index_is_called_empty_whatever_was_asked(wb: Workbench) -> None:
    for query in ("how do otters sleep?", "?!"):
        assert wb.search(query, strategy="hybrid").degraded == ("keyword: the index has no passages",)


def test_scoped_insists_on_a_scope(wb: Workbench, folder: Callable[..., Path]) -> None:
    wb.ingest(folder(DOCS), source="Animals")
    with pytest.raises(ScopeError, match="needs a scope"):
        wb.search("cats", strategy="scoped")
    assert wb.search("cats", strategy="scoped", scope=Scope(sources=("Animals",)))[0].document_title == "Cats"


@pytest.mark.parametrize("query", ["", "   ", "\x00"])
def test_an_empty_query_is_refused_with_a_sentence(wb: Workbench, query: str) -> None:
    with pytest.raises(InvalidInput, match="query is empty"):
        wb.search(query)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"query": None}, "Invalid query: expected str, not NoneType"),
        ({"query": "\ud83d"}, "contains an unpaired surrogate"),
        ({"limit": 2.5}, "Invalid limit 2.5: use a whole number"),
        ({"limit": "5"}, "Invalid limit '5'"),
        ({"limit": 201}, "from 1 to 200. To see others, narrow the scope or ask a more specific question."),
        ({"strategy": ["hybrid"]}, "Invalid strategy"),
    ],
)
def test_what_is_of_the_wrong_type_is_refused_with_a_sentence(
    wb: Workbench, asked: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        wb.search(**{"query": "cats", **asked})


@pytest.mark.parametrize("query", ["' OR '1'='1", "100% %s %(x)s", "a\x00b", "🐈", '"', "\\", "((("])
def test_odd_queries_are_searched_like_any_other(wb: Workbench, folder: Callable[..., Path], query: str) -> None:
    wb.ingest(folder(DOCS), source="Animals")
    for strategy in ("vector", "keyword", "hybrid", "rerank", "llamaindex-hybrid"):
        assert len(wb.search(query, strategy=strategy, limit=3)) <= 3


def test_a_cutoff_leaves_out_what_scores_far_below_the_best(wb: Workbench, folder: Callable[..., Path]) -> None:
    wb.ingest(folder(DOCS), source="Animals")
    everything = wb.search("a dog guards the house", limit=3)
    cut = wb.search("a dog guards the house", limit=3, parameters={"cutoff": 0.9})
    assert [hit.passage_id for hit in cut] == [
        hit.passage_id for hit in everything if hit.score >= 0.9 * everything[0].score
    ]
    assert len(cut) < len(everything)
    assert not cut.under_filled


def test_a_file_that_is_stored_twice_is_reported(wb: Workbench, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "gauge.md").write_text("# Gauge\n\nThe tide gauge records the level of the sea.")
    (tmp_path / "b" / "bread.md").write_text("# Bread\n\nKnead the dough.")
    assert wb.ingest(tmp_path / "a", source="First").notes == ()
    report = wb.ingest(tmp_path / "b", source="Second")
    assert (report.added, report.notes) == (2, ("1 file is also stored elsewhere: gauge.md (First).",))
    (tmp_path / "b" / "copy.md").write_bytes((tmp_path / "b" / "bread.md").read_bytes())
    (tmp_path / "b" / "zopf.md").write_bytes((tmp_path / "b" / "bread.md").read_bytes())
    report = wb.ingest([tmp_path / "b" / "copy.md", tmp_path / "b" / "zopf.md"], source="Second")
    assert report.notes == ("2 files are also stored elsewhere: copy.md (bread.md), zopf.md (bread.md).",)


def test_the_passages_of_a_chunker_are_previewed_and_nothing_is_stored(wb: Workbench, tmp_path: Path) -> None:
    (tmp_path / "gauge.md").write_text("# Gauge\n\nThe tide gauge records the sea.\n\n## Float\n\nThe float rises.")
    wb.ingest(tmp_path, source="First")
    document = wb.documents.list()[0]
    text = wb.documents.get(document.id).text or ""
    cut = {name: wb.indexes.preview(document.id, name) for name in ("heading", "window", "semantic")}
    shown = {name: [text[each.start : each.end] for each in cut[name]] for name in cut}
    assert shown["heading"] == ["# Gauge\n\nThe tide gauge records the sea.", "## Float\n\nThe float rises."]
    assert shown["window"][-1].endswith("The float rises.")
    assert shown["semantic"]
    assert [index.name for index in wb.indexes.list()] == ["main"]


def test_metadata_is_merged_and_none_removes_a_name(wb: Workbench) -> None:
    made = wb.documents.create(text="The tide gauge.", title="Gauge", metadata={"author": "Mei", "status": "draft"})
    changed = wb.documents.update(made.document.id, metadata={"status": None, "date": "2024"}).document
    assert {name: changed.metadata.get(name) for name in ("author", "status", "date")} == {
        "author": "Mei",
        "status": None,
        "date": "2024",
    }
    assert "status" not in changed.metadata
