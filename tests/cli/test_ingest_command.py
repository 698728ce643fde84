"""``workbench ingest``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import COMMAND, Ran

from workbench import Workbench


def test_its_json_is_what_the_interfaces_promise(workbench: Callable[..., Ran], animals: Path) -> None:
    ran = workbench("ingest", str(animals), "--source", "Animals", "--tag", "pets", "--json")
    assert ran.code == 0
    assert ran.json["documents"] == {"added": 3, "updated": 0, "unchanged": 0, "failed": 0}
    assert set(ran.json) >= {"source_id", "documents", "passages", "seconds", "failures"}
    source = workbench("sources", "show", "Animals", "--json").json
    assert (source["id"], source["tags"]) == (ran.json["source_id"], ["pets"])


def test_again_changes_nothing(workbench: Callable[..., Ran], animals: Path) -> None:
    workbench("ingest", str(animals))
    again = workbench("ingest", str(animals), "--json").json
    assert again["documents"] == {"added": 0, "updated": 0, "unchanged": 3, "failed": 0}
    assert again["embedded"] == 0


def test_documents_that_the_folder_lacks_are_reported(workbench: Callable[..., Ran], animals: Path) -> None:
    workbench("ingest", str(animals), "--source", "Animals")
    first, second, *_ = sorted(animals.iterdir())
    first.rename(animals / "renamed.md")
    second.unlink()
    ran = workbench("ingest", str(animals), "--source", "Animals", "--json").json
    note = f"2 other documents of this source are not in the folder: {first.name}, {second.name}."
    equal = f"1 file is also stored elsewhere: renamed.md ({first.name})."
    assert sorted(ran["notes"]) == sorted([note, equal]) and ran["documents"]["added"] == 1
    (animals / "renamed.md").rename(first)
    second.write_text("A dog.")
    again = workbench("ingest", str(animals / first.name), "--source", "Animals", "--json").json
    assert again["notes"] == [f"1 file is also stored elsewhere: {first.name} (renamed.md)."]  # no folder to compare


def test_a_file_whose_name_is_not_utf_8_is_in_its_folder(workbench: Callable[..., Ran], animals: Path) -> None:
    (animals / os.fsdecode(b"caf\xe9.md")).write_text("A café with cats.")
    workbench("ingest", str(animals))
    again = workbench("ingest", str(animals), "--json").json
    assert (again["documents"]["unchanged"], again["notes"]) == (4, [])


def test_unreadable_files_are_listed_and_the_rest_is_ingested(workbench: Callable[..., Ran], animals: Path) -> None:
    (animals / "broken.pdf").write_bytes(b"%PDF-1.7 nothing")
    ran = workbench("ingest", str(animals), str(animals / "missing.md"), "--json")
    assert ran.code == 0
    assert ran.json["documents"]["added"] == 3
    assert {Path(failure["path"]).name for failure in ran.json["failures"]} == {"broken.pdf", "missing.md"}
    assert all(failure["error"].endswith(".") for failure in ran.json["failures"])


def test_what_was_left_out_is_one_line(workbench: Callable[..., Ran], animals: Path) -> None:
    (animals / "letter.odt").write_bytes(b"PK\x03\x04 nothing")
    (animals / "letter.msg").write_bytes(b"\xd0\xcf\x11\xe0")
    sentence = "2 files skipped (unsupported type): .msg (1), .odt (1). Save .msg as .eml, .odt as .docx."
    assert sentence in " ".join(workbench("ingest", str(animals)).out.split())
    assert workbench("ingest", str(animals), "--json").json["left_out"] == {".msg": 1, ".odt": 1}


def test_it_fails_when_nothing_could_be_read(workbench: Callable[..., Ran], folder: Callable[..., Path]) -> None:
    ran = workbench("ingest", str(folder({"empty.md": ""})), "--json")
    assert (ran.code, ran.json["documents"]["failed"]) == (1, 1)


def test_a_source_in_which_nothing_could_be_stored_is_not_left_behind(
    workbench: Callable[..., Ran], folder: Callable[..., Path]
) -> None:
    broken = folder({"empty.md": "", "broken.pdf": b"%PDF-1.7 nothing"})
    assert "Source:" not in workbench("ingest", str(broken)).out
    assert workbench("documents", "create", "--file", str(broken / "broken.pdf")).code == 1
    assert workbench("sources", "list", "--json").json["sources"] == []
    workbench("sources", "create", "Mine")
    workbench("ingest", str(broken), "--source", "Mine")
    assert [source["title"] for source in workbench("sources", "list", "--json").json["sources"]] == ["Mine"]


def test_a_path_that_does_not_exist_is_a_sentence(workbench: Callable[..., Ran]) -> None:
    ran = workbench("ingest", "no/such/'folder'\x00")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("There is no such file or folder: ")


@pytest.mark.parametrize(("path", "said"), [("", "''"), ("x" * 300, "(File name too long)")])
def test_a_path_that_leads_nowhere_is_a_sentence_too(workbench: Callable[..., Ran], path: str, said: str) -> None:
    ran = workbench("ingest", path)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("There is no such file or folder: ")
    assert said in ran.err


def test_for_people_it_reports_what_changed(workbench: Callable[..., Ran], animals: Path) -> None:
    shown = workbench("ingest", str(animals)).out
    assert "3 added, 0 updated, 0 unchanged, 0 failed" in shown


def test_ctrl_c_leaves_whole_documents_and_the_same_command_finishes(
    wb: Workbench, environment: dict[str, str], folder: Callable[..., Path]
) -> None:
    words = " ".join(f"word{number}" for number in range(150))
    root = folder({f"{number}.md": f"# Paper {number}\n\n{words}" for number in range(600)})
    running = subprocess.Popen([*COMMAND, "ingest", str(root), "--source", "Papers"], stderr=-1, env=environment)
    while wb.documents.count() == 0:
        assert running.poll() is None
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    said = running.communicate(timeout=60)[1].decode()
    assert running.returncode == 130
    assert "Stopping after the current document" in said and "Traceback" not in said
    stored = wb.documents.count()
    assert 0 < stored < 600
    assert wb.indexes.get().documents_count == stored
    done = subprocess.run([*COMMAND, "ingest", str(root), "--source", "Papers", "--json"], stdout=-1, env=environment)
    assert json.loads(done.stdout)["documents"] == {
        "added": 600 - stored, "updated": 0, "unchanged": stored, "failed": 0
    }  # fmt: skip
