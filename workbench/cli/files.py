"""``workbench export``, ``import`` and ``notebooks``: files to keep or to copy."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from workbench.cli.output import Output
from workbench.cli.session import open_workbench
from workbench.errors import ConfigurationError, Conflict
from workbench.formatting import count_text, size_text

# workbench export


def declare_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="file to write, such as backup.zip")
    parser.add_argument("--force", action="store_true", help="replace an existing file")


def run_export(arguments: argparse.Namespace, out: Output) -> int:
    """Export documents, passages with vectors, projects, judgments and everything else."""
    with open_workbench() as wb, out.progress("Export") as show:
        report = wb.backups.write(arguments.file, replace=arguments.force, on_progress=show)
    sentence = (
        f"Wrote {count_text(report.documents, 'document')}, including test sets ({report.rows:,} rows, "
        f"{size_text(report.bytes)}), to {report.path}"
    )
    return out.sentence(report, sentence)


# workbench import


def declare_import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a file written by 'workbench export'")


def run_import(arguments: argparse.Namespace, out: Output) -> int:
    """Import without embedding again; if it fails, nothing is changed."""
    with open_workbench() as wb, out.progress("Import") as show:
        report = wb.backups.read(arguments.file, on_progress=show)
    sentence = (
        f"Restored {count_text(report.documents, 'document')} in {count_text(report.sources, 'source')}, "
        f"including test sets ({report.rows:,} rows)."
    )
    return out.sentence(report, sentence)


# workbench notebooks

PACKAGE_DIR = Path(__file__).parent.parent
NOTEBOOK_DIRS = (PACKAGE_DIR / "notebooks", PACKAGE_DIR.parent / "notebooks")  # in a wheel, and in a checkout
# modules and a style used by the notebooks, and a marimo notebook
COMPANION_FILES = ("sandbox.py", "labels.py", "connection.py", "workbench.mplstyle", "strategies_live.py")
OPEN_COMMAND = "pip install 'rag-workbench[app,crawl,eval]' jupyterlab && jupyter lab"


def declare_notebooks(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("copy",), help="copy them")
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder to copy them into; created if missing")
    parser.add_argument("--force", action="store_true", help="overwrite existing files")


def run_notebooks(arguments: argparse.Namespace, out: Output) -> int:
    """Copy the notebooks and the files they use."""
    folder = arguments.folder.expanduser()
    sources = list_notebook_files()
    taken = [path.name for path in sources if (folder / path.name).exists()]
    if taken and not arguments.force:
        raise Conflict(f"{folder} already has {taken[0]}; choose another folder, or use --force to overwrite it.")
    folder.mkdir(parents=True, exist_ok=True)
    for path in sources:
        shutil.copyfile(path, folder / path.name)
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
