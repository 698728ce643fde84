"""Which files are found under the paths a person names, and what is said of the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.ingestion.readers import discover


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.md", "a/z.txt", "a/c.py", ".hidden/x.md", ".secret.md", "node_modules/y.md", "README"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("text")
    (tmp_path / "image.png").write_bytes(bytes(100))
    (tmp_path / "odd.xyz").write_text("words")
    (tmp_path / "a/loop").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "broken.md").symlink_to(tmp_path / "nowhere.md")
    return tmp_path


def test_folders_are_walked_in_sorted_order(folder: Path) -> None:
    found = [str(path.relative_to(folder)) for path in discover([folder])]
    assert found == ["README", "a/c.py", "a/z.txt", "b.md"]


def test_everything_left_out_has_its_reason(folder: Path) -> None:
    reasons = {str(item.path.relative_to(folder)): item.reason for item in discover([folder]).skipped}
    assert reasons.pop("node_modules") == "It holds installed packages."
    assert reasons.pop("a/loop") == "It is a link to a folder above it."
    assert reasons.pop("broken.md").startswith("It is no file")
    assert reasons.pop("image.png") == "It is a binary file (.png)."
    assert ".md" in reasons.pop("odd.xyz")
    assert reasons == {".hidden": "It is hidden.", ".secret.md": "It is hidden."}


def test_a_path_named_by_the_person_is_taken_though_hidden_and_answered_for_when_it_cannot_be(folder: Path) -> None:
    found = discover([folder / ".secret.md", folder / "odd.xyz", folder / "gone.md"])
    assert found.files == (folder / ".secret.md",)
    assert [(item.path.name, item.asked) for item in found.skipped] == [("odd.xyz", True), ("gone.md", True)]


def test_a_file_named_twice_or_reached_twice_is_listed_once(folder: Path) -> None:
    (folder / "same.md").symlink_to(folder / "b.md")
    assert [path.name for path in discover([folder / "b.md", folder / "b.md", folder]).files].count("b.md") == 1
    assert "same.md" not in [path.name for path in discover([folder / "b.md", folder]).files]
