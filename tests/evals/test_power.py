"""What a test set can show: agreement with simulated experiments, decisions, and weaknesses of a test set."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evals.command import add_arguments, evaluate
from evals.experiments.leaderboard import describe_weaknesses, describe_wording
from evals.measures.significance import (
    compare_with_best,
    count_questions_needed,
    describe_decision,
    describe_difference,
    describe_outcome,
    describe_power,
    explain_difference,
    find_smallest_difference,
    find_winner_name,
    measure_power,
    randomisation_p,
)
from evals.test_set import Judgment, Question, TestSet
from tests.evals.conftest import WriteTestSet
from workbench import Workbench
from workbench.errors import InvalidInput

SIMULATIONS = 400
Values = dict[str, dict[str, float]]


def draw_normal(rng: np.random.Generator, questions: int) -> np.ndarray:
    """Return differences with a deviation of 0.3."""
    return rng.normal(0, 0.3, questions)


def draw_sparse(rng: np.random.Generator, questions: int) -> np.ndarray:
    """Return differences of which seven in ten are 0, with a deviation of sqrt(.3 * .625)."""
    steps = rng.choice([-1, 1, 0.5, -0.5], questions)
    return np.where(rng.random(questions) < 0.3, steps, 0.0)


@pytest.mark.parametrize(
    ("draw", "deviation", "questions"),
    [(draw_normal, 0.3, 20), (draw_normal, 0.3, 100), (draw_sparse, (0.3 * 0.625) ** 0.5, 60)],
    ids=["normal-20", "normal-100", "sparse-60"],
)
def test_the_smallest_difference_agrees_with_a_simulation_within_ten_percent(
    draw: Callable[[np.random.Generator, int], np.ndarray], deviation: float, questions: int
) -> None:
    rng = np.random.default_rng(3)
    smallest = find_smallest_difference(deviation, questions)
    assert smallest is not None

    def simulate_power(difference: float) -> float:
        found = (randomisation_p(list(draw(rng, questions) + difference), rounds=1000) for _ in range(SIMULATIONS))
        return float(np.mean([p < 0.05 for p in found]))

    assert simulate_power(0.9 * smallest) < 0.8 < simulate_power(1.1 * smallest)
    needed = count_questions_needed(deviation, smallest)
    assert needed == pytest.approx(questions, abs=1)


def test_a_simulated_experiment_between_equal_strategies_has_no_winner_more_often_than_the_level_allows() -> None:
    rng = np.random.default_rng(5)
    winners = {2: 0, 4: 0}
    differing = {2: 0, 4: 0}
    for strategies in winners:
        for _ in range(500):
            drawn = rng.normal(0.5, 0.3, (strategies, 30))
            values: Values = {f"s{n}": {f"q{m}": float(v) for m, v in enumerate(row)} for n, row in enumerate(drawn)}
            differences = compare_with_best("ndcg@10", values)
            best = max(values, key=lambda name: sum(values[name].values()))
            winners[strategies] += find_winner_name(best, differences) is not None
            differing[strategies] += any(one.significant for one in differences)
    assert sum(winners.values()) <= 50 and sum(differing.values()) <= 70  # 5% of 1,000, and twice its deviation more
    assert winners[4] < winners[2]


def make_values(*rows: list[float]) -> Values:
    """Return the values of strategies a, b, c ... by question."""
    return {"abcdef"[n]: {f"q{m}": v for m, v in enumerate(row)} for n, row in enumerate(rows)}


def test_few_differing_questions_show_nothing_and_the_number_needed_counts_them() -> None:
    values = make_values([1.0] * 5, [0.0] * 4 + [1.0])
    found = measure_power("hit@1", values)
    assert found.smallest is None  # the exact test of five questions never falls below 2 / 2**5 = .0625
    assert describe_power(found) == ["5 questions are too few to show any difference."]
    rare = measure_power("hit@1", make_values([1.0] + [0.5] * 19, [0.0] + [0.5] * 19), wanted=0.5)
    assert (rare.differing, rare.needed) == (0.05, 120)  # six differing questions, one in twenty
    with pytest.raises(InvalidInput, match="Invalid difference 0; use a number above 0"):
        measure_power("hit@1", values, wanted=0)
    with pytest.raises(InvalidInput, match="needs two strategies"):
        measure_power("hit@1", make_values([1.0] * 5))
    rng = np.random.default_rng(5)
    shown = measure_power("ndcg@10", make_values(list(rng.random(50)), list(rng.random(50))))
    assert describe_power(shown)[0].startswith(f"50 questions can show a difference of {shown.smallest:.3f} nDCG@10")
    planned = measure_power("hit@1", make_values([1.0, 0.0] * 20, [0.0, 1.0] * 20), comparisons=6)
    alone = measure_power("hit@1", make_values([1.0, 0.0] * 20, [0.0, 1.0] * 20))
    assert (alone.comparisons, planned.comparisons) == (1, 6)
    assert alone.smallest is not None and planned.smallest is not None and alone.smallest < planned.smallest
    equal = measure_power("hit@1", make_values([1.0] * 5, [1.0] * 5), wanted=0.1)
    assert (equal.smallest, equal.needed) == (None, None)
    assert describe_power(equal) == [
        "The strategies scored the same on all 5 questions, so power cannot be estimated from them."
    ]


def test_the_number_needed_is_the_smallest_that_shows_the_difference_also_a_large_one() -> None:
    assert count_questions_needed(0.2, 0.5, comparisons=3) == 7  # 2 / 2**7 is below .05 / 3; the t-test needs 5
    for deviation, wanted, comparisons in ((0.3, 0.3, 1), (0.35, 0.2, 6), (0.2, 0.05, 3)):
        needed = count_questions_needed(deviation, wanted, comparisons=comparisons)
        assert needed is not None
        smallest = find_smallest_difference(deviation, needed, comparisons=comparisons)
        assert smallest is not None and smallest <= wanted
        fewer = find_smallest_difference(deviation, needed - 1, comparisons=comparisons)
        assert fewer is None or fewer > wanted


def test_a_difference_is_decided_or_needs_a_number_of_further_questions() -> None:
    rng = np.random.default_rng(2)
    base = rng.random(60)
    clear = make_values(list(base), list(base - 0.4))
    assert describe_outcome("a", compare_with_best("ndcg@10", clear)) == "Decided: a is better than b."
    [pooled] = compare_with_best("ndcg@10", clear)
    pooled = replace(pooled, significant=False, unjudged=0.7, comparisons=3)  # only its pool leaves it open
    assert describe_difference(pooled).endswith("p < .001, and p < .001 after correcting for 3 comparisons")
    noise = rng.normal(0.03, 0.2, 60)
    [open_one] = compare_with_best("ndcg@10", make_values(list(base + noise), list(base)))
    assert not open_one.significant and open_one.more_questions is not None
    needed = ((1.96 + 0.8416) * open_one.deviation / abs(open_one.difference)) ** 2 - 60
    assert open_one.more_questions == pytest.approx(needed, abs=4)
    assert describe_decision(open_one).startswith("not decided: about ")
    assert explain_difference(open_one) == (
        f"{describe_difference(open_one).capitalize()}; {describe_decision(open_one)[13:]} would decide it."
    )
    outcome = describe_outcome("a", [open_one])
    more = describe_decision(open_one)[13:]
    assert outcome == f"Not decided: a leads, but b may be as good; {more} would decide it."
    # c is further from a than b, but its differences vary more, so it takes more questions
    values = make_values(list(base), list(base - noise), list(base - 0.08 - np.tile([1.2, -1.2], 30)))
    rivals = {one.a: one for one in compare_with_best("ndcg@10", values)}
    assert not any(one.significant for one in rivals.values())
    b, c = rivals["b"], rivals["c"]
    assert abs(b.difference) < abs(c.difference) and (b.more_questions or 0) < (c.more_questions or 0)
    more = describe_decision(c)[13:]
    outcome = describe_outcome("a", [b, c])
    assert outcome == f"Not decided: a leads, but b, c may be as good; {more} would decide it."
    tie = compare_with_best("ndcg@10", make_values(list(base), list(base)))
    assert describe_outcome("a", tie) == "Not decided: a, b are equal on all 60 questions."
    assert [explain_difference(one) for one in tie] == ["Tie: equal on all 60 questions."]
    assert [describe_decision(one) for one in tie] == ["tie"] and find_winner_name("a", tie) is None


def test_weaknesses_name_repeated_questions_and_questions_with_the_words_of_their_passage() -> None:
    texts = [
        "Which  northern archive keeps the red lantern?",
        "which northern archive keeps the red lantern",
        "Who guards it?",
    ]
    questions = tuple(Question(f"q{n}", text) for n, text in enumerate(texts))
    judged = tuple(Judgment(question.id, "d", 1) for question in questions)
    test_set = TestSet("Sets", questions, judged)
    found = describe_weaknesses(test_set, {}, "ndcg@10")
    assert not any(one.startswith("Left out") for one in found)
    more = [Question("none", "Who sings?", metadata={"answerable": False}), Question("q3", "Who swims?")]
    found = describe_weaknesses(TestSet("Sets", (*questions, *more), (*judged, Judgment("q3", "d", 0))), {}, "ndcg@10")
    assert (
        "Left out, as nothing is judged relevant: 1 question; judge more documents, or mark the questions that they do "
        "not answer." in found
    )
    assert (
        "1 question repeats an earlier one, so their answers count more than once; the first: "
        "'Which  northern archive keeps the red lantern?'." in found
    )
    answer = ["Ships sail at noon. The northern archive keeps the red lantern. A dog barks."]
    [sentence] = describe_wording(test_set, dict.fromkeys(["q0", "q1", "q2"], answer))
    assert sentence.startswith("2 of 3 questions repeat the words of a sentence that is judged relevant")
    harbour = replace(
        test_set, questions=(Question("q0", "When and where does a ship leave the northern harbour in winter?"),)
    )
    assert describe_wording(harbour, {"q0": ["Ships leave the northern harbour in winter."]})  # 4 of 5 content words
    apart = ["The archive is north. It keeps lanterns. One of them is red."]
    assert describe_wording(test_set, dict.fromkeys(["q0", "q1", "q2"], apart)) == []


def test_the_command_reports_the_power_of_a_pilot_for_the_whole_test_set(
    wb: Workbench, beir: WriteTestSet, tmp_path: Path
) -> None:
    numbers = range(24)
    texts = {f"d{n}": (f"Note {n}", f"The archive keeps item zq{n}x among many other things.") for n in numbers}
    asked = {f"q{n}": (f"Where in the archive is zq{n}x?", {f"d{n}": 1}) for n in numbers}
    # The other system finds each document, but second for two of three questions: nDCG 1 or 1 / log2(3).
    orders = [(n, [f"d{n}", "d-none"] if n % 3 == 0 else ["d-none", f"d{n}"]) for n in numbers]
    rows = [f"q{n} Q0 {document} 1 {9 - place} x" for n, order in orders for place, document in enumerate(order)]
    theirs = tmp_path / "theirs.trec"
    theirs.write_text("\n".join(rows))
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    words = ["--strategies", "keyword", "--run-file", f"theirs={theirs}", "--ragas", "none", "--metrics", "ndcg@10"]
    shown: list[str] = []
    arguments = parser.parse_args([str(beir(texts, asked)), *words, "--pilot", "12", "--difference", "0.05"])
    payload, code = evaluate(wb, arguments, say=shown.append)
    assert code == 0 and "power" in payload and "outcome" in payload
    power = payload["power"]
    assert (power.pilot, power.questions, power.wanted, power.differing) == (
        12,
        24,
        0.05,
        pytest.approx(2 / 3, abs=1e-6),
    )
    assert power.deviation == pytest.approx((1 - 1 / np.log2(3)) * (8 / 12 * 4 / 12 * 12 / 11) ** 0.5, abs=1e-6)
    assert any(
        "24 questions can show a difference of" in line and "estimated from 12 of them" in line for line in shown
    )
    assert any(line.startswith("A difference of 0.05 needs about") for line in shown)
    assert payload["outcome"] == "Decided: keyword is better than theirs." and payload["outcome"] in shown
    result = wb.evaluate(
        beir(texts, asked), "keyword", ["ndcg@10"], run_files={"theirs": theirs}, limit=12, on_progress=lambda _: None
    )
    assert result.winner == "keyword" and result.power(0.05, questions=24) == power
    assert list(result.to_pandas()["decision"]) == ["", "decided"]
