"""Originals of documents, such as PDF and images, and page images with the found passage highlighted."""

from __future__ import annotations

import io
from html import escape
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from workbench.app.state.address import add_base_path
from workbench.app.state.shared import OPENING
from workbench.app.widgets.reader import parse_place
from workbench.errors import NotFound, UnreadableDocument, WorkbenchError

INLINE_TYPES = {
    "application/pdf",
    "image/png",
    "image/jpeg",
    "image/webp",
}  # other types may contain scripts, so they are downloaded


async def send_original(request: Request) -> Response:
    """Send the original bytes of a document."""
    return await run_in_threadpool(_respond_original, request.path_params["document"])


def _respond_original(document: str) -> Response:
    try:
        wb = OPENING.wait(30)
        original = wb.documents.file(document) if wb else None
    except WorkbenchError as error:
        return PlainTextResponse(str(error), status_code=503)
    if original is None:
        return PlainTextResponse("The original of this document is not stored.", status_code=404)
    name, media_type, data = original
    disposition = "inline" if media_type in INLINE_TYPES else "attachment"
    headers = {
        "Content-Disposition": f"{disposition}; filename*=UTF-8''{quote(name)}",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "private, max-age=300",
        "Cross-Origin-Resource-Policy": "same-origin",
    }
    return Response(data, media_type=media_type, headers=headers)


ORIGINAL_ROUTES = [Route("/originals/{document}", send_original)]


# Page images with the found passage highlighted

SAFE_HEADERS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "private, max-age=300"}
CONTENT_POLICY = (
    "default-src 'none'; img-src 'self'; style-src 'unsafe-inline'; font-src 'self'; frame-ancestors 'self'"
)
FONT_PATH = "/app/static/source-sans-3-latin-wght-normal.woff2"
FRAME_HTML = """<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>
<style>@font-face {{ font-family: "Source Sans 3"; src: url("{font}") format("woff2"); font-weight: 200 900 }}
:root {{ color-scheme: light dark }} body {{ margin: 0; font: 13px/1.4 "Source Sans 3", system-ui, sans-serif }}
p {{ display: flex; flex-wrap: wrap; gap: 2px 18px; margin: 8px 12px }}
a {{ color: light-dark(#3a35b0, #aeb2ff); text-underline-offset: 3px }}
img {{ display: block; width: 100%; height: auto }}</style>
<p><span>{title}</span>{leaf}<a href="{original}" target="_blank" rel="noopener">Open file</a></p>
<img src="{picture}" alt="Image of {title}">"""


async def send_picture(request: Request) -> Response:
    """Send the image of a page as JPEG, with the span ``at`` ("120-480") highlighted."""
    return await run_in_threadpool(_respond_picture, *_read_request(request))


async def send_frame(request: Request) -> Response:
    """Send an HTML page that shows a page image at full width."""
    document, number, at = _read_request(request)
    here = add_base_path(f"/originals/{quote(document, safe='')}")
    label, pages = await run_in_threadpool(_load_page_label, document, number)
    title = f"Page {number:,}{label}" + (" (found passage highlighted)" if parse_place(at) else "")
    address = f"{here}/pages/{number}" + (f"?at={quote(at)}" if at else "")
    turned = {"Previous page": number - 1, "Next page": number + 1}
    leaf = "".join(
        f'<a href="{escape(f"{here}/seen/{other}" + (f"?at={quote(at)}" if at else ""))}">{words}</a>'
        for words, other in turned.items()
        if 1 <= other <= pages
    )
    page = FRAME_HTML.format(
        leaf=leaf,
        title=escape(title),
        original=escape(here),
        picture=escape(address),
        font=escape(add_base_path(FONT_PATH)),
    )
    return HTMLResponse(page, headers=SAFE_HEADERS | {"Content-Security-Policy": CONTENT_POLICY})


def _read_request(request: Request) -> tuple[str, int, str]:
    return request.path_params["document"], request.path_params["number"], request.query_params.get("at", "")


def _load_page_label(document: str, number: int) -> tuple[str, int]:
    """Return a page's printed number in parentheses ("" if it equals its position), and the number of pages."""
    try:
        wb = OPENING.wait(30)
        if wb is None:
            return "", 0
        label = wb.pages.label(document, number)
        return f" ({label})" if label else "", wb.pages.count(document)
    except WorkbenchError:  # the image request reports it
        return "", 0


def _respond_picture(document: str, number: int, at: str) -> Response:
    try:
        wb = OPENING.wait(30)
        if wb is None:
            return PlainTextResponse("The workbench is starting. Reload this page.", status_code=503)
        seen = wb.pages.picture(document, number, parse_place(at))
    except (NotFound, UnreadableDocument) as error:
        return PlainTextResponse(str(error), status_code=404)
    except WorkbenchError as error:
        return PlainTextResponse(str(error), status_code=503)
    target = io.BytesIO()
    seen.save(target, "JPEG", quality=88)
    return Response(target.getvalue(), media_type="image/jpeg", headers=SAFE_HEADERS)


PAGE_IMAGE_ROUTES = [
    Route("/originals/{document}/pages/{number:int}", send_picture),
    Route("/originals/{document}/seen/{number:int}", send_frame),
]
