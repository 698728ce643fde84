"""A new user: an empty environment with the wheel, a folder outside the project, and no lock."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from browser_server import free_port, wait_until_up

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")


@dataclass(frozen=True)
class Stranger:
    """``place`` contains the environment, the data and the working folder of commands."""

    place: Path

    @property
    def folder(self) -> Path:
        """The working folder of commands."""
        return self.place / "documents"

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables of a user who has set nothing."""
        mine = {name: value for name, value in os.environ.items() if not name.startswith(("WORKBENCH_", "PYTHON"))}
        return {**mine, "HOME": str(self.place), "WORKBENCH_HOME": str(self.place)}

    def installs(self, *words: str | Path) -> str:
        """Install packages from the registry, ignoring the lock; returns uv's output."""
        command = [UV, "pip", "install", "--python", self.place / "env" / "bin" / "python", *words]
        return subprocess.run(command, cwd=self.folder, check=True, stderr=subprocess.PIPE, text=True).stderr

    def runs(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run the command and wait for it."""
        return subprocess.run(
            [self.place / "env" / "bin" / "workbench", *words],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=200,
        )

    @contextmanager
    def app(self) -> Generator[str]:
        """Serve the app, and yield its address."""
        port = free_port()
        command = [self.place / "env" / "bin" / "workbench", "app", "--port", str(port), "--no-sample"]
        process = subprocess.Popen(command, cwd=self.folder, env=self.environment)
        try:
            address = f"http://127.0.0.1:{port}"
            wait_until_up(address)
            yield address
        finally:
            process.terminate()
            process.wait(60)


def interpreter(version: str) -> Path | None:
    """Return an installed Python of a version such as 3.13, or None; none is downloaded."""
    named = shutil.which(f"python{version}")
    beside = sorted(Path(sys.base_prefix).parent.glob(f"{version}.*/bin/python3"))
    for candidate in (*([Path(named)] if named else []), *beside):
        said = subprocess.run([candidate, "--version"], capture_output=True, text=True).stdout
        if said.startswith(f"Python {version}."):
            return candidate
    return None


def make_stranger(place: Path, python: Path | str = sys.executable) -> Stranger:
    """Make the folders and the empty environment, by default with the current Python."""
    stranger = Stranger(place)
    stranger.folder.mkdir()
    subprocess.run([UV, "venv", "-q", "--python", python, place / "env"], check=True)
    return stranger


def built_wheel(folder: Path) -> Path:
    """Build the wheel from this checkout, with the weights of this environment."""
    build = f"from hatchling.build import build_wheel; build_wheel({str(folder)!r})"
    subprocess.run([sys.executable, "-c", build], cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.whl"))
