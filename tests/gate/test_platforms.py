"""The Pythons and platforms in pyproject.toml have a wheel of every package, and everything our code calls."""

from __future__ import annotations

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from written_tables import ROOT

pytestmark = pytest.mark.slow

UV = Path(sys.executable).with_name("uv")
PYRIGHT = Path(sys.executable).with_name("pyright")
PLATFORMS = (("3.11", "windows"), ("3.12", "macos"), ("3.13", "windows"), ("3.13", "aarch64-manylinux_2_28"))
COMPILED = {
    "aarch64-manylinux_2_28": ("pytrec-eval-terrier",)
}  # of the extra eval: its installation needs a C compiler
# Modules whose stubs differ by platform, of those in typeshed; and what else does in time and pathlib.
DEPENDENT = re.compile(
    r"^\s*(import|from) (asyncio|crypt|ctypes|curses|errno|faulthandler|fcntl|grp|locale|mmap|msvcrt|multiprocessing|"
    r"os|psutil|pty|pwd|readline|resource|select|selectors|shutil|signal|socket|socketserver|ssl|stat|subprocess|syslog|"
    r"termios|tty|webbrowser|winreg|winsound)\b"
    r"|sys\.(platform|getwindowsversion)|time\.(clock_|pthread_|tzset)|\.(owner|group|is_mount|lchmod)\(",
    re.MULTILINE,
)


def compile_requirements(python: str, platform: str) -> subprocess.CompletedProcess[str]:
    """Resolve every extra for a Python on a platform, from wheels only."""
    command = [UV, "pip", "compile", "-q", "--no-header", "--no-annotate", "--extra", "all", ROOT / "pyproject.toml"]
    where = ["--python-version", python, "--python-platform", platform, "--only-binary", ":all:"]
    compiled = [f"--no-binary={name}" for name in COMPILED.get(platform, ())]
    return subprocess.run([*command, *where, *compiled], cwd=ROOT, capture_output=True, text=True)


def test_every_package_of_every_extra_has_a_wheel() -> None:
    with ThreadPoolExecutor(len(PLATFORMS)) as pool:  # together, since they wait for the registry
        resolved = list(pool.map(lambda target: compile_requirements(*target), PLATFORMS))
    for target, done in zip(PLATFORMS, resolved, strict=True):
        assert done.returncode == 0, (target, done.stderr)
        assert done.stdout.count("==") > 200 and "\ntorch==" not in done.stdout, target


def list_files_for_platforms() -> list[Path]:
    """Return the files that import a module whose contents depend on the platform; `make check` checks all on one."""
    files = [path for room in ("workbench", "mcp_app", "evals") for path in (ROOT / room).rglob("*.py")]
    return [path for path in files if DEPENDENT.search(path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("platform", ["Windows", "Darwin"])
def test_nothing_is_called_that_a_platform_does_not_have(platform: str) -> None:
    files = list_files_for_platforms()
    assert {"runtime.py", "postgres.py", "stdio.py"} <= {path.name for path in files}
    command = [PYRIGHT, "--pythonpath", sys.executable, "--pythonplatform", platform, *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
