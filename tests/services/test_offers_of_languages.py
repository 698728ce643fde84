"""An ingest suggests an index for the languages of its documents, but only if that helps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from workbench import Workbench
from workbench.display import report_html, report_text

GERMAN = "Der Turm steht in der alten Stadt und ist dreihundert Meter hoch. Man sieht von ihm aus den Fluss."
ENGLISH = "The tower stands in the old town and is three hundred metres high. One sees the river from it."


def test_documents_in_a_language_that_the_model_was_not_trained_for_come_with_an_offer(
    minilm_wb: Workbench, folder: Callable[..., Path]
) -> None:
    english = minilm_wb.ingest(folder({"tower.md": ENGLISH}, "english"))
    assert english.offer == ""
    files = folder({"turm.md": GERMAN}, "german")
    german = minilm_wb.ingest(files)
    assert german.offer.startswith("1 passage in German, which the model minilm was not trained for.")
    assert "takes about 1 minute; searches continue in the meantime" in german.offer
    assert "workbench indexes create multilingual --model multilingual --build" in german.offer
    assert german.to_dict()["offer"] == german.offer
    assert german.offer in report_text(german) and "in German" in report_html(german)
    assert minilm_wb.ingest(files).offer == ""
    assert minilm_wb.ingest(folder({"more.md": ENGLISH + " It is old."}, "more")).offer == ""


def test_nothing_is_offered_once_an_index_with_that_model_exists(
    minilm_wb: Workbench, folder: Callable[..., Path]
) -> None:
    minilm_wb.indexes.create("many", chunker="structure", embedding_model="multilingual")
    assert minilm_wb.ingest(folder({"turm.md": GERMAN})).offer == ""
