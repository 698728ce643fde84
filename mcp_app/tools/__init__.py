"""The toolsets: which tools are offered together. A further toolset is one module and one row here."""

from __future__ import annotations

from mcp_app.tool import Tool
from mcp_app.tools import archives, articles, knowledge, reading, scoped, workspace

TOOLSETS: dict[str, tuple[Tool, ...]] = {
    "knowledge": knowledge.TOOLS,
    "scoped": scoped.TOOLS,
    "reading": reading.TOOLS,
    "articles": articles.TOOLS,
    "workspace": workspace.TOOLS,
    "archives": archives.TOOLS,
}
