"""Files of models: the published ones, found in their packages and checked, and graphs that are built from them."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import tempfile
from pathlib import Path

from workbench.errors import ModelError


def packaged_file(package: str, name: str, install: str) -> Path:
    """Return a data file of an installed package, whose Python code is not imported.

    Raises:
        ModelError: the package or the file is missing; the sentence ends with ``install``.
    """
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = Path(folder) / name
        if path.is_file():
            return path
    raise ModelError(f"The model file {Path(name).name} is missing; run: pip install {install}.")


def checked_bytes(path: Path, sha256: str, install: str) -> bytes:
    """Read a file that must be the published one.

    Raises:
        ModelError: it cannot be read, or its sha256 differs.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ModelError(f"The model file {path} cannot be read ({error.strerror}).") from error
    digest = hashlib.sha256(data).hexdigest()
    if digest != sha256:
        raise ModelError(
            f"The model file {path} is damaged (sha256 {digest[:12]}..., expected {sha256[:12]}...); "
            f"run: pip install --force-reinstall {install}."
        )
    return data


def write_whole(path: Path, data: bytes) -> None:
    """Write a file in one step: a reader finds the whole file or none, and writers at once do not mix.

    Raises:
        ModelError: the folder cannot be written.
    """
    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.stem}-", delete=False) as file:
            temporary = file.name
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except OSError as error:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        raise ModelError(
            f"The model cannot be written to {path.parent} ({error.strerror}); make room there or set WORKBENCH_HOME."
        ) from error
