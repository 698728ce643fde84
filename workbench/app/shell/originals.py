"""The originals of documents (PDF, pictures), sent to the browser's own viewer by the same server as the pages."""

from __future__ import annotations

from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from workbench.app.state.shared import OPENING
from workbench.errors import WorkbenchError

SHOWN_INLINE = {
    "application/pdf",
    "image/png",
    "image/jpeg",
    "image/webp",
}  # anything else could be a page with scripts, and is downloaded


async def original(request: Request) -> Response:
    """Send the bytes a document was read from."""
    return await run_in_threadpool(_answer, request.path_params["document"])


def _answer(document: str) -> Response:
    try:
        workbench = OPENING.wait(30)
        original = workbench.documents.file(document) if workbench else None
    except WorkbenchError as error:
        return PlainTextResponse(str(error), status_code=503)
    if original is None:
        return PlainTextResponse("There is no original of that document.", status_code=404)
    name, media_type, data = original
    manner = "inline" if media_type in SHOWN_INLINE else "attachment"
    headers = {
        "Content-Disposition": f"{manner}; filename*=UTF-8''{quote(name)}",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "private, max-age=300",
        "Cross-Origin-Resource-Policy": "same-origin",
    }
    return Response(data, media_type=media_type, headers=headers)


ORIGINAL_ROUTES = [Route("/originals/{document}", original)]
