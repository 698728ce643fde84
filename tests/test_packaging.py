"""What is shipped: the wheel, the image, the make targets."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml
from written_tables import ROOT

from workbench.cli.table import COMMANDS
from workbench.settings import Settings

PACKAGES = ("workbench", "mcp_app", "evals")
DATA = ("*.sql", "*.npz", "*.css", "*.js", "*.md", "*.tsv", "*.jsonl", "*.toml", "*.woff2", "*.html", "*.svg")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names in the wheel that hatchling builds, without fetching anything."""
    folder = tmp_path_factory.mktemp("wheel")
    build = f"from hatchling.build import build_wheel; print(build_wheel({str(folder)!r}))"
    subprocess.run([sys.executable, "-c", build], cwd=ROOT, check=True, capture_output=True, timeout=60)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as whole:
        return set(whole.namelist())


def tracked(*patterns: str) -> set[str]:
    """The files of the packages that lie in the tree."""
    found = (path for package in PACKAGES for pattern in patterns for path in (ROOT / package).rglob(pattern))
    return {path.relative_to(ROOT).as_posix() for path in found if "__pycache__" not in path.parts}


def test_the_wheel_holds_all_code_and_all_data(wheel: set[str]) -> None:
    assert tracked("*.py") <= wheel
    assert tracked(*DATA) <= wheel
    assert {"workbench/storage/migrations/0001_corpus.sql", "workbench/models/token_axes.npz"} <= wheel


def test_the_wheel_carries_the_licence_and_the_command(wheel: set[str]) -> None:
    names = {name.split("/", 1)[1] for name in wheel if ".dist-info/" in name}
    assert {"licenses/LICENSE", "entry_points.txt"} <= names


def test_make_alone_lists_the_targets() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(["make"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=True)
    assert all(f"make {target} " in done.stdout for target in ("app", "test", "check", "bench", "evals", "mcp", "lock"))


def test_continuous_integration_runs_make_test() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "make test" in script.read_text(encoding="utf-8")


def test_compose_starts_commands_that_exist_with_settings_that_exist() -> None:
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    ours = {name: service for name, service in compose["services"].items() if name != "postgres"}
    variables = {f"WORKBENCH_{name.upper()}" for name in Settings.model_fields}
    for service in ours.values():
        assert service["command"][0] == "workbench" and service["command"][1] in COMMANDS
        assert set(service["environment"]) <= variables
        assert service["depends_on"]["postgres"]["condition"] == "service_healthy"
    assert "pgvector" in compose["services"]["postgres"]["image"]


def test_the_image_runs_as_an_ordinary_user_on_the_locked_dependencies() -> None:
    image = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert "--require-hashes -r requirements.lock" in image
    assert image.index("USER workbench") < image.index('CMD ["workbench"')


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_locks_have_hashes_and_name_no_index_and_no_torch(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8")
    names = re.findall(r"^([a-z0-9._-]+)(?:\[[^\]]*\])?==", text, re.MULTILINE)
    assert len(names) > 100
    assert text.count("--hash=sha256:") >= len(names)
    assert "://" not in text
    assert not {"torch", "transformers", "sentence-transformers"} & set(names)


def test_nothing_in_the_tree_names_a_place_of_one_machine() -> None:
    shipped = tracked("*.py", "*.md", "*.sql", "*.toml")
    assert shipped
    of_somebody = re.compile(r"/(?:root|home/\w+|Users/\w+)/")
    assert [name for name in shipped if of_somebody.search(Path(ROOT / name).read_text(encoding="utf-8"))] == []
