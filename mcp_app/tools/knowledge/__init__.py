"""The knowledge tools: search, documents, sources, crawls."""

from mcp_app.tools.knowledge.crawls import CRAWL_WEBSITE, MANAGE_CRAWL_JOB
from mcp_app.tools.knowledge.documents import MANAGE_DOCUMENT
from mcp_app.tools.knowledge.search import SEARCH_KNOWLEDGE_BASE
from mcp_app.tools.knowledge.sources import MANAGE_SOURCE

TOOLS = (SEARCH_KNOWLEDGE_BASE, MANAGE_DOCUMENT, MANAGE_SOURCE, CRAWL_WEBSITE, MANAGE_CRAWL_JOB)
