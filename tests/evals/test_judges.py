"""ragas without a judge, with a working judge, and with judges that time out, talk nonsense or cost too much."""

from __future__ import annotations

import asyncio
import json
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

from evals.experiments import report, runs
from evals.experiments.catalogue import Experiments, make_cells
from evals.gateway import index_corpus
from evals.judges import ragas
from evals.judges.endpoint import INVALID_ANSWER_REASON, Endpoint, Limits
from evals.judges.generation import SourcePassage, write_questions
from evals.judges.judging import add_ragas, grade_judgments, judge_run, measure_agreement
from evals.judges.scores import FREE_METRICS, JUDGED_METRICS, JudgedMetric, Sample, measure_samples
from evals.test_set import Judgment
from evals.test_sets.folders import load_test_set
from tests.evals.conftest import StartJudge, WriteTestSet, judge_experiment
from workbench import Workbench
from workbench.errors import InvalidInput
from workbench.models.hashing import HashEncoder

pytestmark = pytest.mark.slow

GOOD = Sample(
    "good",
    "Why do cats purr?",
    ("Cats purr when they are content.", "Dogs bark at strangers."),
    ("cats", "dogs"),
    ("Cats purr when they are content.",),
    ("cats",),
    "Cats purr when they are content.",
    "Cats purr when they are content.",
)
BAD = Sample(
    "bad",
    "Who makes honey?",
    ("Fish swim in schools and breathe through gills.",),
    ("fish",),
    ("Bees gather nectar.", "Hives hold honey."),
    ("bees",),
    "Wasps build paper nests everywhere.",
    "Bees gather nectar and make honey.",
)
UNJUDGED = Sample("unjudged", "Is there anything?", ("Cats purr.",), ("cats",), reference_documents=("cats",))
NOTHING = replace(GOOD, question_id="nothing", passages=(), documents=())


def scores(found: dict[str, JudgedMetric], question_id: str) -> dict[str, float | None]:
    return {name: judged.values[question_id] for name, judged in found.items()}


def test_without_a_judge_context_is_measured_by_documents_and_by_texts() -> None:
    found = measure_samples([GOOD, BAD], FREE_METRICS)
    assert scores(found, "good") == {
        "id_context_precision": 0.5,
        "id_context_recall": 1.0,
        "text_context_precision": pytest.approx(1.0),
        "text_context_recall": 1.0,
    }
    assert set(scores(found, "bad").values()) == {0.0}


def test_what_cannot_be_measured_is_counted_and_never_averaged_away() -> None:
    found = measure_samples([GOOD, UNJUDGED], FREE_METRICS)
    assert found["text_context_recall"].summary() == {
        "mean": 1.0,
        "measured": 1,
        "not_measured": 1,
        "reasons": {"There is no relevant passage.": 1},
    }
    assert found["id_context_recall"].summary()["measured"] == 2


def test_nothing_retrieved_for_a_question_that_has_an_answer_counts_nought(start_judge: StartJudge) -> None:
    context = (*FREE_METRICS, "context_precision", "context_recall")
    found = measure_samples([GOOD, NOTHING], context, endpoint=start_judge("good"))
    assert scores(found, "nothing") == dict.fromkeys(context, 0.0)
    assert {judged.measured for judged in found.values()} == {2}
    assert found["id_context_recall"].mean == 0.5  # of 1 and 0


def test_an_empty_result_without_known_truth_is_not_measured() -> None:
    unknown = replace(NOTHING, reference_documents=(), reference_passages=())
    found = measure_samples([unknown], FREE_METRICS)
    assert {judged.mean for judged in found.values()} == {None}
    assert found["id_context_recall"].reasons == {"There is no relevant document.": 1}
    assert found["text_context_precision"].reasons == {"There is no relevant passage.": 1}


def test_a_judge_that_works_distinguishes_a_good_answer_from_a_bad_one(start_judge: StartJudge) -> None:
    endpoint = start_judge("good")
    found = measure_samples([GOOD, BAD], JUDGED_METRICS, encoder=HashEncoder(), endpoint=endpoint)
    good, bad = scores(found, "good"), scores(found, "bad")
    assert all(judged.measured == 2 for judged in found.values())
    assert all((good[name] or 0) > 0.9 for name in JUDGED_METRICS if name != "answer_relevancy")
    assert [bad[name] for name in ("faithfulness", "context_precision", "context_recall", "factual_correctness")] == [
        0
    ] * 4
    assert (good["answer_relevancy"] or 0) > (bad["answer_relevancy"] or 0)
    assert endpoint.spent.calls > 10 and endpoint.spent.tokens > 1000


def test_a_judge_that_is_busy_at_first_is_asked_again(start_judge: StartJudge) -> None:
    found = measure_samples([GOOD], ["context_precision"], endpoint=start_judge("shaky"))
    assert found["context_precision"].mean == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("mode", "limits", "reason"),
    [
        ("silent", {"timeout": 0.2, "retries": 0}, "The judge did not answer within 0.2 s."),
        ("silent", {"seconds": 0.3}, "The time limit of 0.3 s was reached."),
        ("nonsense", {}, INVALID_ANSWER_REASON),
        ("busy", {"retries": 1}, "The judge answered with HTTP status 429."),
        ("broken", {}, "The judge's answer is not a chat message."),
    ],
)
def test_a_judge_that_fails_ends_the_run_with_what_could_not_be_measured_and_why(
    start_judge: StartJudge, mode: str, limits: dict[str, float], reason: str
) -> None:
    found = measure_samples([GOOD, BAD], ["context_recall", "id_context_recall"], endpoint=start_judge(mode, **limits))
    assert found["context_recall"].summary() == {"mean": None, "measured": 0, "not_measured": 2, "reasons": {reason: 2}}
    assert found["id_context_recall"].measured == 2


def test_a_judge_that_costs_too_much_is_left_and_what_it_scored_before_stays(start_judge: StartJudge) -> None:
    endpoint = start_judge("good", calls=3, at_once=1)
    found = measure_samples([GOOD, BAD], ["context_recall", "context_precision"], endpoint=endpoint)
    assert found["context_recall"].measured == 2
    assert found["context_precision"].reasons == {"The limit of 3 calls was reached.": 2}
    assert endpoint.spent.calls == 3
    tokens = start_judge("good", tokens=10, at_once=1)
    reasons = measure_samples([GOOD, BAD], ["context_recall"], endpoint=tokens)["context_recall"].reasons
    assert reasons == {"The limit of 10 tokens was reached.": 1}


def test_a_judge_that_is_not_there_is_named(start_judge: StartJudge) -> None:
    nobody = Endpoint("http://127.0.0.1:9/v1", "small", limits=Limits(retries=0))
    assert measure_samples([GOOD], ["context_recall"], endpoint=nobody)["context_recall"].reasons == {
        "The judge is unreachable; check WORKBENCH_LLM_BASE_URL.": 1
    }


def test_metrics_that_cannot_be_measured_at_all_are_refused() -> None:
    with pytest.raises(InvalidInput, match="need an LLM"):
        measure_samples([GOOD], ["faithfulness"])
    with pytest.raises(InvalidInput, match="use 'id_context_precision'"):
        measure_samples([GOOD], ["beauty"])


def test_a_run_is_judged_with_the_texts_it_found(wb: Workbench, beir: WriteTestSet, start_judge: StartJudge) -> None:
    root = beir()
    rows = [json.loads(line) for line in (root / "queries.jsonl").read_text().splitlines()]
    answered = [row | {"reference_answer": "Cats purr when they are content."} for row in rows]
    (root / "queries.jsonl").write_text("\n".join(json.dumps(row) for row in answered))
    test_set = load_test_set(root).only(["q1", "q2"])
    run = runs.run_strategies(wb, test_set, index_corpus(wb, test_set), ["keyword"])
    free = judge_run(wb, run)["keyword"]
    assert free["id_context_recall"].values["q1"] == free["text_context_recall"].values["q1"] == 1.0
    answers = {one.id: runs.answer_question(wb, run.corpus, one, "keyword", {}) for one in test_set.answerable}
    judged = add_ragas(run, judge_run(wb, run, endpoint=start_judge("good"), answers={"keyword": answers}))
    figures = report.to_json(judged)["strategies"]["keyword"]["ragas"]
    assert figures["faithfulness"]["measured"] == 2
    assert figures["context_recall"]["mean"] == 0.5
    assert "0.5000 (2/0)" in report.render_text(report.make_ragas_table(judged))


def test_a_wide_table_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    metrics = [name.replace("_", " ") for name in JUDGED_METRICS] * 2
    rows = [["multi-query@paragraphs", *["0.8442* ±0.0003"] * len(metrics)]]
    shown = report.render_text(report.make_text_table("Scores", ["strategy", *metrics], rows))
    for word in ("faithfulness", "relevancy", "correctness", "0.8442*", "±0.0003"):
        assert shown.count(word) >= 2
    assert shown.count("±0.0003") == len(metrics) and "…" not in shown


def test_agreement_is_cohens_kappa_over_what_both_judged() -> None:
    # 2 of 4 alike; each says "relevant" half the time, so .5 is expected by chance: kappa (.5 - .5) / (1 - .5) = 0
    found = measure_agreement([(2, 2), (1, 0), (0, 1), (0, 0), (2, "No answer.")], "small")
    assert (found["pairs"], found["agreement"], found["kappa"]) == (4, 0.5, 0.0)
    assert (found["model"], found["not_graded"], found["reasons"]) == ("small", 1, {"No answer.": 1})
    assert measure_agreement([(2, 2), (1, 1), (0, 0), (0, 0)])["kappa"] == 1.0
    none = measure_agreement([(2, "No answer.")])
    assert (none["pairs"], none["agreement"], none["kappa"]) == (0, None, None)


def test_an_llm_grades_what_a_person_has_graded(start_judge: StartJudge) -> None:
    human = [Judgment("q", "cats", 2), Judgment("q", "fish", 0)]
    texts = {"cats": GOOD.passages[0], "fish": BAD.passages[0]}
    questions = {"q": GOOD.question}
    graded = grade_judgments(start_judge("good"), human, questions, lambda judgment: texts[judgment.document])
    assert graded == [2, 0]
    refused = grade_judgments(start_judge("nonsense"), human, questions, lambda judgment: texts[judgment.document])
    assert refused == [INVALID_ANSWER_REASON] * 2


def test_an_llm_writes_questions_and_what_it_could_not_write_is_counted(start_judge: StartJudge) -> None:
    passages = [SourcePassage("cats", GOOD.passages[0], 0, 32), SourcePassage("fish", BAD.passages[0], 5, 52)]
    written = write_questions(start_judge("good"), passages)
    assert [question.origin for question in written.questions] == ["llm", "llm"]
    assert [(judgment.document, judgment.start, judgment.end) for judgment in written.judgments] == [
        ("cats", 0, 32),
        ("fish", 5, 52),
    ]
    refused = write_questions(start_judge("nonsense"), passages)
    assert (refused.questions, refused.reasons) == ((), {INVALID_ANSWER_REASON: 2})


# Our prompts and those of ragas

RECORDED = Path(__file__).parent / "recorded_verdicts.json"
RECORDED_SAMPLES = [
    Sample(
        f"q{number}",
        row["question"],
        tuple(row["passages"]),
        answer=row["answer"],
        reference_answer=row["reference"],
    )
    for number, row in enumerate(json.loads(RECORDED.read_text(encoding="utf-8")))
]


def test_recorded_verdicts_give_the_values_of_ragas(start_judge: StartJudge) -> None:
    ours, theirs = start_judge(str(RECORDED)), start_judge(str(RECORDED))
    encoder = HashEncoder()
    found = measure_samples(RECORDED_SAMPLES, JUDGED_METRICS, encoder=encoder, endpoint=ours)
    by_ragas = measure_samples(
        RECORDED_SAMPLES, JUDGED_METRICS, judge=ragas.make_scorer, encoder=encoder, endpoint=theirs
    )
    for name in JUDGED_METRICS:
        rounded = 0.005 if name == "factual_correctness" else 1e-6  # ragas rounds it to two digits
        for sample in RECORDED_SAMPLES:
            mine, other = (values[name].values[sample.question_id] for values in (found, by_ragas))
            assert mine == (other if other is None else pytest.approx(other, abs=rounded)), (name, sample.question_id)
    assert scores(found, "q3") == {
        "faithfulness": pytest.approx(2 / 3),
        "answer_relevancy": pytest.approx(scores(by_ragas, "q3")["answer_relevancy"]),
        "context_precision": pytest.approx((1 + 2 / 5) / 2),
        "context_recall": 1.0,
        "factual_correctness": pytest.approx(2 / 3),  # 2 of 3 statements are right, 1 of 2 is missing: 4 / (4 + 1 + 1)
    }
    assert (ours.spent.calls, theirs.spent.calls) == (47, 76)


def test_context_metrics_without_an_llm_are_those_of_ragas() -> None:
    ragas.ragas()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ragas.metrics as theirs
        from ragas import SingleTurnSample

        names = ("IDBasedContextPrecision", "IDBasedContextRecall")
        names += ("NonLLMContextPrecisionWithReference", "NonLLMContextRecall")
        metrics = {name: getattr(theirs, theirs_name)() for name, theirs_name in zip(FREE_METRICS, names, strict=True)}
    cut = replace(GOOD, question_id="cut", passages=("Fish.", "Cats purr when they"), documents=("fish", "cats", "ox"))
    found = measure_samples([GOOD, BAD, cut], FREE_METRICS)
    for sample in (GOOD, BAD, cut):
        given = SingleTurnSample(
            retrieved_contexts=list(sample.passages),
            reference_contexts=list(sample.reference_passages),
            retrieved_context_ids=list(sample.documents),
            reference_context_ids=list(sample.reference_documents),
        )
        for name, metric in metrics.items():
            by_ragas = asyncio.run(metric.single_turn_ascore(given))
            assert found[name].values[sample.question_id] == pytest.approx(by_ragas), name
    assert scores(found, "cut") == {
        "id_context_precision": pytest.approx(1 / 3),
        "id_context_recall": 1.0,
        "text_context_precision": 0.5,
        "text_context_recall": 1.0,
    }


def test_an_endpoint_without_json_schemas_is_asked_without_them(start_judge: StartJudge) -> None:
    endpoint = start_judge("plain", retries=0)
    assert measure_samples([GOOD, BAD], ["faithfulness"], endpoint=endpoint)["faithfulness"].mean == 0.5


def test_an_experiment_is_judged_again_with_other_prompts(
    wb: Workbench, beir: WriteTestSet, start_judge: StartJudge
) -> None:
    root = beir()
    experiments = Experiments(wb)
    made = experiments.create("Judged", experiments.test_sets.add(load_test_set(root)).id, make_cells(["keyword"]))
    experiments.run(made.id)
    judge = start_judge("good")
    judge_experiment(wb, made, judge)
    calls = judge.spent.calls
    judge_experiment(wb, made, judge)
    assert judge.spent.calls == calls
    judge_experiment(wb, made, judge, judge="ragas")
    assert judge.spent.calls > calls
    assert experiments.results(made.id)[0].extra["prompts"] == "ragas"
    with pytest.raises(InvalidInput, match="Unknown judge 'mine'; use 'built-in', 'ragas'"):
        judge_experiment(wb, made, judge, judge="mine")
