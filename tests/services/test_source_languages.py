"""The language of a source: validated, applied to its documents, whose words are stemmed again."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench import Workbench
from workbench.errors import InvalidInput


def test_a_language_is_validated(wb: Workbench) -> None:
    source = wb.sources.create("Texte")
    with pytest.raises(InvalidInput, match=r"no language 'klingon'.*'german'"):
        wb.sources.update(source.id, language="klingon")


def test_a_changed_language_stems_what_is_stored(wb: Workbench) -> None:
    source = wb.sources.create("Texte")
    wb.documents.create(text="Die Häuser stehen am Ufer.", source=source.id)
    wb.sources.update(source.id, language="english")
    assert not wb.search("Haus", strategy="keyword")
    wb.sources.update(source.id, language="german")
    hit = wb.search("Haus", strategy="keyword")[0]
    assert wb.corpus.documents.record(hit.document_id).language == "german"
    assert wb.indexes.count_missing("main") == 0


def test_a_language_that_was_chosen_is_left_to_the_texts_again(wb: Workbench, tmp_path: Path) -> None:
    source = wb.sources.create("Texte")
    german = "Die Häuser stehen am Ufer, und die Kinder gehen am Morgen über die Brücke zur Schule."
    (code := tmp_path / "harbour.py").write_text("def harbour() -> None:\n    pass\n")
    wb.documents.create(text=german, source=source.id)
    wb.documents.create(path=code, source=source.id)
    assert wb.sources.get(source.id).language == "auto"
    assert wb.sources.update(source.id, language="french").language == "french"
    assert _languages(wb) == {"french": 2}
    assert wb.sources.update(source.id, language="auto").language == "auto"
    assert _languages(wb) == {"english": 1, "german": 1}
    assert wb.search("Haus", strategy="keyword")
    assert wb.indexes.count_missing("main") == 0


def test_documents_that_come_in_later_get_the_language_that_was_chosen(wb: Workbench) -> None:
    source = wb.sources.create("Texte")
    wb.sources.update(source.id, language="de")
    wb.documents.create(text="Haus Ufer", source=source.id)
    assert _languages(wb) == {"german": 1}


def _languages(wb: Workbench) -> dict[str, int]:
    return dict(sorted(wb.indexes.languages("main").items()))
