"""Pools are blind, ordered by what can change the decision, and read back; unjudged shares and bounds by hand."""

from __future__ import annotations

import argparse
import csv
import io
from pathlib import Path

import pytest

from evals.command import add_arguments, evaluate, write_pool
from evals.evaluation import SECONDS_PER_PAIR, add_judgments, make_pool, read_pool
from evals.experiments.leaderboard import describe_pool, judge_bars, mark_undecidable
from evals.experiments.runs import Bar, Ranking, score_answers
from evals.measures.metrics import measure_bounds, measure_rankings, measure_unjudged
from evals.measures.significance import compare_with_best, describe_outcome, find_winner_name
from evals.test_set import Judgment, Question, TestSet
from evals.test_sets.folders import load_test_set
from tests.evals.conftest import WriteTestSet
from workbench import Workbench
from workbench.errors import InvalidInput


def make_rankings(**documents: dict[str, str]) -> dict[str, dict[str, Ranking]]:
    """Return rankings of one-letter documents: ``make_rankings(a={"q1": "xyz"})``."""
    return {
        name: {key: Ranking(key, tuple(letters), (), 1.0) for key, letters in own.items()}
        for name, own in documents.items()
    }


QUESTIONS = (Question("q1", "One?"), Question("q2", "Two?"))
OPEN = TestSet("Open", QUESTIONS, (Judgment("q1", "x", 1), Judgment("q1", "y", 0)))


def test_a_pool_has_each_unjudged_document_once_and_no_strategy() -> None:
    rankings = make_rankings(a={"q1": "xpz", "q2": "uvw"}, b={"q1": "zyx", "q2": "uwv"})
    made = make_pool(OPEN, rankings, depth=3)
    assert {(item.question_id, item.document) for item in made.items} == {
        ("q1", "p"), ("q1", "z"), ("q2", "u"), ("q2", "v"), ("q2", "w"),
    }  # fmt: skip
    assert (made.total, made.judged, made.left_out) == (7, 2, 0)
    swapped = make_pool(OPEN, {"b": rankings["b"], "a": rankings["a"]}, depth=3)
    assert swapped.items == made.items  # the order does not depend on who found what
    # z: rank 3 or 1, 1 - .5**2; p: rank 2 or none, .631**2; v and w: ranks 2 and 3, .148; u: the same rank in both, 0
    assert [item.document for item in made.items][:2] == ["z", "p"] and made.items[-1].document == "u"


def test_a_budget_keeps_the_pairs_that_can_change_the_decision() -> None:
    rankings = make_rankings(a={"q1": "xpz", "q2": "uvw"}, b={"q1": "zyx", "q2": "uwv"})
    made = make_pool(OPEN, rankings, depth=3, minutes=2 * SECONDS_PER_PAIR / 60)
    assert [item.document for item in made.items] == ["z", "p"] and made.left_out == 3
    with pytest.raises(InvalidInput, match="budget of 0 minutes"):
        make_pool(OPEN, rankings, minutes=0)


def test_a_judged_pool_is_read_and_blank_rows_are_counted() -> None:
    rows = ["id,question,document,title,text,grade", "q1,One?,p,,,relevant", "q1,One?,z,,,", "q9,?,z,,,not"]
    found = read_pool(OPEN, "\n".join([*rows, "q2,Two?,u,,,maybe", "q2,Two?,v,,,1"]))
    assert found.judgments == (Judgment("q1", "p", 2), Judgment("q2", "v", 1))
    assert found.blank == 1
    assert [problem[:33] for problem in found.problems] == [
        "Row 4: There is no question 'q9' ", "Row 5: Invalid grade 'maybe'; use",
    ]  # fmt: skip
    assert found.describe()[:2] == ["Read 2 judgments.", "Left out: 1 row without a grade."]
    assert read_pool(OPEN, "\n".join(rows).replace(",", ";")).judgments == (Judgment("q1", "p", 2),)  # a spreadsheet
    with pytest.raises(InvalidInput, match="has no column 'document'"):
        read_pool(OPEN, "id,grade\nq1,1")


def test_a_grade_that_is_not_on_the_scale_leaves_out_its_row_only(wb: Workbench, beir: WriteTestSet) -> None:
    info = wb.test_sets.from_folder(beir(), "Animals")
    rows = "id,document,grade\nq1,cats,7\nq1,dogs,not\nq2,cats,-1\nq2,dogs,RELEVANT\n"
    read = wb.test_sets.import_pool(info.id, rows, "Ada")
    assert [(one.document, one.grade) for one in read.judgments] == [("dogs", 0), ("dogs", 2)]
    assert [one[:23] for one in read.problems] == ["Row 2: Invalid grade 7 ", "Row 4: Invalid grade -1"]


def test_the_queue_keeps_its_order_while_it_is_judged() -> None:
    ids = [f"q{n}" for n in range(12)]
    rankings = make_rankings(a=dict.fromkeys(ids, "xyz"), b=dict.fromkeys(ids, "xzy"), c=dict.fromkeys(ids, "uvw"))
    test_set = TestSet("Open", tuple(Question(key, f"{key}?") for key in ids), ())
    queue = make_pool(test_set, rankings, depth=3).items
    # after this, c is significantly worse, but further judgments can still change that
    judged = TestSet("Open", test_set.questions, tuple(Judgment(key, "x", 1) for key in ids))
    left = make_pool(judged, rankings, depth=3).items
    assert left == tuple(item for item in queue if item.document != "x")


def test_the_unjudged_share_and_the_bounds_can_be_checked_by_hand() -> None:
    qrels = {"q1": {"a": 1, "b": 0}, "q2": {"c": 1}}
    rankings = {"q1": ["x", "a", "b"], "q2": ["y", "z"]}
    assert measure_unjudged(qrels, rankings, 2) == pytest.approx((1 / 2 + 2 / 2) / 2)
    assert measure_bounds(qrels, rankings, "precision@5") == pytest.approx((1 / 5 / 2, (2 / 5 + 2 / 5) / 2))
    assert measure_bounds(qrels, rankings, "recall@10") == pytest.approx((1 / 2, (1 + 2 / 3) / 2))
    assert measure_bounds({"q1": {"a": 1, "x": -1}}, {"q1": ["x", "a"]}, "hit@1") == (0.0, 1.0)  # -1 is unjudged
    complete = {"q1": {"a": 1, "b": 0, "x": 0}}
    assert measure_bounds(complete, rankings, "mrr@10") == (0.5, 0.5)


def test_a_pool_of_which_little_is_judged_has_no_winner() -> None:
    ids = [f"q{n}" for n in range(20)]
    rankings = make_rankings(own=dict.fromkeys(ids, "abcdef"), other=dict.fromkeys(ids, "cadghi"))  # nine documents

    def decide(**grades: int) -> tuple[str | None, str, str, str]:
        judged = tuple(Judgment(key, document, grade) for key in ids for document, grade in grades.items())
        test_set = TestSet("Pool", tuple(Question(key, f"{key}?") for key in ids), judged)
        runs = {name: score_answers(test_set, name, {}, answers, ["mrr@10"]) for name, answers in rankings.items()}
        differences = compare_with_best("mrr@10", {name: run.values["mrr@10"] for name, run in runs.items()})
        found = mark_undecidable(differences, list(runs.values()))
        bars = [
            Bar("own", "mrr@10", against="other", min_gain=0.1),
            Bar("other", "mrr@10", against="own", max_drop=0.1),
        ]
        gain, fall = (bar.state for bar in judge_bars("Pool", bars, runs))
        same = Bar("other", "mrr@10", max_drop=0.1)  # no worse than its baseline
        before = {"other": {"mrr@10": runs["other"].values["mrr@10"]}}
        assert [bar.state for bar in judge_bars("Pool", [same], runs, before)] == ["passed"]
        return find_winner_name("own", found), describe_outcome("own", found), gain, fall

    said = "Not decided: own leads, but other may be as good; 78% of the pool is unjudged."
    open_one = (None, said, "undecided", "undecided")
    decided = ("own", "Decided: own is better than other.", "passed", "failed")
    assert decide(a=1, c=0) == open_one  # two of nine
    assert decide(a=1, c=0, d=-1) == open_one  # -1 is unjudged
    assert decide(a=1, c=0, d=0) == decided  # a third
    assert decide(a=1) == decided  # relevant documents only


def test_a_pool_is_recognised_by_the_questions_without_a_relevant_document_too() -> None:
    ids = [f"q{n}" for n in range(40)]
    rankings = make_rankings(own=dict.fromkeys(ids, "abcdef"), other=dict.fromkeys(ids, "cadghi"))
    relevant = [Judgment(key, "a", 1) for key in ids[:20]]  # each question has one judgment, of nine documents

    def decide(judgments: list[Judgment]) -> str | None:
        test_set = TestSet("Pool", tuple(Question(key, f"{key}?") for key in ids), tuple(judgments))
        runs = {name: score_answers(test_set, name, {}, answers, ["mrr@10"]) for name, answers in rankings.items()}
        differences = compare_with_best("mrr@10", {name: run.values["mrr@10"] for name, run in runs.items()})
        return find_winner_name("own", mark_undecidable(differences, list(runs.values())))

    assert decide([*relevant, *(Judgment(key, "f", 0) for key in ids[20:])]) is None
    assert decide([*relevant, *(Judgment(key, "f", 0) for key in ids[20:39])]) == "own"  # fewer: not from a pool


RECORDED = {  # ``trec_eval -q -m bpref -m infAP``
    "bpref": {"q1": 0.3333, "q2": 1.0, "q3": 1.0, "q4": 1.0, "q5": 0.25},
    "infap": {"q1": 0.4167, "q2": 1.0, "q3": 0.0909, "q4": 0.8056, "q5": 0.3611},
}


@pytest.mark.parametrize("metric", RECORDED)
def test_metrics_for_incomplete_judgments_have_the_figures_of_trec_eval(metric: str) -> None:
    grades = {
        "q1": {"a": 1, "b": 1, "c": 0, "z": 1},  # bpref: c is above b and z, so (1 + 0 + 0) / 3
        "q2": {"a": 2, "d": 1},
        "q3": {"e": 1},
        "q4": {"f": 3, "g": 2, "h": 1},
        "q5": {"a": 1, "b": 0, "c": 0, "d": 1, "e": -1},  # bpref: b above a, b and c above d: (1/2 + 0) / 2
    }
    found = {"q1": "xacbywvutsrz", "q2": "da", "q3": "abcdfghijke", "q4": "gxfh", "q5": "bxaecd"}
    values = measure_rankings(grades, {key: list(letters) for key, letters in found.items()}, [metric])
    assert values[metric] == pytest.approx(RECORDED[metric], abs=5e-5)


def test_judgments_from_the_results_of_one_strategy_are_reported() -> None:
    ids = [f"q{n}" for n in range(4)]
    judged = tuple(Judgment(key, letter, int(letter == "a")) for key in ids for letter in "abcd")
    test_set = TestSet("Own pool", tuple(Question(key, f"{key}?") for key in ids), judged)
    rankings = make_rankings(own=dict.fromkeys(ids, "abcd"), other=dict.fromkeys(ids, "axyz"))
    runs = {name: score_answers(test_set, name, {}, answers, ["ndcg@10"]) for name, answers in rankings.items()}
    [sentence] = describe_pool(test_set, runs)
    assert sentence.startswith("The judgments seem to come from the results of own only (75% or more")
    both = make_rankings(own=dict.fromkeys(ids, "abcd"), other=dict.fromkeys(ids, "badc"))
    assert describe_pool(test_set, {n: score_answers(test_set, n, {}, a, ["ndcg@10"]) for n, a in both.items()}) == []


def test_the_command_writes_a_pool_and_uses_its_judgments(wb: Workbench, beir: WriteTestSet, tmp_path: Path) -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    info = wb.test_sets.from_folder(beir(), "Animals")
    queue = tmp_path / "pool.csv"
    shown: list[str] = []
    words = ["Animals", "--strategies", "keyword,vector", "--ragas", "none", "--metrics", "ndcg@10,bpref"]
    counts, _ = write_pool(wb, parser.parse_args([*words, "--pool", str(queue), "--pool-depth", "2"]), say=shown.append)
    rows = list(csv.DictReader(io.StringIO(queue.read_text())))
    assert counts["pairs"] == len(rows) > 0 and "pairs to judge" in shown[-1]
    assert not any("keyword" in value or "vector" in value for row in rows for value in row.values())
    assert all(row["text"] and row["title"] for row in rows) and {row["grade"] for row in rows} == {""}
    assert shown[-1].endswith("Fill in the column grade (relevant, partly, not), then use --judgments.")
    rows[0]["grade"], rows[0]["title"] = "not", "Café"
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    queue.write_text(stream.getvalue(), encoding="latin-1")  # as a spreadsheet saves it
    shown.clear()
    payload, code = evaluate(wb, parser.parse_args([*words, "--judgments", str(queue)]), say=shown.append)
    assert code == 0 and shown[0] == "Read 1 judgment."
    assert shown[1] == f"Left out: {len(rows) - 1} rows without a grade."
    assert any("share unjudged" in text for text in shown)
    keyword = payload["strategies"]["keyword"]
    assert set(keyword["unjudged"]) == {"ndcg@10", "bpref"} and set(keyword["bounds"]) == {"ndcg@10"}  # pyright: ignore
    stored = wb.test_sets.load(info.id)
    assert stored.version == info.version + 1 and stored.qrels[rows[0]["id"]][rows[0]["document"]] == 0
    wb.test_sets.update(info.id, grades=4)
    write_pool(wb, parser.parse_args([*words, "--pool", str(tmp_path / "of_four.csv")]), say=shown.append)
    assert "(perfect, relevant, related, not)" in shown[-1]
    with pytest.raises(InvalidInput, match=f"The folder '{tmp_path.name}' has no none.csv; add it."):
        evaluate(wb, parser.parse_args([*words, "--judgments", str(tmp_path / "none.csv")]), say=shown.append)
    folder = load_test_set(beir())
    made, read = add_judgments(wb, folder, "not stored", "id,document,grade\nq1,cats,not\nq1,nope,1\n")
    assert made.qrels["q1"]["cats"] == 0 and folder.qrels["q1"]["cats"] == 2 and "nope" not in made.qrels["q1"]
    assert read.describe()[1:] == ["Left out: The test set does not search a document 'nope'."]
