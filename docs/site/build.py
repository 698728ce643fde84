"""Build the documentation site (``make site``): write its pages, let zensical make HTML of them, check every link."""

from __future__ import annotations

import subprocess
import sys
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
    return list(faults(SITE))


if __name__ == "__main__":
    sentences = build()
    print("\n".join(sentences) or f"The site is in {SITE}; every link leads somewhere, nothing comes from elsewhere.")
    sys.exit(bool(sentences))
