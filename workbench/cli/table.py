"""Every command: its name, the module that serves it, and its line in the help.

A module has ``add_arguments(parser)`` and ``run(arguments, out) -> int`` and is imported only when its command is
asked for; it keeps its own imports of engines and of the database inside the functions that need them.
"""

from __future__ import annotations

COMMANDS: dict[str, tuple[str, str]] = {
    "ingest": ("workbench.cli.ingest", "Read files and folders into a source"),
    "search": ("workbench.cli.search", "Find the passages that answer a question"),
    "compare": ("workbench.cli.compare", "Answer a question by several strategies, side by side"),
    "ask": ("workbench.cli.ask", "Answer a question with numbered citations"),
    "sources": ("workbench.cli.sources", "List, show, create, update or delete sources"),
    "documents": ("workbench.cli.documents", "List, show, create, update or delete documents"),
    "projects": ("workbench.cli.projects", "The same for projects and their folders"),
    "indexes": ("workbench.cli.indexes", "Make, build, switch and drop indexes over the same documents"),
    "strategies": ("workbench.cli.strategies", "List the ways to retrieve, with their parameters"),
    "eval": ("workbench.cli.eval", "Measure strategies on a test set, and hold them against a baseline"),
    "bench": ("workbench.cli.bench", "Measure speed beside bare baselines"),
    "crawl": ("workbench.cli.crawl", "Bring a website in, or see what that would do"),
    "jobs": ("workbench.cli.jobs", "Watch long work, stop it, go on with it"),
    "worker": ("workbench.cli.worker", "Run jobs, here or on any machine that reaches the database"),
    "articles": ("workbench.cli.articles", "List, read and search the articles on disk"),
    "workspace": ("workbench.cli.workspace", "Embed conversations on disk, search them"),
    "archives": ("workbench.cli.archives", "Search the archives, follow citations"),
    "app": ("workbench.cli.app", "Serve the app in the browser"),
    "mcp": ("workbench.cli.mcp", "Serve the tools to agents over MCP"),
    "status": ("workbench.cli.status", "Show what there is: counts, sizes, versions"),
    "doctor": ("workbench.cli.doctor", "Try everything a search depends on and say how it went"),
    "export": ("workbench.cli.export", "Write everything into one file"),
    "import": ("workbench.cli.restore", "Read such a file into an empty workbench"),
}
