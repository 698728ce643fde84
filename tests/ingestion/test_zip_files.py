"""Zip archives, by path and as uploads: every readable file is a document, and bad archives are reported."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from workbench import Workbench
from workbench.app.shell.work import start_upload
from workbench.errors import UnreadableDocument
from workbench.ingestion.incoming import list_files, list_zip_members, unpack_uploads

FILES = {
    "notes/a.md": b"# A\n\nTides.",
    "b.txt": b"Buoys.",
    ".hidden.md": b"x",
    "__MACOSX/._a.md": b"x",
    "x.bin": b"\0",
}


def packed(files: Mapping[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return stream.getvalue()


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "Harbour.zip"
    path.write_bytes(packed(FILES))
    return path


def test_an_archive_is_read_as_a_folder_of_its_name(wb: Workbench, archive: Path) -> None:
    report = wb.ingest(archive)
    assert (report.added, report.left_out) == (2, {".bin": 1, "hidden files": 1})
    (source,) = wb.sources.list()
    assert source.title == "Harbour"
    assert sorted(str(document.path) for document in wb.documents.list()) == ["Harbour/b.txt", "Harbour/notes/a.md"]
    assert wb.ingest(archive).unchanged == 2


def test_files_of_an_archive_are_next_to_others(archive: Path, tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("Other buoys.")
    found = list_files([archive, tmp_path / "b.txt"])
    assert sorted(item.key for item in found.items) == ["Harbour/b.txt", "Harbour/notes/a.md", "b.txt"]
    assert {item.key: item.load() for item in found.items}["Harbour/b.txt"] == b"Buoys."


def test_an_upload_is_unpacked_and_a_worker_ingests_it(wb: Workbench, archive: Path) -> None:
    uploads = [("Harbour.zip", archive.read_bytes()), ("c.md", b"Cranes.")]
    job = wb.jobs.wait(start_upload(wb, uploads, source="Port", left_out=["clip.mp4"]), timeout=0)
    assert job.parameters["left_out"] == ["clip.mp4", "Harbour/x.bin"]
    wb.work()
    job = wb.jobs.wait(job.id, timeout=60)
    assert (job.status, job.result["left_out"]) == ("completed", {".mp4": 1, ".bin": 1})
    assert "2 files skipped (unsupported type): .mp4 (1), .bin (1)." in job.message
    assert sorted(str(document.path) for document in wb.documents.list()) == [
        "Harbour/b.txt",
        "Harbour/notes/a.md",
        "c.md",
    ]


def protected() -> bytes:
    """An archive whose only file is marked as encrypted."""
    data = bytearray(packed({"a.md": b"words"}))
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"no zip at all", "damaged or not a zip archive"),
        (packed({}), "no file in a supported format"),
        (packed({"a.bin": b"\0"}), "no file in a supported format"),
        (protected(), "password-protected"),
        (packed({"a.md": b"words " * 50})[:-30], "damaged or not a zip archive"),
    ],
    ids=["words", "empty", "a kind that is not read", "a password", "cut short"],  # their bytes contain the time
)
def test_a_bad_archive_is_refused_in_one_sentence_and_leaves_nothing(
    wb: Workbench, folder: Callable[..., Path], data: bytes, sentence: str
) -> None:
    with pytest.raises(UnreadableDocument, match=sentence):
        start_upload(wb, [("bad.zip", data)], source="New")
    assert wb.sources.list() == [] and wb.jobs.list() == []
    report = wb.ingest([folder({"good.md": "Good words.", "bad.zip": data}) / name for name in ("good.md", "bad.zip")])
    assert report.added == 1 and sentence in report.failures[0].error


def test_a_member_with_a_wrong_size_is_truncated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.ingestion.incoming.MAX_BYTES", 100)
    (member,), _ = list_zip_members(packed({"a.md": b"x" * 101}))
    with pytest.raises(UnreadableDocument, match="larger than the limit of"):
        member.load()


def test_names_that_lead_out_of_the_archive_are_left_out() -> None:
    ((name, _),) = unpack_uploads([("up.zip", packed({"../../out.md": b"words", "in.md": b"words"}))]).files
    assert name == "up/in.md"


def test_hidden_files_of_an_archive_and_those_outside_it_are_counted(tmp_path: Path) -> None:
    names = ("in.md", ".draft.md", "../out.md", "__MACOSX/._in.md", ".DS_Store")
    (tmp_path / "up.zip").write_bytes(packed(dict.fromkeys(names, b"words")))
    assert list_files([tmp_path / "up.zip"]).left_out == {"hidden files": 2}


def test_a_packed_file_has_the_date_of_its_archive(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(zipfile.ZipInfo("dated.md", (2030, 3, 5, 1, 2, 4)), "Cranes.")
        archive.writestr(zipfile.ZipInfo("undated.md"), "Cranes.")
    assert [str(item.file_date) for item in list_files([tmp_path / "a.zip"]).items] == ["2030-03-05", "None"]


def test_members_of_one_name_and_names_of_macos_are_kept() -> None:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as packed, pytest.warns(UserWarning, match="Duplicate name"):
        for name, text in (
            ("logs/a.txt", "First."),
            ("logs/a.txt", "Second."),
            ("GrXXXXe.txt", "Third."),
            ("logs/a (2).txt", "Fourth."),
            ("./", ""),
            ("./", ""),
        ):
            packed.writestr(name, text)
    members, others = list_zip_members(target.getvalue().replace(b"GrXXXXe", "Größe".encode()))
    texts = {member.name: member.load() for member in members}
    assert others == [] and texts == {
        "logs/a.txt": b"First.",
        "logs/a (2).txt": b"Second.",
        "logs/a (2) (2).txt": b"Fourth.",
        "Größe.txt": b"Third.",
    }


class UnmarkedName(zipfile.ZipInfo):
    """A member whose name is stored as its bytes, without the mark of UTF-8, as Windows and older tools do."""

    def _encodeFilenameFlags(self) -> tuple[bytes, int]:
        return self.filename.encode("cp437"), self.flag_bits & ~0x800


@pytest.mark.parametrize(
    ("names", "encoding"),
    [
        (["売上報告書.txt", "議事録/会議メモ.txt"], "cp932"),
        (["销售报告.txt", "会议记录.txt"], "gbk"),
        (["отчёт за год.txt"], "cp866"),
        (["Bücher.txt", "Übersicht.txt"], "cp437"),
        (["Año.txt", "Compañía.txt", "Straße.txt"], "cp850"),
        (["résumé.txt"], "utf-8"),
        (["отчёт.txt"], "cp866"),
        (["договор.txt"], "cp1251"),
        (["Report отчет.txt"], "cp866"),
        (["売上.txt"], "cp932"),
        (["メモ.txt"], "cp932"),
        (["回憶錄.txt"], "big5"),
        (["회의.txt"], "cp949"),
        (["图.txt", "会议.txt"], "gbk"),
        (["σύμβαση.txt"], "cp737"),
        (["São.txt"], "cp850"),
        (["Příloha.txt"], "cp852"),
        (["Müller.txt"], "cp1252"),
        (["é.txt"], "cp437"),
    ],
)
def test_names_without_a_mark_are_decoded_as_texts_are(names: list[str], encoding: str) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name in names:
            archive.writestr(UnmarkedName(name.encode(encoding).decode("cp437")), b"x")
        archive.writestr("日本語.txt", b"x")  # marked
    members, _ = list_zip_members(stream.getvalue())
    assert [member.name for member in members] == [*names, "日本語.txt"]


def test_names_in_utf8_stay_if_others_of_the_archive_are_not() -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, encoding in (("Отчёт за год.txt", "utf-8"), ("Смета.txt", "cp866"), ("Приказ о мерах.txt", "cp866")):
            archive.writestr(UnmarkedName(name.encode(encoding).decode("cp437")), b"x")
    members, _ = list_zip_members(stream.getvalue())
    assert [member.name for member in members] == ["Отчёт за год.txt", "Смета.txt", "Приказ о мерах.txt"]


def test_a_line_break_in_a_name_does_not_move_the_names_of_others() -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name in ("a\nb é.txt", "ü.txt"):
            archive.writestr(UnmarkedName(name.encode().decode("cp437")), b"x")
    members, _ = list_zip_members(stream.getvalue())
    assert [member.name for member in members] == ["a\nb é.txt", "ü.txt"]
