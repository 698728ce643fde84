"""Questions made without an LLM: from the sample, and from texts that leave nothing to make any from."""

from __future__ import annotations

import pytest

from evals.datasets import sample_documents
from evals.synthetic import synthesise
from workbench.errors import InvalidInput
from workbench.ingestion.incoming import read
from workbench.types import Document

ITEMS = [(item.key, read(item, item.load())) for item in sample_documents()]
DOCUMENTS = [Document(key, "src", raw.title, text=raw.text) for key, raw in ITEMS]
KEYS = [key for key, _ in ITEMS]


def test_the_sample_gives_questions_of_every_kind_marked_as_what_they_are() -> None:
    questions, judgments = synthesise(DOCUMENTS, KEYS, 150)
    assert len(questions) == len(judgments) == 150
    assert {question.origin for question in questions} == {"synthetic"}
    assert {question.metadata["made_from"] for question in questions} == {"definition", "heading", "sentence"}
    assert len({judgment.document for judgment in judgments}) == len(DOCUMENTS)


def test_every_question_names_the_stretch_it_was_made_from() -> None:
    texts = {document.id: document.text or "" for document in DOCUMENTS}
    for judgment in synthesise(DOCUMENTS, KEYS, 60)[1]:
        assert judgment.quote == texts[judgment.document][judgment.start : judgment.end] != ""


def test_the_same_documents_give_the_same_questions() -> None:
    assert synthesise(DOCUMENTS, KEYS, 40) == synthesise(DOCUMENTS, KEYS, 40)


def test_a_definition_and_a_heading_become_questions() -> None:
    defined = "A heron is a long-legged bird that waits in shallow water for fish."
    text = f"# Birds\n\n{defined}\n\n## Nesting in reeds\n\nThey do."
    questions, judgments = synthesise([Document("d", "s", "Birds", text=text)], ["d"], 10)
    assert [question.text for question in questions[:2]] == ["What is a heron?", "Birds: Nesting in reeds"]
    assert judgments[1].quote == "## Nesting in reeds\n\nThey do."


@pytest.mark.parametrize("text", ["", "word", "# Only a heading", "12 34 56. 78 90.", "🦉🦉🦉"])
def test_a_text_that_says_nothing_gives_no_question(text: str) -> None:
    assert synthesise([Document("d", "s", "T", text=text)], ["d"], 5) == ([], [])


def test_no_questions_at_all_cannot_be_asked_for() -> None:
    with pytest.raises(InvalidInput):
        synthesise(DOCUMENTS, KEYS, 0)
