"""A release is made if version, changelog, manifests and tag agree; it has an SBOM and digests of all files."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from written_tables import ROOT

from deploy.release import find_faults, write_digests, write_sbom

NAMED = ("pyproject.toml", "CHANGELOG.md", "workbench/runtime.py", "deploy/kubernetes/kustomization.yaml")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A commit of the files that name a version, tagged and with its heading in the changelog."""
    for name in NAMED:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    changes = (tmp_path / "CHANGELOG.md").read_text(encoding="utf-8")
    (tmp_path / "CHANGELOG.md").write_text(
        re.sub("^## .*$", "## 0.1.0 - 2026-01-31", changes, count=1, flags=re.MULTILINE)
    )
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-qm", "Release")
    git(tmp_path, "tag", "v0.1.0")
    return tmp_path


def git(folder: Path, *words: str) -> None:
    """Run git in a folder."""
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)


def test_a_tagged_commit_whose_files_agree_may_be_released(tree: Path) -> None:
    assert list(find_faults(tree)) == []


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("pyproject.toml", 'version = "0.1.0"', 'version = "0.2.0"', "pyproject.toml has version 0.2.0"),
        ("CHANGELOG.md", "## 0.1.0 - 2026-01-31", "## Unreleased", "CHANGELOG.md starts with 'Unreleased'"),
        ("deploy/kubernetes/kustomization.yaml", '"0.1.0"', '"0.0.9"', "does not use the image of 0.1.0"),
        ("workbench/runtime.py", "0.1.0", "0.3.0", "The commit has no tag v0.3.0"),
        ("CHANGELOG.md", "# Changes", "# Change", "The tree has uncommitted changes: M CHANGELOG.md"),
    ],
)
def test_a_disagreement_is_named(tree: Path, name: str, old: str, new: str, said: str) -> None:
    text = (tree / name).read_text(encoding="utf-8")
    assert old in text
    (tree / name).write_text(text.replace(old, new, 1), encoding="utf-8")
    assert [fault for fault in find_faults(tree) if said in fault]


@pytest.mark.slow
def test_the_sbom_names_every_locked_package_with_its_hashes_and_the_digests_hold(tmp_path: Path) -> None:
    target = tmp_path / "rag-workbench.cdx.json"
    write_sbom(ROOT, target)
    sbom = json.loads(target.read_text(encoding="utf-8"))
    assert sbom["bomFormat"] == "CycloneDX" and sbom["metadata"]["component"]["name"] == "rag-workbench"
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    locked = set(re.findall(r"^([a-z0-9._-]+)==", lock, re.MULTILINE))
    assert {row["name"] for row in sbom["components"]} == locked
    assert all(row["externalReferences"][0]["hashes"] for row in sbom["components"])
    digest, name = write_digests(tmp_path).read_text(encoding="utf-8").split()
    assert (digest, name) == (hashlib.sha256(target.read_bytes()).hexdigest(), target.name)
