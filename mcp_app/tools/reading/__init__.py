"""The reading tools: texts in parts, code, neighbours, why, jobs, pages of the web, and what hosted connectors ask."""

from mcp_app.tools.reading.code_examples import SEARCH_CODE
from mcp_app.tools.reading.connector import FETCH, SEARCH
from mcp_app.tools.reading.explain import EXPLAIN
from mcp_app.tools.reading.fetch_url import FETCH_URL
from mcp_app.tools.reading.full_page import READ_FULL_PAGE
from mcp_app.tools.reading.jobs import GET_JOB
from mcp_app.tools.reading.neighbours import READ_NEIGHBOURS
from mcp_app.tools.reading.page_list import LIST_PAGES
from mcp_app.tools.reading.places import CREATE_FOLDER, CREATE_PROJECT, FIND_PROJECTS

ESSENTIAL = (READ_FULL_PAGE, FIND_PROJECTS, GET_JOB)
TOOLS = (
    READ_FULL_PAGE,
    LIST_PAGES,
    SEARCH_CODE,
    READ_NEIGHBOURS,
    EXPLAIN,
    FETCH_URL,
    FIND_PROJECTS,
    CREATE_PROJECT,
    CREATE_FOLDER,
    GET_JOB,
    SEARCH,
    FETCH,
)
