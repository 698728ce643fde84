"""Files of one JSON object a line, read with the line's number in every complaint."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from workbench.errors import InvalidInput
from workbench.types import JsonObject


def json_lines(path: Path) -> Iterator[tuple[int, JsonObject]]:
    """Yield (line number from 1, object) of every line that is not empty. Raises InvalidInput."""
    for number, line in enumerate(text_of(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"{path.name}, line {number} is not JSON ({error}); correct the line.") from None
        if not isinstance(row, dict):
            raise InvalidInput(f"{path.name}, line {number} is not a JSON object; correct the line.")
        yield number, row


def text_of(path: Path) -> str:
    """Return a test set's file as text. Raises InvalidInput where it is missing or no UTF-8."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InvalidInput(f"The test set {path.parent.name!r} has no {path.name}; add it.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path.name} cannot be read as UTF-8 text ({error}); correct the file.") from None


def key_of(path: Path, number: int, row: JsonObject) -> str:
    """Return a line's ``_id`` or ``id``. Raises InvalidInput where there is none."""
    key = row.get("_id", row.get("id"))
    if key is None or not clean_id(str(key)):
        raise InvalidInput(f"{path.name}, line {number}: there is no '_id' and no 'id'; give each line one.")
    return clean_id(str(key))


def clean_id(text: str) -> str:
    """Return an id as it is stored: without blanks around it, and without NUL, which no database text can hold."""
    return text.replace("\x00", "").strip()
