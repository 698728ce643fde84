"""Write the pages of the documentation site below artifacts/site/pages: from docs/, the notebooks and the code.

``make site`` runs this, lets zensical build the site, and checks its links.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import nbformat
from nbconvert import MarkdownExporter

from docs.site.code_pages import commands_page, python_page, strategies_page, tools_page

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "artifacts" / "site" / "pages"
COPIED = ("concepts", "evaluation", "operating", "benchmarks", "architecture", "contributing")
WRITTEN = {
    "strategies": strategies_page,
    "tools": tools_page,
    "commands": commands_page,
    "python": python_page,
}
_COLOUR = re.compile("\x1b\\[[0-9;]*m")
_TO_NOTEBOOK = re.compile(r"\]\((?:\.\./notebooks/)?(\d\d_\w+)\.ipynb\)")


def write() -> None:
    """Write every page anew."""
    shutil.rmtree(PAGES, ignore_errors=True)
    (PAGES / "tutorials").mkdir(parents=True)
    for folder in ("images", "decisions"):
        shutil.copytree(ROOT / "docs" / folder, PAGES / folder)
    shutil.copy(Path(__file__).with_name("zensical.toml"), PAGES.parent)
    shutil.copy(Path(__file__).with_name("site.css"), PAGES)
    (PAGES / "index.md").write_text(start_page(), encoding="utf-8")
    for name in COPIED:
        shutil.copy(ROOT / "docs" / f"{name}.md", PAGES)
    shutil.copy(ROOT / "CHANGELOG.md", PAGES / "changes.md")
    for name, page in WRITTEN.items():
        (PAGES / f"{name}.md").write_text(page(), encoding="utf-8")
    for notebook in sorted((ROOT / "notebooks").glob("*.ipynb")):
        write_tutorial(notebook)


def start_page() -> str:
    """Return the README up to its tables, which have pages of their own; its links lead to the site's pages."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    head, _, rest = readme.partition("\n## Strategies\n")
    after = rest.partition("\n## Notebooks\n")[2]
    text = head + (f"\n## Notebooks\n{after}" if after else "")
    text = re.sub(
        r"<picture>.*?</picture>",
        "![Four strategies answer the same question](images/compare.png)",
        text,
        flags=re.DOTALL,
    )
    text = (
        text.replace("](docs/", "](")
        .replace("](CHANGELOG.md)", "](changes.md)")
        .replace("](CONTRIBUTING.md)", "](contributing.md)")
    )
    return _TO_NOTEBOOK.sub(r"](tutorials/\1.md)", text.replace("](notebooks/", "]("))


def write_tutorial(notebook: Path) -> None:
    """Write a notebook with its stored outputs as a page, its plots beside it."""
    text, resources = MarkdownExporter().from_notebook_node(nbformat.read(notebook, as_version=4))
    folder = PAGES / "tutorials"
    for name, picture in resources["outputs"].items():
        (folder / f"{notebook.stem}_{name}").write_bytes(picture)
        text = text.replace(f"({name})", f"({notebook.stem}_{name})")
    text = re.sub(r"<style.*?</style>", "", _COLOUR.sub("", text), flags=re.DOTALL)
    (folder / f"{notebook.stem}.md").write_text(_TO_NOTEBOOK.sub(r"](\1.md)", text), encoding="utf-8")


if __name__ == "__main__":
    write()
