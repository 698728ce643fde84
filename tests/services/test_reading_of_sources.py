"""How a source's files are read: encoding, hidden parts, total of what was left out, dates, one bad file."""

from __future__ import annotations

import os
import subprocess
from datetime import date
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from mcp_app.tools import knowledge
from tests.ingestion import files
from workbench import Scope, Workbench
from workbench.app.state.shared import OPENING
from workbench.cli import main
from workbench.errors import InvalidInput
from workbench.ingestion.incoming import list_files

RUSSIAN = "Ключ."  # in KOI8-R; too short to be guessed against the words around it


def test_the_encoding_of_a_source_is_used_when_its_files_are_ingested_again(wb: Workbench, tmp_path: Path) -> None:
    file = tmp_path / "key.txt"
    file.write_bytes(RUSSIAN.encode("cp866"))
    source = wb.sources.create("Old machine")
    with pytest.raises(InvalidInput, match="There is no encoding 'klingon'"):
        wb.sources.update(source.id, encoding="klingon")
    assert wb.sources.update(source.id, encoding="IBM866").encoding == "ibm866"
    report = wb.ingest([file], source=source.id)
    document = wb.documents.get(report.document_ids[0])
    assert (document.text, document.metadata["encoding"]) == (RUSSIAN, "ibm866")
    wb.sources.update(source.id, encoding="koi8-r")
    again = wb.ingest([file], source=source.id)
    assert again.updated == 1 and wb.documents.get(document.id).text == RUSSIAN.encode("cp866").decode("koi8_r")
    assert wb.ingest([file], source=source.id).unchanged == 1


def test_a_report_adds_up_what_was_left_out_and_a_bad_file_stops_nothing(wb: Workbench, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("Grüße übers Meer, schöne Höhen. ".encode() * 8 + b"\xff")
    (tmp_path / "b.txt").write_bytes("Grüße übers Meer, schöne Höhen! ".encode() * 8 + b"\xff\xfe")
    (tmp_path / "c.xlsx").write_bytes(files.docx()[:400])
    report = wb.ingest([tmp_path], source="Sum")
    assert (report.added, [failure.path for failure in report.failures]) == (2, ["c.xlsx"])
    assert report.notes[0] == "Not fully read in 2 documents: bytes that are not valid UTF-8 (3)."
    assert report.to_dict()["notes"] == list(report.notes)


def test_a_filter_by_date_counts_documents_without_a_date(wb: Workbench) -> None:
    source = wb.sources.create("Dated").id
    wb.documents.create(
        text="# Tides\n\nThe tide is high.", title="Dated tide", source=source, metadata={"pubDate": "05.03.2030"}
    )
    wb.documents.create(text="# Tides\n\nThe tide is low.", title="Undated tide", source=source)
    found = wb.search("tide", scope=Scope(sources=(source,), since=date(2030, 1, 1)))
    assert [hit.document_title for hit in found] == ["Dated tide"]
    assert "1 document has no date and is left out." in found.notes
    assert wb.search("tide", scope=Scope(sources=(source,))).scope.notes == ()


def test_a_file_has_the_day_of_its_last_commit_or_else_of_its_last_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kept.md").write_text("Kept.")
    (tmp_path / "new.md").write_text("New.")
    os.utime(tmp_path / "new.md", (1_900_000_000, 1_900_000_000))  # 2030-03-17
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2029-05-06T12:00:00+00:00")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "kept.md"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "Keep"], check=True)
    dates = {item.key: item.file_date for item in list_files([tmp_path]).items}
    assert dates == {"kept.md": date(2029, 5, 6), "new.md": date(2030, 3, 17)}
    for root in (tmp_path / "kept.md", tmp_path.parent):
        [kept] = [item for item in list_files([root]).items if item.name == "kept.md"]
        assert kept.file_date == date(2029, 5, 6), "a repository's file alone, or a folder with repositories"


def test_a_date_that_is_not_understood_is_noted_and_not_replaced(wb: Workbench, tmp_path: Path) -> None:
    for name, written in {"day": "03/05/2030", "none": "soon", "list": "[2030-03-05]", "log": "05-Mar-2030"}.items():
        (tmp_path / f"{name}.md").write_text(f"---\ndate: {written}\n---\nThe pier opens.\n")
    report = wb.ingest([tmp_path], source="Dates")
    assert [note for note in report.notes if "dates" in note] == [
        "day.md: not fully read: dates that are ambiguous or not understood (1)."
    ]
    dates = {document.title: document.document_date for document in wb.documents.list(source_id=report.source_id)}
    assert dates.pop("none") == date.today()  # that of the file
    assert dates == {"day": None, "list": date(2030, 3, 5), "log": date(2030, 3, 5)}


def _library() -> None:
    from workbench.app.library.page import page

    page()


def test_every_face_explains_that_the_option_for_hidden_parts_covers_comments(
    wb: Workbench, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["sources", "update", "--help"])
    (tool,) = (tool for tool in knowledge.TOOLS if tool.name == "manage_source")
    OPENING.use(wb)
    app = AppTest.from_function(_library, default_timeout=60)
    app.query_params["open"] = wb.sources.create("Reports").id
    settings = next(button for button in app.run().button if button.label == "File settings")
    for shown in (
        capsys.readouterr().out.rpartition("--hidden {")[2].partition("--url")[0],
        next(argument.why for argument in tool.arguments if argument.name == "hidden"),
        (wb.sources.update.__doc__ or "").partition("hidden:")[2].partition("build:")[0],
        settings.click().run().radio[0].label,
    ):
        assert "comments" in shown.lower() and "hidden" in shown
