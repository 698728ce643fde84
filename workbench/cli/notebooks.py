"""``workbench notebooks``: copy the notebooks that come with the package into a folder of one's own."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.errors import ConfigurationError, Conflict

if TYPE_CHECKING:
    from workbench.cli.output import Out

PACKAGE = Path(__file__).parent.parent
PLACES = (PACKAGE / "notebooks", PACKAGE.parent / "notebooks")  # in a wheel, and in a checkout
# modules and a style that the notebooks use, and their companion in marimo's form
BESIDE = ("sandbox.py", "labels.py", "connection.py", "workbench.mplstyle", "strategies_live.py")
NEXT = "pip install 'rag-workbench[app,crawl,eval]' jupyterlab && jupyter lab"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("action", choices=("copy",), help="copy them")
    parser.add_argument("folder", type=Path, metavar="DIR", help="the folder to copy them into; it is made")
    parser.add_argument("--force", action="store_true", help="overwrite notebooks that are there already")


def run(arguments: argparse.Namespace, out: Out) -> int:
    """Copy the notebooks and what they import."""
    folder = arguments.folder.expanduser()
    sources = notebook_files()
    taken = [path.name for path in sources if (folder / path.name).exists()]
    if taken and not arguments.force:
        raise Conflict(f"{folder} has {taken[0]} already; choose another folder, or overwrite it with --force.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in sources:
            shutil.copyfile(path, folder / path.name)
    except OSError as error:
        raise ConfigurationError(f"{error.filename or folder} cannot be written ({error.strerror}).") from error
    notebooks = [path.name for path in sources if path.suffix == ".ipynb"]
    value = {"folder": str(folder), "notebooks": notebooks}
    said = (
        f"{len(notebooks)} notebooks are in {folder}. To open them: {NEXT} {folder}\n"
        f"Beside them strategies_live.py, for marimo: pip install marimo && marimo edit {folder / 'strategies_live.py'}"
    )
    out.show(value, lambda console: console.print(said, soft_wrap=True, markup=False))
    return 0


def notebook_files() -> list[Path]:
    """Return the notebooks, then the files beside them. Raises ConfigurationError where they did not come along."""
    for place in PLACES:
        notebooks = sorted(place.glob("[0-9]*.ipynb"))
        if notebooks:
            return [*notebooks, *(place / name for name in BESIDE)]
    raise ConfigurationError("The notebooks are missing; run: pip install --no-deps --force-reinstall rag-workbench.")
