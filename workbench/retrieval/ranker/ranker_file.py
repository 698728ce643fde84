"""A ranker as a JSON file: written, read and checked; and the one that comes with the workbench."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from workbench.errors import InvalidInput, choices
from workbench.retrieval.parameters import SHIPPED
from workbench.retrieval.ranker.feature_table import NAMES
from workbench.types import JsonObject, JsonValue, Ranker
from workbench.types.parameter import LONGEST_NAME, read_name

FORM = "rag-workbench ranker 1"
HEAVIEST = 1e6
LONGEST_TEXT = 2_000  # characters of what a file says of itself
_TEXTS, _COUNTS = ("trained_on", "index", "note"), ("version", "questions")


def file_text(ranker: Ranker) -> str:
    """Return a ranker as the text of its JSON file."""
    return json.dumps({"form": FORM, **ranker.to_dict()}, ensure_ascii=False, indent=2) + "\n"


def from_file(text: str) -> Ranker:
    """Return the ranker of a file's text. Raises InvalidInput, which says what is wrong with the file."""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"The file is no JSON ({error}); give one that 'workbench rankers export' wrote.") from None
    if not isinstance(told, dict) or told.get("form") != FORM:
        raise InvalidInput(
            f"The file is no ranker: its 'form' must be {FORM!r}; 'workbench rankers export' writes one."
        )
    return ranker_of(told)


def ranker_of(told: Mapping[str, JsonValue]) -> Ranker:
    """Return the ranker that its JSON form says. Raises InvalidInput."""
    texts = {name: _text(name, told.get(name, "")) for name in _TEXTS}
    counts = {name: _count(name, told.get(name, 0)) for name in _COUNTS}
    figures = {str(name): _number("figures", value) for name, value in _entries("figures", told).items()}
    return Ranker(
        name=checked_name(told.get("name")),
        weights=checked_weights(_entries("weights", told)),
        trained_on=texts["trained_on"],
        version=counts["version"],
        index=texts["index"],
        questions=counts["questions"],
        figures=figures,
        note=texts["note"],
    )


def checked_name(name: JsonValue) -> str:
    """Return a name without surplus blanks. Raises InvalidInput."""
    try:
        return read_name(name)
    except ValueError:
        raise InvalidInput(
            f"A ranker cannot be named {name!r}; use 1 to {LONGEST_NAME} characters that can be printed."
        ) from None


def checked_weights(weights: JsonObject) -> dict[str, float]:
    """Return weights by feature. Raises InvalidInput for an unknown feature, no number, or nothing that weighs."""
    for name in weights:
        if name not in NAMES:
            raise InvalidInput(f"There is no feature {name!r}; the features are {choices(NAMES, 20)}.")
    numbers = {name: _number("weights", value) for name, value in weights.items()}
    if not any(numbers.values()):
        raise InvalidInput("No feature of the ranker weighs anything; its 'weights' must hold one that is not 0.")
    return numbers


@cache
def shipped() -> Ranker:
    """Return the ranker that comes with the workbench."""
    text = files("workbench.retrieval.ranker").joinpath("shipped.json").read_text(encoding="utf-8")
    ranker = from_file(text)
    assert ranker.name == SHIPPED
    return ranker


def _entries(name: str, told: Mapping[str, JsonValue]) -> JsonObject:
    entries = told.get(name, {})
    if not isinstance(entries, dict):
        raise InvalidInput(f"{name!r} of the ranker must be an object, not {entries!r}.")
    return dict(entries)


def _number(name: str, value: JsonValue) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= HEAVIEST:
        raise InvalidInput(f"{name!r} of the ranker has {value!r}; use numbers from {-HEAVIEST:g} to {HEAVIEST:g}.")
    return float(value)


def _count(name: str, value: JsonValue) -> int:
    number = _number(name, value)
    if number < 0 or not math.isclose(number, round(number)):
        raise InvalidInput(f"{name!r} of the ranker has {value!r}; use a whole number from 0.")
    return round(number)


def _text(name: str, value: JsonValue) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_TEXT:
        raise InvalidInput(f"{name!r} of the ranker must be a text of at most {LONGEST_TEXT:,} characters.")
    return value
