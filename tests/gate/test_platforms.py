"""The Pythons and platforms in pyproject.toml have a wheel of every package, and everything our code calls."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pyright
import pytest
from written_tables import ROOT

pytestmark = pytest.mark.slow

UV = Path(sys.executable).with_name("uv")
PYRIGHT = Path(sys.executable).with_name("pyright")
PLATFORMS = (("3.11", "windows"), ("3.12", "macos"), ("3.13", "windows"), ("3.13", "aarch64-manylinux_2_28"))
COMPILED = {
    "aarch64-manylinux_2_28": ("pytrec-eval-terrier",)
}  # of the extra eval: its installation needs a C compiler
TYPESHED = Path(pyright.__file__).parent / "dist" / "dist" / "typeshed-fallback"
STUBS = (TYPESHED / "stdlib", TYPESHED / "stubs" / "psutil")  # what is ours to call and differs by platform


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


def list_defined(statements: list[ast.stmt]) -> Iterator[str]:
    """Yield the names that statements of a stub define, also those within further conditions."""
    for node in statements:
        if isinstance(node, ast.If):
            yield from list_defined([*node.body, *node.orelse])
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)


@cache
def list_dependent_names() -> tuple[set[str], dict[str, set[str]]]:
    """Return what is there, or is as it is, on some platforms only: ``{"os.getuid"}`` and ``{"pathlib": {"owner"}}``.

    The former belong to a module itself, the latter to one of its classes.
    """
    own: set[str] = set()
    methods: dict[str, set[str]] = {}
    for root, path in ((stubs, path) for stubs in STUBS for path in stubs.rglob("*.pyi")):
        text = path.read_text(encoding="utf-8")
        if "sys.platform" not in text:
            continue
        module = path.relative_to(root).with_suffix("").parts[0].removeprefix("_")
        tree = ast.parse(text)
        within = {id(node) for each in ast.walk(tree) if isinstance(each, ast.ClassDef) for node in ast.walk(each)}
        for node in ast.walk(tree):
            if isinstance(node, ast.If) and "sys.platform" in ast.unparse(node.test):
                names = set(list_defined([*node.body, *node.orelse]))
                if id(node) in within:
                    methods.setdefault(module, set()).update(names)
                else:
                    own |= {f"{module}.{name}" for name in names}
    return own, methods


def list_imported(tree: ast.Module) -> dict[str, str]:
    """Return every imported name with the outermost module that it is of: ``{"socket": "asyncio"}``."""
    imported: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {alias.asname or alias.name.split(".")[0]: alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported |= {alias.asname or alias.name: node.module.split(".")[0] for alias in node.names}
    return imported


def may_depend(text: str, own: set[str], methods: dict[str, set[str]]) -> bool:
    """Return whether a program names something that depends on the platform."""
    tree = ast.parse(text)
    imported = list_imported(tree)
    of_classes = {name for module in imported.values() for name in methods.get(module, ())}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            if any(f"{node.module.split('.')[0]}.{alias.name}" in own for alias in node.names):
                return True
        elif isinstance(node, ast.Attribute):
            value = node.value
            while isinstance(value, ast.Attribute):
                value = value.value
            module = imported.get(value.id) if isinstance(value, ast.Name) else None
            if node.attr in of_classes or f"{module}.{node.attr}" in own:
                return True
    return False


@cache
def list_files_for_platforms() -> list[Path]:
    """Return the files that name something that depends on the platform; `make check` checks all on one."""
    own, methods = list_dependent_names()
    files = [path for room in ("workbench", "mcp_app", "evals") for path in (ROOT / room).rglob("*.py")]
    return [path for path in files if may_depend(path.read_text(encoding="utf-8"), own, methods)]


@pytest.mark.parametrize(
    "program",
    [
        "import os\nos.getuid()", "from signal import SIGHUP", "import signal as s\ns.SIGKILL",
        "import fcntl\nfcntl.flock",
        "import asyncio\nasyncio.WindowsSelectorEventLoopPolicy", "from pathlib import Path\nPath().owner()",
        "import psutil\npsutil.Process().num_fds()", "import sys\nsys.getwindowsversion()", "import time\ntime.tzset()",
    ],
)  # fmt: skip
def test_a_program_that_names_what_a_platform_lacks_is_chosen(program: str) -> None:
    assert may_depend(program, *list_dependent_names())
    assert not may_depend("import os\nos.environ", *list_dependent_names())


@pytest.mark.parametrize("platform", ["Windows", "Darwin"])
def test_nothing_is_called_that_a_platform_does_not_have(platform: str) -> None:
    files = list_files_for_platforms()
    assert {"runtime.py", "postgres.py", "settings.py", "parser_process.py"} <= {path.name for path in files}
    command = [PYRIGHT, "--pythonpath", sys.executable, "--pythonplatform", platform, *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
