"""The start of the app: the server responds before the workbench is open, and a first run loads the sample."""

from __future__ import annotations

import importlib.metadata
import os
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from streamlit.components.v2 import manifest_scanner
from urllib3 import PoolManager, Retry

from workbench import Workbench
from workbench.app.shell.serve import skip_component_scan

pytestmark = pytest.mark.slow
PATIENT = Retry(total=None, connect=60, read=60, backoff_factor=0.2, backoff_max=1)


@contextmanager
def started(home: Path, database_url: str) -> Generator[tuple[subprocess.Popen[str], str]]:
    """Start the app as the command does; yields the process and its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = {
        "WORKBENCH_HOME": str(home),
        "WORKBENCH_DATABASE_URL": database_url,
        "WORKBENCH_EMBEDDING_MODEL": "hash",
        "WORKBENCH_RUN_WORKER": "false",
    }
    command = [sys.executable, "-m", "workbench.cli", "app", "--port", str(port)]
    process = subprocess.Popen(command, env={**os.environ, **settings}, stderr=subprocess.PIPE, text=True)
    try:
        yield process, f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.communicate(timeout=60)


def test_the_server_answers_while_the_database_does_not(test_home: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"postgresql://nobody@127.0.0.1:{silent.getsockname()[1]}/nothing"
        with started(test_home, url) as (_, address):
            assert PoolManager(retries=PATIENT).request("GET", f"{address}/_stcore/health").status == 200


def test_a_first_run_loads_the_sample_while_the_server_answers(wb: Workbench, test_home: Path) -> None:
    assert wb.settings.database_url is not None
    url = wb.settings.database_url.get_secret_value()
    with started(test_home, url) as (process, _):
        assert process.stderr is not None
        lines = iter(process.stderr.readline, "")
        assert next(line for line in lines if line.startswith("Loaded ")).startswith("Loaded 52 articles")
    (sample,) = wb.sources.list()
    assert (sample.title, sample.documents_count) == ("Sample: retrieval and RAG", 52)


def test_the_start_does_not_read_what_every_installed_package_states_about_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def looked() -> None:
        raise AssertionError("Streamlit looks for components of other packages")

    monkeypatch.setattr(importlib.metadata, "distributions", looked)
    monkeypatch.setattr(manifest_scanner, "scan_component_manifests", manifest_scanner.scan_component_manifests)
    skip_component_scan()
    assert manifest_scanner.scan_component_manifests() == []


def test_a_streamlit_that_looks_for_components_elsewhere_starts_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    from streamlit.components import v2
    from streamlit.components.v2 import manifest_scanner

    monkeypatch.delattr(v2, "manifest_scanner")
    monkeypatch.setitem(sys.modules, manifest_scanner.__name__, None)  # which makes its import fail
    before = manifest_scanner.scan_component_manifests
    skip_component_scan()
    assert manifest_scanner.scan_component_manifests is before
