"""``workbench export`` and ``workbench import``: everything is exported and restored."""

from __future__ import annotations

import os
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from commands import Ran
from psycopg import sql

from workbench import Workbench
from workbench.errors import InvalidInput
from workbench.types import Progress


@pytest.fixture
def elsewhere(server_url: str, template_database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], str]]:
    """Point the command at another, empty database."""
    name = "elsewhere"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
        clone = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        connection.execute(clone.format(sql.Identifier(name), sql.Identifier(template_database)))

    def turn() -> str:
        monkeypatch.setenv("WORKBENCH_DATABASE_URL", psycopg.conninfo.make_conninfo(server_url, dbname=name))
        return psycopg.conninfo.make_conninfo(server_url, dbname=name)

    yield turn
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def test_everything_is_back_after_an_import(
    workbench: Callable[..., Ran], animals: Path, elsewhere: Callable[[], str]
) -> None:
    workbench("projects", "create", "Zoo")
    workbench("projects", "create-folder", "Zoo", "Mammals")
    workbench("ingest", str(animals), "--project", "Zoo", "--folder", "Mammals", "--tag", "pets")
    workbench("indexes", "create", "small", "--chunker", "sentence", "--build")
    questions = ("cats purr", "who guards the house?")
    before = [workbench("compare", question, "--json").json["strategies"] for question in questions]
    assert workbench("export", "all.zip", "--json").json["documents"] == 3
    elsewhere()
    restored = workbench("import", "all.zip", "--json").json
    assert (restored["documents"], restored["sources"], restored["indexes"]) == (3, 1, ["main", "small"])
    after = [workbench("compare", question, "--json").json["strategies"] for question in questions]
    for left, right in zip(before, after, strict=True):
        assert {name: found["results"] for name, found in left.items()} == {
            name: found["results"] for name, found in right.items()
        }
    assert workbench("search", "dogs", "--project", "Zoo", "--index", "small", "--json").json["results"]


def test_an_imported_corpus_continues_growing(
    workbench: Callable[..., Ran], animals: Path, elsewhere: Callable[[], str]
) -> None:
    workbench("ingest", str(animals), "--source", "Animals")
    workbench("export", "all.zip")
    url = elsewhere()
    workbench("import", "all.zip")
    (animals / "owls.md").write_text("# Owls\n\nOwls hoot at night.")
    assert workbench("ingest", str(animals), "--source", "Animals", "--json").json["documents"]["added"] == 1
    assert workbench("search", "hoot", "--strategy", "keyword", "--json").json["results"][0]["document_title"] == "Owls"
    with psycopg.connect(url) as connection:
        wrong = connection.execute("SELECT term FROM lexicon_main WHERE df <> 1 AND term IN ('owl', 'cat')").fetchall()
    assert wrong == []


def test_an_import_into_a_workbench_with_sources_is_refused(workbench: Callable[..., Ran], animals: Path) -> None:
    workbench("ingest", str(animals))
    workbench("export", "all.zip")
    ran = workbench("import", "all.zip")
    assert (ran.code, ran.out) == (1, "")
    assert "import into an empty one" in ran.err


def test_an_export_does_not_replace_a_file_unasked(workbench: Callable[..., Ran], tmp_path: Path) -> None:
    Path("all.zip").write_text("mine")
    assert workbench("export", "all.zip").code == 1
    assert Path("all.zip").read_text() == "mine"
    assert workbench("export", "all.zip", "--force").code == 0
    assert zipfile.is_zipfile("all.zip")
    assert sorted(path.name for path in tmp_path.glob("*zip*")) == ["all.zip"]


def test_an_export_replaces_no_pipe_or_device_and_follows_links(wb: Workbench, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "backup.zip").write_text("an older one")
    (tmp_path / "link.zip").symlink_to("backup.zip")
    with pytest.raises(InvalidInput, match=r"pipe \(it is not a file\); choose another location"):
        wb.backups.write(tmp_path / "pipe", replace=True)
    wb.backups.write(tmp_path / "link.zip", replace=True)
    assert (tmp_path / "pipe").is_fifo()
    assert (tmp_path / "link.zip").is_symlink()
    assert zipfile.is_zipfile(tmp_path / "backup.zip")
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x05\x06" + bytes(18)])
def test_what_is_no_export_is_refused_with_a_sentence(workbench: Callable[..., Ran], content: bytes) -> None:
    Path("other.zip").write_bytes(content)
    ran = workbench("import", "other.zip")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "export" in ran.err


def test_a_damaged_export_changes_nothing(
    workbench: Callable[..., Ran], animals: Path, elsewhere: Callable[[], str]
) -> None:
    workbench("ingest", str(animals))
    workbench("export", "all.zip")
    with zipfile.ZipFile("all.zip") as whole, zipfile.ZipFile("torn.zip", "w") as torn:
        for name in whole.namelist():
            if name != "data_main.copy":
                torn.writestr(name, whole.read(name))
    elsewhere()
    assert "data_main has no rows" in workbench("import", "torn.zip").err
    assert workbench("sources", "list", "--json").json["total"] == 0


def test_a_workbench_reads_its_own_backup(wb: Workbench, tmp_path: Path) -> None:
    written = wb.backups.write(tmp_path / "empty.zip")
    read = wb.backups.read(tmp_path / "empty.zip")
    assert (written.documents, read.documents, read.rows) == (0, 0, written.rows)


def test_two_exports_to_one_file_at_once_leave_a_whole_one_and_nothing_else(wb: Workbench, tmp_path: Path) -> None:
    wb.documents.create(text="Kept words.", title="Kept")
    target = tmp_path / "all.zip"
    began = threading.Barrier(3)

    def start(progress: Progress) -> None:
        if progress.done == 0:
            began.wait(60)  # until all are writing

    with ThreadPoolExecutor() as pool:
        writes = [pool.submit(wb.backups.write, target, replace=True, on_progress=start) for _ in range(3)]
        assert {write.result().documents for write in writes} == {1}
    assert [place.name for place in tmp_path.iterdir()] == ["all.zip"]
    with zipfile.ZipFile(target) as archive:
        assert archive.testzip() is None


def test_an_export_deletes_what_a_killed_one_left_a_day_ago(wb: Workbench, tmp_path: Path) -> None:
    old, new, other = (
        tmp_path / name for name in (".all.zip.abcdefg1.part", ".all.zip.abcdefg2.part", ".b.zip.1.part")
    )
    for place in (old, new, other):
        place.write_text("half")
    for place in (old, other):
        os.utime(place, (time.time() - 90_000,) * 2)
    wb.backups.write(tmp_path / "all.zip")
    assert [place.exists() for place in (old, new, other)] == [False, True, True]
