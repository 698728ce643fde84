"""Write the pages of the documentation site below artifacts/site/pages: from docs/, the notebooks and the code.

``make site`` runs this, lets zensical build the site, and checks its links.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import nbformat
from nbconvert import MarkdownExporter

from docs.site.code_pages import python_page, strategy_sections, tools_page

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "artifacts" / "site" / "pages"
COPIED = (
    "recipes",
    "models",
    "concepts",
    "bring-your-own",
    "configuration",
    "evaluation",
    "operating",
    "faq",
    "benchmarks",
    "lab-notebook",
    "architecture",
    "contributing",
)
WRITTEN = {
    "tools": tools_page,
    "python": python_page,
}
_COLOUR = re.compile("\x1b\\[[0-9;]*m")
_PICTURE = re.compile(r'<picture>.*?<img alt="(.*?)" src="(.*?)">.*?</picture>', re.DOTALL)
_TO_NOTEBOOK = re.compile(r"\]\((?:\.\./notebooks/)?(\d\d_\w+)\.ipynb\)")


def write() -> None:
    """Write all pages."""
    shutil.rmtree(PAGES, ignore_errors=True)
    (PAGES / "tutorials").mkdir(parents=True)
    for folder in ("images", "decisions", "reference"):
        shutil.copytree(ROOT / "docs" / folder, PAGES / folder)
    shutil.copy(Path(__file__).with_name("zensical.toml"), PAGES.parent)
    shutil.copy(Path(__file__).with_name("site.css"), PAGES)
    (PAGES / "index.md").write_text(start_page(), encoding="utf-8")
    for name in COPIED:
        shutil.copy(ROOT / "docs" / f"{name}.md", PAGES)
    shutil.copy(ROOT / "CHANGELOG.md", PAGES / "changes.md")
    for name, page in WRITTEN.items():
        (PAGES / "reference" / f"{name}.md").write_text(page(), encoding="utf-8")
    with (PAGES / "reference" / "strategies.md").open("a", encoding="utf-8") as strategies:
        strategies.write(f"\n{strategy_sections()}")
    for notebook in sorted((ROOT / "notebooks").glob("*.ipynb")):
        write_tutorial(notebook)


def start_page() -> str:
    """Return the README with links to the pages of the site."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    text = _PICTURE.sub(r"![\1](\2)", text)
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
