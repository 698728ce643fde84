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
    """Return everything whose title contains the query, at most ``MAX_PER_KIND`` of each kind.

    An empty query returns all actions.
    """
    wanted = " ".join(query.split())[:MAX_QUERY_CHARS]
    if not wanted:
        return list(ACTIONS)
    question = FinderResult("Question", wanted, ".?" + urlencode({"q": wanted}))
    library = [*_find_sources(wb, wanted), *_find_documents(wb, wanted)]
    return [question, *_find_actions(wanted), *library, *_find_evaluations(wb, wanted)]


def _contains_words(title: str, wanted: str) -> bool:
    return all(word in title.casefold() for word in wanted.casefold().split())


def _find_actions(wanted: str) -> Iterator[FinderResult]:
    return islice((action for action in ACTIONS if _contains_words(action.title, wanted)), MAX_PER_KIND)


def _find_sources(wb: Workbench, wanted: str) -> Iterator[FinderResult]:
    sources = (source for source in wb.sources.list() if _contains_words(source.title, wanted))
    for source in islice(sources, MAX_PER_KIND):
        yield FinderResult("Source", source.title, f"library?open={source.id}")


def _find_documents(wb: Workbench, wanted: str) -> Iterator[FinderResult]:
    for document in wb.documents.list(contains=wanted, limit=MAX_PER_KIND):
        yield FinderResult(
            "Document", document.title, "library?" + urlencode({"open": document.source_id, "doc": document.id})
        )


def _find_evaluations(wb: Workbench, wanted: str) -> Iterator[FinderResult]:
    from evals.experiments.catalogue import Experiments
    from evals.test_sets.store import TestSetStore

    sets = (info for info in TestSetStore(wb).list() if _contains_words(info.title, wanted))
    yield from (FinderResult("Test set", info.title, f"evaluate?open={info.id}") for info in islice(sets, MAX_PER_KIND))
    experiments = (item for item in Experiments(wb).list() if _contains_words(item.title, wanted))
    yield from (
        FinderResult("Experiment", item.title, f"evaluate?experiment={item.id}")
        for item in islice(experiments, MAX_PER_KIND)
    )


async def answer_find(request: Request) -> Response:
    """Answer ``/find?q=…`` with a JSON list of results."""
    return await run_in_threadpool(_respond, request.query_params.get("q", ""))


def _respond(query: str) -> Response:
    try:
        wb = OPENING.wait(5)
        rows = find_all(wb, query) if wb else list(ACTIONS)
    except WorkbenchError as error:
        return JSONResponse({"error": str(error)}, status_code=503)
    return JSONResponse([asdict(row) for row in rows], headers={"Cache-Control": "no-store"})


async def answer_find_documents(request: Request) -> Response:
    """Answer ``/find/documents?q=…`` with the documents whose title, path or URL has these words."""
    return await run_in_threadpool(_respond_documents, request.query_params.get("q", ""))


def _respond_documents(query: str) -> Response:
    wanted = " ".join(query.split())[:MAX_QUERY_CHARS]
    try:
        wb = OPENING.wait(5)
        documents = wb.documents.list(named=wanted, limit=MAX_DOCUMENTS) if wb and wanted else []
    except WorkbenchError as error:
        return JSONResponse({"error": str(error)}, status_code=503)
    rows = [{"id": item.id, "title": item.title, "where": item.path or item.url or ""} for item in documents]
    return JSONResponse(rows, headers={"Cache-Control": "no-store"})


ROUTES = [Route("/find", answer_find), Route("/find/documents", answer_find_documents)]
