"""What searches cost: tokens, calls of the LLM and dollars per question, a budget, and the estimate before."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evals.experiments.runs import Prices, Ranking, Usage
from tests.evals.conftest import WriteTestSet
from tests.evals.test_baseline import run
from workbench import Workbench
from workbench.errors import ConfigurationError, InvalidInput, WorkbenchError
from workbench.formatting import format_dollars
from workbench.models.llm import Llm, count_llm_usage
from workbench.settings import Settings
from workbench.types import Scope


@pytest.fixture
def asked(beir: WriteTestSet) -> str:
    """A test set of five questions."""
    return str(beir())


@pytest.fixture
def llm_wb(make_settings: Callable[..., Settings], llm_url: str) -> Iterator[Workbench]:
    """A workbench with an LLM of $2 and $10 per million tokens."""
    settings = make_settings(llm_base_url=llm_url, llm_model="good", llm_price="2/10")
    with Workbench.open(settings=settings) as workbench:
        yield workbench


def test_the_calls_of_an_llm_are_counted_with_the_tokens_that_it_reports_or_else_an_estimate(llm_url: str) -> None:
    llm = Llm(llm_url, "good")
    with count_llm_usage() as all_calls:
        with count_llm_usage() as first:
            llm.complete("system", "a prompt")
        written = "".join(llm.stream("system", "a prompt of some words"))
    assert first.calls == 1 and first.input_tokens > 0 and first.output_tokens > 0
    assert all_calls.calls == 2
    assert all_calls.output_tokens - first.output_tokens == len(written.encode()) // 4


def test_a_search_costs_its_question_its_reranking_its_llm_and_the_time_of_the_machine() -> None:
    answer = Ranking("q", (), (), latency_ms=360.0, usage=Usage(0, 2, 1_000_000, 100_000))
    prices = Prices(llm_input=2.0, llm_output=10.0, machine=5.0, llm="good")
    question = "x" * 400  # 100 tokens
    embedded = 100 * 0.5 / 1e6
    machine = 5.0 * 0.36 / 3600
    model = "openai:small?price=0.5"
    assert prices.cost(question, answer, "hybrid", {}, model) == pytest.approx(embedded + machine)
    named = {"reranker": "voyage:r?price=7"}
    assert prices.cost(question, answer, "rerank", named, model) == pytest.approx(embedded + 0.007 + machine)
    for name, dollars in {"": 3.0, "good": 3.0, "openai:small?price=1/4": 1.4, "other": 0.0}.items():
        cost = prices.cost(question, answer, "hyde", {"llm": name}, model)
        assert cost == pytest.approx(embedded + dollars + machine), name
    assert not Prices().knows("hybrid", {}, "minilm") and Prices().knows("hybrid", {}, model)
    assert not Prices().knows("hyde", {"llm": "x"}, "minilm") and Prices(2.0).knows("hyde", {"llm": ""}, "minilm")


def test_the_report_has_the_tokens_the_calls_and_the_dollars_of_each_strategy(llm_wb: Workbench, asked: str) -> None:
    payload, code, said = run(llm_wb, asked, "--strategies", "keyword,hyde")
    keyword, hyde = (payload["strategies"][name] for name in ("keyword", "hyde"))
    assert code == 0 and keyword["dollars_per_question"] is None
    assert keyword["usage"]["llm_calls"] == 0 and keyword["usage"]["context_tokens"] > 0
    assert hyde["usage"]["llm_calls"] == 1
    tokens = hyde["usage"]["llm_input_tokens"], hyde["usage"]["llm_output_tokens"]
    assert hyde["dollars_per_question"] == pytest.approx((tokens[0] * 2 + tokens[1] * 10) / 1e6)
    assert "LLM calls" in said and "$ per 1,000" in said
    assert "The cost of 10 searches with about 5 calls of an LLM is not known before: it depends on the LLM of " in said
    assert "hyde; a pilot measures it" in said


def test_what_a_run_takes_is_known_before_it_without_a_price(
    make_settings: Callable[..., Settings], llm_url: str, asked: str
) -> None:
    with Workbench.open(settings=make_settings(llm_base_url=llm_url, llm_model="good")) as wb:
        unknown = "How long it takes is unknown: experiments have not measured it."
        searches = f"10 searches with about 5 calls of an LLM; no price is known. {unknown}"
        assert wb.estimate(asked, ["keyword", "hyde"]) == searches
        assert wb.estimate(asked, ["keyword", "hybrid"]) == ""  # nothing asks the LLM
        assert wb.estimate(asked, ["hyde"], repeats=4).startswith("20 searches with about 20 calls")
        stored = wb.test_sets.from_folder(Path(asked))
        made = wb.experiments.create("", stored.id, ["keyword", "hyde"])
        assert wb.experiments.estimate(made.id) == searches
        wb.experiments.run(made.id)
        runs = [one.run for one in wb.experiments.results(made.id) if one.run]
        took = sum(answer.usage.elapsed_ms for run in runs for answer in run.answers.values()) / 1000
        said = re.search(
            r"It takes about ([\d.]+) s, by stored runs with the same models", wb.experiments.estimate(made.id)
        )
        assert said and float(said[1]) == pytest.approx(took, abs=0.06)
        assert len(runs) == 2 and said[0] in wb.estimate(asked, ["keyword", "hyde"])
        measured = wb.estimate(asked, ["keyword"])  # asks no LLM, and is measured
        assert re.match(r"5 searches; no price is known\. It takes about [\d.]+ s, by stored runs", measured)
        assert "s and more, as no stored run measured 'hybrid (search)', by stored" in wb.estimate(
            asked, ["hyde", "hybrid"]
        )
        with pytest.raises(WorkbenchError, match=r"scope|corpus|project"):
            wb.estimate(asked, ["hyde"], scope=Scope(project="None"))


def test_the_time_of_a_run_is_that_of_stored_runs_with_its_llm_and_has_their_deeper_searches(
    make_settings: Callable[..., Settings], llm_url: str, beir: WriteTestSet
) -> None:
    long = {f"d{n}": ("Day", " ".join(f"On day {n} the cat sleeps in house {part}." for part in range(90)))
            for n in range(12)}  # fmt: skip
    settings = make_settings(llm_base_url=llm_url, llm_model="late-300")
    with Workbench.open(settings=settings) as wb:
        stored = wb.test_sets.from_folder(beir(long, {"q1": ("Where does the cat sleep?", {"d1": 1})}))
        made = wb.experiments.create("", stored.id, ["hyde"], metrics=["ndcg@10"])
        wb.experiments.run(made.id)
        [run] = [one.run for one in wb.experiments.results(made.id) if one.run]
        [ranking] = run.answers.values()
        assert len(ranking.documents) >= 10 > len({one.document for one in ranking.passages})  # deeper searches ran
        assert 300 <= ranking.latency_ms < ranking.usage.elapsed_ms - 300  # and each of them asked the LLM
        assert f"It takes about {ranking.usage.elapsed_ms / 1000:.1f} s, by" in wb.experiments.estimate(made.id)
    with Workbench.open(settings=settings.model_copy(update={"llm_model": "late-900"})) as wb:
        assert "How long it takes is unknown" in wb.experiments.estimate(made.id)


def test_a_pilot_says_what_all_questions_cost(llm_wb: Workbench, asked: str) -> None:
    _, _, said = run(llm_wb, asked, "--strategies", "keyword,hyde", "--pilot", "2")
    [line] = [line for line in said.splitlines() if line.startswith("The searches cost $")]
    assert "All 5 questions cost about $" in line


def test_a_budget_leaves_out_the_strategies_that_it_does_not_reach(llm_wb: Workbench, asked: str) -> None:
    cost = run(llm_wb, asked, "--strategies", "hyde")[0]["strategies"]["hyde"]["dollars_per_question"]
    payload, _, said = run(llm_wb, asked, "--strategies", "keyword,hyde", "--budget", str(cost * 2.5))
    assert list(payload["strategies"]) == ["keyword"]
    assert "Left out, because the budget was used up: 'hyde'." in said
    with pytest.raises(InvalidInput, match=r"used up after 3 of 5 searches; raise it"):
        run(llm_wb, asked, "--strategies", "hyde", "--budget", str(cost * 2.5))


def test_what_answers_cost_includes_those_that_are_left_out_as_a_budget_ended(llm_wb: Workbench, asked: str) -> None:
    whole = llm_wb.evaluate(asked, "keyword", on_progress=lambda _: None)
    scores, _ = whole.answers(on_progress=lambda _: None)
    each = scores["keyword"].dollars or 0.0
    part = llm_wb.evaluate(asked, "keyword", budget=each * 2.5, on_progress=lambda _: None)
    assert part.answers(on_progress=lambda _: None) == ({}, [])
    note, left_out = part.budget.notes
    assert note == f"The answers cost {format_dollars(part.budget.spent)}." and part.budget.spent > each
    assert left_out.endswith("'keyword (2 of 5 not written)'.")
    assert whole.budget.notes[0].startswith(
        f"The answers cost {format_dollars(each * 5)}; per 1,000 questions: keyword $"
    )


@pytest.mark.parametrize(("budget", "says"), [("0", "Invalid budget 0"), ("5", "no price is known")])
def test_a_budget_that_cannot_work_is_refused_before_the_run(wb: Workbench, asked: str, budget: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        run(wb, asked, "--strategies", "keyword", "--budget", budget)
    with pytest.raises(InvalidInput, match=says):
        wb.evaluate(asked, "keyword", budget=float(budget))


@pytest.mark.parametrize("price", ["cheap", "1/2/3", "-1", "nan"])
def test_a_price_that_is_none_is_named(make_settings: Callable[..., Settings], price: str) -> None:
    with pytest.raises(ConfigurationError, match=f"WORKBENCH_LLM_PRICE is '{price}'"):
        Prices.from_settings(make_settings(llm_price=price))


def test_a_stored_answer_keeps_what_its_search_took(llm_wb: Workbench, asked: str) -> None:
    from evals.evaluation import make_cells

    stored = llm_wb.test_sets.from_folder(Path(asked))
    made = llm_wb.experiments.create("cost", stored.id, make_cells(["hyde"]))
    llm_wb.experiments.run(made.id)
    [result] = llm_wb.experiments.results(made.id)
    assert result.run is not None and result.run.usage["llm_calls"] == 1.0
    assert result.run.usage["context_tokens"] > 0 and result.run.usage["llm_input_tokens"] > 0


def test_the_report_has_what_a_judge_took_and_why_questions_were_not_measured(llm_wb: Workbench, asked: str) -> None:
    answers = run(llm_wb, asked, "--strategies", "keyword", "--answers")[0]["answers"]["keyword"].dollars
    budget = str(5 * answers + 0.0002)
    payload, _, said = run(llm_wb, asked, "--strategies", "keyword", "--ragas", "llm", "--budget", budget)
    assert re.search(r"answer relevancy, \d not measured: .*The budget was used up before this judgment\.", said)
    [note] = [note for note in payload["notes"] if note.startswith("The judge took ")]
    assert re.search(r"calls with \d+ tokens, which cost \$0\.00\d", note) and note in said
