"""Questions generated without an LLM: from the sample, and from texts that are unsuitable."""

from __future__ import annotations

import pytest

from evals.judges.generation import make_questions, synthesise
from evals.test_sets.folders import list_sample_documents
from workbench.errors import InvalidInput
from workbench.ingestion.incoming import read_item
from workbench.types import Document

ITEMS = [(item.key, read_item(item, item.load())) for item in list_sample_documents()]
DOCUMENTS = [Document(key, "src", raw.title, text=raw.text) for key, raw in ITEMS]
KEYS = [key for key, _ in ITEMS]


def test_the_sample_gives_questions_of_every_kind_marked_as_what_they_are() -> None:
    questions, judgments = synthesise(DOCUMENTS, KEYS, 150)
    assert len(questions) == len(judgments) >= 25
    assert {question.origin for question in questions} == {"synthetic"}
    assert {"definition", "way", "case", "fact", "heading"} <= {
        question.metadata["made_from"] for question in questions
    }
    assert len({question.text for question in questions}) == len(questions)
    assert all(question.text.endswith("?") for question in questions)


def test_every_question_names_its_source_span() -> None:
    texts = {document.id: document.text or "" for document in DOCUMENTS}
    for judgment in synthesise(DOCUMENTS, KEYS, 60)[1]:
        assert judgment.quote == texts[judgment.document][judgment.start : judgment.end] != ""


def test_the_same_documents_give_the_same_questions() -> None:
    assert synthesise(DOCUMENTS, KEYS, 40) == synthesise(DOCUMENTS, KEYS, 40)


def test_a_definition_and_a_heading_become_questions() -> None:
    defined = "A heron is a long-legged bird that waits in shallow water for fish."
    text = f"# Birds\n\n{defined}\n\n## Build a nest in reeds\n\nThey do."
    questions, judgments = synthesise([Document("d", "s", "Birds", text=text)], ["d"], 10)
    assert [question.text for question in questions] == ["What is a heron?", "How do I build a nest in reeds?"]
    assert judgments[1].quote == "## Build a nest in reeds\n\nThey do."


FORMS = {
    "To empty the tank by hand, open the lower valve.": "How do I empty the tank by hand?",
    "Tides can be predicted with a table of the harbour.": "How can tides be predicted?",
    "When the queue is full, new jobs are refused.": "What happens when the queue is full?",
    "The purpose of ballast is to keep a ship upright.": "What is the purpose of ballast?",
    "The lighthouse was built of granite in 1874 by a small crew.": "When was the lighthouse built of granite?",
    "The compass was invented by Chinese sailors.": "Who invented the compass?",
    "OBJECTIVE TGR5 is a receptor that bile acids bind to in the gut.": "What is TGR5?",
    "CONCLUSIONS: A float is a body that follows the level of the sea.": "What is a float?",
    "Activation of AMPK controls how a cell burns its sugar and fat.": "What does activation of AMPK do?",
    "The `Reverse` method returns the pages in reverse order.": "What does the `Reverse` method return?",
}


@pytest.mark.parametrize(("statement", "question"), FORMS.items())
def test_a_statement_becomes_the_question_that_it_answers(statement: str, question: str) -> None:
    assert question in [text for _, text in make_questions(statement, str.islower)]


@pytest.mark.parametrize(
    "statement",
    [
        "It is a bird that waits in shallow water for fish.",
        "The following is a list of all the birds that wait.",
        "If you want to see more of the birds, wait for dusk.",
        "This method returns the pages in reverse order.",
        "Links are in the list below.",
        "What are links?",
        "In 1874 the lighthouse.",
        "Secondary measures were the time to relapse and the costs of care.",
        "Considerable evidence supports a role of sleep in what is remembered.",
        "The main outcome measures were the deaths within a year of surgery.",
        "The paper describes a way of measuring tides from the shore.",
        "Chi-square was used to compare the groups at the end of the year.",
        "The number of readings on day 365 was about half of the first.",
        "Although degradation of proteins requires energy, it never stops.",
    ],
)
def test_a_statement_that_leans_on_another_gives_no_question(statement: str) -> None:
    assert list(make_questions(statement, str.islower)) == []


def test_a_question_that_two_documents_answer_is_not_asked() -> None:
    text = "A heron is a long-legged bird that waits in shallow water for fish."
    twice = [Document(key, "s", "T", text=text) for key in ("a", "b")]
    assert synthesise(twice, ["a", "b"], 5) == ([], [])


@pytest.mark.parametrize("text", ["", "word", "# Only a heading", "12 34 56. 78 90.", "🦉🦉🦉"])
def test_a_text_that_is_silent_gives_no_question(text: str) -> None:
    assert synthesise([Document("d", "s", "T", text=text)], ["d"], 5) == ([], [])


def test_a_number_of_no_questions_is_rejected() -> None:
    with pytest.raises(InvalidInput):
        synthesise(DOCUMENTS, KEYS, 0)
