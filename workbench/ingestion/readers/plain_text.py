"""Readers of text formats: JSON, Markdown, notebooks, plain text, CSV and source code."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from workbench.errors import UnreadableDocument
from workbench.ingestion.raw import Draft
from workbench.ingestion.readers.grid import format_cell, rows_to_text
from workbench.ingestion.text import decode_text
from workbench.types.json import JsonValue

if TYPE_CHECKING:
    from yaml import Node, SafeLoader

TITLE_KEYS = ("title", "name")


def read_json(data: bytes, name: str) -> Draft:
    """Return a JSON value as "path: value" lines. A file with one value per line is read as JSON Lines."""
    text = decode_text(data, name)
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            return read_json_lines(data, name)
        raise UnreadableDocument(
            f"'{name}' is not valid JSON (line {error.lineno}, column {error.colno}: {error.msg}). Fix it and retry."
        ) from error
    return Draft(flatten_json(value), _find_title(value))


def read_json_lines(data: bytes, name: str) -> Draft:
    """Return one paragraph per line."""
    values = []
    for number, line in enumerate(decode_text(data, name).splitlines(), 1):
        if line.strip():
            try:
                values.append(json.loads(line))
            except json.JSONDecodeError as error:
                raise UnreadableDocument(
                    f"'{name}' has invalid JSON in line {number} ({error.msg}). Fix it and retry."
                ) from error
    return Draft(flatten_json(values), metadata={"records": len(values)})


def flatten_json(value: JsonValue) -> str:
    """Flatten a JSON value: one paragraph per object of a list, nested keys joined by dots."""
    if isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        return "\n\n".join(paragraph for item in value if (paragraph := flatten_json(item)))
    return "\n".join(_flatten_value(value, ""))


def _flatten_value(value: JsonValue, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _flatten_value(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and not any(isinstance(item, dict | list) for item in value):
        yield from _format_leaf(", ".join(_format_scalar(item) for item in value), path)
    elif isinstance(value, list):
        for number, item in enumerate(value, 1):
            yield from _flatten_value(item, f"{path}.{number}" if path else str(number))
    else:
        yield from _format_leaf(_format_scalar(value), path)


def _format_leaf(text: str, path: str) -> Iterator[str]:
    if text and path:
        yield f"{path}:\n{text}\n" if "\n" in text else f"{path}: {text}"
    elif text:
        yield text


def _format_scalar(value: JsonValue) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _find_title(value: JsonValue) -> str:
    if not isinstance(value, dict):
        return ""
    return next((title for key in TITLE_KEYS if isinstance(title := value.get(key), str)), "")


# --- Markdown: front matter becomes metadata ---

FRONT_MATTER = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)(?:^|\n)(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL)
FENCED_CODE = re.compile(r"^ {0,3}(```+|~~~+).*?(?:^ {0,3}\1|\Z)", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.+?)[ \t]*#*[ \t]*$|^(\S.*)\n=+[ \t]*$", re.MULTILINE)
MARKUP = re.compile(r"\*\*|__|`|\{#[^}]*\}$")
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")


def read_markdown(data: bytes, name: str) -> Draft:
    """Return the text without front matter. Invalid front matter stays part of the text."""
    metadata, body = split_front_matter(decode_text(data, name).replace("\r\n", "\n"))
    title = str(metadata.get("title") or "").strip()
    if not body.strip() and metadata.get("description"):  # a section's index page is often all front matter
        body = f"# {title}\n\n{metadata['description']}" if title else str(metadata["description"])
    return Draft(body, title or find_first_heading(body), metadata)


def split_front_matter(text: str) -> tuple[dict[str, object], str]:
    """Return (front matter, rest), or ({}, the whole text) if there is no valid YAML mapping."""
    match = FRONT_MATTER.match(text)
    if not match:
        return {}, text
    import yaml

    try:
        loaded = yaml.load(match.group(1), Loader=_make_loader())
    except (yaml.YAMLError, ValueError, RecursionError):  # ValueError: a date such as 2024-13-45
        return {}, text
    if loaded is None:
        return {}, text[match.end() :]
    return (loaded, text[match.end() :]) if isinstance(loaded, dict) else ({}, text)


def find_first_heading(text: str) -> str:
    """Return the text of the first heading outside code fences, or ""."""
    match = HEADING.search(FENCED_CODE.sub("", text[:20_000]))
    if not match:
        return ""
    return MARKUP.sub("", LINK.sub(r"\1", match.group(1) or match.group(2))).strip()


def _make_loader() -> type[SafeLoader]:
    """Return a safe YAML loader that rejects aliases, which can expand a short text to gigabytes."""
    import yaml

    class PlainLoader(yaml.SafeLoader):
        def compose_node(self, parent: Node | None, index: int) -> Node | None:
            if self.check_event(yaml.events.AliasEvent):
                raise yaml.YAMLError("aliases are not allowed in front matter")
            return super().compose_node(parent, index)

    return PlainLoader


# --- Jupyter notebooks: cells in order, with text outputs ---

MAX_OUTPUT_CHARS = 2_000  # of a cell's output; long logs would outweigh the text


def read_notebook(data: bytes, name: str) -> Draft:
    """Return Markdown cells unchanged and code cells as fences, without images, HTML and tracebacks."""
    try:
        notebook = json.loads(decode_text(data, name))
    except json.JSONDecodeError as error:
        raise UnreadableDocument(
            f"'{name}' is not a valid notebook (line {error.lineno}: {error.msg}). Re-save it."
        ) from error
    if not isinstance(notebook, dict):
        raise UnreadableDocument(f"'{name}' is not a notebook: it has no cells. Check its source.")
    metadata = notebook.get("metadata") or {}
    language = str((metadata.get("language_info") or {}).get("name") or "python")
    parts = [part for cell in _list_cells(notebook) for part in _cell_parts(cell, language)]
    text = "\n\n".join(parts)
    return Draft(text, str(metadata.get("title") or "") or find_first_heading(text), {"language_name": language})


def _list_cells(notebook: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the cells of format 4, or of older formats with worksheets."""
    sheets = notebook.get("worksheets") or [notebook]
    for sheet in sheets:
        yield from sheet.get("cells") or []


def _cell_parts(cell: dict[str, Any], language: str) -> Iterator[str]:
    source = _join_source(cell.get("source", cell.get("input", ""))).strip("\n")
    if cell.get("cell_type") != "code":
        if source.strip():
            yield source
        return
    if source.strip():
        yield _make_fence(source, language)
    for output in cell.get("outputs") or []:
        text = _output_text(output).strip("\n")
        if text.strip():
            yield _make_fence(text[:MAX_OUTPUT_CHARS], "text")


def _output_text(output: dict[str, Any]) -> str:
    if output.get("output_type") == "stream":
        return _join_source(output.get("text", ""))
    data = output.get("data") or {}
    return _join_source(data.get("text/markdown") or ("" if "text/html" in data else data.get("text/plain") or ""))


def _join_source(source: JsonValue) -> str:
    return "".join(map(str, source)) if isinstance(source, list) else str(source or "")


def _make_fence(text: str, language: str) -> str:
    mark = "```"
    while mark in text:
        mark += "`"
    return f"{mark}{language}\n{text}\n{mark}"


# --- Plain text, unchanged ---


def read_plain(data: bytes, name: str) -> Draft:
    """Return the decoded text, with the file name as title."""
    return Draft(decode_text(data, name))


# --- CSV and TSV, with the delimiter detected ---

DELIMITERS = ",;\t|"
DELIMITER_SAMPLE_LINES = 30


def read_separated(data: bytes, name: str) -> Draft:
    """Return the rows as a table or records, and the column names as metadata."""
    text = decode_text(data, name).replace("\0", "").replace("\r\n", "\n").replace("\r", "\n")
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))  # file size is already limited
    rows = [
        [format_cell(cell) for cell in row] for row in csv.reader(io.StringIO(text), delimiter=_detect_delimiter(text))
    ]
    rows = [row for row in rows if any(row)]
    if rows and not _is_header(rows):
        rows.insert(0, [f"column {number}" for number in range(1, max(map(len, rows)) + 1)])
    metadata = {"columns": rows[0], "rows": len(rows) - 1} if rows else {}
    return Draft(rows_to_text(rows), metadata=metadata)


def _detect_delimiter(text: str) -> str:
    """Return the delimiter that most often splits the first lines into equally many cells, and into the most."""
    sample = "\n".join(text.split("\n", DELIMITER_SAMPLE_LINES)[:DELIMITER_SAMPLE_LINES])
    best, best_score = ",", (0.0, 0)
    for delimiter in DELIMITERS:
        widths = [len(row) for row in csv.reader(io.StringIO(sample), delimiter=delimiter) if row]
        if not widths or max(widths) < 2:
            continue
        usual = max(set(widths), key=widths.count)
        score = (widths.count(usual) / len(widths) if usual > 1 else 0.0, usual)
        if score > best_score:
            best, best_score = delimiter, score
    return best


def _is_header(rows: list[list[str]]) -> bool:
    """Return whether the first row has names: no numbers, gaps or repetitions."""
    first = [cell for cell in rows[0] if cell]
    return len(rows) > 1 and len(set(first)) == len(first) and not any(_is_number(cell) for cell in first)


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", "."))
    except ValueError:
        return False
    return True


# --- Source code, unchanged, with its language by suffix ---

LANGUAGES_BY_SUFFIX = {
    ".bash": "shell", ".c": "c", ".cc": "c++", ".cfg": "ini", ".clj": "clojure", ".cpp": "c++", ".cs": "c#",
    ".css": "css", ".dart": "dart", ".ex": "elixir", ".exs": "elixir", ".go": "go", ".h": "c", ".hpp": "c++",
    ".hs": "haskell", ".ini": "ini", ".java": "java", ".jl": "julia", ".js": "javascript", ".jsx": "javascript",
    ".kt": "kotlin", ".lua": "lua", ".m": "objective-c", ".mjs": "javascript", ".php": "php", ".pl": "perl",
    ".proto": "protobuf", ".ps1": "powershell", ".py": "python", ".pyi": "python", ".r": "r", ".rb": "ruby",
    ".rs": "rust", ".scala": "scala", ".scss": "css", ".sh": "shell", ".sql": "sql", ".svelte": "svelte",
    ".swift": "swift", ".tf": "terraform", ".toml": "toml", ".ts": "typescript", ".tsx": "typescript", ".vue": "vue",
    ".xml": "xml", ".yaml": "yaml", ".yml": "yaml", ".zig": "zig",
}  # fmt: skip


def read_code(data: bytes, name: str) -> Draft:
    """Return the source, with the full file name as title."""
    path = PurePath(name)
    return Draft(decode_text(data, name), path.name, {"language_name": LANGUAGES_BY_SUFFIX[path.suffix.lower()]})
