"""Answers: cited, streamed, refused; with an LLM and without one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from workbench import Workbench
from workbench.errors import InvalidInput, ModelError
from workbench.retrieval.answering.synthesis import filter_marks, find_cited_numbers
from workbench.services.answers import Answer, AnswerStream

DOCS = {
    "tea.md": "# Tea\n\nGreen tea is steamed soon after harvest. Black tea is oxidised fully before it is dried.\n",
    "coffee.md": "# Coffee\n\nCoffee beans are roasted at two hundred degrees. Espresso needs nine bars of pressure.\n",
}


@pytest.fixture
def asking(
    make_settings: Callable[..., object], folder: Callable[..., Path], llm_url: str
) -> Iterator[Callable[..., Workbench]]:
    """Workbenches over tea and coffee with an LLM served by tests/llm_server.py."""
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
    text = drinks.documents.get(citation.document_id).text or ""
    assert text[slice(*citation.quotes[0])] == "Espresso needs nine bars of pressure."
    assert text[citation.start : citation.end] == citation.text


def test_an_extract_has_at_most_five_sentences_and_sixty_words(wb: Workbench, folder: Callable[..., Path]) -> None:
    facts = [
        f"The harbour has a tide gauge of kind {n} that reads the level of the tide every {n} hours." for n in range(9)
    ]
    wb.ingest(folder({f"{n}.md": fact for n, fact in enumerate(facts)}), source="Gauges")
    text = wb.ask("Which tide gauge reads the level of the tide in the harbour?").text
    assert 1 < text.count("The harbour has") <= 5
    assert len(re.sub(r"\[\d+\]", "", text).split()) <= 60


def test_an_item_of_a_list_is_quoted_without_its_mark(wb: Workbench, folder: Callable[..., Path]) -> None:
    listed = "# Bread\n\n- Rye bread rises for two hours beside the oven.\n- White bread rises for one hour only.\n"
    wb.ingest(folder({"bread.md": listed}), source="Bread")
    answer = wb.ask("How long does rye bread rise beside the oven?")
    assert answer.text.startswith("Rye bread rises for two hours")
    text = wb.documents.get(answer.citations[0].document_id).text or ""
    assert text[slice(*answer.citations[0].quotes[0])] == "Rye bread rises for two hours beside the oven."


def test_a_row_of_a_table_is_quoted_with_the_names_of_its_columns(wb: Workbench, folder: Callable[..., Path]) -> None:
    table = "| Bread | Minutes |\n|---|---|\n| Rye bread of the house | 120 |\n| White bread of the house | 45 |\n"
    wb.ingest(folder({"bread.md": table}), source="Bread")
    answer = wb.ask("minutes of rye bread of the house")
    assert "Rye bread of the house, Minutes: 120" in answer.text
    assert "|" not in answer.text and "---" not in answer.text


def test_a_row_far_below_its_header_and_next_to_prose_is_quoted_with_the_names_of_its_columns(
    wb: Workbench, folder: Callable[..., Path]
) -> None:
    rows = "\n".join(f"| Harbour dues of quay {n} | {n},200 | ({n}50) |" for n in range(90))
    text = f"# Dues\n\nThe harbour is paid for.\n\n| Thousands | 2023 | 2024 |\n|---|---|---|\n{rows}\n\nIt is old."
    wb.ingest(folder({"dues.md": text}), source="Dues")
    answer = wb.ask("harbour dues of quay 77")
    assert "Harbour dues of quay 77, 2023: 77,200 · 2024: (7750)" in answer.text
    document = wb.documents.get(answer.citations[0].document_id).text or ""
    assert "| Harbour dues of quay 77 | 77,200 | (7750) |" in [document[a:b] for a, b in answer.citations[0].quotes]


def test_a_row_of_a_wide_sheet_is_quoted_with_a_dot_between_its_columns(
    wb: Workbench, folder: Callable[..., Path]
) -> None:
    names = [f"Fact {letter}" for letter in "abcdefghi"]
    rows = [[f"Buoy {number}", *(f"sign {number}{name[-1]}" for name in names)] for number in range(4)]
    sheet = "\n".join(",".join(row) for row in (["Buoy", *names], *rows))
    wb.ingest(folder({"buoys.csv": sheet}), source="Buoys")
    assert "Buoy: Buoy 2 · Fact a: sign 2a · Fact b: sign 2b" in wb.ask("sign 2c of Buoy 2").text


def test_the_header_of_a_table_is_reported_for_each_passage_that_continues_it(
    wb: Workbench, folder: Callable[..., Path]
) -> None:
    header = "| Berth | Length | Fee |\n| --- | --- | --- |"
    rows = "\n".join(f"| Berth {number} | {number * 2} m | {number * 11} |" for number in range(1, 90))
    wb.ingest(folder({"berths.md": f"# Berths\n\n{header}\n{rows}\n"}), source="Berths")
    hits = wb.search("berth length fee", limit=20).results
    headers = wb.answers.table_headers(hits, wb.corpus.index().name)
    later = {hit.passage_id for hit in hits if hit.text.startswith("| Berth ") and "---" not in hit.text}
    assert len(later) > 2
    assert headers == dict.fromkeys(later, header)


def test_a_sentence_of_figures_is_quoted_and_a_footnote_in_it_is_no_citation(
    wb: Workbench, folder: Callable[..., Path]
) -> None:
    census = "In 1901, 56.2% (398,747) of 711,988 inhabitants were Catholics, 35.7% Jews, 2.8% Protestants.[12]"
    wb.ingest(folder({"census.md": f"# Census\n\n{census}\n"}), source="Census")
    answer = wb.ask("How many inhabitants were Catholics in 1901?")
    assert answer.text == f"{census.removesuffix('[12]')} [1]"
    assert [citation.number for citation in answer.citations] == [1]


def test_a_quoted_link_is_its_words(wb: Workbench, folder: Callable[..., Path]) -> None:
    text = "# Tides\n\nThe [tide gauge](gauges.md#tide) writes the level of the sea down every six minutes.\n"
    wb.ingest(folder({"tides.md": text}), source="Tides")
    answer = wb.ask("How often does the tide gauge write the level of the sea down?")
    assert answer.text == "The tide gauge writes the level of the sea down every six minutes. [1]"
    stored = wb.documents.get(answer.citations[0].document_id).text or ""
    assert "[tide gauge](gauges.md#tide)" in stored[slice(*answer.citations[0].quotes[0])]


def test_a_quote_has_no_stars_of_emphasis_and_no_target_of_a_link(wb: Workbench, folder: Callable[..., Path]) -> None:
    text = "# Tides\n\nThe tide gauge writes the level *of the sea* down, **every six** minutes.\n\n[gauge]: tides.md\n"
    wb.ingest(folder({"tides.md": text}), source="Tides")
    answer = wb.ask("How often does the tide gauge write the level of the sea down?")
    assert answer.text == "The tide gauge writes the level of the sea down, every six minutes. [1]"


def test_a_formula_that_is_set_off_as_text_is_quoted_and_code_is_not(
    wb: Workbench, folder: Callable[..., Path]
) -> None:
    text = "# Tides\n\nThe height of the tide goes by a rule.\n\n"
    rule = "```text\nheight(t) = mean + a · cos(w · t)   a = 3 m\n```\n\n"
    signature = (
        'def height(tide):\n    """Return the height of the tide by the rule, as it is written down in the book."""'
    )
    code = f"```python\n{signature}\n```\n"
    wb.ingest(folder({"tides.md": text + rule + code}), source="Tides")
    answer = wb.ask("What is the rule for the height of the tide?")
    assert "height(t) = mean + a · cos(w · t) a = 3 m [1]" in answer.text
    assert "def " not in answer.text and "`" not in answer.text
    stored = wb.documents.get(answer.citations[0].document_id).text or ""
    assert "height(t) = mean + a · cos(w · t)   a = 3 m" in [stored[a:b] for a, b in answer.citations[0].quotes]


def test_of_a_sentence_longer_than_an_answer_the_clauses_that_answer_are_quoted(
    wb: Workbench, folder: Callable[..., Path]
) -> None:
    ports = [f"the port of Harbour{n} loads grain and timber from the valley of the river Stream{n}" for n in range(12)]
    wb.ingest(folder({"ports.md": f"# Ports\n\n{'; '.join(ports)}.\n"}), source="Ports")
    answer = wb.ask("Which port loads timber from the river Stream7?")
    text = wb.documents.get(answer.citations[0].document_id).text or ""
    assert "the port of Harbour7" in answer.text and "…" in answer.text
    assert len(re.sub(r"\[\d+\]|…", "", answer.text).split()) <= 60
    quotes = [text[slice(*span)] for span in answer.citations[0].quotes]
    assert any("Harbour7" in quote for quote in quotes) and all(quote in text for quote in quotes)


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
def test_if_the_llm_is_unavailable_extracts_answer_and_explain_why(
    asking: Callable[..., Workbench], model: str
) -> None:
    answer = asking(model).ask("Which pressure does espresso need?")
    assert answer.kind == "extracts" and "Espresso needs nine bars" in answer.text
    assert f"answer: The LLM '{model}'" in answer.degraded[-1] and "extracts instead" in answer.degraded[-1]


def test_an_answer_that_breaks_off_is_an_error_not_half_an_answer(asking: Callable[..., Workbench]) -> None:
    with pytest.raises(ModelError, match="closed the connection"):
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
    assert "".join(filter_marks(pieces, 3)) == text
    assert "".join(filter_marks(list("".join(pieces)), 3)) == text


def test_citations_are_numbered_in_the_order_of_their_first_mark() -> None:
    assert find_cited_numbers("b [2][1] a [2; 3]") == [2, 1, 3]
