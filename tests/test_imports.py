"""What is light stays light: checked by what is loaded, not by the clock."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = (
    "llama_index", "streamlit", "mcp", "ragas", "crawl4ai", "pandas", "numpy", "psycopg", "sqlalchemy", "pydantic",
    "onnxruntime", "tokenizers", "altair", "rich", "tqdm", "starlette", "procrastinate", "liteparse", "markitdown",
)  # fmt: skip
OPENED = ("llama_index", "streamlit", "mcp", "ragas", "crawl4ai", "pandas", "onnxruntime", "markitdown", "liteparse")


def loaded_by(statement: str, names: tuple[str, ...]) -> set[str]:
    """Which of the packages a fresh interpreter has loaded after a statement."""
    script = f"import sys; {statement}; print(*[name for name in {names!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert loaded_by("import workbench; workbench.Scope(); workbench.Passage", HEAVY) == set()


def test_the_class_itself_loads_no_engine() -> None:
    assert loaded_by("from workbench import Workbench", OPENED) == set()


@pytest.mark.parametrize("module", ["workbench.retrieval.strategies", "workbench.display", "workbench.marking"])
def test_tables_and_displays_load_nothing_heavy(module: str) -> None:
    assert loaded_by(f"import {module}", HEAVY) == set()


def test_no_torch_comes_along() -> None:
    assert loaded_by("import workbench.workbench, llama_index.core", ("torch", "transformers")) == set()


def test_unknown_names_of_the_package_are_errors() -> None:
    import workbench

    with pytest.raises(AttributeError, match="has no attribute 'Wrkbench'"):
        workbench.Wrkbench  # pyright: ignore[reportAttributeAccessIssue]
    assert set(workbench.__all__) <= {name for name in workbench.__all__ if getattr(workbench, name) is not None}
