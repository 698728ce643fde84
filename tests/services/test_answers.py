"""Answers: cited, streamed, refused; by an LLM and without one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from workbench import Workbench
from workbench.errors import InvalidInput, ModelError
from workbench.retrieval.citing import known_marks, numbers_in
from workbench.services.answers import Answer, AnswerStream

DOCS = {
    "tea.md": "# Tea\n\nGreen tea is steamed soon after harvest. Black tea is oxidised fully before it is dried.\n",
    "coffee.md": "# Coffee\n\nCoffee beans are roasted at two hundred degrees. Espresso needs nine bars of pressure.\n",
}


@pytest.fixture
def asking(
    make_settings: Callable[..., object], folder: Callable[..., Path], llm_url: str
) -> Iterator[Callable[..., Workbench]]:
    """Workbenches over tea and coffee with an LLM of the endpoint in tests/llm_server.py."""
    opened = []

    def make(model: str) -> Workbench:
        settings = make_settings(llm_base_url=llm_url, llm_model=model, llm_timeout=0.5)
        opened.append(Workbench.open(settings=settings))  # pyright: ignore[reportArgumentType]
        opened[-1].ingest(folder(DOCS), source="Drinks")
        return opened[-1]

    yield make
    for workbench in opened:
        workbench.close()


@pytest.fixture
def drinks(wb: Workbench, folder: Callable[..., Path]) -> Workbench:
    """Tea and coffee, without an LLM."""
    wb.ingest(folder(DOCS), source="Drinks")
    return wb


def test_without_an_llm_the_best_sentences_answer_and_their_spans_are_exact(drinks: Workbench) -> None:
    answer = drinks.ask("How much pressure does espresso need?")
    assert isinstance(answer, Answer) and answer.kind == "extracts"
    assert answer.text.startswith("Espresso needs nine bars of pressure. [1]")
    (citation, *_) = answer.citations
    text = drinks.knowledge.document(citation.document_id).text or ""
    assert text[slice(*citation.quotes[0])] == "Espresso needs nine bars of pressure."
    assert text[citation.start : citation.end] == citation.text


@pytest.mark.parametrize("question", ["Who won the football cup?", "zzz qqq", "!?"])
def test_what_the_documents_do_not_know_is_refused(drinks: Workbench, question: str) -> None:
    answer = drinks.ask(question)
    assert answer.refused and answer.citations == ()
    assert answer.text == "Nothing in the documents answers this question."


def test_an_empty_corpus_refuses(wb: Workbench) -> None:
    assert wb.ask("anything at all?").refused


def test_an_llm_answers_with_marks_of_the_passages_it_was_shown_and_no_others(asking: Callable[..., Workbench]) -> None:
    answer = asking("plain").ask("Which pressure does espresso need?")
    assert (answer.kind, answer.model) == ("llm", "plain")
    number = answer.citations[0].number
    assert f"[{number}]" in answer.text and "99" not in answer.text
    assert answer.citations[0].passage_id == answer.passages[number - 1].passage_id
    assert answer.citations[0].document_title == "Coffee"


def test_a_streamed_answer_is_the_same_answer(asking: Callable[..., Workbench]) -> None:
    wb = asking("plain")
    stream = wb.ask("Which pressure does espresso need?", stream=True)
    assert isinstance(stream, AnswerStream) and stream.passages[0].document_title == "Coffee"
    pieces = list(stream)
    assert len(pieces) > 2
    whole = stream.answer()
    assert "".join(pieces) == whole.text == wb.ask("Which pressure does espresso need?").text
    assert whole.citations


def test_an_llm_may_refuse_and_its_words_for_it_are_not_shown(asking: Callable[..., Workbench]) -> None:
    answer = asking("refusing").ask("Which pressure does espresso need?")
    assert answer.refused and "NOT FOUND" not in answer.text


@pytest.mark.parametrize("model", ["slow", "busy-9", "garbled", "locked"])
def test_where_the_llm_cannot_be_asked_extracts_answer_and_say_why(
    asking: Callable[..., Workbench], model: str
) -> None:
    answer = asking(model).ask("Which pressure does espresso need?")
    assert answer.kind == "extracts" and "Espresso needs nine bars" in answer.text
    assert f"answer: The LLM '{model}'" in answer.degraded[-1] and "extracts instead" in answer.degraded[-1]


def test_an_answer_that_breaks_off_is_an_error_not_half_an_answer(asking: Callable[..., Workbench]) -> None:
    with pytest.raises(ModelError, match="broke off"):
        asking("cut").ask("Which pressure does espresso need?")


def test_the_llamaindex_engine_answers_too(drinks: Workbench) -> None:
    response = drinks.query_engine("rerank", limit=2).query("How much pressure does espresso need?")
    assert "nine bars of pressure. [1]" in str(response)
    assert response.metadata["cited"] == [1] and response.source_nodes[0].node.metadata["document_title"] == "Coffee"


def test_the_number_of_passages_is_checked(drinks: Workbench) -> None:
    with pytest.raises(InvalidInput, match="from 1 to 20"):
        drinks.ask("tea?", limit=21)


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["so [1", "] and [2, 3] end"], "so [1] and [2][3] end"),
        (["see [9", "9] there"], "see  there"),
        (["a list[", "0] of [x] and [", "1]"], "a list of [x] and [1]"),
        (["open [1"], "open [1"),
    ],
)
def test_marks_are_completed_before_they_are_shown_and_unknown_ones_dropped(pieces: list[str], text: str) -> None:
    assert "".join(known_marks(pieces, 3)) == text
    assert "".join(known_marks(list("".join(pieces)), 3)) == text


def test_citations_are_numbered_in_the_order_of_their_first_mark() -> None:
    assert numbers_in("b [2][1] a [2; 3]") == [2, 1, 3]
