"""The cutoff by document: fewer documents, the same relevant ones, reported by the documented command."""

from __future__ import annotations

import argparse

import pytest

from evals.command import add_arguments, evaluate
from evals.experiments.cutoffs import measure_cutoffs
from evals.gateway import index_corpus
from evals.test_sets.folders import load_test_set
from tests.evals.conftest import WriteTestSet
from workbench import Workbench
from workbench.errors import InvalidInput


def test_a_cutoff_leaves_fewer_documents_and_the_best_one_at_any_share(wb: Workbench, beir: WriteTestSet) -> None:
    test_set = load_test_set(beir())
    corpus = index_corpus(wb, test_set)
    every, half, best = measure_cutoffs(wb, test_set, corpus, "hybrid", [0, 0.5, 1])
    assert (every.documents, every.recall) == (5.0, 1.0)  # all five
    assert every.documents > half.documents >= best.documents >= 1
    assert every.recall >= half.recall >= best.recall > 0
    scores = [hit.score for hit in wb.search("Why do cats purr?", "hybrid", index=corpus.index.name)]
    (at_second,) = measure_cutoffs(wb, test_set.first(1), corpus, "hybrid", [scores[1] / scores[0] - 1e-9])
    assert at_second.documents == 2


def test_the_command_reports_documents_and_recall_of_each_cutoff(wb: Workbench, beir: WriteTestSet) -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    words = [str(beir()), "--strategies", "keyword", "--ragas", "none", "--document-cutoffs", "0,0.5"]
    told: list[str] = []
    payload, code = evaluate(wb, parser.parse_args(words), say=told.append)
    assert code == 0 and "document_cutoffs" in payload
    assert [row.cutoff for row in payload["document_cutoffs"]["keyword"]] == [0, 0.5]
    assert "Of the first ten documents" in "".join(told)


@pytest.mark.parametrize("cutoffs", ["half", "1.5", "-0.1"])
def test_a_cutoff_that_is_no_share_is_refused(wb: Workbench, beir: WriteTestSet, cutoffs: str) -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    words = [str(beir()), "--strategies", "keyword", "--ragas", "none", f"--document-cutoffs={cutoffs}"]
    with pytest.raises(InvalidInput, match="use shares from 0 to 1"):
        evaluate(wb, parser.parse_args(words), say=lambda text: None)
