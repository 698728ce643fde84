"""The files that agents may read."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcp_app.arguments import Refused
from mcp_app.file_roots import FileRoots
from tests.mcp_app.agent import Agent


@pytest.fixture
def roots(tmp_path: Path) -> FileRoots:
    (tmp_path / "in" / "sub").mkdir(parents=True)
    (tmp_path / "in" / "a.md").write_text("# A\n\nInside.")
    (tmp_path / "in" / ".env").write_text("SECRET=1")
    (tmp_path / "out.md").write_text("# Out\n\nOutside.")
    (tmp_path / "in" / "link.md").symlink_to(tmp_path / "out.md")
    (tmp_path / "in" / "way").symlink_to(tmp_path)
    (tmp_path / "in" / "alias.md").symlink_to(tmp_path / "in" / "a.md")
    return FileRoots(str(tmp_path / "in"))


@pytest.mark.parametrize("given", ["a.md", "./a.md", "sub/../a.md", "alias.md"])
def test_a_file_inside_is_found_however_it_is_written(roots: FileRoots, given: str) -> None:
    assert roots.file(given) == roots.roots[0] / "a.md"


def test_an_absolute_path_inside_is_found(roots: FileRoots) -> None:
    assert roots.file(str(roots.roots[0] / "a.md")).name == "a.md"


@pytest.mark.parametrize(
    "given", ["../out.md", "sub/../../out.md", "/etc/passwd", "link.md", "way/out.md", "../no-such-file"]
)
def test_a_path_that_is_outside_is_refused(roots: FileRoots, given: str) -> None:
    with pytest.raises(Refused, match=r"Not allowed: .* is outside the allowed folders"):
        roots.file(given)


@pytest.mark.parametrize("given", ["file:///etc/passwd", "FILE:a.md", "http://example.com/a.md", "a\x00.md"])
def test_what_is_no_path_is_refused(roots: FileRoots, given: str) -> None:
    with pytest.raises(Refused, match="is not a path"):
        roots.file(given)


def test_a_missing_file_and_a_folder_are_distinguished(roots: FileRoots) -> None:
    with pytest.raises(Refused, match=r"File not found: b\.md"):
        roots.file("b.md")
    with pytest.raises(Refused, match="sub is a folder"):
        roots.file("sub")


def test_a_server_started_in_the_root_of_the_file_system_opens_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    assert FileRoots("").roots == ()
    with pytest.raises(Refused, match="outside the allowed folders"):
        FileRoots("").file("/etc/passwd")


def test_without_a_setting_the_working_directory_is_open(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.md").write_text("Words.")
    assert FileRoots("").file("a.md") == tmp_path / "a.md"


def test_the_tool_refuses_an_escape_and_names_the_setting(agent: Agent) -> None:
    found = agent.failure("manage_document", action="create", file_path="../../../etc/passwd")
    assert "outside the allowed folders" in found["error"]
    assert "WORKBENCH_FILE_ROOTS" in found["suggestion"]


def test_a_hidden_file_is_reported_as_hidden_and_not_as_outside(roots: FileRoots) -> None:
    with pytest.raises(Refused, match=r"Not allowed: \.env is hidden \(a name starts with a dot\)"):
        roots.file(".env")
