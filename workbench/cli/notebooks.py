"""``workbench notebooks``: copy the package's notebooks into a folder."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.errors import ConfigurationError, Conflict

if TYPE_CHECKING:
    from workbench.cli.output import Output

PACKAGE_DIR = Path(__file__).parent.parent
NOTEBOOK_DIRS = (PACKAGE_DIR / "notebooks", PACKAGE_DIR.parent / "notebooks")  # in a wheel, and in a checkout
# modules and a style used by the notebooks, and a marimo notebook
COMPANION_FILES = ("sandbox.py", "labels.py", "connection.py", "workbench.mplstyle", "strategies_live.py")
OPEN_COMMAND = "pip install 'rag-workbench[app,crawl,eval]' jupyterlab && jupyter lab"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("action", choices=("copy",), help="copy them")
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder to copy them into; created if missing")
    parser.add_argument("--force", action="store_true", help="overwrite existing files")


def run(arguments: argparse.Namespace, out: Output) -> int:
    """Copy the notebooks and the files they use."""
    folder = arguments.folder.expanduser()
    sources = list_notebook_files()
    taken = [path.name for path in sources if (folder / path.name).exists()]
    if taken and not arguments.force:
        raise Conflict(f"{folder} already has {taken[0]}; choose another folder, or use --force to overwrite it.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in sources:
            shutil.copyfile(path, folder / path.name)
    except OSError as error:
        raise ConfigurationError(f"Cannot write {error.filename or folder} ({error.strerror}).") from error
    notebooks = [path.name for path in sources if path.suffix == ".ipynb"]
    value = {"folder": str(folder), "notebooks": notebooks}
    text = (
        f"Copied {len(notebooks)} notebooks to {folder}. To open them: {OPEN_COMMAND} {folder}\n"
        f"For strategies_live.py: pip install marimo && marimo edit {folder / 'strategies_live.py'}"
    )
    return out.sentence(value, text)


def list_notebook_files() -> list[Path]:
    """Return the notebooks, then the files that they use.

    Raises:
        ConfigurationError: The package does not contain them.
    """
    for place in NOTEBOOK_DIRS:
        notebooks = sorted(place.glob("[0-9]*.ipynb"))
        if notebooks:
            return [*notebooks, *(place / name for name in COMPANION_FILES)]
    raise ConfigurationError("The notebooks are missing; run: pip install --no-deps --force-reinstall rag-workbench.")
