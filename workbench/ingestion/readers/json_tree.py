"""The reader of JSON and JSON Lines: values become "path: value" lines that can be read and found."""

from __future__ import annotations

import json
from collections.abc import Iterator

from workbench.errors import UnreadableDocument
from workbench.ingestion.decoding import decode
from workbench.ingestion.raw import Draft
from workbench.types.json import JsonValue

TITLE_KEYS = ("title", "name")


def read_json(data: bytes, name: str) -> Draft:
    """Return a JSON value as text; a file of several lines, each a value, is read as JSON Lines."""
    text = decode(data, name)
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            return read_json_lines(data, name)
        raise UnreadableDocument(
            f"'{name}' is no valid JSON (line {error.lineno}, column {error.colno}: {error.msg}). Correct it."
        ) from error
    return Draft(json_text(value), _title(value))


def read_json_lines(data: bytes, name: str) -> Draft:
    """Return one paragraph a line."""
    values = []
    for number, line in enumerate(decode(data, name).splitlines(), 1):
        if line.strip():
            try:
                values.append(json.loads(line))
            except json.JSONDecodeError as error:
                raise UnreadableDocument(
                    f"'{name}' has no valid JSON in line {number} ({error.msg}). Correct it."
                ) from error
    return Draft(json_text(values), metadata={"records": len(values)})


def json_text(value: JsonValue) -> str:
    """Flatten a JSON value: a list of objects gives a paragraph each, nested keys are joined by dots."""
    if isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        return "\n\n".join(paragraph for item in value if (paragraph := json_text(item)))
    return "\n".join(_lines(value, ""))


def _lines(value: JsonValue, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _lines(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and not any(isinstance(item, dict | list) for item in value):
        yield from _leaf(", ".join(_scalar(item) for item in value), path)
    elif isinstance(value, list):
        for number, item in enumerate(value, 1):
            yield from _lines(item, f"{path}.{number}" if path else str(number))
    else:
        yield from _leaf(_scalar(value), path)


def _leaf(text: str, path: str) -> Iterator[str]:
    if text and path:
        yield f"{path}:\n{text}\n" if "\n" in text else f"{path}: {text}"
    elif text:
        yield text


def _scalar(value: JsonValue) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _title(value: JsonValue) -> str:
    if not isinstance(value, dict):
        return ""
    return next((title for key in TITLE_KEYS if isinstance(title := value.get(key), str)), "")
