"""Fetch the protocol's official suite, Inspector and a Node 22 for them from npm: ``tests/conformance/fetch.py``.

Where that cannot be done, one line reports it and why; it fails only with ``--required``.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
LONGEST = 180  # seconds
INSTALL = ["npm", "install", "--no-fund", "--no-audit", "--no-package-lock", "--ignore-scripts"]
SOON = ["--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-timeout=60000"]  # if nothing responds


def installed(folder: Path = HERE) -> bool:
    """Return whether everything in package.json was fetched completely."""
    done = _done(folder)
    return done.exists() and done.read_bytes() == (folder / "package.json").read_bytes()


def fetch(folder: Path = HERE, longest: float = LONGEST) -> str:
    """Fetch the packages in package.json unless they are there. Return "", or why it failed."""
    if installed(folder):
        return ""
    if shutil.which("npm") is None:
        return "there is no npm here"
    print("Fetching the MCP conformance suite and Inspector from npm", file=sys.stderr)
    failure = _npm(folder, longest)
    if failure:
        shutil.rmtree(folder / "node_modules", ignore_errors=True)
    else:
        shutil.copyfile(folder / "package.json", _done(folder))
    return failure


def _npm(folder: Path, longest: float) -> str:
    """Run npm in a separate process group, so that a slow one ends with its child processes."""
    process = subprocess.Popen(
        [*INSTALL, *SOON],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        _, said = process.communicate(timeout=longest)
    except subprocess.TimeoutExpired:
        return f"npm was not done after {longest:g} seconds"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    if process.returncode == 0:
        return ""
    errors = [line.removeprefix("npm error ") for line in said.splitlines() if line.startswith("npm error ")]
    return f"npm failed: {' '.join(errors[:2])[:200] or process.returncode}"


def _done(folder: Path) -> Path:
    return folder / "node_modules" / ".fetched"


if __name__ == "__main__":
    why = fetch()
    if why:
        print(f"The MCP conformance suite and Inspector are left out of the tests: {why}", file=sys.stderr)
    sys.exit(bool(why) and "--required" in sys.argv)
