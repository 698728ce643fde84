"""The OpenAPI 3.1 document of the plain routes, made from the same tables as the tools."""

from __future__ import annotations

from mcp_app.arguments import input_schema
from mcp_app.tool import Tool
from workbench import __version__
from workbench.types.json import JsonObject

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
