"""Whether a test set has enough questions to train on; only those with a relevant judgment count."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from evals.test_set import Judgment
from evals.test_sets.store import TestSetStore
from workbench import Workbench
from workbench.app.state.shared import OPENING


def _learning() -> None:
    from workbench.app.evaluate.learning import show_learning
    from workbench.app.state.shared import OPENING

    show_learning(OPENING.workbench)


@pytest.fixture
def page(wb: Workbench) -> AppTest:
    """The Learn page before it is drawn, with an empty test set."""
    OPENING.use(wb)
    TestSetStore(wb).create("mine")
    return AppTest.from_function(_learning, default_timeout=30)


def judge(wb: Workbench, count: int, grade: int) -> None:
    """Judge the first of forty questions."""
    document = wb.documents.create(text="Herons stand in the reeds.", title="Herons").document
    store = TestSetStore(wb)
    questions = store.add_questions("mine", [f"Question number {number}?" for number in range(40)])
    store.judge_all("mine", [Judgment(question.id, document.id, grade) for question in questions[:count]])


def said(page: AppTest) -> str:
    page.run()
    assert not page.exception
    return " ".join([*(part.value for part in page.markdown), *(part.proto.body for part in page.get("html"))])


@pytest.mark.parametrize(("judged", "grade", "missing"), [(0, 2, 30), (29, 2, 1), (35, 0, 30)])
def test_questions_without_a_relevant_passage_are_not_counted(
    wb: Workbench, page: AppTest, judged: int, grade: int, missing: int
) -> None:
    judge(wb, judged, grade)
    assert f"({missing} missing)" in said(page)


def test_thirty_judged_questions_are_enough(wb: Workbench, page: AppTest) -> None:
    judge(wb, 30, 1)
    assert "missing" not in said(page)
    assert page.button(key="learn_go").label == "Start training"
