"""The files found under given paths, and the messages about the others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from workbench import Workbench
from workbench.display import report_html, report_text
from workbench.ingestion.incoming import list_files
from workbench.ingestion.readers.formats import discover


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.md", "a/z.txt", "a/c.py", ".hidden/x.md", ".secret.md", "node_modules/y.md", "README"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("text")
    (tmp_path / "image.gif").write_bytes(bytes(100))
    (tmp_path / "odd.xyz").write_text("words")
    (tmp_path / "a/loop").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "broken.md").symlink_to(tmp_path / "nowhere.md")
    return tmp_path


def test_folders_are_walked_in_sorted_order(folder: Path) -> None:
    names = [str(path.relative_to(folder)) for path in discover([folder]).files]
    assert names == ["README", "a/c.py", "a/z.txt", "b.md"]


def test_everything_left_out_has_its_reason(folder: Path) -> None:
    reasons = {str(item.path.relative_to(folder)): item.reason for item in discover([folder]).skipped}
    assert reasons.pop("node_modules") == "It contains installed packages."
    assert reasons.pop("a/loop") == "It links to one of its parent folders."
    assert reasons.pop("broken.md").startswith("It is not a regular file")
    assert reasons.pop("image.gif") == "Its format is not supported (.gif). Save it as .png."
    assert "Markdown, text, HTML" in reasons.pop("odd.xyz")
    assert reasons == {".hidden": "It is hidden.", ".secret.md": "It is hidden."}


def test_a_given_path_is_read_even_if_hidden_and_reported_if_unreadable(folder: Path) -> None:
    found = discover([folder / ".secret.md", folder / "odd.xyz", folder / "gone.md"])
    assert found.files == (folder / ".secret.md",)
    assert [(item.path.name, item.missed) for item in found.skipped] == [("odd.xyz", True), ("gone.md", True)]


def test_a_file_named_twice_or_reached_twice_is_listed_once(folder: Path) -> None:
    (folder / "same.md").symlink_to(folder / "b.md")
    assert [path.name for path in discover([folder / "b.md", folder / "b.md", folder]).files].count("b.md") == 1
    assert "same.md" not in [path.name for path in discover([folder / "b.md", folder]).files]


def test_a_link_to_itself_is_left_out_and_the_rest_is_found(folder: Path) -> None:
    (folder / "a/circle").symlink_to("circle")
    found = discover([folder, folder / "a/circle"])
    assert [path.name for path in found.files] == ["README", "c.py", "z.txt", "b.md"]
    assert {skip.path.name: skip.missed for skip in found.skipped if skip.path.name == "circle"} == {"circle": True}


def test_files_of_one_name_from_several_paths_keep_keys_of_their_own(tmp_path: Path) -> None:
    for year in ("2023", "2024"):
        (tmp_path / year / "more").mkdir(parents=True)
        (tmp_path / year / "notes.md").write_text(year)
    (tmp_path / "2024/more/plan.md").write_text("plan")
    found = list_files([tmp_path / "2023", tmp_path / "2024", tmp_path / "2024/more"])
    assert [(item.key, item.load()) for item in found.items] == [
        ("2023/notes.md", b"2023"),
        ("more/plan.md", b"plan"),
        ("2024/notes.md", b"2024"),
    ]
    assert found.failures == []


def test_a_folder_without_readable_files_is_reported(tmp_path: Path) -> None:
    (tmp_path / "letter.odt").write_text("words")
    found = list_files([tmp_path])
    assert found.items == []
    assert [failure.path for failure in found.failures] == [str(tmp_path)]
    assert "no file in a supported format" in found.failures[0].error


def test_files_of_kinds_that_are_not_read_are_counted_by_their_suffix(folder: Path) -> None:
    (folder / "a/letter.XYZ").write_text("words")
    (folder / "a/core").write_bytes(bytes(100))
    found = list_files([folder, folder / "a"])
    assert found.left_out == {".xyz": 2, "": 1, ".gif": 1, "hidden files": 1}
    assert {Path(failure.path).name for failure in found.failures} == {"broken.md"}  # a document that is gone


def test_a_report_reports_in_one_line_what_was_left_out(wb: Workbench, folder: Path) -> None:
    report = wb.ingest(folder, source="Mixed")
    assert report.added == 4
    assert report.to_dict()["left_out"] == {".gif": 1, ".xyz": 1, "hidden files": 1}
    skipped = "2 files skipped (unsupported type): .gif (1), .xyz (1)."
    sentence = f"{skipped} 1 hidden file skipped; name one to read it. Save .gif as .png."
    assert report.to_dict()["advice"] == "Save .gif as .png."
    assert report.left_out_sentence == sentence
    assert sentence in report_text(report)
    assert sentence in report_html(report)


def test_names_that_are_no_utf_8_or_break_the_line_become_text(wb: Workbench, tmp_path: Path) -> None:
    for name in (b"caf\xe9.txt", b"two\nlines.txt", b"broken-\xfc.pdf"):
        Path(os.fsdecode(bytes(tmp_path) + b"/" + name)).write_text(f"tarragon {len(name)}")
    report = wb.ingest(tmp_path, source="Odd names")
    assert (report.added, [failure.path for failure in report.failures]) == (2, ["broken-ü.pdf"])
    assert {(hit.path, hit.document_title) for hit in wb.search("tarragon")} == {
        ("café.txt", "café"),
        ("two\nlines.txt", "two lines"),
    }


def test_documents_that_are_inaccessible_are_reported(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("text")
    os.mkfifo(tmp_path / "pipe.md")
    os.mkfifo(tmp_path / "pipe")
    folder = os.open(tmp_path, os.O_RDONLY)
    for _level in range(20):  # 20 names of 250 bytes are more than a path may have
        os.mkdir("d" * 250, dir_fd=folder)
        below = os.open("d" * 250, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(os.open("deep.md", os.O_CREAT, dir_fd=folder))
    os.close(folder)

    found = list_files([tmp_path])

    assert [item.key for item in found.items] == ["notes.md"]
    errors = {Path(failure.path).name: failure.error for failure in found.failures}
    assert errors == {
        "pipe.md": "It is not a regular file (a broken link, socket or device).",
        "d" * 250: "Opening failed: File name too long.",
    }


def test_a_path_or_a_title_that_is_too_long_for_a_file_stops_no_ingest(wb: Workbench, tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("tarragon")
    long = "x" * 300
    wb.documents.create(text="chervil", title=long, source=wb.sources.create("Herbs").id)
    report = wb.ingest(tmp_path, source="Herbs")
    assert (report.added, report.notes) == (1, (f"1 other document of this source is not in the folder: {long}.",))
    report = wb.ingest([tmp_path, f"{long}.zip", long], source="Herbs")
    assert report.unchanged == 1
    assert [(failure.path, failure.error) for failure in report.failures] == [
        (f"{long}.zip", "It does not exist."),
        (long, "It does not exist."),
    ]
