"""``workbench learn``, ``rankers`` and ``experiments``: what was trained and measured, stored and shown again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import Ran

from evals.experiments.catalogue import Experiments, make_cells
from evals.test_sets.folders import load_test_set
from tests.evals.test_learning import ASKED, TEXTS
from workbench import Workbench


@pytest.fixture
def archive(folder: Callable[..., Path]) -> Path:
    """The test set of ``tests/evals/test_learning.py``: the answers are in the long texts."""
    corpus = [{"_id": key, "title": title, "text": text} for key, (title, text) in TEXTS.items()]
    queries = [{"_id": key, "text": text} for key, (text, _) in ASKED.items()]
    qrels = [f"{key}\t{document}\t{grade}" for key, (_, judged) in ASKED.items() for document, grade in judged.items()]
    files = {"corpus.jsonl": "\n".join(map(json.dumps, corpus)), "queries.jsonl": "\n".join(map(json.dumps, queries))}
    return folder(files | {"qrels.tsv": "\n".join(qrels)}, "archive")


def test_a_ranker_is_learned_kept_exported_deleted_and_imported(
    workbench: Callable[..., Ran], archive: Path, tmp_path: Path
) -> None:
    file = tmp_path / "out.json"
    ran = workbench("learn", str(archive), "--save", "long texts", "--json")
    learned = ran.json
    assert learned["is_worth_it"] and learned["figures"]["learned"] > learned["figures"]["rerank"]
    assert learned["saved"] is True
    assert "--set 'ranker=long texts'" in ran.err
    listed = workbench("rankers", "list", "--json").json
    assert [ranker["name"] for ranker in listed["rankers"]] == ["default", "long texts"]
    shown = workbench("rankers", "show", "long texts", "--json").json
    taken = workbench("learn", str(archive / "nowhere"), "--save", "long texts")  # reported before anything is read
    assert taken.code == 1 and "There is already a ranker 'long texts'" in taken.err
    assert workbench("rankers", "export", "long texts", str(file)).code == 0
    assert shown["weights"] == learned["ranker"]["weights"] == json.loads(file.read_text())["weights"]
    assert workbench("rankers", "export", "long texts", str(file)).code == 1  # it would replace the file
    ran = workbench("rankers", "export", "long texts", "no/out.json")
    assert (ran.code, ran.err) == (2, "Cannot write no/out.json; choose a file in an existing folder.\n")
    assert workbench("rankers", "delete", "long texts", "--json").json["name"] == "long texts"
    back = workbench("rankers", "import", str(file), "--name", "back", "--json").json
    assert (back["name"], back["weights"], back["trained_on"]) == ("back", shown["weights"], "archive")


def test_a_search_names_its_ranker_and_why_shows_what_it_weighed(
    workbench: Callable[..., Ran], animals: Path, tmp_path: Path
) -> None:
    workbench("ingest", str(animals))
    mine = {"form": "rag-workbench ranker 1", "name": "short", "weights": {"before": 1, "length": -3}}
    (tmp_path / "short.json").write_text(json.dumps(mine))
    assert workbench("rankers", "import", str(tmp_path / "short.json")).code == 0
    asked = ("search", "cats", "--strategy", "learned", "--set", "ranker=short")
    assert workbench(*asked, "--json").json["strategy"] == "learned"
    assert "features" in workbench(*asked, "--explain").out
    lost = workbench("search", "cats", "--strategy", "learned", "--set", "ranker=lost")
    assert lost.code != 0 and "Ranker not found: lost" in lost.err


def test_what_cannot_be_learned_or_imported_is_reported_in_a_sentence(
    workbench: Callable[..., Ran], archive: Path, tmp_path: Path
) -> None:
    lines = (archive / "queries.jsonl").read_text().splitlines()
    (archive / "queries.jsonl").write_text("\n".join(lines[:29]))
    few = workbench("learn", str(archive))
    assert few.code == 2 and few.err.count("\n") == 1
    assert "has 29 judged questions; training needs 30. Judge 1 more" in few.err
    (tmp_path / "broken.json").write_text("{")
    broken = workbench("rankers", "import", str(tmp_path / "broken.json"))
    assert broken.code == 2 and "The file is not JSON" in broken.err
    assert workbench("rankers", "import", str(tmp_path / "none.json")).code == 2
    assert (
        "The ranker 'default' is built in; only trained rankers can be deleted."
        in workbench("rankers", "delete", "default", "--yes").err
    )


def test_an_evaluation_reports_that_the_ranker_knew_the_questions(workbench: Callable[..., Ran], archive: Path) -> None:
    asked = ("--strategies", "learned", "--limit-queries", "3", "--ragas", "none")
    assert "'default' was trained on these questions" in workbench("eval", "sample", *asked).err
    assert "was trained on these" not in workbench("eval", str(archive), *asked).err


def test_a_kept_ranker_is_measured_on_another_test_set_next_to_the_fixed_strategies(
    workbench: Callable[..., Ran], archive: Path
) -> None:
    assert workbench("learn", str(archive), "--save", "mine").code == 0
    asked = ("--strategies", "learned,rerank", "--limit-queries", "5", "--ragas", "none")
    measured = workbench("eval", "sample", *asked, "--set", "ranker=mine").json["strategies"]
    assert measured["learned"]["parameters"]["ranker"] == "mine"
    lost = workbench("eval", "sample", *asked, "--set", "learned.ranker=lost")
    assert lost.code != 0 and "Ranker not found: lost" in lost.err
    wrong = workbench("eval", "sample", *asked, "--set", "colour=red")
    assert wrong.code == 2 and "None of the strategies has a parameter 'colour'" in wrong.err


def test_experiments_are_listed_shown_noted_and_opened_by_a_saved_view(
    workbench: Callable[..., Ran], archive: Path, wb: Workbench
) -> None:
    assert "No experiments." in workbench("experiments", "list").out
    experiments = Experiments(wb)
    test_set = experiments.test_sets.add(load_test_set(archive)).id
    made = experiments.run(experiments.create("First", test_set, make_cells(["keyword", "vector"])).id).id
    noted = workbench("experiments", "note", made, "--note", "a start", "--tags", "base,old", "--json").json
    assert (noted["note"], noted["tags"]) == ("a start", ["base", "old"])
    assert workbench("experiments", "note", made, "--run", "vector", "--tags", "candidate").code == 0
    assert workbench("experiments", "view", made, "--metric", "mrr@10", "--tag", "candidate").code == 0
    shown = workbench("experiments", "show", made, "--json").json
    assert (shown["metric"], [run["label"] for run in shown["runs"]]) == ("mrr@10", ["vector"])
    every = workbench("experiments", "show", made, "--metric", "ndcg@10", "--tag", "candidate")
    assert "nDCG@10" in every.out and "its own corpus" in every.err and "#base #old a start" in every.err
    assert "Not decided" in every.err and "too few to show any difference" in every.err
    assert "Each question has a single relevant document" in every.err
    listed = workbench("experiments", "list", "--tag", "base", "--json").json["experiments"]
    assert [(one["title"], one["winner"]["label"] in ("keyword", "vector")) for one in listed] == [("First", True)]
    assert workbench("experiments", "list", "--tag", "other", "--json").json["experiments"] == []
    wrong = workbench("experiments", "note", made, "--run", "vectr", "--note", "x")
    assert (wrong.code, "Run not found: vectr. Use one of" in wrong.err) == (2, True)
    assert "use --note or --tags" in workbench("experiments", "note", made).err


def test_an_experiment_that_is_not_judged_yet_is_judged_when_it_is_resumed(
    wb: Workbench, archive: Path, workbench: Callable[..., Ran]
) -> None:
    experiments = Experiments(wb)
    test_set = experiments.test_sets.add(load_test_set(archive)).id
    made = experiments.create("Judged", test_set, make_cells(["keyword"])).id
    experiments.prepare(made, judge="free")
    unjudged = experiments.run(made)
    assert unjudged.status == "stopped" and f"run: workbench experiments resume {made}" in unjudged.message
    assert "ragas" not in experiments.results(made)[0].extra
    resumed = workbench("experiments", "resume", made, "--json")
    assert resumed.code == 0 and resumed.json["status"] == "done"
    assert experiments.results(made)[0].extra["ragas"]["text_context_recall"]["measured"] > 0
    assert experiments.run(made).status == "done"
    failing = workbench("experiments", "resume", experiments.create("Failing", test_set, make_cells(["hyde"])).id)
    assert failing.code == 1 and "1 of 1 runs failed" in failing.out + failing.err
