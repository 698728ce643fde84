"""Experiments: no question is asked twice, whatever stops them, and only comparable runs are compared."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from evals.experiments.catalogue import Cell, Experiments, make_cells
from evals.experiments.leaderboard import (
    check_comparable,
    describe_leaderboard,
    find_changes,
    make_leaderboard,
    pareto_front,
    scores_by_question,
    to_csv,
)
from evals.experiments.runs import SavedView
from evals.test_sets.folders import load_test_set
from tests.evals.conftest import TEXTS, WriteTestSet
from workbench import Workbench
from workbench.errors import Cancelled, Conflict, InvalidInput, NotFound
from workbench.settings import Settings

WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath", "inlet", "jetty", "knoll", "lagoon")
MANY = {word: (word.title(), f"The {word} is described here. Nothing else is.") for word in WORDS}
ASKED = {f"q{n:02}": (f"Where is the {word}?", {word: 1}) for n, word in enumerate(WORDS)}
STRATEGIES = ("vector", "keyword", "hybrid", "rerank")


@pytest.fixture
def experiments(wb: Workbench) -> Experiments:
    for name, size in (("small", 16), ("large", 100)):
        wb.indexes.create(name, chunker="sentence", options={"size": size})
    return Experiments(wb)


@pytest.fixture
def animals(experiments: Experiments, beir: WriteTestSet) -> str:
    return experiments.test_sets.add(load_test_set(beir())).id


def test_a_matrix_killed_twice_finishes_without_asking_again_what_was_answered(
    experiments: Experiments, beir: WriteTestSet, make_settings: Callable[..., Settings]
) -> None:
    test_set = experiments.test_sets.add(load_test_set(beir(MANY, ASKED))).id
    cells = make_cells(STRATEGIES, (None, "small", "large"))
    made = experiments.create("3 x 4", test_set, cells)
    settings = make_settings()
    assert settings.database_url is not None
    words = [str(settings.home), settings.database_url.get_secret_value(), made.id]
    module = [sys.executable, "-W", "ignore", "-m", "tests.evals.matrix_process", *words]
    answered = []
    for kill_at in (40, 90):
        with subprocess.Popen(module, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as process:
            assert process.stdout is not None
            assert any(int(line) >= kill_at for line in process.stdout)
            process.send_signal(signal.SIGKILL)
        answered.append(load_answers(experiments, made.id))
    done = experiments.run(made.id)
    assert 32 <= answered[0] < answered[1] < 144
    assert done.status == "done"
    assert done.message == f"{144 - answered[1]} questions run, {answered[1]} cached."
    assert [result.status for result in experiments.results(made.id)] == ["done"] * 12


def load_answers(experiments: Experiments, experiment_id: str) -> int:
    """Count the stored answers of an experiment."""
    query = "SELECT count(*) AS n FROM eval_answers JOIN experiment_runs USING (run_id) WHERE experiment_id = %s"
    with experiments._wb.corpus.database.transaction() as connection:
        row = connection.execute(query, (experiment_id,)).fetchone()
    return int(row["n"]) if row else 0


def test_what_is_unchanged_is_not_run_again_and_judging_more_costs_no_run(
    experiments: Experiments, animals: str
) -> None:
    first = experiments.run(experiments.create("first", animals, make_cells(["vector", "keyword"])).id)
    experiments.test_sets.judge(animals, "q1", "dogs", "partly")
    second = experiments.run(experiments.create("second", animals, make_cells(["keyword", "hybrid"])).id)
    assert first.message.startswith("10 questions run, 0 cached")
    assert second.message.startswith("5 questions run, 5 cached")
    ranked = [result.run.values["recall@10"]["q1"] for result in experiments.results(second.id) if result.run]
    assert len(ranked) == 2 and second.test_set_version == first.test_set_version + 1


def test_another_parameter_is_another_run(experiments: Experiments, animals: str) -> None:
    weights = [{"vector_weight": 0.0}, {"vector_weight": 1.0}]
    made = experiments.create("weights", animals, make_cells(["hybrid"], parameters={"hybrid": weights}))
    assert experiments.run(made.id).message.startswith("10 questions run")
    labels = [result.cell.label for result in experiments.results(made.id)]
    assert labels == ["hybrid vector_weight=0.0", "hybrid vector_weight=1.0"]


def test_a_stopped_experiment_keeps_what_it_has_and_continues(experiments: Experiments, animals: str) -> None:
    made = experiments.create("stop", animals, make_cells(["keyword", "vector"]))
    looks = iter(range(100))
    with pytest.raises(Cancelled):
        experiments.run(made.id, should_stop=lambda: next(looks) > 6)
    assert experiments.get(made.id).status == "stopped"
    kept = load_answers(experiments, made.id)
    assert 0 < kept < 10
    assert experiments.run(made.id).message.startswith(f"{10 - kept} questions run, {kept} cached")


def test_an_unexpected_error_ends_an_experiment_as_failed(experiments: Experiments, animals: str) -> None:
    made = experiments.create("broken", animals, make_cells(["keyword"]))

    def break_off(*_: object) -> NoReturn:
        raise RuntimeError("the disk is gone")

    with pytest.raises(RuntimeError):
        experiments.run(made.id, ask_all=break_off)
    failed = experiments.get(made.id)
    assert (failed.status, failed.message) == ("failed", "the disk is gone")
    assert experiments.run(made.id).status == "done"


def test_a_run_that_fails_is_noted_with_its_reason_and_the_others_continue(
    experiments: Experiments, animals: str
) -> None:
    made = experiments.create("needs a scope", animals, make_cells(["scoped", "keyword"]))
    done = experiments.run(made.id)
    failed, fine = experiments.results(made.id)
    assert done.message.startswith("1 of 2 runs failed. ")
    assert (failed.status, failed.run, fine.status) == ("failed", None, "done")
    assert failed.error is not None and "needs a scope" in failed.error
    assert [line.status for line in make_leaderboard([failed, fine], "ndcg@10")] == ["done", "failed"]


def test_the_leaderboard_compares_every_run_with_the_best(experiments: Experiments, beir: WriteTestSet) -> None:
    test_set = experiments.test_sets.add(load_test_set(beir(MANY, ASKED))).id
    made = experiments.create("board", test_set, make_cells(["keyword", "vector"], ("small",)))
    experiments.run(made.id)
    results = experiments.results(made.id)
    lines = make_leaderboard(results, "ndcg@10")
    assert lines[0].against_best is None and lines[1].against_best is not None
    assert lines[0].interval[0] <= lines[0].metrics["ndcg@10"] <= lines[0].interval[1]
    assert any(line.on_front for line in lines) and all(line.index_bytes > 0 for line in lines)
    assert to_csv(lines, "project Shop").splitlines()[1].startswith(lines[0].label)
    assert scores_by_question(results, "hit@1")["q00"].keys() == {"keyword on small", "vector on small"}
    assert find_changes(results[0], results[0], "ndcg@10") == []


def test_a_metric_that_was_not_measured_is_refused(experiments: Experiments, animals: str) -> None:
    made = experiments.create("few", animals, make_cells(["keyword"]), metrics=["ndcg@10"])
    experiments.run(made.id)
    (found,) = experiments.results(made.id)
    for reading in (
        make_leaderboard,
        scores_by_question,
        lambda cells, metric: find_changes(cells[0], cells[0], metric),
    ):
        with pytest.raises(InvalidInput, match="recall@10 was not measured"):
            reading([found], "recall@10")


def test_experiments_on_other_ground_are_not_compared(
    experiments: Experiments, animals: str, beir: WriteTestSet
) -> None:
    other = experiments.test_sets.add(load_test_set(beir(MANY, ASKED, name="other"))).id
    one = experiments.create("one", animals, make_cells(["keyword"]))
    two = experiments.create("two", other, make_cells(["keyword"]))
    experiments.test_sets.judge(animals, "q1", "dogs", "partly")
    three = experiments.create("three", animals, make_cells(["keyword"]))
    for second, says in ((two, "different corpora"), (three, "different questions or judgments")):
        with pytest.raises(InvalidInput, match=says):
            check_comparable(one, second)


def test_a_persons_own_documents_can_be_measured_until_they_change(
    wb: Workbench, experiments: Experiments, folder: Callable[..., Path]
) -> None:
    files = {f"{key}.md": f"# {title}\n\n{text}" for key, (title, text) in TEXTS.items()}
    wb.ingest(folder(files), source="Animals")
    test_set = experiments.test_sets.create("Mine").id
    (question,) = experiments.test_sets.add_questions(test_set, ["cats purr"])
    cats = next(document.id for document in wb.documents.list() if document.title == "Cats")
    experiments.test_sets.judge(test_set, question.id, cats, "relevant", start=0, end=6)
    made = experiments.create("mine", test_set, make_cells(["keyword"], (None, "small")))
    experiments.run(made.id)
    runs = [result.run for result in experiments.results(made.id)]
    assert [(run.means["hit@1"], run.means["span-recall@5"]) for run in runs if run] == [(1.0, 1.0), (1.0, 1.0)]
    wb.ingest(folder({"new.md": "# New\n\nSomething new."}), source="More")
    with pytest.raises(Conflict, match="start a new one"):
        experiments.run(made.id)


def test_wrong_plans_are_refused(experiments: Experiments, animals: str) -> None:
    empty = experiments.test_sets.create("Empty").id
    for strategies, parameters in ((["fastest"], {}), ([], {}), (["hybrid"], {"hybrid": [{"weight": 1}]})):
        with pytest.raises(InvalidInput):
            make_cells(strategies, parameters=parameters)
    with pytest.raises(InvalidInput, match="judge some first"):
        experiments.create("x", empty, [Cell("keyword")])
    with pytest.raises(NotFound, match="Index not found"):
        experiments.create("x", animals, [Cell("keyword", index="nowhere")])
    with pytest.raises(NotFound, match="Experiment not found"):
        experiments.run("exp_none")


def test_the_front_holds_what_nothing_beats_in_both() -> None:
    assert pareto_front([(0.9, 50), (0.8, 10), (0.7, 20), (0.9, 50), (0.9, 60)]) == [0, 1]
    assert pareto_front([]) == []


def test_experiments_and_runs_keep_notes_tags_and_a_view(experiments: Experiments, animals: str) -> None:
    made = experiments.run(experiments.create("Noted", animals, make_cells(["keyword", "vector"])).id)
    before = experiments.state(made.id)
    experiments.annotate(made.id, note="before the move", tags=["base", " base ", ""])
    experiments.annotate(made.id, "vector", note="a candidate")
    experiments.annotate(made.id, "vector", tags=["candidate"])  # the note stays
    found = experiments.get(made.id)
    assert (found.note, found.tags) == ("before the move", ("base",))
    assert {one.cell.label: (one.note, one.tags) for one in experiments.results(made.id)} == {
        "keyword": ("", ()),
        "vector": ("a candidate", ("candidate",)),
    }
    assert experiments.state(made.id) != before  # a cached leaderboard is read again
    experiments.save_view(made.id, "mrr@10", ["vector", "keyword"], "candidate")
    assert experiments.get(made.id).view == SavedView("mrr@10", ("vector", "keyword"), "candidate")
    experiments.run(made.id)  # another run of the same cells keeps them
    assert [one.note for one in experiments.results(made.id)] == ["", "a candidate"]
    experiments.save_view(made.id)
    assert experiments.get(made.id).view == SavedView()
    with pytest.raises(NotFound, match=r"Run not found: vectr\. Use one of 'keyword', 'vector'"):
        experiments.annotate(made.id, "vectr", note="x")
    with pytest.raises(InvalidInput, match="p@7 was not"):
        experiments.save_view(made.id, "p@7")
    with pytest.raises(InvalidInput, match="at most 2 runs, not 3"):
        experiments.save_view(made.id, runs=["vector", "keyword", "vector"])
    with pytest.raises(InvalidInput, match="1,001 characters; use at most 1,000"):
        experiments.annotate(made.id, note="x" * 1_001)


def test_a_leaderboard_has_the_unjudged_share_and_display_names(experiments: Experiments, animals: str) -> None:
    made = experiments.run(experiments.create("Unjudged", animals, make_cells(["keyword", "vector"])).id)
    lines = make_leaderboard(experiments.results(made.id), "ndcg@10")
    shares = {line.label: line.unjudged for line in lines}
    assert shares["vector"] == pytest.approx(1 - 7 / 25)  # 5 documents for each of 5 questions; 7 pairs are judged
    for line in lines:
        assert line.bounds is not None  # with four digits
        assert line.bounds[0] - 1e-4 < line.metrics["ndcg@10"] < line.bounds[1] + 1e-4
    titles = {"keyword": "By words", "vector": "By meaning"}
    outcome = describe_leaderboard(lines, experiments.results(made.id), "ndcg@10", titles)[0]
    assert "By words" in outcome and "By meaning" in outcome
    assert "keyword" not in outcome and "vector" not in outcome


def test_the_sample_is_stored_when_an_experiment_names_it(wb: Workbench) -> None:
    made = wb.experiments.create("First steps", "sample", ["keyword"], limit_queries=3)
    assert (made.test_set_title, wb.experiments.run(made.id).message) == ("sample", "3 questions run, 0 cached.")
    assert wb.experiments.create("Again", "sample", ["keyword"], limit_queries=3).test_set_id == made.test_set_id


def test_a_run_that_found_nothing_is_not_taken_for_the_source_of_the_judgments(
    wb: Workbench, beir: WriteTestSet
) -> None:
    def find_nothing(question: str, limit: int) -> list[str]:
        raise ValueError("no connection")

    wb.strategies.add("mine", find_nothing)
    measured = wb.evaluate(str(beir()), ["mine", "keyword"], metrics=["mrr@10"])
    wb.strategies.remove("mine")
    assert any(note.startswith("mine failed on 5 of 5 questions") for note in measured.notes)
    assert not any("seem to come from" in note for note in measured.notes)
