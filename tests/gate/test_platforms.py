"""The Pythons and platforms in pyproject.toml have a wheel of every package, and everything our code calls."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from written_tables import ROOT

pytestmark = pytest.mark.slow

UV = Path(sys.executable).with_name("uv")
PYRIGHT = Path(sys.executable).with_name("pyright")
COMPILED = {
    "aarch64-manylinux_2_28": ("pytrec-eval-terrier",)
}  # of the extra eval: its installation needs a C compiler


@pytest.mark.parametrize(
    ("python", "platform"),
    [
        ("3.11", "windows"),
        ("3.12", "macos"),
        ("3.13", "windows"),
        ("3.13", "aarch64-manylinux_2_28"),
    ],
)
def test_every_package_of_every_extra_has_a_wheel(python: str, platform: str) -> None:
    command = [UV, "pip", "compile", "-q", "--no-header", "--no-annotate", "--extra", "all", ROOT / "pyproject.toml"]
    where = ["--python-version", python, "--python-platform", platform, "--only-binary", ":all:"]
    compiled = [f"--no-binary={name}" for name in COMPILED.get(platform, ())]
    done = subprocess.run([*command, *where, *compiled], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("==") > 200 and "\ntorch==" not in done.stdout


@pytest.mark.parametrize("platform", ["Windows", "Darwin"])
def test_nothing_is_called_that_a_platform_does_not_have(platform: str) -> None:
    command = [PYRIGHT, "--pythonpath", sys.executable, "--pythonplatform", platform, "workbench", "mcp_app", "evals"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
