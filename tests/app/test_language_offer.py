"""The offer of a multilingual index: shown if it would help, otherwise not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from streamlit.testing.v1 import AppTest

from workbench import Workbench
from workbench.app.state.shared import OPENING
from workbench.services.indexes import make_offer


def test_passages_in_languages_that_the_model_was_not_trained_for_are_reported_with_the_time_it_takes() -> None:
    offer = make_offer({"english": 9_000, "german": 500, "arabic": 100}, "minilm")
    assert offer is not None
    assert (offer.passages, offer.languages) == (600, ("German", "Arabic"))
    sentence = offer.sentence
    assert sentence.startswith("600 passages in German and Arabic, which the model minilm was not trained for.")
    assert "12 minutes" in sentence
    several = make_offer({"arabic": 500, "cjk": 100, "german": 10}, "minilm")
    assert several is not None and "in Arabic, Chinese/Japanese/Korean and German, which" in several.sentence


def test_nothing_is_offered_if_the_model_suffices_or_the_language_is_unknown() -> None:
    assert make_offer({"english": 9_000, "simple": 10}, "minilm") is None
    assert make_offer({"english": 36_000, "spanish": 3}, "minilm") is None
    assert make_offer({"english": 10, "german": 500}, "multilingual") is None
    assert make_offer({"german": 500}, "BAAI/bge-m3") is None


GERMAN = "Der Turm steht in der alten Stadt und ist dreihundert Meter hoch. Für zwei Euro sieht man den Fluss."


def _system() -> None:
    from workbench.app.system.page import page

    page()


def test_the_system_page_offers_the_index_and_makes_it(minilm_wb: Workbench, folder: Callable[..., Path]) -> None:
    OPENING.use(minilm_wb)
    minilm_wb.ingest(folder({"turm.md": GERMAN}))
    script = AppTest.from_function(_system)
    script.default_timeout = 60
    app = script.run()
    assert any("1 passage in German, which the model minilm was not trained for" in part.value for part in app.markdown)
    app.button(key="index_languages").click().run()
    assert minilm_wb.indexes.get("multilingual").embedding_model == "multilingual"
    assert "multilingual" in minilm_wb.jobs.list_builds()
    assert not any("not trained for" in part.value for part in script.run().markdown)


def _library() -> None:
    from workbench.app.library.page import page

    page()


def test_the_library_offers_the_index_once_an_upload_in_such_a_language_has_ended(minilm_wb: Workbench) -> None:
    OPENING.use(minilm_wb)

    def offered() -> bool:
        script = AppTest.from_function(_library)
        script.default_timeout = 60
        return any("which the model minilm was not trained for" in part.value for part in script.run().markdown)

    assert not offered()
    job = minilm_wb.jobs.enqueue_ingest(files=[("turm.md", GERMAN.encode())], source="Uploads")
    assert not offered()
    worker = minilm_wb.start_worker(heartbeat=0.2, stalled=1.0)
    assert minilm_wb.jobs.wait(job.id, timeout=60).status == "completed"
    worker.stop()
    assert offered()
    minilm_wb.jobs.put_away(job.id)
    assert not offered()
