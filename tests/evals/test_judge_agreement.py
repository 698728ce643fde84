"""The agreement of a language model with people: the judgments it repeats, and the interfaces that report it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import pytest

from evals.command import add_arguments, evaluate
from evals.experiments.catalogue import Experiments, make_cells
from evals.gateway import index_corpus
from evals.judges.judging import describe_agreement, sample_judgments
from evals.test_set import Judgment
from tests.evals.conftest import TEXTS, StartJudge, WriteTestSet, judge_experiment
from workbench import Settings, Workbench


def test_relevant_and_irrelevant_judgments_are_drawn_equally_if_there_are_enough() -> None:
    judgments = [Judgment("q", f"r{n}", 2) for n in range(9)] + [Judgment("q", f"n{n}", 0) for n in range(3)]
    assert sorted(judgment.grade for judgment in sample_judgments(judgments, 4)) == [0, 0, 2, 2]
    assert sorted(judgment.grade for judgment in sample_judgments(judgments, 8)) == [0] * 3 + [2] * 5
    assert len(sample_judgments(judgments, 99)) == 12
    assert sample_judgments(judgments, 5) == sample_judgments(judgments[::-1], 5)


@pytest.fixture
def with_judge(make_settings: Callable[..., Settings], start_judge: StartJudge) -> Callable[[str], Settings]:
    """Settings with a judge in some mode as the LLM."""

    def settings(mode: str) -> Settings:
        return make_settings(llm_base_url=start_judge(mode)._base_url, llm_model="small")

    return settings


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        # it does not see that "make honey" answers "makes honey", nor that a cat hunts at night: 5 of 7. It says
        # "relevant" to 4 of 7, people to 6: (5/7 - 27/49) / (1 - 27/49) = 0.36
        ("good", "The LLM 'small' agrees with the test set on 5 of 7 judgments (kappa 0.36;"),
        (
            "nonsense",
            "the LLM 'small' with the test set could not be measured: The judge's answers did not have the requested",
        ),
    ],
)
def test_the_command_reports_what_its_judge_is_worth(
    with_judge: Callable[[str], Settings], beir: WriteTestSet, mode: str, said: str
) -> None:
    parser, heard = argparse.ArgumentParser(), []
    add_arguments(parser)
    arguments = parser.parse_args([str(beir()), "--strategies", "keyword", "--ragas", "llm"])
    with Workbench.open(settings=with_judge(mode)) as wb:
        payload, code = evaluate(wb, arguments, say=heard.append)
    assert code == 0
    assert payload["judge"]["model"] == "small"
    assert said in "\n".join(heard)


def test_an_experiment_judged_without_an_llm_can_be_judged_by_one_later_though_a_document_is_gone(
    wb: Workbench, folder: Callable[..., Path], start_judge: StartJudge
) -> None:
    wb.ingest(folder({f"{key}.md": f"# {title}\n\n{text}" for key, (title, text) in TEXTS.items()}), source="Animals")
    ids = {document.title: document.id for document in wb.documents.list()}
    experiments = Experiments(wb)
    test_set = experiments.test_sets.create("Mine").id
    asked = experiments.test_sets.add_questions(test_set, ["cats purr", "dogs bark"])
    for question, title in zip(asked, ("Cats", "Dogs"), strict=True):
        experiments.test_sets.judge(test_set, question.id, ids[title], "relevant", start=0, end=40)
    wb.documents.delete(ids["Dogs"])
    made = experiments.run(experiments.create("Mine", test_set, make_cells(["keyword"])).id)
    judge_experiment(wb, made)
    assert "judge" not in experiments.results(made.id)[0].extra
    judge_experiment(wb, made, start_judge("good"))
    (result,) = experiments.results(made.id)
    assert result.extra["ragas"]["text_context_recall"]["reasons"] == {"There is no relevant passage.": 1}
    assert describe_agreement(result.extra["judge"]).startswith(
        "The LLM 'small' agrees with the test set on 1 of 1 judgments"
    )
    assert index_corpus(wb, experiments.test_set(made)).documents == 4
