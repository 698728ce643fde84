"""Questions with the earlier turns of their conversation: read, stored, searched and measured."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from evals.evaluation import compare_in_slices, index_corpus
from evals.experiments.answers import (
    AnswerScores,
    add_answer_values,
    ask_answers,
    measure_answers,
    measure_citations,
    measure_lifts,
)
from evals.experiments.catalogue import Experiments
from evals.experiments.leaderboard import find_shared_metrics, make_leaderboard, pair_runs
from evals.experiments.runs import (
    Budget,
    Cell,
    CellResult,
    StrategyRun,
    average_rounds,
    average_values,
    measure_spread,
    run_strategies,
)
from evals.measures.significance import measure_lift
from evals.test_set import Question
from evals.test_sets.exchange import import_csv, to_csv
from evals.test_sets.folders import load_test_set
from tests.evals.conftest import TEXTS, WriteTestSet
from tests.evals.test_baseline import run
from workbench import Workbench
from workbench.errors import Cancelled, ConfigurationError, InvalidInput
from workbench.retrieval.query import Words, join_turns, weigh_earlier_terms
from workbench.settings import Settings
from workbench.storage.passages import QueryTerm, ScopeTotals, TermWeights
from workbench.types import Parameter

TURNS = ("Tell me about fish.", "Fish are animals.", "Do fish have gills?", "They do.")
ASKED = {
    "q1": ("And what do they do?", {"fish": 1}),
    "q2": ("And what do they do?", {"owls": 1}),
    "q3": ("Who guards the house?", {"dogs": 1}),
}


@pytest.fixture
def talked(beir: WriteTestSet) -> Path:
    """A test set whose first question cannot be understood without the turns before it."""
    folder = beir(TEXTS, ASKED)
    rows = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    rows[0]["turns"], rows[1]["turns"] = [*TURNS[:3], "They\n  do."], ["Tell me about owls."]
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder


@pytest.fixture
def llm_wb(make_settings: Callable[..., Settings], llm_url: str) -> Iterator[Callable[[str], Workbench]]:
    """Open a workbench with a model of the test server."""
    opened: list[Workbench] = []

    def start(model: str) -> Workbench:
        opened.append(Workbench.open(settings=make_settings(llm_base_url=llm_url, llm_model=model)))
        return opened[-1]

    yield start
    for workbench in opened:
        workbench.close()


def test_the_turns_of_a_question_are_read_stored_and_written(wb: Workbench, talked: Path, tmp_path: Path) -> None:
    test_set = load_test_set(talked)
    assert [question.turns for question in test_set.questions] == [TURNS, ("Tell me about owls.",), ()]
    plain = replace(test_set, questions=tuple(replace(one, metadata={}) for one in test_set.questions))
    assert test_set.questions_hash != plain.questions_hash and test_set.answerable_hash != plain.answerable_hash
    stored = wb.test_sets.load(wb.test_sets.from_folder(talked, "Talked").id)
    assert [question.turns for question in stored.questions] == [TURNS, ("Tell me about owls.",), ()]
    wb.test_sets.export("Talked", tmp_path / "beir", format="beir")
    assert load_test_set(tmp_path / "beir").questions_hash == stored.questions_hash
    written = to_csv(stored)
    assert {row["turns"] for row in csv.DictReader(written.splitlines(keepends=True))} == {
        "\n".join(TURNS), "Tell me about owls.", "",
    }  # fmt: skip
    copy = wb.test_sets.create("Copy")
    report = import_csv(wb, wb.test_sets, copy.id, 'question,turns\nAnd cats?,"What do dogs do?\nBark."\nAnd cats?,\n')
    assert report.questions == 2  # the same words after other turns are another question
    assert {question.turns for question in wb.test_sets.load("Copy").questions} == {("What do dogs do?", "Bark."), ()}
    turns = ["What do dogs do?", "Bark."]
    given = [{"text": "And owls?", "turns": turns}, {"text": "And cats?", "turns": turns}]
    added = wb.test_sets.add_questions("Copy", given)
    assert [question.text for question in added] == ["And owls?"]
    with pytest.raises(InvalidInput, match="must be a list of texts"):
        wb.test_sets.add_questions("Copy", [Question("q", "And owls?", metadata={"turns": "dogs"})])
    with pytest.raises(InvalidInput, match="Unknown fields 'tags'; a question has 'text'"):
        wb.test_sets.add_questions("Copy", [{"text": "And owls?", "tags": ["birds"]}])


def test_turns_that_are_no_texts_are_reported_with_their_line(talked: Path) -> None:
    rows = [json.loads(line) for line in (talked / "queries.jsonl").read_text().splitlines()]
    rows[1]["turns"] = [1, 2]
    (talked / "queries.jsonl").write_text("\n".join(map(json.dumps, rows)))
    [problem] = load_test_set(talked).problems
    assert problem.startswith("queries.jsonl, line 2: The earlier turns of a question must be a list of texts")


def test_earlier_questions_are_joined_without_the_answers() -> None:
    assert join_turns(TURNS, "How?") == "How? Tell me about fish. Do fish have gills?"
    assert join_turns(("a", "b", "c", "d", "e"), "f") == "f c e"
    assert join_turns((), "f") == "f"


def test_terms_that_only_earlier_questions_have_count_a_third() -> None:
    terms = (QueryTerm("owl", 7, 5, 2), QueryTerm("unknown", None, 0, 3), QueryTerm("fish", 9, 5, 5))
    words = Words(terms, ScopeTotals(100, 10.0, ("english",)), TermWeights((7, 9), (6.0, 3.0), (5, 5), 1.0, 1.0, 100))
    assert weigh_earlier_terms(words, 4).weights.weights == (6.0, 1.0)
    assert weigh_earlier_terms(words, 1).weights.weights == (2.0, 1.0)


def test_a_search_uses_the_turns_unless_it_is_told_not_to(wb: Workbench, folder: Callable[..., Path]) -> None:
    wb.ingest(folder({f"{key}.md": f"# {title}\n\n{text}" for key, (title, text) in TEXTS.items()}))
    history = ["Tell me about dogs.", "Dogs bark."]
    alone = wb.search("And what do they do?", "keyword")
    assert not alone.results and alone.rewritten == ""
    found = wb.search("And what do they do?", "keyword", history=history)
    assert found[0].document_title == "Dogs" and found.query == "And what do they do?"
    assert found.rewritten == "And what do they do? Tell me about dogs."
    ignored = wb.search("And what do they do?", "hybrid", history=history, parameters={"history": "ignore"})
    assert ignored.rewritten == "" and ignored.results == wb.search("And what do they do?", "hybrid").results
    compared = wb.compare(
        "And what do they do?", ["hybrid", "rerank"], history=history, parameters={"rerank": {"history": "ignore"}}
    )
    assert [result.rewritten for result in compared.strategies.values()] == [found.rewritten, ""]
    why = wb.explain("And what do they do?", found[0].passage_id, strategy="hybrid", history=history)
    assert why.rank == 1 and why.elsewhere["keyword"] == 1
    with pytest.raises(InvalidInput, match="expected a list of str, the earlier turns"):
        wb.search("And what do they do?", history="Tell me about dogs.")
    with pytest.raises(ConfigurationError, match="history=llm needs an LLM"):
        wb.search("And what do they do?", "hybrid", history=history, parameters={"history": "llm"})


def test_an_llm_rewrites_the_question_and_if_it_fails_the_turns_are_joined(
    llm_wb: Callable[[str], Workbench], folder: Callable[..., Path]
) -> None:
    plain = llm_wb("plain")
    plain.ingest(folder({f"{key}.md": f"# {title}\n\n{text}" for key, (title, text) in TEXTS.items()}))
    options = {"history": ["Tell me about dogs.", "Dogs bark.", "Thanks.", ""], "parameters": {"history": "llm"}}
    found = plain.search("And what do they do?", "hybrid", **options)
    assert found.rewritten == "Tell me about dogs. And what do they do?" and found.timings_ms["llm"] > 0
    assert found.timings_ms["total"] >= found.timings_ms["llm"]
    failed = llm_wb("locked").search("And what do they do?", "hybrid", **options)
    assert failed.rewritten == "And what do they do? Tell me about dogs. Thanks."
    assert any(note.startswith("history: ") and note.endswith("were joined instead.") for note in failed.degraded)


def test_the_command_measures_with_and_without_the_turns(wb: Workbench, talked: Path) -> None:
    words = [str(talked), "--strategies", "hybrid", "--metrics", "mrr@1"]
    joined = run(wb, *words)[0]["strategies"]["hybrid"]
    ignored = run(wb, *words, "--set", "history=ignore")[0]["strategies"]["hybrid"]
    assert joined["mrr@1"] == 1.0 and ignored["mrr@1"] < 1.0  # two questions have the same words


def test_one_experiment_measures_with_and_without_the_turns(wb: Workbench, talked: Path) -> None:
    key = wb.test_sets.from_folder(talked).id
    both = {"hybrid": [{"history": "join"}, {"history": "ignore"}]}
    made = wb.experiments.create("Turns", key, ["hybrid"], parameters=both, metrics=["mrr@1"])
    wb.experiments.run(made.id)
    joined, ignored = (one.run.means["mrr@1"] for one in wb.experiments.results(made.id) if one.run)
    assert joined == 1.0 and ignored < 1.0


# Repetitions of an LLM


def test_values_are_means_over_the_repetitions_with_their_spread() -> None:
    rounds = [{"mrr@10": {"a": 1.0, "b": 0.0}}, {"mrr@10": {"a": 0.0, "b": 0.0}, "cited": {"a": 1.0}}]
    assert average_values(rounds) == {"mrr@10": {"a": 0.5, "b": 0.0}, "cited": {"a": 1.0}}
    assert measure_spread(rounds) == {"mrr@10": 0.353553}  # of .5 and 0
    assert measure_spread(rounds[:1]) == {}


def test_only_what_calls_an_llm_is_repeated(llm_wb: Callable[[str], Workbench], beir: WriteTestSet) -> None:
    wb = llm_wb("moody")
    test_set = load_test_set(beir())
    measured = run_strategies(wb, test_set, index_corpus(wb, test_set), ["keyword", "hyde"], ["mrr@10"], repeats=2)
    keyword, hyde = measured.strategies.values()
    assert keyword.spread == {} and set(hyde.spread) == {"mrr@10"}
    assert average_rounds([hyde]).values == hyde.values
    _, _, said = run(wb, str(beir(name="again")), "--strategies", "hyde", "--repeats", "2", "--metrics", "mrr@10")
    assert "±" in said
    with pytest.raises(InvalidInput, match="Invalid number of repetitions 0"):
        run(wb, str(beir(name="never")), "--repeats", "0")


# Citations, and what better retrieval does to answers


def test_citations_are_relevant_by_span_or_by_document() -> None:
    cited = [("a", 0, 10), ("a", 20, 30), ("b", 0, 5)]
    assert measure_citations(cited, [("a", None, None), ("c", None, None)]) == (2 / 3, 1 / 2)
    assert measure_citations(cited, [("a", 9, 12), ("a", 15, 20)]) == (1 / 3, 1 / 2)
    assert measure_citations([], [("a", None, None)]) == (None, 0.0)


def test_the_lift_counts_answers_that_follow_their_retrieval() -> None:
    found = {"new": {"a": 1.0, "b": 1.0, "c": 0.0, "d": 0.5}, "old": {"a": 0.0, "b": 0.5, "c": 1.0, "d": 0.5}}
    answered = {"new": {"a": 1.0, "b": 0.0, "c": 0.0}, "old": {"a": 0.0, "b": 0.0, "c": 1.0}}
    lift = measure_lift("new", "old", ("ndcg@10", found), ("holding", answered))
    assert (list(lift.better), list(lift.worse)) == ([1, 1, 0], [0, 0, 1])
    assert lift.retrieval.difference == pytest.approx((1 + 0.5 - 1) / 3, abs=1e-6) and lift.answers.difference == 0.0
    assert "new against old: nDCG@10 is better for 2 questions, of whose answers 1 got better" in lift.describe()


def test_the_command_reports_citations_and_the_lift(wb: Workbench, beir: WriteTestSet) -> None:
    payload, _, said = run(wb, str(beir()), "--strategies", "keyword,hybrid", "--metrics", "mrr@10", "--answers")
    scores = payload["answers"]["hybrid"]
    assert scores.questions == 5 and scores.holding is None and 0 < scores.citation_recall <= 1
    assert set(scores.values) == {"citation-precision", "citation-recall"}
    [lift] = payload["lift"]
    assert {lift.retrieval.a, lift.retrieval.b} == {"keyword", "hybrid"} and lift.describe() in said
    assert "citation precision" in said


def test_answers_of_an_llm_are_repeated(llm_wb: Callable[[str], Workbench], beir: WriteTestSet) -> None:
    wb = llm_wb("moody")
    test_set = load_test_set(beir())
    scores = measure_answers(
        test_set, ask_answers(wb, test_set, index_corpus(wb, test_set), "hybrid", {}, repeats=2, budget=Budget())
    )
    assert scores.spread["citation-recall"] > 0  # every second answer cites nothing


def test_answers_are_written_from_what_a_run_searched(wb: Workbench, beir: WriteTestSet) -> None:
    """With its parameters, over its index."""
    wb.indexes.create("small", chunker="sentence", options={"size": 16})
    word = Parameter("word", "text", "bees", "What is searched for, whatever the question")

    def answer_always_the_same(question: str, limit: int, word: str) -> list[str]:
        return [TEXTS[word][1]]

    wb.strategies.add("stubborn", answer_always_the_same, parameters=[word])
    words = [str(beir()), "--strategies", "stubborn,stubborn@small", "--metrics", "mrr@10", "--answers"]
    payload, _, _ = run(wb, *words, "--set", "stubborn.word=cats")
    wb.strategies.remove("stubborn")
    found = {
        name: {key for key, value in scores.values["citation-recall"].items() if value}
        for name, scores in payload["answers"].items()
    }
    assert found == {"stubborn": {"q1"}, "stubborn@small": {"q1"}}


# Both in an experiment


def count_answers(experiments: Experiments, experiment_id: str) -> int:
    """Count the stored answers of an experiment."""
    query = """SELECT count(*) AS n FROM eval_answers JOIN experiment_runs USING (run_id)
        WHERE experiment_id = %s AND reply IS NOT NULL"""
    with experiments._wb.corpus.database.transaction() as connection:
        row = connection.execute(query, (experiment_id,)).fetchone()
    return int(row["n"]) if row else 0


def test_an_experiment_also_answers_and_repeats_what_calls_an_llm(
    llm_wb: Callable[[str], Workbench], beir: WriteTestSet
) -> None:
    experiments = llm_wb("moody").experiments
    animals = experiments.test_sets.add(load_test_set(beir())).id
    made = experiments.create("Twice", animals, ["keyword", "hyde"], metrics=["mrr@10"], answers=True, repeats=2)
    assert (made.runs, len(made.cells)) == (2, 3 + 4)  # searches, and each run's answers twice
    progress: list[float] = []
    looks = iter(range(10_000))
    with pytest.raises(Cancelled):  # after the searches (15) and some of the 20 answers
        experiments.run(made.id, should_stop=lambda: next(looks) > 35)
    assert experiments.get(made.id).status == "stopped"
    kept = count_answers(experiments, made.id)
    done = experiments.run(made.id, on_progress=lambda one: progress.append(one.done / one.total))
    assert done.message == f"0 questions run, 15 cached. {20 - kept} answers written, {kept} cached."
    assert 5 <= kept < 20 and progress[-1] == 1.0
    keyword, hyde = experiments.results(made.id)
    assert keyword.run is not None and hyde.run is not None and hyde.cell.label == "hyde"
    assert "mrr@10" in hyde.run.spread and "mrr@10" not in keyword.run.spread
    assert keyword.run.spread["citation-recall"] > 0  # every second answer cites nothing
    lines = experiments.leaderboard(made.id, "citation-recall")
    assert {line.label for line in lines} == {"keyword", "hyde"} and lines[0].spread
    scores, [lift] = experiments.answers(made.id)
    assert list(scores) == [line.label for line in experiments.leaderboard(made.id)]
    assert (lift.retrieval.metric, lift.answers.metric) == ("mrr@10", "citation-recall")


def test_answers_of_an_export_of_an_earlier_version_are_read(
    wb: Workbench, beir: WriteTestSet, database_url: str
) -> None:
    experiments = wb.experiments
    animals = experiments.test_sets.add(load_test_set(beir())).id
    made = experiments.run(experiments.create("Answered", animals, ["keyword"], metrics=["mrr@10"], answers=True).id)
    before = experiments.answers(made.id)
    with psycopg.connect(database_url) as connection:  # where that version stored replies
        connection.execute(
            "UPDATE eval_answers SET usage = usage || jsonb_build_object('reply', reply), reply = NULL "
            "WHERE reply IS NOT NULL"
        )
    assert experiments.answers(made.id) == before and before[0]["keyword"].questions > 0
    assert experiments.run(made.id).status == "done"


def test_a_run_file_has_no_answers_and_the_others_keep_theirs(wb: Workbench, beir: WriteTestSet) -> None:
    experiments = wb.experiments
    animals = experiments.test_sets.add(load_test_set(beir())).id
    made = experiments.run(experiments.create("Answered", animals, ["keyword"], metrics=["mrr@10"], answers=True).id)
    experiments.add_run_file(made.id, "theirs", "q1 Q0 cats 1 1.0 x")
    scores, lifts = experiments.answers(made.id)
    assert set(scores) == {"keyword"} and lifts == []
    results = experiments.results(made.id)
    assert find_shared_metrics(results, results) == ["mrr@10", "citation-recall", "citation-precision"]
    for metric, labels in (("mrr@10", {"keyword", "theirs (run file)"}), ("citation-recall", {"keyword"})):
        assert {line.label for line in experiments.leaderboard(made.id, metric)} == labels
        assert {pair.label for pair in pair_runs(results, results, metric)} == labels


def test_the_leaderboard_by_citation_precision_is_of_the_questions_that_all_runs_cite_for() -> None:
    def result(label: str, precision: dict[str, float]) -> CellResult:
        run = StrategyRun(label, {}, {}, {"mrr@10": {"a": 1.0, "b": 0.5}})
        values = {"citation-precision": precision, "citation-recall": {"a": 1.0, "b": 0.0}}
        scores = AnswerScores(2, None, 0.5, 0.5, 9.0, 9, 0.0, values)
        return CellResult(Cell(label), label, "done", run, "main", extra={"answers": scores})

    kept = add_answer_values([result("old", {"a": 0.5, "b": 1.0}), result("new", {"a": 0.25})])
    lines = make_leaderboard(kept, "citation-precision")
    assert [(line.label, line.metrics["citation-precision"]) for line in lines] == [("old", 0.5), ("new", 0.25)]


def test_the_lift_is_by_citations_if_no_answer_contains_its_reference() -> None:
    found = {name: {"a": 1.0, "b": 0.0} for name in ("new", "old")}

    def scores(held: float) -> AnswerScores:
        values = {"holding": {"a": held, "b": 0.0}, "citation-recall": {"a": 1.0, "b": 0.0}}
        return AnswerScores(2, held / 2, None, 0.5, 9.0, 9, 0.0, values)

    for held, measure in ((0.0, "citation-recall"), (1.0, "holding")):
        [lift] = measure_lifts(["new", "old"], "mrr@10", found, {"new": scores(0.0), "old": scores(held)})
        assert lift.answers.metric == measure


def test_parts_leave_out_questions_without_a_value() -> None:
    values = {"best": {"a": 1.0, "b": 0.5}, "other": {"a": 0.5, "b": 0.5}}  # c has no reference answer
    found = compare_in_slices("area", "holding", {"north": ["a", "c"], "south": ["c"], "west": ["b", "c"]}, values)
    assert [(one.name, one.questions, one.means["other"]) for one in found.slices] == [
        ("north", 1, 0.5),
        ("west", 1, 0.5),
    ]


def test_a_strategy_that_fails_leaves_the_answers_of_the_others(wb: Workbench, beir: WriteTestSet) -> None:
    experiments = wb.experiments
    animals = experiments.test_sets.add(load_test_set(beir())).id
    made = experiments.create("One fails", animals, ["scoped", "keyword"], metrics=["mrr@10"], answers=True)
    experiments.run(made.id)
    assert [line.status for line in experiments.leaderboard(made.id, "citation-recall")] == ["done", "failed"]
