"""The scoped tools over plain HTTP: the same answers at three addresses, with ETags, and the server's health."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from mcp_app.arguments import Argument, input_schema
from mcp_app.boundary import ToolAnswer
from mcp_app.guard import LARGEST_BODY, too_large
from mcp_app.tool import Call, Tool, compact
from mcp_app.tools.scoped import GET_AVAILABLE_SOURCES, LIST_PROJECT_FOLDERS, SEARCH_KNOWLEDGE_BASE, search, shown_tags
from workbench import __version__
from workbench.errors import WorkbenchError
from workbench.types.json import JsonObject

if TYPE_CHECKING:
    from mcp_app.server import WorkbenchServer

# --- The OpenAPI 3.1 document of the plain routes, made from the same tables as the tools ---

_ERROR: JsonObject = {
    "type": "object",
    "required": ["success", "error", "suggestion"],
    "properties": {
        "success": {"const": False},
        "error": {"type": "string", "description": "What happened."},
        "suggestion": {"type": "string", "description": "What to do."},
    },
}
_REASONS = {
    "400": "An argument is missing, unknown or wrong.",
    "401": "The bearer token is missing or wrong.",
    "404": "There is no such project, folder or source.",
    "500": "The server or its database failed.",
}


def openapi_document(routes: tuple[Tool, ...]) -> JsonObject:
    """Return the document of the routes; a route is a tool whose name is "METHOD /path"."""
    paths: JsonObject = {}
    for route in routes:
        method, _, path = route.name.partition(" ")
        operation = _post(route) if method == "POST" else _get(route, path)
        paths[path] = {method.lower(): operation}
    return {
        "openapi": "3.1.0",
        "info": {"title": "RAG Workbench", "version": __version__, "description": "Scoped search over HTTP."},
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Error": _ERROR},
        },
        "security": [{"token": []}, {}],
    }


def _get(route: Tool, path: str) -> JsonObject:
    parameters: list[JsonObject] = []
    for argument in route.arguments:
        schema = argument.schema()
        place = "path" if f"{{{argument.name}}}" in path else "query"
        described: JsonObject = {"name": argument.name, "in": place, "required": argument.required or place == "path"}
        parameters.append({**described, "description": schema.pop("description"), "schema": schema})
    parameters.append({"name": "If-None-Match", "in": "header", "required": False, "schema": {"type": "string"}})
    not_modified: JsonObject = {"304": {"description": "The client's answer is still the present one."}}
    return {**_operation(route), "parameters": parameters, "responses": _responses() | not_modified}


def _post(route: Tool) -> JsonObject:
    body: JsonObject = {"required": True, "content": {"application/json": {"schema": input_schema(route.arguments)}}}
    return {**_operation(route), "requestBody": body, "responses": _responses()}


def _operation(route: Tool) -> JsonObject:
    return {"operationId": route.run.__name__.strip("_"), "summary": route.title}


def _responses() -> JsonObject:
    error: JsonObject = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    failures: JsonObject = {status: {"description": reason, "content": error} for status, reason in _REASONS.items()}
    answer: JsonObject = {"description": "The answer.", "content": {"application/json": {"schema": {"type": "object"}}}}
    return {"200": answer, **failures}


logger = logging.getLogger(__name__)

HEALTH_SECONDS = 5.0  # that the database has to answer within, before the server counts as unwell


def query(
    call: Call,
    query: str,
    scope: str,
    project_id: str,
    source_id: str,
    match_count: int,
    return_mode: str,
    offset: int,
    language: str,
    names: str,
    folder_name: str,
    tags: list[str],
) -> JsonObject:
    """Search as the tools do, with every narrowing at once."""
    answer = search(
        call,
        query,
        scope=scope,
        project_id=project_id,
        source_id=source_id,
        folder_name=folder_name,
        tags=tags,
        match_count=match_count,
        return_mode=return_mode,
        offset=offset,
        language=language,
        names=names,
    )
    context: JsonObject = {"search_scope": scope, "project_context": project_id or None}
    return answer | context | {"folder_filter": folder_name or None, "tag_filters": shown_tags(tags)}


SOURCES = replace(GET_AVAILABLE_SOURCES, name="GET /api/rag/sources")
FOLDERS = replace(LIST_PROJECT_FOLDERS, name="GET /api/projects/{project_id}/folders")
QUERY = replace(
    SEARCH_KNOWLEDGE_BASE,
    name="POST /api/rag/query",
    arguments=(
        *SEARCH_KNOWLEDGE_BASE.arguments,
        Argument("folder_name", "string", "Only this folder of the project.", ""),
        Argument("tags", "array", "Only sources with any of these tags.", []),
    ),
    run=query,
)


def add_routes(app: Starlette, server: WorkbenchServer) -> None:
    """Add the routes to the server's web application."""

    async def health(request: Request) -> Response:
        del request
        return await _health(server)

    async def sources(request: Request) -> Response:
        answer = await server.boundary.serve(SOURCES, SOURCES.name, dict(request.query_params))
        return _tagged(request, answer)

    async def folders(request: Request) -> Response:
        arguments = {**request.query_params, "project_id": request.path_params["project_id"]}
        return _tagged(request, await server.boundary.serve(FOLDERS, FOLDERS.name, arguments))

    async def ask(request: Request) -> Response:
        return await _queried(server, request)

    async def openapi(request: Request) -> Response:
        del request
        return JSONResponse(openapi_document((SOURCES, QUERY, FOLDERS)))

    app.router.routes.extend(
        [
            Route("/health", health),
            Route("/api/rag/sources", sources),
            Route("/api/rag/query", ask, methods=["POST"]),
            Route("/api/projects/{project_id}/folders", folders),
            Route("/api/openapi.json", openapi),
        ]
    )
    app.add_exception_handler(HTTPException, _not_served)


async def _health(server: WorkbenchServer) -> Response:
    """Say whether calls can be served now: the database is asked, and a slow one counts as down."""
    opening = server.opening
    state: JsonObject = {"ready": opening.is_ready, "warm": opening.is_warm, "version": __version__}
    if not opening.settled:  # it has just begun to open; calls wait for it
        return JSONResponse({"status": "ok", "database": "opening", **state})
    try:
        with anyio.fail_after(HEALTH_SECONDS):
            wb = await opening.ready()
            await anyio.to_thread.run_sync(wb.health.check_database, abandon_on_cancel=True)
    except Exception as error:  # calls cannot be served, for any error
        if not isinstance(error, WorkbenchError | TimeoutError):
            logger.error("the server is unwell", exc_info=error)
        return JSONResponse({"status": "failing", "database": "down", **state, "ready": False}, status_code=503)
    return JSONResponse({"status": "ok", "database": "ok", **state})


async def _queried(server: WorkbenchServer, request: Request) -> Response:
    body = await _body(request)
    if body is None:
        refused = QUERY.family.failure(too_large(LARGEST_BODY), "Ask with a shorter query", {})
        return _response(ToolAnswer(refused, failed=True, status=413))
    try:
        given = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        text = QUERY.family.failure("The body is not a JSON object", "Send the arguments as one JSON object", {})
        return _response(ToolAnswer(text, failed=True, status=400))
    return _response(await server.boundary.serve(QUERY, QUERY.name, given))


async def _not_served(request: Request, error: Exception) -> Response:
    """Say in the routes' own JSON that there is no such address, or that it is asked in another way."""
    assert isinstance(error, HTTPException)
    path = request.url.path
    said, suggestion = f"There is nothing at {path}", "See /api/openapi.json for what there is"
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "another method")
        said, suggestion = f"{request.method} is not served at {path}", f"Use {allowed}"
    text = compact({"success": False, "error": said, "suggestion": suggestion})
    return _response(ToolAnswer(text, failed=True, status=error.status_code), error.headers)


async def _body(request: Request) -> bytes | None:
    """Return the body, or None as soon as it is too large: a chunked one does not say its length."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST_BODY:
            return None
    return bytes(body)


def _response(answer: ToolAnswer, headers: Mapping[str, str] | None = None) -> Response:
    return Response(answer.text, answer.status, headers, media_type="application/json")


def _tagged(request: Request, answer: ToolAnswer) -> Response:
    """Answer with an ETag, or with 304 where the client has this very answer already."""
    if answer.failed:
        return _response(answer)
    tag = f'"{hashlib.sha256(answer.text.encode()).hexdigest()[:32]}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    tags = [value.strip().removeprefix("W/") for value in request.headers.get("if-none-match", "").split(",")]
    if tag in tags or "*" in tags:
        return Response(status_code=304, headers=headers)
    return _response(answer, headers)
