"""The table of pages. A new page is a folder with ``page.py``, a function here that imports it, and a row.

The functions import late, because a page's libraries are wanted when it is first visited, not before the first paint.
"""

from __future__ import annotations

from workbench.app.shell.navigation import PageEntry


def _compare() -> None:
    from workbench.app.compare.page import page

    page()


def _library() -> None:
    from workbench.app.library.page import page

    page()


def _crawl() -> None:
    from workbench.app.crawl.page import page

    page()


def _evaluate() -> None:
    from workbench.app.evaluate.page import page

    page()


def _graph() -> None:
    from workbench.app.graph.page import page

    page()


def _connect() -> None:
    from workbench.app.connect.page import page

    page()


def _system() -> None:
    from workbench.app.system.page import page

    page()


PAGES = (
    PageEntry("compare", "Compare", _compare),
    PageEntry("library", "Library", _library, lists_files=True),
    PageEntry("crawl", "Crawl", _crawl, jobs=("crawl",)),
    PageEntry("evaluate", "Evaluate", _evaluate, jobs=("experiment", "optimise", "learn")),
    PageEntry("graph", "Graph", _graph),
    PageEntry("connect", "Connect", _connect),
    PageEntry("system", "System", _system),
)
