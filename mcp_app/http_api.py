"""The scoped tools over plain HTTP: the same answers at three addresses, with ETags and an OpenAPI document."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from mcp_app.arguments import Argument
from mcp_app.boundary import Answer
from mcp_app.guard import LARGEST_BODY, too_large
from mcp_app.tool import Call, Tool, compact
from mcp_app.tools.scoped import GET_AVAILABLE_SOURCES, LIST_PROJECT_FOLDERS, SEARCH_KNOWLEDGE_BASE
from mcp_app.tools.scoped.searches import search, shown_tags
from workbench import __version__

if TYPE_CHECKING:
    from mcp_app.server import WorkbenchServer


def _query(call: Call, **given: Any) -> dict[str, Any]:
    answer = search(call, **given)
    filters = {"folder_filter": given["folder_name"] or None, "tag_filters": shown_tags(given["tags"])}
    return answer | {"search_scope": given["scope"], "project_context": given["project_id"] or None, **filters}


QUERY = replace(
    SEARCH_KNOWLEDGE_BASE,
    name="POST /api/rag/query",
    arguments=(
        *SEARCH_KNOWLEDGE_BASE.arguments,
        Argument("folder_name", "string", "Only this folder of the project.", ""),
        Argument("tags", "array", "Only sources with any of these tags.", []),
    ),
    run=_query,
)


def add_routes(app: Any, server: WorkbenchServer) -> None:
    """Add the routes to the server's web application."""

    async def health(request: Request) -> Response:
        del request
        return JSONResponse({"status": "ok", "ready": server.engine.is_ready, "version": __version__})

    async def sources(request: Request) -> Response:
        answer = await server.boundary.serve(GET_AVAILABLE_SOURCES, "GET /api/rag/sources", dict(request.query_params))
        return _tagged(request, answer)

    async def folders(request: Request) -> Response:
        given = {**request.query_params, "project_id": request.path_params["project_id"]}
        answer = await server.boundary.serve(LIST_PROJECT_FOLDERS, "GET /api/projects/{project_id}/folders", given)
        return _tagged(request, answer)

    async def query(request: Request) -> Response:
        body = await _body(request)
        if body is None:
            refused = QUERY.family.failure(too_large(LARGEST_BODY), "Ask with a shorter query", {})
            return _response(Answer(refused, failed=True, status=413))
        try:
            given = json.loads(body or b"{}")
        except (ValueError, RecursionError):
            given = None
        if not isinstance(given, dict):
            text = QUERY.family.failure("The body is not a JSON object", "Send the arguments as one JSON object", {})
            return _response(Answer(text, failed=True, status=400))
        return _response(await server.boundary.serve(QUERY, QUERY.name, given))

    async def openapi(request: Request) -> Response:
        del request
        return JSONResponse(openapi_document())

    app.router.routes.extend(
        [
            Route("/health", health),
            Route("/api/rag/sources", sources),
            Route("/api/rag/query", query, methods=["POST"]),
            Route("/api/projects/{project_id}/folders", folders),
            Route("/api/openapi.json", openapi),
        ]
    )
    app.add_exception_handler(HTTPException, _not_served)


async def _not_served(request: Request, error: Exception) -> Response:
    """Say in the routes' own JSON that there is no such address, or that it is asked in another way."""
    assert isinstance(error, HTTPException)
    path = request.url.path
    said, suggestion = f"There is nothing at {path}", "See /api/openapi.json for what there is"
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "another method")
        said, suggestion = f"{request.method} is not served at {path}", f"Use {allowed}"
    text = compact({"success": False, "error": said, "suggestion": suggestion})
    return _response(Answer(text, failed=True, status=error.status_code), error.headers)


async def _body(request: Request) -> bytes | None:
    """Return the body, or None as soon as it is too large: a chunked one does not say its length."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST_BODY:
            return None
    return bytes(body)


def _response(answer: Answer, headers: Mapping[str, str] | None = None) -> Response:
    return Response(answer.text, answer.status, headers, media_type="application/json")


def _tagged(request: Request, answer: Answer) -> Response:
    """Answer with an ETag, or with 304 where the client has this very answer already."""
    if answer.failed:
        return _response(answer)
    tag = f'"{hashlib.sha256(answer.text.encode()).hexdigest()[:32]}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    held = [value.strip().removeprefix("W/") for value in request.headers.get("if-none-match", "").split(",")]
    if tag in held or "*" in held:
        return Response(status_code=304, headers=headers)
    return _response(answer, headers)


def openapi_document() -> dict[str, Any]:
    """Return the OpenAPI 3.1 document, made from the same tables as the tools."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "RAG Workbench", "version": __version__, "description": "Scoped search over HTTP."},
        "paths": {
            "/api/rag/sources": {"get": _get(GET_AVAILABLE_SOURCES, "query")},
            "/api/rag/query": {"post": _post(QUERY)},
            "/api/projects/{project_id}/folders": {"get": _get(LIST_PROJECT_FOLDERS, "path")},
        },
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Error": _ERROR},
        },
        "security": [{"token": []}, {}],
    }


_ERROR = {
    "type": "object",
    "required": ["success", "error", "suggestion"],
    "properties": {
        "success": {"const": False},
        "error": {"type": "string", "description": "What happened."},
        "suggestion": {"type": "string", "description": "What to do."},
    },
}


def _get(tool: Tool, where: str) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = []
    for argument in tool.arguments:
        schema = argument.schema()
        described = {"name": argument.name, "in": where, "required": argument.required or where == "path"}
        parameters.append({**described, "description": schema.pop("description"), "schema": schema})
    parameters.append({"name": "If-None-Match", "in": "header", "required": False, "schema": {"type": "string"}})
    not_modified = {"304": {"description": "The client's answer is still the present one."}}
    return {**_operation(tool), "parameters": parameters, "responses": _responses() | not_modified}


def _post(tool: Tool) -> dict[str, Any]:
    from mcp_app.arguments import input_schema

    body = {"required": True, "content": {"application/json": {"schema": input_schema(tool.arguments)}}}
    return {**_operation(tool), "requestBody": body, "responses": _responses()}


def _operation(tool: Tool) -> dict[str, Any]:
    return {"operationId": tool.run.__name__.strip("_"), "summary": tool.title}


def _responses() -> dict[str, Any]:
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    reasons = {
        "400": "An argument is missing, unknown or wrong.",
        "401": "The bearer token is missing or wrong.",
        "404": "There is no such project, folder or source.",
        "500": "The server or its database failed.",
    }
    failures = {status: {"description": reason, "content": error} for status, reason in reasons.items()}
    found = {"description": "The answer.", "content": {"application/json": {"schema": {"type": "object"}}}}
    return {"200": found, **failures}
