"""The finder (Ctrl+K): sources, documents, test sets, experiments and actions by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from workbench.app.state.shared import OPENING
from workbench.errors import WorkbenchError

if TYPE_CHECKING:
    from workbench.workbench import Workbench

MAX_PER_KIND = 6  # results of each kind
MAX_DOCUMENTS = 20  # results of a search for documents only
MAX_QUERY_CHARS = 200  # characters of a query


@dataclass(frozen=True, slots=True)
class FinderResult:
    """A result of the finder: its kind, title, and URL relative to the app's root."""

    kind: str
    title: str
    href: str


ACTIONS = (
    FinderResult("Action", "Add documents", "library"),
    FinderResult("Action", "New project", "library?view=projects"),
    FinderResult("Action", "Crawl a website", "crawl"),
    FinderResult("Action", "New experiment", "evaluate?new=1"),
    FinderResult("Action", "New test set", "evaluate?view=datasets"),
    FinderResult("Action", "Trends of a test set", "evaluate?view=trends"),
    FinderResult("Action", "Tune parameters", "evaluate?view=tune"),
    FinderResult("Action", "Train a ranker", "evaluate?view=learn"),
    FinderResult("Action", "Search archives", "graph?view=archive"),
    FinderResult("Action", "Broken links and orphans", "graph?view=links"),
    FinderResult("Action", "Connect an agent", "connect"),
    FinderResult("Action", "Try a tool", "connect?view=tools"),
    FinderResult("Action", "View agent calls", "connect?view=calls"),
    FinderResult("Action", "Set up models and API keys", "system?view=setup"),
    FinderResult("Action", "New index", "system"),
    FinderResult("Action", "Attach a table", "system"),
)


def find_all(wb: Workbench, query: str) -> list[FinderResult]:
    """Return everything whose title contains the query, at most ``MAX_PER_KIND`` of each kind."""
    from evals.experiments.catalogue import Experiments
    from evals.test_sets.store import TestSetStore

    wanted = " ".join(query.split())[:MAX_QUERY_CHARS]
    named = [
        *ACTIONS,
        *(FinderResult("Source", source.title, f"library?open={source.id}") for source in wb.sources.list()),
        *(FinderResult("Test set", info.title, f"evaluate?open={info.id}") for info in TestSetStore(wb).list()),
        *(FinderResult("Experiment", one.title, f"evaluate?experiment={one.id}") for one in Experiments(wb).list()),
    ]
    words = wanted.casefold().split()
    found = {kind: [] for kind in ("Action", "Source", "Document", "Test set", "Experiment")}
    for result in named:
        if all(word in result.title.casefold() for word in words):
            found[result.kind].append(result)
    for document in wb.documents.list(contains=wanted, limit=MAX_PER_KIND):
        href = "library?" + urlencode({"open": document.source_id, "doc": document.id})
        found["Document"].append(FinderResult("Document", document.title, href))
    first = FinderResult("Question", wanted, ".?" + urlencode({"q": wanted}))
    return [first, *(result for results in found.values() for result in results[:MAX_PER_KIND])]


def _find_documents(wb: Workbench, query: str) -> list[dict[str, str]]:
    wanted = " ".join(query.split())[:MAX_QUERY_CHARS]
    documents = wb.documents.list(named=wanted, limit=MAX_DOCUMENTS) if wanted else []
    return [{"id": item.id, "title": item.title, "where": item.path or item.url or ""} for item in documents]


async def answer_find(request: Request) -> Response:
    """Answer ``/find?q=…`` with a JSON list of results; without a query, with all actions, which need no database."""
    if not request.query_params.get("q", "").strip():
        return JSONResponse(list(map(asdict, ACTIONS)))
    return await run_in_threadpool(_respond, request, lambda wb, query: list(map(asdict, find_all(wb, query))))


async def answer_find_documents(request: Request) -> Response:
    """Answer ``/find/documents?q=…`` with the documents whose title, path or URL has these words."""
    return await run_in_threadpool(_respond, request, _find_documents)


def _respond(request: Request, find: Callable[[Workbench, str], list[dict[str, str]]]) -> Response:
    try:
        rows = find(OPENING.wait(5) or OPENING.workbench, request.query_params.get("q", ""))
    except WorkbenchError as error:
        return JSONResponse({"error": str(error)}, status_code=503)
    return JSONResponse(rows, headers={"Cache-Control": "no-store"})


ROUTES = [Route("/find", answer_find), Route("/find/documents", answer_find_documents)]
