"""Plain HTTP routes: the scoped tools with ETags, an OpenAPI document, and a health check."""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from mcp_app.arguments import Argument, make_input_schema
from mcp_app.guard import MAX_BODY_BYTES, format_too_large
from mcp_app.tool import Call, Tool, dump_json
from mcp_app.tools.scoped import (
    cap_tags,
    rag_get_available_sources,
    rag_list_project_folders,
    rag_search_knowledge_base,
)
from workbench import WorkbenchError, __version__
from workbench.types import JsonObject, JsonValue, as_object

if TYPE_CHECKING:
    from mcp_app.server import WorkbenchServer

# OpenAPI 3.1 document of the routes

_ERROR_SCHEMA: JsonObject = {
    "type": "object",
    "required": ["success", "error", "suggestion"],
    "properties": {
        "success": {"const": False},
        "error": {"type": "string", "description": "What went wrong."},
        "suggestion": {"type": "string", "description": "What to do next."},
    },
}
_STATUS_REASONS = {
    "400": "An argument is missing, unknown or invalid.",
    "401": "The bearer token is missing or invalid.",
    "404": "The project, folder or source does not exist.",
    "500": "The server or its database failed.",
    "503": "The server is still starting, or the call took too long.",
}


def build_openapi_document(routes: tuple[Tool, ...]) -> JsonObject:
    """Return the OpenAPI document; a route is a tool named "METHOD /path"."""
    error: JsonObject = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    content: JsonObject = {"application/json": {"schema": {"type": "object"}}}
    responses: JsonObject = {"200": {"description": "The answer.", "content": content}}
    responses |= {status: {"description": reason, "content": error} for status, reason in _STATUS_REASONS.items()}
    not_modified: JsonObject = {"304": {"description": "The client's copy is up to date."}}
    paths: JsonObject = {}
    for route in routes:
        method, _, path = route.name.partition(" ")
        operation: JsonObject = {"operationId": route.run.__name__.strip("_"), "summary": route.title}
        if method == "POST":
            body: JsonObject = {"application/json": {"schema": make_input_schema(route.arguments)}}
            operation |= {"requestBody": {"required": True, "content": body}, "responses": responses}
        else:
            operation |= {"parameters": _list_parameters(route, path), "responses": responses | not_modified}
        paths[path] = {method.lower(): operation}
    return {
        "openapi": "3.1.0",
        "info": {"title": "RAG Workbench", "version": __version__, "description": "Scoped search over HTTP."},
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Error": _ERROR_SCHEMA},
        },
        "security": [{"token": []}, {}],
    }


def _list_parameters(route: Tool, path: str) -> list[JsonValue]:
    parameters: list[JsonValue] = []
    for argument in route.arguments:
        schema = argument.schema()
        place = "path" if f"{{{argument.name}}}" in path else "query"
        described: JsonObject = {"name": argument.name, "in": place, "required": argument.required or place == "path"}
        parameters.append({**described, "description": schema.pop("description"), "schema": schema})
    return [*parameters, {"name": "If-None-Match", "in": "header", "required": False, "schema": {"type": "string"}}]


# Routes and handlers

logger = logging.getLogger(__name__)

_respond = partial(Response, media_type="application/json")
HEALTH_TIMEOUT_S = 5.0  # a database that takes longer to answer counts as down


def query(call: Call, folder_name: str, tags: list[str], **others: JsonValue) -> JsonObject:
    """Search with all filters of the scoped tools."""
    answer = rag_search_knowledge_base.run(call, folder_name=folder_name, tags=tags, **others)
    return {**as_object(answer), "folder_filter": folder_name or None, "tag_filters": cap_tags(tags)}


SOURCES_ROUTE = replace(rag_get_available_sources, name="GET /api/rag/sources")
FOLDERS_ROUTE = replace(rag_list_project_folders, name="GET /api/projects/{project_id}/folders")
QUERY_ROUTE = replace(
    rag_search_knowledge_base,
    name="POST /api/rag/query",
    arguments=(
        *rag_search_knowledge_base.arguments,
        Argument("folder_name", "string", "Only this folder of the project.", ""),
        Argument("tags", "array", "Only sources with any of these tags.", []),
    ),
    run=query,
)


def add_routes(app: Starlette, server: WorkbenchServer) -> None:
    """Add the routes to the server's web application."""

    async def openapi(request: Request) -> Response:
        return JSONResponse(build_openapi_document((SOURCES_ROUTE, QUERY_ROUTE, FOLDERS_ROUTE)))

    app.router.routes.extend(
        [
            Route("/health", partial(_check_health, server)),
            Route("/api/rag/sources", partial(_serve_list, server, SOURCES_ROUTE)),
            Route("/api/rag/query", partial(_serve_query, server), methods=["POST"]),
            Route("/api/projects/{project_id}/folders", partial(_serve_list, server, FOLDERS_ROUTE)),
            Route("/api/openapi.json", openapi),
        ]
    )
    app.add_exception_handler(HTTPException, _handle_http_error)


async def _check_health(server: WorkbenchServer, request: Request) -> Response:
    """Report whether calls can be served; a slow database counts as down."""
    opening = server.opening
    state: JsonObject = {"ready": opening.is_ready, "warm": opening.is_warm, "version": __version__}
    if not opening.is_settled:  # still opening; calls wait for it
        return JSONResponse({"status": "ok", "database": "opening", **state})
    try:
        with anyio.fail_after(HEALTH_TIMEOUT_S):
            wb = await opening.ready()
            await anyio.to_thread.run_sync(wb.health.check_database, abandon_on_cancel=True)
    except Exception as error:  # any error means that calls would fail
        if not isinstance(error, WorkbenchError | TimeoutError):
            logger.error("Health check failed", exc_info=error)
        return JSONResponse({"status": "failing", "database": "down", **state, "ready": False}, status_code=503)
    return JSONResponse({"status": "ok", "database": "ok", **state})


async def _serve_list(server: WorkbenchServer, route: Tool, request: Request) -> Response:
    """Return a list with an ETag, or 304 if the client already has it."""
    answer = await server.boundary.serve(route, route.name, {**request.query_params, **request.path_params})
    if answer.failed:
        return _respond(answer.text, answer.status)
    tag = f'"{hashlib.sha256(answer.text.encode()).hexdigest()[:32]}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    tags = [value.strip().removeprefix("W/") for value in request.headers.get("if-none-match", "").split(",")]
    if tag in tags or "*" in tags:
        return Response(status_code=304, headers=headers)
    return _respond(answer.text, headers=headers)


async def _serve_query(server: WorkbenchServer, request: Request) -> Response:
    body = await _read_body(request)
    if body is None:
        refused = QUERY_ROUTE.family.failure(format_too_large(MAX_BODY_BYTES), "Use a shorter query", {})
        return _respond(refused, 413)
    try:
        given = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        text = QUERY_ROUTE.family.failure("The body is not a JSON object", "Send the arguments as a JSON object", {})
        return _respond(text, 400)
    answer = await server.boundary.serve(QUERY_ROUTE, QUERY_ROUTE.name, given)
    return _respond(answer.text, answer.status)


async def _handle_http_error(request: Request, error: Exception) -> Response:
    """Answer an unknown path or method in the JSON form of the routes."""
    assert isinstance(error, HTTPException)
    path = request.url.path
    message, suggestion = f"Not found: {path}", "See /api/openapi.json for the routes"
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "another method")
        message, suggestion = f"{request.method} is not allowed at {path}", f"Use {allowed}"
    text = dump_json({"success": False, "error": message, "suggestion": suggestion})
    return _respond(text, error.status_code, error.headers)


async def _read_body(request: Request) -> bytes | None:
    """Return the body, or None once it is too large; a chunked body has no length header."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            return None
    return bytes(body)
