"""Build the documentation site (``make site``): write the pages, convert them to HTML, write llms.txt, check links."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

from docs.site.check_links import SITE, faults
from docs.site.write_pages import PAGES, write


def build() -> list[str]:
    """Build the site in artifacts/site/html and return a sentence for each fault.

    Raises:
        RuntimeError: zensical failed.
    """
    write()
    # Zensical's own check reads the examples in tutorials as links; ours reads the pages that it makes.
    zensical = [
        str(Path(sys.executable).with_name("zensical")),
        "build",
        "--clean",
        "-f",
        str(PAGES.parent / "zensical.toml"),
    ]
    result = subprocess.run(zensical, capture_output=True, text=True, check=False)
    if result.returncode:
        raise RuntimeError(f"zensical could not build the site:\n{result.stderr[-2000:]}")
    (SITE / "llms.txt").write_text(llms_txt(), encoding="utf-8")
    return list(faults(SITE))


def llms_txt() -> str:
    """Return an index of the pages in Markdown for language models, as https://llmstxt.org describes it."""
    project = tomllib.loads((PAGES.parent / "zensical.toml").read_text(encoding="utf-8"))["project"]
    lines = [f"# {project['site_name']}", "", f"> {project['site_description']}", "", "## Docs", ""]
    groups: list[str] = []
    for entry in project["nav"]:
        [(title, target)] = entry.items()
        if isinstance(target, str):
            lines.append(_llms_line(title, target))
        else:
            groups += ["", f"## {title}", "", *(_llms_line(*next(iter(row.items()))) for row in target)]
    return "\n".join([*lines, *groups, ""])


def _llms_line(title: str, page: str) -> str:
    text = (PAGES / page).read_text(encoding="utf-8")
    prose = (part for part in re.split(r"\n\s*\n", text) if re.match(r"[A-Z*`](?!``)", part))
    first = " ".join(re.sub(r"\[(.*?)\]\(.*?\)", r"\1", next(prose, "")).replace("**", "").split())
    sentence = re.split(r"(?<=[.])\s", first)[0]
    return f"- [{title}]({page.removesuffix('.md')}.html){f': {sentence}' if sentence else ''}"


if __name__ == "__main__":
    sentences = build()
    print("\n".join(sentences) or f"The site is in {SITE}; every link leads somewhere, nothing comes from elsewhere.")
    sys.exit(bool(sentences))
