"""The finder (Ctrl+K): sources, documents, test sets, experiments and actions by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
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

MOST = 6  # results of each kind
MOST_DOCUMENTS = 20  # results of a search for documents only
LONGEST = 200  # characters of a query


@dataclass(frozen=True, slots=True)
class Find:
    """A result of the finder: its kind, title, and URL relative to the app's root."""

    kind: str
    title: str
    href: str


ACTIONS = (
    Find("Action", "Add documents", "library"),
    Find("Action", "New project", "library?view=projects"),
    Find("Action", "Crawl a website", "crawl"),
    Find("Action", "New experiment", "evaluate?new=1"),
    Find("Action", "New test set", "evaluate?view=datasets"),
    Find("Action", "Tune parameters", "evaluate?view=tune"),
    Find("Action", "Train a ranker", "evaluate?view=learn"),
    Find("Action", "Search archives", "graph?view=archive"),
    Find("Action", "Broken links and orphans", "graph?view=links"),
    Find("Action", "Connect an agent", "connect"),
    Find("Action", "Try a tool", "connect?view=tools"),
    Find("Action", "View agent calls", "connect?view=calls"),
    Find("Action", "New index", "system"),
)


def finds(wb: Workbench, query: str) -> list[Find]:
    """Return everything whose title contains the query, at most ``MOST`` of a kind; all actions for an empty query."""
    wanted = " ".join(query.split())[:LONGEST]
    if not wanted:
        return list(ACTIONS)
    question = Find("Question", wanted, ".?" + urlencode({"q": wanted}))
    library = [*_sources(wb, wanted), *_documents(wb, wanted)]
    return [question, *_actions(wanted), *library, *_evaluations(wb, wanted)]


def _holds(title: str, wanted: str) -> bool:
    return all(word in title.casefold() for word in wanted.casefold().split())


def _actions(wanted: str) -> Iterator[Find]:
    return islice((action for action in ACTIONS if _holds(action.title, wanted)), MOST)


def _sources(wb: Workbench, wanted: str) -> Iterator[Find]:
    sources = (source for source in wb.sources.list() if _holds(source.title, wanted))
    for source in islice(sources, MOST):
        yield Find("Source", source.title, f"library?open={source.id}")


def _documents(wb: Workbench, wanted: str) -> Iterator[Find]:
    for document in wb.documents.list(contains=wanted, limit=MOST):
        yield Find("Document", document.title, "library?" + urlencode({"open": document.source_id, "doc": document.id}))


def _evaluations(wb: Workbench, wanted: str) -> Iterator[Find]:
    from evals.experiments.catalogue import Experiments
    from evals.test_sets.store import TestSetStore

    sets = (info for info in TestSetStore(wb).list() if _holds(info.title, wanted))
    yield from (Find("Test set", info.title, f"evaluate?open={info.id}") for info in islice(sets, MOST))
    experiments = (item for item in Experiments(wb).list() if _holds(item.title, wanted))
    yield from (Find("Experiment", item.title, f"evaluate?experiment={item.id}") for item in islice(experiments, MOST))


async def find(request: Request) -> Response:
    """Answer ``/find?q=…`` with a JSON list of results."""
    return await run_in_threadpool(_answer, request.query_params.get("q", ""))


def _answer(query: str) -> Response:
    try:
        wb = OPENING.wait(5)
        rows = finds(wb, query) if wb else list(ACTIONS)
    except WorkbenchError as error:
        return JSONResponse({"error": str(error)}, status_code=503)
    return JSONResponse([asdict(row) for row in rows], headers={"Cache-Control": "no-store"})


async def find_documents(request: Request) -> Response:
    """Answer ``/find/documents?q=…`` with the documents whose title, path or URL has these words."""
    return await run_in_threadpool(_documents_answer, request.query_params.get("q", ""))


def _documents_answer(query: str) -> Response:
    wanted = " ".join(query.split())[:LONGEST]
    try:
        wb = OPENING.wait(5)
        documents = wb.documents.list(named=wanted, limit=MOST_DOCUMENTS) if wb and wanted else []
    except WorkbenchError as error:
        return JSONResponse({"error": str(error)}, status_code=503)
    rows = [{"id": item.id, "title": item.title, "where": item.path or item.url or ""} for item in documents]
    return JSONResponse(rows, headers={"Cache-Control": "no-store"})


ROUTES = [Route("/find", find), Route("/find/documents", find_documents)]
