"""A ranker as a JSON file: written, read and checked; and the one that comes with the workbench."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from workbench.errors import InvalidInput, list_choices
from workbench.retrieval.parameters import DEFAULT_RANKER
from workbench.types import MAX_NAME_CHARS, JsonObject, JsonValue, Ranker, parameter, read_name

# Features of a learned ranker


@dataclass(frozen=True, slots=True)
class Feature:
    """One thing that is known of a candidate; ``why`` says what it measures.

    ``leg`` names the leg that it is counted to, and whose vote for the question it shares; "" for what no leg says.
    """

    name: str
    title: str
    why: str
    leg: str = ""


BEFORE = "before"  # the score that the other weights correct: rerank's
FEATURES = (
    Feature(BEFORE, "Rerank's score", "what rerank makes of all legs"),
    Feature("meaning", "Meaning", "cosine of question and passage", parameter.VECTOR),
    Feature("words", "Words", "BM25", parameter.KEYWORD),
    Feature("coverage", "Words covered", "share of the question's words that it holds, by rarity", parameter.KEYWORD),
    Feature("closeness", "Words together", "how close together these words are", parameter.KEYWORD),
    Feature("late", "Word by word", "MaxSim beyond chance", parameter.LATE),
    Feature("least", "Weakest words", "MaxSim of the half of the question that fits worst", parameter.LATE),
    Feature("document", "Title match", "share of the document's name that the question contains", parameter.DOCUMENT),
    Feature("title", "Title", "share of the question's words in the title, by rarity"),
    Feature("headings", "Headings", "share of the question's words in the headings above it, by rarity"),
    Feature("start", "Near the beginning", "1 / its place in the document"),
    Feature("length", "Length", "logarithm of its characters"),
    Feature("agreement", "Agreement", "the places that the legs give it, together"),
    Feature("beside", "Neighbouring passages", "the better score of its two neighbours"),
    Feature("elsewhere", "Rest of the document", "best score of the document's other passages"),
    Feature("language", "Language", "how likely the question is in its language"),
)
NONNEGATIVE_FEATURES = frozenset(
    {"language"}
)  # may count for a passage, never against it: of other languages questions tell little
NAMES = tuple(feature.name for feature in FEATURES)


FILE_FORMAT = "rag-workbench ranker 1"
MAX_WEIGHT = 1e6
MAX_TEXT_CHARS = 2_000  # characters of what a file says of itself
_TEXTS, _COUNTS = ("trained_on", "index", "note"), ("version", "questions")


def dump_ranker(ranker: Ranker) -> str:
    """Return a ranker as the text of its JSON file."""
    return json.dumps({"form": FILE_FORMAT, **ranker.to_dict()}, ensure_ascii=False, indent=2) + "\n"


def parse_ranker(text: str) -> Ranker:
    """Return the ranker of a file's text. Raises InvalidInput, which says what is wrong with the file."""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"The file is no JSON ({error}); give one that 'workbench rankers export' wrote.") from None
    if not isinstance(told, dict) or told.get("form") != FILE_FORMAT:
        raise InvalidInput(
            f"The file is no ranker: its 'form' must be {FILE_FORMAT!r}; 'workbench rankers export' writes one."
        )
    return read_ranker(told)


def read_ranker(told: Mapping[str, JsonValue]) -> Ranker:
    """Return the ranker that its JSON form says. Raises InvalidInput."""
    texts = {name: _read_text(name, told.get(name, "")) for name in _TEXTS}
    counts = {name: _read_count(name, told.get(name, 0)) for name in _COUNTS}
    figures = {str(name): _read_number("figures", value) for name, value in _read_object("figures", told).items()}
    return Ranker(
        name=check_name(told.get("name")),
        weights=check_weights(_read_object("weights", told)),
        trained_on=texts["trained_on"],
        version=counts["version"],
        index=texts["index"],
        questions=counts["questions"],
        figures=figures,
        note=texts["note"],
    )


def check_name(name: JsonValue) -> str:
    """Return a name without surplus blanks. Raises InvalidInput."""
    try:
        return read_name(name)
    except ValueError:
        raise InvalidInput(
            f"A ranker cannot be named {name!r}; use 1 to {MAX_NAME_CHARS} characters that can be printed."
        ) from None


def check_weights(weights: JsonObject) -> dict[str, float]:
    """Return weights by feature. Raises InvalidInput for an unknown feature, no number, or nothing that weighs."""
    for name in weights:
        if name not in NAMES:
            raise InvalidInput(f"There is no feature {name!r}; the features are {list_choices(NAMES, 20)}.")
    numbers = {name: _read_number("weights", value) for name, value in weights.items()}
    if not any(numbers.values()):
        raise InvalidInput("No feature of the ranker weighs anything; its 'weights' must hold one that is not 0.")
    return numbers


@cache
def load_default_ranker() -> Ranker:
    """Return the ranker that comes with the workbench."""
    text = files("workbench.retrieval").joinpath("shipped_ranker.json").read_text(encoding="utf-8")
    ranker = parse_ranker(text)
    assert ranker.name == DEFAULT_RANKER
    return ranker


def _read_object(name: str, told: Mapping[str, JsonValue]) -> JsonObject:
    entries = told.get(name, {})
    if not isinstance(entries, dict):
        raise InvalidInput(f"{name!r} of the ranker must be an object, not {entries!r}.")
    return dict(entries)


def _read_number(name: str, value: JsonValue) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= MAX_WEIGHT:
        raise InvalidInput(f"{name!r} of the ranker has {value!r}; use numbers from {-MAX_WEIGHT:g} to {MAX_WEIGHT:g}.")
    return float(value)


def _read_count(name: str, value: JsonValue) -> int:
    number = _read_number(name, value)
    if number < 0 or not math.isclose(number, round(number)):
        raise InvalidInput(f"{name!r} of the ranker has {value!r}; use a whole number from 0.")
    return round(number)


def _read_text(name: str, value: JsonValue) -> str:
    if not isinstance(value, str) or len(value) > MAX_TEXT_CHARS:
        raise InvalidInput(f"{name!r} of the ranker must be a text of at most {MAX_TEXT_CHARS:,} characters.")
    return value


# Arithmetic of a learned ranker

FeatureArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FeatureSheet:
    """The features of a question's candidates: rows are candidates in their order, columns ``NAMES``.

    ``raw`` are the features in their own units, ``scaled`` in 0..1; ``documents`` and ``spans`` say where each
    candidate stands.
    """

    ids: tuple[int, ...]
    documents: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    raw: FeatureArray
    scaled: FeatureArray


def scale_features(raw: FeatureArray, votes: Sequence[float]) -> FeatureArray:
    """Scale each column to 0..1 over the rows, times its vote (0..1); a column of equal values becomes 0."""
    low, high = raw.min(axis=0), raw.max(axis=0)
    width = high - low
    told = width > 1e-12
    return np.where(told, (raw - low) / np.where(told, width, 1.0), 0.0) * np.asarray(votes, dtype=np.float64)


def make_weight_row(weights: Mapping[str, float]) -> FeatureArray:
    """Return the weights in the order of the table; a feature that is not named weighs nothing."""
    return np.array([weights.get(name, 0.0) for name in NAMES], dtype=np.float64)


def compute_shares(scaled: FeatureArray, weights: FeatureArray) -> FeatureArray:
    """Return each feature's part of each candidate's score, at least 0; a row sums to the score, 0..1."""
    total = float(np.abs(weights).sum()) or 1.0
    return np.where(weights >= 0, scaled, 1.0 - scaled) * (np.abs(weights) / total)


def stretch_scores(scores: FeatureArray, low: float, high: float) -> FeatureArray:
    """Spread scores evenly between two bounds, the best to ``high``; equal ones all get it.

    So a score that was learned lies where rerank's lie, and what asks for a share of the best score goes on to work.
    """
    width = float(scores.max() - scores.min())
    if width < 1e-12:
        return np.full_like(scores, high)
    return low + (high - low) * (scores - scores.min()) / width
