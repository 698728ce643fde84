"""An answer while it is being written, from a real endpoint."""

import pytest

from workbench import Workbench
from workbench.app.compare.page import PendingText, build_answer_data
from workbench.errors import ModelError


@pytest.fixture
def answered(make_settings, llm_url, folder):
    """Ask about one document; the model behaves as its name indicates."""

    def ask(model, question="Where does the stilling well stand?", stopped=False):
        with Workbench.open(settings=make_settings(llm_base_url=llm_url, llm_model=model)) as wb:
            text = "# Well\n\nThe stilling well stands at the harbour and keeps waves from the record of the gauge."
            wb.ingest(folder({"well.md": text}), source="Wells", on_progress=lambda progress: None)
            found = PendingText("key")
            if stopped:
                found.stopped.set()
            found.write(lambda: wb.answers.ask(question))
            return found

    return ask


def test_a_whole_answer_is_done_with_the_passages_its_numbers_mean(answered):
    found = answered("plain")
    data = build_answer_data(found, found.state, "Rerank")
    assert (data["state"], data["kind"], data["model"]) == ("done", "llm", "plain")
    assert data["text"].startswith("The stilling well stands at the harbour")
    assert "[1]" in data["text"] and "[99]" not in data["text"]
    assert data["passages"][0]["title"] == "Well"


def test_an_answer_that_breaks_off_keeps_what_was_written_and_explains_why(answered):
    found = answered("cut")
    assert found.state == "failed"
    assert isinstance(found.error, ModelError)
    assert found.text and "[99]" not in found.text
    assert build_answer_data(found, "failed", "Rerank")["error"] == str(found.error)


def test_a_stopped_answer_takes_no_further_piece(answered):
    found = answered("plain", stopped=True)
    assert (found.state, found.text, found.answer) == ("stopped", "", None)


def test_a_refusal_cites_nothing(answered):
    found = answered("refusing")
    assert found.answer is not None and found.answer.refused
    assert build_answer_data(found, found.state, "Rerank")["kind"] == "refused"


def test_extracts_are_shown_as_running_text(wb, folder):
    text = "# Well\n\n- A stilling well keeps **waves** from [the record](record.md) of the gauge."
    wb.ingest(folder({"well.md": text}), source="Wells", on_progress=lambda progress: None)
    found = PendingText("key")
    found.write(lambda: wb.answers.ask("stilling well waves"))
    data = build_answer_data(found, found.state, "Rerank")
    assert (data["kind"], data["text"]) == ("extracts", "A stilling well keeps waves from the record of the gauge. [1]")
