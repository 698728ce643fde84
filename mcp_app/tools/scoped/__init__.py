"""The scoped tools: what a project knows, what everybody knows, and both together."""

from mcp_app.tools.scoped.listings import GET_AVAILABLE_SOURCES, LIST_PROJECT_FOLDERS
from mcp_app.tools.scoped.searches import SEARCH_GLOBAL, SEARCH_KNOWLEDGE_BASE, SEARCH_PROJECT

TOOLS = (GET_AVAILABLE_SOURCES, SEARCH_KNOWLEDGE_BASE, SEARCH_PROJECT, SEARCH_GLOBAL, LIST_PROJECT_FOLDERS)
