"""A fault of each kind, planted into a copy of the tree, makes the command of ``make check`` fail."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
MANY_WAYS = "".join(f"    if number == {n}:\n        number += {n}\n" for n in range(13))


def checks() -> list[list[str]]:
    """Return the commands of ``make check``, word by word."""
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").split("\ncheck:")[1].split("\n\n")[0]
    return [line.strip().replace("$(BIN)", str(BIN)).split() for line in recipe.splitlines() if line.startswith("\t")]


def command(tool: str) -> list[str]:
    """Return the one command of ``make check`` that contains a tool's name."""
    (words,) = [words for words in checks() if tool in " ".join(words).replace(str(BIN), "")]
    return words


def run(words: list[str], tree: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in a tree, on the packages that it contains."""
    environment = {**os.environ, "PYTHONPATH": str(tree), "NO_COLOR": "1"}
    return subprocess.run(words, cwd=tree, env=environment, capture_output=True, text=True, timeout=240)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of everything that the gate checks."""
    copy = tmp_path_factory.mktemp("tree")
    leave_out = shutil.ignore_patterns("__pycache__", "node_modules", ".*")
    for name in ("workbench", "mcp_app", "evals", "benchmarks", "tests"):
        shutil.copytree(ROOT / name, copy / name, ignore=leave_out)
    shutil.copy(ROOT / "pyproject.toml", copy)
    return copy


@pytest.mark.parametrize(
    ("tool", "name", "text", "message"),
    [
        ("ruff format", "models/planted.py", "x = { 'a':1 }\n", "1 file would be reformatted"),
        ("sizes.py", "models/planted.py", "def long() -> None:\n" + "    print(1)\n" * 60, "'long' has 61 lines"),
        ("ruff check", "models/planted.py", f"def ways(number: int) -> int:\n{MANY_WAYS}    return number\n", "C901"),
        (
            "ruff check",
            "models/planted.py",
            "from typing import Any\n\n\ndef show(value: Any) -> None:\n    print(value)\n",
            "ANN401",
        ),
        (
            "signatures.py",
            "models/planted.py",
            "from typing import Any\n\n\ndef show(values: dict[str, Any]) -> None:\n    print(values)\n",
            "planted.py:4 show: say the type in place of Any",
        ),
        (
            "signatures.py",
            "models/planted.py",
            "from typing import Any\n\n\nclass Row:\n    cells: 'list[Any]'\n",
            "planted.py:5 Row.cells: say the type in place of Any",
        ),
        ("signatures.py", "models/planted.py", "import typing\n\nRow = dict[str, typing.Any]\n", "planted.py:3 Row:"),
        (
            "signatures.py",
            "models/planted.py",
            "from typing import Any as X\n\n\ndef show(values: list[X]) -> None:\n    print(values)\n",
            "planted.py:4 show: say the type in place of Any",
        ),
        (
            "signatures.py",
            "models/planted.py",
            "from typing import Any\n\n\nclass Row:\n    def __len__(self) -> list[Any]:\n        return []\n",
            "planted.py:5 Row.__len__: say the type in place of Any",
        ),
        ("ruff check", "models/planted.py", "import os\n\nHOME = os.environ['HOME']\n", "TID251"),
        ("ruff check", "models/planted.py", "from . import scope\n\nprint(scope)\n", "TID252"),
        (
            "ruff check",
            "models/planted.py",
            'import importlib\n\nAPP = importlib.import_module("workbench.app")\n',
            "a name in a string hides the import",
        ),
        (
            "ruff check",
            "models/planted.py",
            'import pkgutil\n\nAPP = pkgutil.resolve_name("workbench.app")\n',
            "a name in a string hides the import",
        ),
        ("ruff check", "models/planted.py", "def show():\n    print(1)\n", "ANN201"),
        ("ruff check", "models/planted.py", "def _show():\n    print(1)\n", "ANN202"),
        ("deptry", "models/planted.py", "import requests\n\nprint(requests)\n", "'requests' imported but"),
        ("lint-imports", "models/planted.py", "from workbench import services\n", "workbench.models.planted ->"),
        ("lint-imports", "../evals/test_sets/planted.py", "import evals.experiments\n", "test_sets.planted ->"),
        ("lint-imports", "planted.py", "", "planted"),
        (
            "lint-imports",
            "models/bert/session.py",
            "import workbench.models.bert.encoder\n",
            "No cycles are allowed in workbench.models.bert.",
        ),
        ("lint-imports", "models/planted.py", "from workbench import settings\n", "workbench.models.planted ->"),
        ("lint-imports", "jobs/planted.py", "import llama_index.core\n", "workbench.jobs.planted ->"),
        ("lint-imports", "services/planted.py", "import llama_index.core\n", "workbench.services.planted ->"),
        ("lint-imports", "jobs/planted.py", "import psycopg\n", "workbench.jobs.planted ->"),
        ("lint-imports", "models/planted.py", "import streamlit\n", "workbench.models.planted ->"),
        ("lint-imports", "jobs/planted.py", "import crawl4ai\n", "workbench.jobs.planted ->"),
        ("lint-imports", "app/state/planted.py", "import mcp\n", "workbench.app.state.planted ->"),
        ("lint-imports", "../evals/measures/planted.py", "import ragas\n", "evals.measures.planted ->"),
        ("lint-imports", "../evals/judges/planted.py", "from workbench import storage\n", "evals.judges.planted ->"),
        ("oxlint", "app/widgets/scripts/planted.js", "unknownName();\n", "planted.js:1:1: 'unknownName'"),
        ("oxlint", "app/widgets/scripts/planted.js", 'export { gone } from "./shared.js";\n', "\"gone\" not found"),
    ],
    ids=[
        "format", "long function", "complexity",
        "Any", "Any within a type", "Any in a field", "Any behind a name", "Any under another name",
        "Any of a special method",
        "environment", "relative import", "import by a text", "import by resolving a text",
        "no return type", "no return type of a private function",
        "undeclared import",
        "back arrow", "back arrow in evaluation", "room without a layer",
        "circle",
        "settings", "LlamaIndex",
        "LlamaIndex in a service", "psycopg", "streamlit", "crawl4ai", "mcp", "ragas", "gateway",
        "unknown name in a script", "import that a script does not export",
    ],
)  # fmt: skip
def test_a_planted_fault_fails_the_gate(tree: Path, tool: str, name: str, text: str, message: str) -> None:
    planted = tree / "workbench" / name
    original = planted.read_text(encoding="utf-8") if planted.exists() else None
    planted.write_text((original or "") + text, encoding="utf-8")
    try:
        done = run(command(tool), tree)
    finally:
        planted.unlink()
        if original is not None:
            planted.write_text(original, encoding="utf-8")
    assert done.returncode != 0
    assert message in " ".join((done.stdout + done.stderr).split())


def test_a_planted_type_fault_fails_the_gate(tree: Path) -> None:
    planted = tree / "workbench" / "models" / "planted.py"
    planted.write_text('def size(values: list) -> int:\n    return "many"\n', encoding="utf-8")
    try:
        done = run([command("pyright")[0], "--pythonpath", sys.executable, str(planted)], tree)
    finally:
        planted.unlink()
    assert done.returncode != 0
    assert {"reportMissingTypeArgument", "reportReturnType"} <= set(re.findall(r"report\w+", done.stdout))


@pytest.mark.parametrize("tool", ["sizes.py", "signatures.py", "oxlint", "lint-imports", "deptry"])
def test_the_tree_as_it_is_passes(tree: Path, tool: str) -> None:
    done = run(command(tool), tree)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_hooks_before_a_commit_are_the_gates_tools() -> None:
    text = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    (repository,) = yaml.safe_load(text)["repos"]
    assert repository["repo"] == "local"  # nothing is fetched
    hooks = [tools(hook["entry"].split()) for hook in repository["hooks"]]
    assert sorted(hooks) == sorted(tools(words) for words in checks())


def tools(words: list[str]) -> str:
    """Return the words of a command that identify the tool: its program, and its subcommand or script."""
    return " ".join(Path(word).name if word == words[0] else word for word in words[:2] if not word.startswith("--"))
