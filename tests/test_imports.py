"""Light modules stay light: checked by what is loaded, not by the time taken."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import workbench

HEAVY = (
    "llama_index", "streamlit", "mcp", "ragas", "crawl4ai", "pandas", "numpy", "psycopg", "sqlalchemy", "pydantic",
    "onnxruntime", "tokenizers", "altair", "rich", "tqdm", "starlette", "procrastinate", "liteparse",
)  # fmt: skip
APP = Path(workbench.__file__).parent / "app"
OPENED = ("llama_index", "streamlit", "mcp", "ragas", "crawl4ai", "pandas", "onnxruntime", "liteparse")


def list_loaded(statement: str, names: tuple[str, ...]) -> set[str]:
    """Return which of the packages a fresh interpreter has loaded after a statement."""
    script = f"import sys; {statement}; print(*[name for name in {names!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=240, check=True)
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert list_loaded("import workbench; workbench.Scope(); workbench.Passage", HEAVY) == set()


def test_the_class_itself_loads_no_engine() -> None:
    assert list_loaded("from workbench import Workbench", OPENED) == set()


def test_looking_whether_the_queue_is_up_to_date_does_not_load_the_queue() -> None:
    statement = "from workbench.storage.jobs import _steps; assert len(_steps()) > 10"
    assert list_loaded(statement, ("procrastinate",)) == set()


@pytest.mark.parametrize(
    "module", ["workbench.retrieval.strategies", "workbench.display", "workbench.marking", "workbench.cli.main"]
)
def test_tables_and_displays_load_nothing_heavy(module: str) -> None:
    assert list_loaded(f"import {module}", HEAVY) == set()


@pytest.mark.slow  # loads all pages and what they need in a fresh interpreter
def test_no_page_loads_the_framework_which_another_thread_may_be_loading() -> None:
    pages = sorted(f"workbench.app.{path.parent.name}.page" for path in APP.glob("*/page.py"))
    assert len(pages) > 5
    assert list_loaded(f"import {', '.join(pages)}", ("llama_index",)) == set()


@pytest.mark.slow
def test_a_search_waits_for_no_driver_that_only_the_frameworks_own_store_has() -> None:
    statement = "from workbench.services.corpus import import_framework; import_framework()"
    drivers = ("asyncpg", "psycopg2", "pgvector.sqlalchemy", "llama_index.vector_stores.postgres", "llama_index.core")
    assert list_loaded(statement, drivers) == {"llama_index.core"}


@pytest.mark.slow
def test_no_torch_comes_along() -> None:
    assert list_loaded("import workbench.workbench, llama_index.core", ("torch", "transformers")) == set()


def test_unknown_names_of_the_package_are_errors() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Wrkbench'"):
        workbench.Wrkbench  # pyright: ignore[reportAttributeAccessIssue]
    assert set(workbench.__all__) <= {name for name in workbench.__all__ if getattr(workbench, name) is not None}
