"""The gate detects a strategy that became worse, passes an equal one, and compares only what is comparable."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import evals
from evals.command import add_arguments, evaluate
from evals.measures.significance import compare_pairs, describe_decision, explain_difference
from tests.evals.conftest import WriteTestSet
from workbench import Workbench
from workbench.errors import InvalidInput
from workbench.types import Progress

PROJECTS_OWN = Path(evals.__file__).parent / "baselines" / "sample.json"
WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath", "inlet", "jetty", "knoll", "lagoon")
TEXTS = {word: (word.title(), f"The {word} is described here and nowhere else.") for word in WORDS}
ASKED = {f"q{n}": (f"Where is the {word}?", {word: 1}) for n, word in enumerate(WORDS)}


def run(
    wb: Workbench, *words: str, on_progress: Callable[[Progress], None] | None = None
) -> tuple[dict[str, Any], int, str]:
    """Run the command as the command line does; returns (JSON, exit code, messages)."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    lines: list[str] = []
    arguments = parser.parse_args(["--ragas", "none", *words])
    payload, code = evaluate(wb, arguments, say=lines.append, on_progress=on_progress)
    return payload, code, "\n".join(lines)


@pytest.fixture
def saved(wb: Workbench, beir: WriteTestSet, tmp_path: Path) -> tuple[str, str]:
    """A test set, and the baseline of its run."""
    root, file = str(beir(TEXTS, ASKED)), str(tmp_path / "baseline.json")
    run(wb, root, "--strategies", "keyword,hybrid", "--save", file)
    return root, file


def test_an_equal_strategy_passes(wb: Workbench, saved: tuple[str, str]) -> None:
    payload, code, _ = run(wb, saved[0], "--strategies", "keyword,hybrid", "--baseline", saved[1])
    assert code == 0
    assert [item["difference"] for item in payload["baseline"]] == [0.0, 0.0]


def test_values_that_a_file_rounds_are_no_difference(wb: Workbench, beir: WriteTestSet, tmp_path: Path) -> None:
    halves = {f"q{n}": (f"Where is the {word}?", {word: 1, WORDS[n - 1]: 1}) for n, word in enumerate(WORDS)}
    root, file = str(beir(TEXTS, halves)), str(tmp_path / "baseline.json")
    run(wb, root, "--strategies", "keyword", "--save", file)
    payload, code, _ = run(wb, root, "--strategies", "keyword", "--baseline", file)
    assert 0 < payload["strategies"]["keyword"]["ndcg@10"] < 1
    assert (code, payload["baseline"][0]["ties"]) == (0, 12)


def test_a_worse_strategy_is_caught_and_named(wb: Workbench, saved: tuple[str, str]) -> None:
    """The fault is in the data that a strategy reads: its postings are gone, so keyword search finds nothing."""
    index = run(wb, saved[0], "--strategies", "keyword")[0]["index"]["name"]
    with wb.corpus.database.transaction() as connection:
        connection.execute(f"TRUNCATE postings_{index}")  # pyright: ignore[reportArgumentType]
    payload, code, said = run(wb, saved[0], "--strategies", "keyword,vector", "--baseline", saved[1])
    assert code == 1
    assert "keyword got worse: ndcg@10 -1.0000" in said
    assert "12 questions lost" in said
    assert [item["significant"] for item in payload["baseline"]] == [True]


def test_a_better_strategy_is_no_regression(wb: Workbench, saved: tuple[str, str]) -> None:
    file = Path(saved[1])
    payload = json.loads(file.read_text())
    payload["questions"]["keyword"]["ndcg@10"] = dict.fromkeys(payload["questions"]["keyword"]["ndcg@10"], 0.0)
    file.write_text(json.dumps(payload))
    assert run(wb, saved[0], "--strategies", "keyword", "--baseline", saved[1])[1] == 0


@pytest.mark.parametrize(("with_pool", "ends"), [(False, 1), (True, 0)])
def test_a_fall_is_not_decided_by_a_pool_of_which_little_is_judged(
    wb: Workbench, beir: WriteTestSet, tmp_path: Path, with_pool: bool, ends: int
) -> None:
    """Each search finds ten documents; a pool has judgments of two of them, others have relevant documents only."""
    grades = [{WORDS[n - 1]: 1} | ({word: 0} if with_pool else {}) for n, word in enumerate(WORDS)]
    asked = {f"q{n}": (f"Where is the {word} described here?", grades[n]) for n, word in enumerate(WORDS)}
    root, file = str(beir(TEXTS, asked)), tmp_path / "baseline.json"
    run(wb, root, "--strategies", "keyword", "--save", str(file))
    before = json.loads(file.read_text())
    before["questions"]["keyword"]["ndcg@10"] = dict.fromkeys(asked, 1.0)
    file.write_text(json.dumps(before))
    payload, code, said = run(wb, root, "--strategies", "keyword", "--baseline", str(file), "--by", "length")
    assert code == ends
    assert [item["significant"] for item in payload["baseline"]] == [not with_pool] * 2  # of all, and of the slice
    assert ("keyword got worse" in said) != with_pool
    assert [item["unjudged"] > 2 / 3 for item in payload["baseline"]] == [with_pool] * 2


def test_a_gain_over_a_baseline_is_not_called_undecided() -> None:
    found = compare_pairs(
        "ndcg@10", [("new", dict.fromkeys("abcdefgh", 0.9), "old", dict.fromkeys("abcdefgh", 0.5))], "less"
    )
    assert [describe_decision(one) for one in found] == ["not worse"]
    assert [explain_difference(one) for one in found] == ["Not worse: won 8 of 8 differing questions, p = 1.000."]


def test_another_corpus_and_other_judgments_are_not_compared(
    wb: Workbench, beir: WriteTestSet, saved: tuple[str, str]
) -> None:
    corpus = str(beir(TEXTS | {"new": ("New", "Something new.")}, ASKED, name="corpus"))
    judgments = str(beir(TEXTS, ASKED | {"q0": ("Where is the amber?", {"birch": 1})}, name="judgments"))
    before = wb.corpus.sources.list(source_type="dataset")
    for root, says in ((corpus, "another corpus"), (judgments, "other questions or judgments")):
        with pytest.raises(InvalidInput, match=says):
            run(wb, root, "--strategies", "keyword", "--baseline", saved[1])
    assert wb.corpus.sources.list(source_type="dataset") == before  # refused before anything is indexed


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--strategies", "vector"], "has none of the strategies; it has 'keyword', 'hybrid'"),
        (["--strategies", "keyword", "--metrics", "map@10"], r"compares ndcg@10; add it to the metrics"),
        (["--strategies", "keyword", "--limit-queries", "3"], "other questions or judgments"),
    ],
)
def test_a_baseline_that_does_not_fit_is_refused_before_anything_is_asked(
    wb: Workbench, saved: tuple[str, str], words: list[str], says: str
) -> None:
    steps: list[Progress] = []
    with pytest.raises(InvalidInput, match=says):
        run(wb, saved[0], *words, "--baseline", saved[1], on_progress=steps.append)
    assert steps == []


HALF = '{"hashes": {"corpus": "x"}, "strategies": {"keyword": {"ndcg@10": 1}}, "questions": %s}'


@pytest.mark.parametrize(
    "content",
    [
        *(None, "", "[]", "{}", '{"hashes": {}, "strategies": {}}', "\x00"),
        *(HALF % questions for questions in ('{"keyword": 3}', '{"keyword": {}}', '{"keyword": {"ndcg@10": 3}}')),
        *(HALF % '{"keyword": {"ndcg@10": {"q1": %s}}}' % value for value in ('"x"', "NaN", "null")),
        HALF % '{"keyword": {"ndcg@10": {"q1": 1}}, "vector": {"map@5": {"q1": 1}}}',
        (HALF % '{"keyword": {"ndcg@10": {"q1": 1}}}').replace('{"ndcg@10": 1}', "5"),
    ],
)
def test_a_file_that_is_no_baseline_is_refused(
    wb: Workbench, beir: WriteTestSet, tmp_path: Path, content: str | None
) -> None:
    file = tmp_path / "broken.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(InvalidInput, match=r"broken\.json"):
        run(wb, str(beir()), "--strategies", "keyword", "--baseline", str(file))
    assert wb.corpus.sources.list(source_type="dataset") == []  # refused before anything is indexed


def test_judged_documents_that_the_corpus_does_not_hold_are_named(wb: Workbench, beir: WriteTestSet) -> None:
    questions = {"q1": ("Where is the amber?", {"Amber": 1, "grove": 0}), "q2": ("Where is the birch?", {"birch": 1})}
    said = run(wb, str(beir(TEXTS, questions)), "--strategies", "keyword")[2]
    assert "Judged relevant but missing from corpus.jsonl, so never found: 'Amber'; check the ids." in said
    assert "missing from corpus" not in run(wb, str(beir(TEXTS, ASKED, name="whole")), "--strategies", "keyword")[2]


def test_judgments_of_unknown_questions_are_named(wb: Workbench, beir: WriteTestSet) -> None:
    folder = beir(TEXTS, ASKED)
    with (folder / "qrels.tsv").open("a") as file:
        file.write("\nnobody\tgrove\t1\n")
    said = run(wb, str(folder), "--strategies", "keyword")[2]
    assert "Judged for questions that queries.jsonl lacks, so not used: 'nobody'; check the ids." in said


@pytest.mark.parametrize(
    "words", [["--strategies", "fastest"], ["--metrics", "bleu@3"], ["--strategies", ","], ["--limit-queries", "0"]]
)
def test_wrong_arguments_are_refused_before_anything_is_indexed(
    wb: Workbench, beir: WriteTestSet, words: list[str]
) -> None:
    with pytest.raises(InvalidInput):
        run(wb, str(beir()), *words)
    assert wb.corpus.sources.list(source_type="dataset") == []


def test_the_projects_own_baseline_holds_with_the_real_model(minilm_wb: Workbench) -> None:
    words = ["sample", "--strategies", "keyword,hybrid,rerank", "--metrics", "ndcg@10", "--baseline", str(PROJECTS_OWN)]
    payload, code, said = run(minilm_wb, *words)
    assert code == 0, said
    assert [item["a"] for item in payload["baseline"]] == ["keyword", "hybrid", "rerank"]
    assert payload["strategies"]["rerank"]["ndcg@10"] > payload["strategies"]["keyword"]["ndcg@10"]
