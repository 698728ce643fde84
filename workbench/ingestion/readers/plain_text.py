"""Readers of text formats: JSON, Markdown, notebooks, plain text, subtitles, CSV and source code."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from html import unescape
from itertools import pairwise
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, cast

from workbench.errors import UnreadableDocument
from workbench.ingestion.raw import Draft
from workbench.ingestion.readers.grid import format_cell, join_header_rows, rows_to_text
from workbench.ingestion.readers.html import convert_fragment, find_charset
from workbench.ingestion.text import HIDDEN_MARK, NEWLINES, decode_text, leave_out, take_hidden
from workbench.types import JsonValue

if TYPE_CHECKING:
    from yaml import Node, SafeLoader

TITLE_KEYS = ("title", "name")
DATE_KEY = re.compile(r"date|time|created|modified|published", re.IGNORECASE)


def _join_repeated(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    """Return an object in which a repeated key has the list of its values."""
    joined = dict(pairs)
    for key, count in Counter(key for key, _ in pairs).items() if len(joined) < len(pairs) else ():
        if count > 1:
            joined[key] = [value for other, value in pairs if other == key]
    return joined


RECORD_SIGNS = " \t\r\x1e\ufeff"  # around values: marks of joined files, and the separator of RFC 7464
JSON_DECODER = json.JSONDecoder(  # keeps figures as written: 1.50
    parse_float=str, parse_int=str, parse_constant=str, object_pairs_hook=_join_repeated, strict=False
)


def read_json(data: bytes, name: str) -> Draft:
    """Return a JSON value as "path: value" lines. A file with one value per line is read as JSON Lines.

    One with comments, trailing commas or errors is kept as text.
    """
    text = decode_text(data, name)
    try:
        value = JSON_DECODER.decode(text)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            with suppress(UnreadableDocument):
                return _records(text, name)
        leave_out(f"files that are not valid JSON, kept as text, with the first error in line {error.lineno}")
        return Draft(text)
    return Draft(flatten_json(value), _find_title(value), _find_dates(value))


def read_json_lines(data: bytes, name: str) -> Draft:
    """Return one paragraph per line. Lines that are not JSON are kept as they are and counted."""
    return _records(decode_text(data, name), name)


def _records(text: str, name: str) -> Draft:
    """Return one paragraph per value; values may also span lines, as in a concatenation of JSON files."""
    values: list[JsonValue] = []
    broken: list[tuple[int, str]] = []
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        line = line.strip(RECORD_SIGNS)
        try:
            if line:
                values.append(JSON_DECODER.decode(line))
        except (json.JSONDecodeError, RecursionError) as error:
            broken.append((number, error.msg if isinstance(error, json.JSONDecodeError) else "nested too deeply"))
            values.append(line)
    if broken and (together := _parse_concatenated(text)) is not None:
        values, broken = together, []
    if broken and len(broken) == len(values):
        raise UnreadableDocument(
            f"'{name}' has invalid JSON in line {broken[0][0]} ({broken[0][1]}). Fix it and retry."
        )
    if broken:
        leave_out(f"lines that are not JSON, kept as text, the first in line {broken[0][0]}", len(broken))
    is_uniform = all(isinstance(each, dict | list) for each in values)
    text = flatten_json(values) if is_uniform else "\n\n".join(filter(None, map(flatten_json, values)))
    return Draft(text, metadata={"records": len(values)})


def _parse_concatenated(text: str) -> list[JsonValue] | None:
    """Return the concatenated JSON values of a text; None if it contains anything else."""
    values, place = list[JsonValue](), 0
    while place < len(text):
        if text[place].isspace():
            place += 1
            continue
        try:
            value, place = JSON_DECODER.raw_decode(text, place)
        except (json.JSONDecodeError, RecursionError):
            return None
        values.append(value)
    return values


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
    return str(value).lower() if isinstance(value, bool) else NEWLINES.sub("\n", str(value)).rstrip("\n")


def _find_dates(value: JsonValue) -> dict[str, object]:
    """Return the entries of an object that may be its dates."""
    entries = value.items() if isinstance(value, dict) else ()
    return {key: one for key, one in entries if isinstance(one, str | int) and DATE_KEY.search(key)}


def _find_title(value: JsonValue) -> str:
    if not isinstance(value, dict):
        return ""
    return next((title for key in TITLE_KEYS if isinstance(title := value.get(key), str)), "")


# --- Markdown: front matter becomes metadata ---

FRONT_MATTER = re.compile(
    r"\A\ufeff?\s*?(?P<fence>---|\+\+\+|;;;)(?P<language>yaml|toml|json)?[ \t]*\r?\n(?P<matter>.*?)(?:^|\n)"
    r"(?:(?P=fence)|(?<!\+)\.\.\.)[ \t]*(?:\r?\n|\Z)",
    re.DOTALL,
)
METADATA_KEYS = frozenset(("author", "date", "description", "id", "layout", "name", "slug", "summary", "tags", "title"))
MAX_ENTRY_WORDS = 3  # of a key of front matter; also of a value that is no sentence
UNQUOTED_TEXT = re.compile(r"[^\[{&*!|>].*|[\[{].*[\]}].+")  # a value that is plain text although YAML cannot read it
PLAIN_ENTRY = re.compile(r"([\w][\w .-]{0,60}?)\s*:(?:[ \t]+(.*))?")
FENCED_CODE = re.compile(r"^ {0,3}(```+|~~~+).*?(?:^ {0,3}\1|\Z)", re.DOTALL | re.MULTILINE)
HEADING = re.compile(
    r"^ {0,3}#{1,6}[ \t]+(.+?)[ \t]*#*[ \t]*$|^(\S.*)\n=+[ \t]*$|^([^\s*#].*)\n(?P<line>[#*]{4,})[ \t]*$"
    r"|<h1\b[^>]{0,999}>(?:\s|<(?!/h1)[^>]{0,999}>){0,20}+([^\s<#][^<#\n]*)"
    r"|\A= (.+)|\\title\{([^{}]+)\}",  # of AsciiDoc and LaTeX
    re.MULTILINE | re.IGNORECASE,
)
TEXT_LINE = re.compile(r"^\s*(?!\[!|!\[|<)\S", re.MULTILINE)  # neither a badge nor HTML
MARKUP = re.compile(r"\*\*|__|`|\{#[^}]*\}$")
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")


def read_markdown(data: bytes, name: str) -> Draft:
    """Return the text without front matter. Lines of it that are invalid stay part of the text."""
    text = decode_text(data, name).replace("\r\n", "\n")
    metadata, body = split_front_matter(text)
    if not metadata:
        block = PANDOC_TITLE.match(text)
        metadata = (
            {key: value for key, value in block.groupdict().items() if value} if block else read_head_fields(text)
        )
    title = str(next((value for key, value in metadata.items() if str(key).lower() == "title"), None) or "").strip()
    if not body.strip() and metadata.get("description"):  # a section's index page is often all front matter
        body = f"# {title}\n\n{metadata['description']}" if title else str(metadata["description"])
    return Draft(body, title or find_first_heading(body, is_title=True), metadata)


def split_front_matter(text: str) -> tuple[dict[str, object], str]:
    """Return (front matter, rest), or ({}, the whole text) if there is no mapping in YAML, TOML or JSON."""
    if text.startswith("{"):
        return _split_json_matter(text)
    match = FRONT_MATTER.match(text)
    if not match:
        return {}, text
    language = match["language"] or {"---": "yaml", "+++": "toml", ";;;": "json"}[match["fence"]]
    loaded, broken = _load_front_matter(match["matter"], language)
    if loaded is None or any(len(str(key).split()) > MAX_ENTRY_WORDS for key in loaded):
        return {}, text
    leave_out("lines of front matter that are not valid, kept as text", len(broken))
    rest = "\n".join((*broken, text[match.end() :]))
    is_doubtful = METADATA_KEYS.isdisjoint(str(key).lower() for key in loaded)
    if is_doubtful and any(len(str(value).split()) > MAX_ENTRY_WORDS for value in loaded.values()):
        rest = f"{match['matter'].strip()}\n\n{rest}"  # it may be text between two rules
    return loaded, rest


def _split_json_matter(text: str) -> tuple[dict[str, object], str]:
    """Return (front matter, rest) of a text that starts with a JSON object on separate lines."""
    try:
        loaded, end = json.JSONDecoder().raw_decode(text)
    except (json.JSONDecodeError, RecursionError):
        return {}, text
    rest = text[end:]
    return (loaded, rest.lstrip()) if loaded and rest.startswith("\n") and rest.strip() else ({}, text)


def _load_front_matter(matter: str, language: str) -> tuple[dict[str, object] | None, list[str]]:
    """Return front matter as a dict, or None if it is not a mapping, and its invalid lines."""
    import tomllib

    import yaml

    try:
        if language == "toml":
            return tomllib.loads(matter), []
        loaded: object = json.loads(matter) if language == "json" else yaml.load(matter, Loader=_make_loader())
    except (yaml.YAMLError, ValueError, RecursionError):  # ValueError: a date such as 2024-13-45
        return _read_plain_entries(matter) if language == "yaml" else (None, [])
    if loaded is None and not matter.strip():
        return {}, []
    return (cast("dict[str, object]", loaded) if isinstance(loaded, dict) else None), []


def _read_plain_entries(matter: str) -> tuple[dict[str, object] | None, list[str]]:
    """Parse "key: value" lines that are not all valid YAML; return the entries and the invalid lines.

    The entries are None if lines are invalid and no key is usual in front matter, because it may be prose.
    """
    entries: dict[str, list[str]] = {}
    broken: list[str] = []
    key = ""
    for line in matter.expandtabs(2).split("\n"):
        match = PLAIN_ENTRY.fullmatch(line.rstrip())
        if key and line.startswith((" ", "- ")):
            entries[key].append(line)
        elif match is not None:
            key = match[1]
            entries[key] = [line]
        elif line.strip() and not line.lstrip().startswith("#"):
            broken.append(line)
    values: dict[str, object] = {}
    for key, lines in entries.items():
        try:
            values[key] = _read_entry(key, lines)
        except ValueError:
            broken += lines
    is_prose = bool(broken) and METADATA_KEYS.isdisjoint(key.lower() for key in values)
    return (None if is_prose else values or None), broken


def _read_entry(key: str, lines: list[str]) -> object:
    """Return an entry's value, read as YAML, or as text if YAML cannot read it without quotes.

    Raises:
        ValueError: It is neither.
    """
    import yaml

    try:
        loaded = yaml.load("\n".join(lines), Loader=_make_loader())
        return loaded[key] if isinstance(loaded, dict) and key in loaded else None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        words = " ".join(line.strip() for line in [lines[0].partition(":")[2], *lines[1:]]).strip()
        if ": " not in words and UNQUOTED_TEXT.fullmatch(words) is None:
            raise ValueError(f"Invalid entry: {key}") from error
        return words.strip("\"'")


def find_first_heading(text: str, *, is_title: bool = False) -> str:
    """Return the text of the first heading outside code fences, or "".

    ``is_title`` leaves out a heading below the first level that follows other text, because it is that of a section.
    """
    plain = FENCED_CODE.sub("", text[:20_000])
    found = (match for match in HEADING.finditer(plain) if not match["line"] or len(match["line"]) >= len(match[3]))
    match = next(found, None)
    if not match or (is_title and "##" in match[0][:5] and TEXT_LINE.search(plain[: match.start()])):
        return ""
    return MARKUP.sub("", LINK.sub(r"\1", next(filter(None, match.groups())))).strip()


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
FOLDED_SOURCE = re.compile(r'"source_hidden": true|"(?:hide|remove)-(?:input|cell)"')  # in the metadata of a cell
FOLDED_OUTPUT = re.compile(r'"outputs_hidden": true|"(?:hide|remove)-(?:output|cell)"')
OLD_OUTPUT_NAMES = {"text": "text/plain", "html": "text/html", "latex": "text/latex", "png": "image/png"}


def read_notebook(data: bytes, name: str) -> Draft:
    """Return Markdown cells unchanged and code cells as fences with their outputs, without images and tracebacks."""
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
    """Yield the cells of a notebook in format 4, or in older formats with worksheets."""
    sheets = notebook.get("worksheets") or [notebook]
    for sheet in sheets:
        yield from sheet.get("cells") or []


def _cell_parts(cell: dict[str, Any], language: str) -> Iterator[str]:
    leave_out("images", len(cell.get("attachments") or ()))
    source = _join_source(cell.get("source", cell.get("input", ""))).strip("\n")
    if cell.get("cell_type") != "code":
        if source.strip():
            yield source
        return
    details = json.dumps(cell.get("metadata"))
    mark = HIDDEN_MARK if source.strip() and FOLDED_SOURCE.search(details) else ""
    if source.strip() and (not mark or take_hidden("cells")):
        yield _make_fence(source, language + mark)
    outputs = cell.get("outputs") or []
    mark = HIDDEN_MARK if outputs and FOLDED_OUTPUT.search(details) else ""
    for output in outputs if not mark or take_hidden("outputs", len(outputs)) else ():
        text = _output_text(output).strip("\n")
        leave_out("characters of long outputs", max(0, len(text) - MAX_OUTPUT_CHARS))
        if text.strip():
            yield _make_fence(text[:MAX_OUTPUT_CHARS], f"text{mark}")


def _output_text(output: dict[str, Any]) -> str:
    """Return an output in its most readable form: Markdown, LaTeX, HTML as Markdown, text, or JSON."""
    kind = output.get("output_type")
    if kind == "stream":
        return _join_source(output.get("text", ""))
    if kind in ("error", "pyerr"):
        leave_out("tracebacks", bool(output.get("traceback")))
        return ": ".join(str(output[name]) for name in ("ename", "evalue") if output.get(name))
    # Before format 4, the data were next to the type, with short names.
    data = {OLD_OUTPUT_NAMES.get(name, name): value for name, value in (output.get("data") or output).items()}
    has_image = any(name.startswith("image/") for name in data)
    leave_out("images", has_image)
    texts = {name: _join_source(value) for name, value in data.items() if name.startswith("text/")}
    values = [json.dumps(value, ensure_ascii=False) for name, value in data.items() if name.endswith("json")]
    page = convert_fragment(texts.get("text/html", "")).strip()
    is_described = not has_image and "text/html" not in texts  # else the text only names the type of the output
    plain = texts.get("text/plain", "") if is_described else ""
    shown = texts.get("text/markdown") or texts.get("text/latex") or page or plain or next(iter(values), "")
    leave_out("outputs without text", not shown and not has_image and bool(data))
    return shown


def _join_source(source: JsonValue) -> str:
    return "".join(map(str, source)) if isinstance(source, list) else str(source or "")


def _make_fence(text: str, language: str) -> str:
    mark = "```"
    while mark in text:
        mark += "`"
    return f"{mark}{language}\n{text}\n{mark}"


# --- Plain text, unchanged ---


MARKED_SUFFIXES = (".rst", ".rest", ".adoc", ".asciidoc", ".tex", ".org")


def read_plain(data: bytes, name: str) -> Draft:
    """Return the decoded text, with its title if it is marked up, or else the file name."""
    text = decode_text(data, name)
    fields = read_head_fields(text)
    title = str(fields.pop("title", "")) or find_first_heading(text)
    return Draft(text, title if name.lower().endswith(MARKED_SUFFIXES) else "", fields)


MAX_HEAD_CHARS = 2_000  # in which the fields of a text are looked for
HEAD_FIELD = re.compile(  # "Date: 5 March 2030", ":Date:", "#+DATE: <5 March>", ".. post::", "v1.3, 2030-03-05"
    r"^(?::|#\+|\\|\.\. |\*\*)?(?P<key>title|datum|fecha|date|revdate|(?:creation|release|posting|publication)[- ]date"
    r"|created|published|post|(?:last[- ])?(?:updated|modified|revised))(?:\*\*)?(?::{1,2}(?:\*\*)?[ \t]+|(?=\{))"
    r"[{<]?(?:\$Date:? )?(?P<value>[^\s\[].{0,80}?)[>}]?[ \t]*\r?$|^v?[\d.]+, (?P<day>\d{4}-\d\d-\d\d)",
    re.IGNORECASE | re.MULTILINE,
)
TITLE_OF_ANOTHER = re.compile(r"^(?:name|by):|\S\s*\n\s*\n", re.IGNORECASE | re.MULTILINE)  # before a person's title
BRACES = str.maketrans("", "", "{}")
PANDOC_TITLE = re.compile(r"% (?P<title>.*)\n(?:% .*\n% (?P<date>.*))?")


def read_head_fields(text: str) -> dict[str, object]:
    """Return the title and the dates that lines at the start of a text give, as in memos, reST, AsciiDoc and LaTeX."""
    head = FENCED_CODE.sub("", text[:MAX_HEAD_CHARS])
    fields: dict[str, object] = {}
    for match in HEAD_FIELD.finditer(head):
        key, value = (match["key"] or "date").lower(), (match["value"] or match["day"]).translate(BRACES)
        before = TITLE_OF_ANOTHER if match[0][0].isalpha() else HEADING
        if re.search(r"\d", value) if key != "title" else not before.search(head, 0, match.start()):
            fields.setdefault(key.replace("revdate", "date"), value)
    return fields


# --- Subtitles (SubRip and WebVTT): the spoken text without times ---

CUE_TIME = re.compile(r"((?:\d+:)?\d{1,2}:\d\d?[.,]\d{1,3})\s*-->\s*((?:\d+:)?\d{1,2}:\d\d?[.,]\d{1,3})[^\n]*")
CUE_TAG = re.compile(r"</?(?:[bciu]|ruby|rt|lang|font|v)(?:[.\s:][^>]*)?>|<[\d:.]+>|\{\\[^}]*\}", re.IGNORECASE)
SPEAKER_TAG = re.compile(r"<v(?:\.[^\s>]*)?\s+([^>]+)>", re.IGNORECASE)
SUBTITLE_HEAD = re.compile(r"\ufeff?WEBVTT[ \t]+(?:- *)?(\S[^\n]*)")
GLUED_CUE = re.compile(r"(?<=[^\n])\n(?=\d+[ \t]*\n[\d:.,]+[ \t]*-->)")  # without a blank line before its number
UNREAD_BLOCK = re.compile(r"NOTE\b|STYLE\b|REGION\b|\d+\Z")  # without a time
NAMED_CUE = re.compile(r"[^\n]*[^\W\d_]{2}[^\n]* [^\n]*\n")  # the name of a chapter, not a number or identifier
MIN_PAUSE_S = 2.0  # seconds between cues that start a paragraph


def read_subtitles(data: bytes, name: str) -> Draft:
    """Return the spoken text: a paragraph for each speaker and after each pause. Lines repeated by cues are kept once.

    Raises:
        UnreadableDocument: It has no cues.
    """
    text = GLUED_CUE.sub("\n\n", NEWLINES.sub("\n", decode_text(data, name)))
    blocks = re.split(r"\n[ \t]*(?:\n[ \t]*)+", text)
    leave_out("comments", sum(block.startswith("NOTE") for block in blocks))
    paragraphs: list[list[str]] = []
    ended, last_speaker = -MIN_PAUSE_S, ""
    for block in blocks:
        time = CUE_TIME.search(block)
        if time is None and (not paragraphs or UNREAD_BLOCK.match(block)):
            continue
        cue = block[time.end() :] if time else block  # a cue that continues after a blank line
        tag = SPEAKER_TAG.search(cue)
        speaker = tag[1].strip() if tag else "" if time else last_speaker
        if time and NAMED_CUE.fullmatch(block[: time.start()]):
            paragraphs += [[block[: time.start()].strip()], []]
        elif speaker != last_speaker or not paragraphs or (time and _parse_cue_time(time[1]) - ended >= MIN_PAUSE_S):
            paragraphs.append([])
        lines = filter(None, (unescape(CUE_TAG.sub("", line)).strip() for line in cue.split("\n")))
        for line in lines:
            said = f"{speaker}: {line}" if speaker and not paragraphs[-1] else line
            if said not in paragraphs[-1][-2:] and f"{speaker}: {line}" not in paragraphs[-1][-2:]:
                paragraphs[-1].append(said)
        ended, last_speaker = _parse_cue_time(time[2]) if time else ended, speaker
    if not paragraphs:
        raise UnreadableDocument(f"'{name}' is not a subtitle file: it has no line with two times. Check its suffix.")
    title = SUBTITLE_HEAD.match(text)
    spoken = "\n\n".join("\n".join(lines) for lines in paragraphs)
    return Draft(spoken, title[1] if title else "", {"seconds": round(ended)})


def _parse_cue_time(text: str) -> float:
    """Return a time such as 1:02:03,5 in seconds."""
    seconds = 0.0
    for part in text.replace(",", ".").split(":"):
        seconds = 60 * seconds + float(part)
    return seconds


# --- CSV and TSV, with the delimiter detected ---

DELIMITERS = ",;\t|"
DELIMITER_SAMPLE_LINES = 30
YEAR_CELL = re.compile(r"(?:19|20)\d\d")
SEPARATOR_LINE = re.compile(r'"?sep=(.)"?[ \t]*(?:\n|\Z)', re.IGNORECASE)  # written for Excel
MAX_CELL_LINES = 200  # of a quoted cell in a file with unmatched quotes


def read_separated(data: bytes, name: str) -> Draft:
    """Return the rows as a table or records, and the column names as metadata. Lines above the table stay as text."""
    text = decode_text(data, name)
    text = text.replace("\0", "").replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff")
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))  # file size is already limited
    declared = SEPARATOR_LINE.match(text)
    if declared:
        text = text[declared.end() :]
        delimiter = declared[1]
    else:
        delimiter = "\t" if name.lower().endswith(".tsv") and "\t" in text else _detect_delimiter(text)
    rows = _split_rows(text, delimiter)
    for row in rows:  # in place: a copy of a large file's cells is as large as they are
        row[:] = map(_clean_cell, row)
    del text
    rows = [row for row in rows if any(row)]
    lines: list[str] = []
    if max(map(len, rows), default=0) > 1:
        while rows and sum(map(bool, rows[0])) == 1 and (len(rows[0]) == 1 or rows[0][0].startswith("#")):
            lines += filter(None, rows.pop(0))
    if rows and not _is_header(rows):
        rows.insert(0, [f"column {number}" for number in range(1, max(map(len, rows)) + 1)])
    join_header_rows(rows)
    metadata = {"columns": rows[0], "rows": len(rows) - 1} if rows else {}
    return Draft("\n\n".join(filter(None, ("\n".join(lines), rows_to_text(rows)))), metadata=metadata)


def _clean_cell(cell: str) -> str:
    """Return a cell on one line; ="007", which marks text that looks like a number, becomes 007."""
    text = format_cell(cell)
    return text[2:-1] if text.startswith('="') and text.endswith('"') and len(text) > 2 else text


LINE = re.compile(r"[^\n]*\n|[^\n]+\Z")  # with its end, as csv requires


def _split_rows(text: str, delimiter: str) -> list[list[str]]:
    """Return the rows. Quotes that do not enclose a whole cell, such as inch marks, are ordinary characters."""
    width = len(_split_line(text.partition("\n")[0], delimiter))
    rows: list[list[str]] = []
    for escape in (None, "\\") if '\\"' in text else (None,):  # MySQL and Spark write \" for a quote
        with suppress(csv.Error):
            rows = list(_read_rows((line[0] for line in LINE.finditer(text)), delimiter, escape))
            break
    if len(rows) >= sum(line[0] != "\n" for line in LINE.finditer(text)):
        return rows
    lines = text.split("\n")
    quotes = re.compile(rf'(?:^|{re.escape(delimiter)})"(?:[^"\n]|"")+"(?:{re.escape(delimiter)}|$)', re.MULTILINE)
    if rows and (quotes.search(text) or not _are_lines_whole(lines, delimiter, width)):
        return rows
    if _are_lines_whole(lines, delimiter, width):
        return [_split_line(line, delimiter) for line in lines]
    rows = []
    place = 0
    while place < len(lines):
        row, taken = _split_broken(lines, place, delimiter, width)
        rows.append(row)
        place += taken
    return rows


def _read_rows(lines: Iterable[str], delimiter: str, escape: str | None = None) -> Iterator[list[str]]:
    return csv.reader(lines, delimiter=delimiter, escapechar=escape, strict=True, skipinitialspace=True)


def _are_lines_whole(lines: list[str], delimiter: str, width: int) -> bool:
    """Return whether every line has as many cells as the first if quotes are taken literally."""
    return width > 1 and all(line.count(delimiter) + 1 == width for line in lines if line)


def _split_broken(lines: list[str], place: int, delimiter: str, width: int) -> tuple[list[str], int]:
    """Return the row that starts at a line, and its number of lines, in a file with unmatched quotes."""
    for taken in range(1, min(MAX_CELL_LINES, len(lines) - place) + 1):
        if taken > 1 and not lines[place + taken - 1].count('"'):
            continue
        try:
            rows = list(_read_rows((f"{line}\n" for line in lines[place : place + taken]), delimiter))
        except csv.Error:
            continue
        if len(rows) == 1 and (taken == 1 or len(rows[0]) == width):
            return rows[0], taken
    return _split_line(lines[place], delimiter), 1


def _split_line(line: str, delimiter: str) -> list[str]:
    """Return the cells of a line; quotes count only in pairs."""
    try:
        return next(_read_rows([line], delimiter), [])
    except csv.Error:
        cells = line.split(delimiter)
    return [cell[1:-1] if len(cell) > 1 and cell[0] == cell[-1] == '"' else cell for cell in cells]


def _detect_delimiter(text: str) -> str:
    """Return the delimiter that splits the first lines most consistently and into the most cells."""
    sample = text.split("\n", DELIMITER_SAMPLE_LINES)[:DELIMITER_SAMPLE_LINES]
    best, best_score = ",", (0.0, 0)
    for delimiter in DELIMITERS:
        widths = [len(_split_line(line, delimiter)) for line in sample if line]
        if not widths or max(widths) < 2:
            continue
        usual = max(set(widths), key=widths.count)
        score = (widths.count(usual) / len(widths) if usual > 1 else 0.0, usual)
        if score > best_score:
            best, best_score = delimiter, score
    return best


def _is_header(rows: list[list[str]]) -> bool:
    """Return whether the first row holds names: no numbers, except years or consecutive ones, and no duplicates.

    Duplicates are names nevertheless if a column has only numbers below its name.
    """
    first = [cell for cell in rows[0] if cell]
    numbers = [column for column, cell in enumerate(rows[0]) if _is_number(cell)]
    named = [column for column in range(len(rows[0])) if column not in numbers]
    is_typed = any(all(column < len(row) and _is_number(row[column]) for row in rows[1:]) for column in named)
    if len(rows) < 2 or (len(set(first)) < len(first) and not is_typed):
        return False
    if not numbers:
        return True
    names = [rows[0][column] for column in numbers]
    are_years = all(map(YEAR_CELL.fullmatch, names))
    if len(numbers) == len(first) and rows[0][0] and not (are_years and len(names) > 1):
        return False
    if not are_years:
        steps = (
            {int(after) - int(before) for before, after in pairwise(names)} if all(map(str.isdecimal, names)) else ()
        )
        if len(names) < 2 or steps not in ({1}, {-1}):
            return False
    below = [row[column] for row in rows[1:] for column in numbers if column < len(row) and row[column]]
    return not below or not all(map(YEAR_CELL.fullmatch, below))


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", "."))
    except ValueError:
        return False
    return True


# --- Source code, unchanged, with its language by suffix ---

LANGUAGES_BY_SUFFIX = {
    ".atom": "xml", ".bash": "shell", ".c": "c", ".cc": "c++", ".cfg": "ini", ".clj": "clojure", ".conf": "ini",
    ".cpp": "c++", ".cs": "c#", ".nxml": "xml", ".opml": "xml", ".properties": "ini", ".rss": "xml",
    ".css": "css", ".dart": "dart", ".ex": "elixir", ".exs": "elixir", ".go": "go", ".h": "c", ".hpp": "c++",
    ".hs": "haskell", ".ini": "ini", ".java": "java", ".jl": "julia", ".js": "javascript", ".jsx": "javascript",
    ".kt": "kotlin", ".lua": "lua", ".m": "objective-c", ".mjs": "javascript", ".php": "php", ".pl": "perl",
    ".proto": "protobuf", ".ps1": "powershell", ".py": "python", ".pyi": "python", ".r": "r", ".rb": "ruby",
    ".rs": "rust", ".scala": "scala", ".scss": "css", ".sh": "shell", ".sql": "sql", ".svelte": "svelte",
    ".swift": "swift", ".tf": "terraform", ".toml": "toml", ".ts": "typescript", ".tsx": "typescript", ".vue": "vue",
    ".xml": "xml", ".yaml": "yaml", ".yml": "yaml", ".zig": "zig",
}  # fmt: skip


FEED_DATE = re.compile(  # of RSS and Atom
    r"<(?:pubDate|lastBuildDate|updated|published|dc:date|dateModified)\b[^<>]*>\s*+(?:<!\[CDATA\[\s*+)?([^<\]\s][^<\]]{3,39})(?:\]\]>\s*)?</"
)


def read_code(data: bytes, name: str) -> Draft:
    """Return the source code, with the full file name as title, and the date of a feed or of its newest entry."""
    path = PurePath(name)
    language = LANGUAGES_BY_SUFFIX[path.suffix.lower()]
    is_markup = language in ("xml", "php")  # in other code a charset is a string
    text = decode_text(data, name, find_charset(data) if is_markup else None)
    first = FEED_DATE.search(text) if language == "xml" else None  # feeds have the newest entry first
    return Draft(text, path.name, {"language_name": language} | ({"updated": first[1]} if first else {}))
