"""A test set's corpus has a separate source and separate indexes."""

from __future__ import annotations

import pytest

from evals.gateway import index_corpus
from evals.test_sets.folders import load_test_set
from tests.evals.conftest import WriteTestSet
from workbench import Scope, Workbench
from workbench.errors import Conflict, ScopeError


def test_a_corpus_is_indexed_once_and_used_again_while_unchanged(wb: Workbench, beir: WriteTestSet) -> None:
    root, seen = beir(), []
    first = index_corpus(wb, load_test_set(root), on_progress=seen.append)
    assert (first.documents, first.index.documents_count, set(first.keys.values()) >= {"cats", "owls"}) == (5, 5, True)
    assert seen
    seen.clear()
    again = index_corpus(wb, load_test_set(root), on_progress=seen.append)
    assert (again.index.name, again.index_hash, seen) == (first.index.name, first.index_hash, [])


def test_a_changed_corpus_or_other_settings_get_another_index(wb: Workbench, beir: WriteTestSet) -> None:
    wb.indexes.create("small", chunker="sentence", options={"size": 32})
    names = {index_corpus(wb, load_test_set(beir()), like).index.name for like in (None, "small")}
    changed = beir({"cats": ("Cats", "Cats hiss.")}, {"q1": ("Why?", {"cats": 1})}, name="changed")
    names.add(index_corpus(wb, load_test_set(changed)).index.name)
    assert len(names) == 3
    assert all(name.startswith("ds_") for name in names)


def test_a_corpus_never_mixes_with_a_persons_sources(wb: Workbench, beir: WriteTestSet) -> None:
    corpus = index_corpus(wb, load_test_set(beir()))
    assert wb.sources.list() == []
    assert wb.documents.list() == []
    assert [index.name for index in wb.indexes.list()] == ["main"]
    assert all(len(wb.search("cats purr", strategy=name)) == 0 for name in ("vector", "keyword", "hybrid", "rerank"))
    source = wb.corpus.sources.list(source_type="dataset")[0]
    with pytest.raises(ScopeError):
        wb.search("cats purr", scope=Scope(sources=(source.title,)))
    assert wb.search("cats purr", index=corpus.index.name)[0].document_title == "Cats"


def test_the_documents_of_a_corpus_are_not_changed_behind_the_back_of_runs(wb: Workbench, beir: WriteTestSet) -> None:
    corpus = index_corpus(wb, load_test_set(beir()))
    document_id = next(iter(corpus.keys))
    source_id = wb.documents.get(document_id).source_id
    for change in (
        lambda: wb.documents.delete(document_id),
        lambda: wb.documents.update(document_id, title="Other"),
        lambda: wb.documents.update(document_id, text="Other words."),
        lambda: wb.documents.create(text="More words.", source=source_id),
    ):
        with pytest.raises(Conflict, match="documents of a test set are read-only"):
            change()
    assert wb.corpus.indexes.with_counts(corpus.index.name).documents_count == corpus.documents


def test_what_could_not_be_read_is_reported_at_every_run_and_counted_in_none(wb: Workbench, beir: WriteTestSet) -> None:
    root = beir({"cats": ("Cats", "Cats purr."), "void": ("", " ")}, {"q1": ("Why?", {"cats": 1})})
    for _ in range(2):
        corpus = index_corpus(wb, load_test_set(root))
        assert (corpus.documents, [failure.split(":")[0] for failure in corpus.failures]) == (1, ["void"])


def test_a_half_done_corpus_is_continued(wb: Workbench, beir: WriteTestSet) -> None:
    test_set = load_test_set(beir())
    corpus = index_corpus(wb, test_set)
    known = wb.corpus.documents.by_key(wb.corpus.index(corpus.index.name).dataset or "", corpus.index.name)
    wb.corpus.documents.delete([known["fish"].id])
    wb.corpus.indexes.set_status(corpus.index.name, "building")  # as a killed process leaves it
    assert index_corpus(wb, test_set).index.documents_count == 5
