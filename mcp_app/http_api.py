"""The scoped tools over plain HTTP: the same answers at three addresses, with ETags and an OpenAPI document."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from mcp_app.arguments import Argument
from mcp_app.boundary import Answer
from mcp_app.guard import LARGEST_BODY, too_large
from mcp_app.tool import Call, Tool
from mcp_app.tools.scoped import GET_AVAILABLE_SOURCES, LIST_PROJECT_FOLDERS, SEARCH_KNOWLEDGE_BASE
from mcp_app.tools.scoped.searches import search
from workbench import __version__

if TYPE_CHECKING:
    from mcp_app.server import WorkbenchServer


def _query(call: Call, **given: Any) -> dict[str, Any]:
    answer = search(call, **given)
    filters = {"folder_filter": given["folder_name"] or None, "tag_filters": given["tags"] or None}
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
        given = {"project_id": request.path_params["project_id"], **request.query_params}
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
