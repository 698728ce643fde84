"""ragas without a judge, with a working judge, and with judges that time out, talk nonsense or cost too much."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from evals.experiments import report, runs
from evals.gateway import index_corpus
from evals.judges import FREE_METRICS, INVALID_ANSWER_REASON, JUDGED_METRICS, JudgedMetric, Sample, measure_samples
from evals.judges.agreement import grade_judgments, measure_agreement
from evals.judges.endpoint import Endpoint, Limits
from evals.judges.generation import SourcePassage, write_questions
from evals.judges.judging import add_ragas, judge_run
from evals.test_set import Judgment
from evals.test_sets.folders import load_test_set
from tests.evals.conftest import StartJudge, WriteTestSet
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
    judged = add_ragas(run, judge_run(wb, run, endpoint=start_judge("good")))
    ragas = report.to_json(judged)["strategies"]["keyword"]["ragas"]
    assert ragas["faithfulness"]["measured"] == 2
    assert ragas["context_recall"]["mean"] == 0.5
    assert "0.5000 (2/0)" in report.render_text(report.make_ragas_table(judged))


def test_agreement_is_cohens_kappa_over_what_both_judged() -> None:
    # 2 of 4 alike; each says "relevant" half the time, so .5 is expected by chance: kappa (.5 - .5) / (1 - .5) = 0
    human = [Judgment("q", name, grade) for name, grade in zip("abcde", (2, 1, 0, 0, 2), strict=True)]
    llm = [Judgment("q", name, grade) for name, grade in zip("abcdx", (2, 0, 1, 0, 2), strict=True)]
    assert measure_agreement(human, llm) == {"pairs": 4, "agreement": 0.5, "kappa": 0.0}
    assert measure_agreement(human, human)["kappa"] == 1.0
    assert measure_agreement(human, []) == {"pairs": 0, "agreement": None, "kappa": None}


def test_an_llm_grades_what_a_person_has_graded(start_judge: StartJudge) -> None:
    human = [Judgment("q", "cats", 2), Judgment("q", "fish", 0)]
    texts = {"cats": GOOD.passages[0], "fish": BAD.passages[0]}
    questions = {"q": GOOD.question}
    graded = grade_judgments(start_judge("good"), human, questions, lambda judgment: texts[judgment.document])
    assert [judgment.grade for judgment in graded.judgments] == [2, 0]
    assert measure_agreement(human, graded.judgments)["kappa"] == 1.0
    refused = grade_judgments(start_judge("nonsense"), human, questions, lambda judgment: texts[judgment.document])
    assert (refused.judgments, refused.reasons) == ((), {INVALID_ANSWER_REASON: 2})


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
