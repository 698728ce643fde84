"""Editing a test set in the editors: only differences are stored, in as few versions as possible."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from evals.test_set import Question
from evals.test_sets.store import TestSetStore
from workbench import Workbench
from workbench.app.evaluate.test_sets import save_judgments, save_questions
from workbench.app.state.shared import OPENING
from workbench.errors import InvalidInput


@pytest.fixture
def store(wb: Workbench) -> TestSetStore:
    return TestSetStore(wb)


@pytest.fixture
def asked(store: TestSetStore) -> str:
    made = store.create("Asked").id
    store.add_questions(made, [Question("q1", "What is one?"), Question("q2", "What is two?")])
    store.judge(made, "q1", "doc_a", "relevant", start=3, end=9, quote="a part")
    store.judge(made, "q1", "doc_b", "partly")
    return made


def row(key: str | None, text: str, answer: str | None = "") -> dict[str, str | None]:
    return {"id": key, "Question": text, "Reference answer": answer}


def test_rows_that_are_changed_added_or_gone_are_stored(store: TestSetStore, asked: str) -> None:
    before = store.load(asked)
    said = save_questions(store, asked, before, [row("q1", "What is the one?", "1"), row(None, "And three?", None)])
    after = store.load(asked)
    assert said == "1 question added, 1 changed, 1 removed."
    assert [(q.text, q.reference_answer) for q in after.questions] == [("What is the one?", "1"), ("And three?", "")]
    assert [q.text for q in store.load(asked, before.version).questions] == ["What is one?", "What is two?"]


def test_questions_are_marked_as_without_an_answer_and_new_rows_keep_their_reference_answer(
    store: TestSetStore, asked: str
) -> None:
    added = {"id": None, "Question": "And three?", "Reference answer": "3"}
    said = save_questions(
        store, asked, store.load(asked),
        [row("q1", "What is one?"), {**row("q2", "What is two?"), "No answer": True}, added, row(None, "what is ONE?")],
    )  # fmt: skip
    after = store.load(asked)
    assert said == "1 question added, 1 changed, 0 removed."  # the last row repeats a question
    assert [q.text for q in after.unanswerable] == ["What is two?"]
    assert [(q.reference_answer, q.origin) for q in after.questions if q.text == "And three?"] == [("3", "person")]
    said = save_questions(store, asked, after, [{"id": q.id, "Question": q.text, "Reference answer": q.reference_answer,
                                                 "No answer": False} for q in after.questions])  # fmt: skip
    assert said == "0 questions added, 1 changed, 0 removed." and not store.load(asked).unanswerable


def test_a_sheet_without_changes_makes_no_version(store: TestSetStore, asked: str) -> None:
    before = store.load(asked)
    assert save_questions(store, asked, before, [row("q1", "What is one?"), row("q2", "What is two?")]).startswith("0 ")
    assert store.info(asked).version == before.version


def test_an_emptied_question_is_refused_and_nothing_changes(store: TestSetStore, asked: str) -> None:
    before = store.load(asked)
    with pytest.raises(InvalidInput, match="The question is empty"):
        save_questions(store, asked, before, [row("q1", " "), row(None, "And three?")])
    assert store.load(asked).questions == before.questions


def test_a_grade_that_differs_is_stored_and_a_row_that_is_gone_is_taken_back(store: TestSetStore, asked: str) -> None:
    listed = store.load(asked).judgments
    place = next(n for n, judgment in enumerate(listed) if judgment.is_span)
    said = save_judgments(store, store.info(asked), listed, [{"place": place, "Grade": "not relevant"}])
    assert said == "1 judgment changed, 1 removed."
    assert [(j.document, j.grade, j.start) for j in store.load(asked).judgments] == [("doc_a", 0, 3)]


def test_grades_have_the_names_of_the_scale_and_a_row_that_is_gone_is_gone_for_every_rater(
    store: TestSetStore, asked: str
) -> None:
    store.update(asked, grades=5)
    store.judge(asked, "q1", "doc_b", None)
    for rater, grade in (("Ada", "perfect"), ("Bo", "related")):
        store.judge(asked, "q1", "doc_b", grade, rater=rater, reason="Read it")
    listed = store.load(asked).judgments
    rows = [{"place": place, "Grade": {2: "partly", 1: "related"}[one.grade]} for place, one in enumerate(listed)]
    shown = store.info(asked)
    assert save_judgments(store, shown, listed, rows).startswith("0 ")  # the rows as they are shown
    (span,) = [row for row, one in zip(rows, listed, strict=True) if one.is_span]
    assert save_judgments(store, shown, listed, [span | {"Grade": "relevant"}]) == "1 judgment changed, 1 removed."
    assert [(one.document, one.grade) for one in store.load(asked).judgments] == [("doc_a", 3)]


def test_rows_keep_their_grades_if_another_person_changes_the_scale_before_they_are_saved(
    store: TestSetStore, asked: str
) -> None:
    shown, listed = store.info(asked), store.load(asked).judgments
    rows = [{"place": place, "Grade": {2: "relevant", 1: "partly"}[one.grade]} for place, one in enumerate(listed)]
    store.update(asked, grades=5)  # on whose scale "relevant" is 3
    assert save_judgments(store, shown, listed, rows) == "0 judgments changed, 0 removed."


def _judged_meanwhile() -> None:
    """Draw the raters and the judgments of a test set, which others change after it is read."""
    from evals.test_sets.store import TestSetStore
    from workbench.app.evaluate.test_sets import edit_judgments, show_raters
    from workbench.app.state.shared import OPENING

    wb = OPENING.workbench
    assert wb is not None
    store = TestSetStore(wb)
    info = store.info("Asked")
    test_set = store.load(info.id)
    store.judge(info.id, "q1", "doc_b", None)
    (added,) = store.add_questions(info.id, ["What is four?"])
    for rater, grade in (("Ada", "relevant"), ("Bo", "not")):
        store.judge(info.id, added.id, "doc_a", grade, rater=rater)
    show_raters(wb, info, test_set)
    edit_judgments(wb, store, info, test_set)


def test_what_others_judge_or_take_back_while_a_page_is_drawn_does_not_break_it(
    wb: Workbench, store: TestSetStore, asked: str
) -> None:
    OPENING.use(wb)
    store.judge(asked, "q2", "doc_a", "partly", rater="Ada")
    page = AppTest.from_function(_judged_meanwhile, default_timeout=30).run()
    assert not page.exception
    assert "agreement needs two" in page.caption[0].value  # of the version that is shown
