"""``workbench notebooks copy``: the eight notebooks in a new folder, runnable without the repository."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from commands import Ran
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
ALL = sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb"))


def test_all_are_copied_with_what_they_import(workbench: Callable[..., Ran], tmp_path: Path) -> None:
    copied = workbench("notebooks", "copy", str(tmp_path / "mine"), "--json").json
    assert copied["notebooks"] == ALL and len(ALL) == 8
    code = "import sandbox, labels, connection; from pathlib import Path; print(Path(sandbox.__file__).parent)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path / "mine", capture_output=True, text=True, check=True
    )
    assert Path(done.stdout.strip()).samefile(tmp_path / "mine")


def test_what_is_there_is_not_overwritten_unasked(workbench: Callable[..., Ran], tmp_path: Path) -> None:
    (tmp_path / ALL[2]).write_text("my own words")
    refused = workbench("notebooks", "copy", str(tmp_path))
    assert refused.code == 1 and ALL[2] in refused.err and "--force" in refused.err
    assert (tmp_path / ALL[2]).read_text() == "my own words"
    assert not (tmp_path / ALL[0]).exists()
    assert workbench("notebooks", "copy", str(tmp_path), "--force").code == 0
    assert (tmp_path / ALL[2]).read_bytes() == (ROOT / "notebooks" / ALL[2]).read_bytes()


def test_a_copy_into_a_file_is_refused_with_advice(workbench: Callable[..., Ran], tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("my own words")
    refused = workbench("notebooks", "copy", str(tmp_path / "notes"))
    assert refused.code == 2
    assert refused.err == f"Cannot use '{tmp_path}/notes' (File exists); correct the path or its permissions.\n"


@pytest.mark.slow
def test_a_copy_runs_in_its_own_folder(
    workbench: Callable[..., Ran], tmp_path: Path, test_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBENCH_NOTEBOOKS_HOME", str(test_home))
    monkeypatch.delenv("WORKBENCH_DATABASE_URL")
    workbench("notebooks", "copy", str(tmp_path / "mine"))
    notebook = nbformat.read(tmp_path / "mine" / "04_scope.ipynb", as_version=4)
    NotebookClient(notebook, timeout=200, resources={"metadata": {"path": str(tmp_path / "mine")}}).execute()
    assert all(cell.execution_count for cell in notebook.cells if cell.cell_type == "code" and cell.source)


@pytest.mark.slow
def test_the_companion_in_marimos_form_runs_as_a_script_in_its_copy(
    workbench: Callable[..., Ran], tmp_path: Path, test_home: Path
) -> None:
    workbench("notebooks", "copy", str(tmp_path / "mine"))
    variables = {name: value for name, value in os.environ.items() if not name.startswith("WORKBENCH_")}
    done = subprocess.run(
        [sys.executable, "strategies_live.py"],
        cwd=tmp_path / "mine",
        env=variables | {"WORKBENCH_NOTEBOOKS_HOME": str(test_home), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.strip().splitlines()
    assert [line.split(":")[0] for line in lines] == ["vector", "keyword", "hybrid", "rerank", "In every column"]
    assert all(line.count(" | ") == 4 for line in lines[:4])
    assert "nothing" not in lines[4]


def test_the_companion_has_no_fault_that_marimo_knows() -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "marimo", "check", "--strict", str(ROOT / "notebooks" / "strategies_live.py")],
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
