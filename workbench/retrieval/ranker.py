"""Rankers: features, arithmetic, JSON files, and the shipped ranker."""

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
from workbench.types import DOCUMENT, KEYWORD, LATE, MAX_NAME_CHARS, VECTOR, JsonObject, JsonValue, Ranker, read_name

# Features of a learned ranker


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature of a candidate; ``why`` describes it.

    ``leg`` is the leg that it is attributed to and whose confidence scales it; "" for none.
    """

    name: str
    title: str
    why: str
    leg: str = ""


RERANK_SCORE = "before"  # rerank's score, which the other features adjust
FEATURES = (
    Feature(RERANK_SCORE, "Rerank's score", "the score of rerank"),
    Feature("meaning", "Meaning", "cosine of question and passage", VECTOR),
    Feature("words", "Words", "BM25", KEYWORD),
    Feature("coverage", "Words covered", "share of the question's words in the passage, by rarity", KEYWORD),
    Feature("closeness", "Words together", "closeness of these words in the passage", KEYWORD),
    Feature("late", "Token matches", "MaxSim beyond chance", LATE),
    Feature("least", "Weakest words", "MaxSim of the worst-matching half of the question", LATE),
    Feature("document", "Title match", "share of the document's name that the question contains", DOCUMENT),
    Feature("title", "Title", "share of the question's words in the title, by rarity"),
    Feature("headings", "Headings", "share of the question's words in the headings above it, by rarity"),
    Feature("start", "Near the beginning", "1 / position in the document"),
    Feature("length", "Length", "logarithm of the number of characters"),
    Feature("agreement", "Agreement", "the combined ranks of the legs"),
    Feature("neighbours", "Neighbouring passages", "the best score of its two neighbours"),
    Feature("elsewhere", "Rest of the document", "best score of the document's other passages"),
    Feature("language", "Language", "probability that the question is in its language"),
)
# never counts against a passage: questions in other languages are too rare to learn from
NONNEGATIVE_FEATURES = frozenset({"language"})
NAMES = tuple(feature.name for feature in FEATURES)


FILE_FORMAT = "rag-workbench ranker 1"
MAX_WEIGHT = 1e6
MAX_TEXT_CHARS = 2_000  # of texts in a file
_TEXTS, _COUNTS = ("trained_on", "index", "note"), ("version", "questions")


def dump_ranker(ranker: Ranker) -> str:
    """Return a ranker as the text of its JSON file."""
    return json.dumps({"form": FILE_FORMAT, **ranker.to_dict()}, ensure_ascii=False, indent=2) + "\n"


def parse_ranker(text: str) -> Ranker:
    """Parse a ranker file. Raises InvalidInput."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"The file is not JSON ({error}); use a file from 'workbench rankers export'.") from None
    if not isinstance(content, dict) or content.get("form") != FILE_FORMAT:
        raise InvalidInput(
            f"The file is not a ranker: 'form' must be {FILE_FORMAT!r}, as in files from 'workbench rankers export'."
        )
    return read_ranker(content)


def read_ranker(content: Mapping[str, JsonValue]) -> Ranker:
    """Return a ranker from its JSON form. Raises InvalidInput."""
    texts = {name: _read_text(name, content.get(name, "")) for name in _TEXTS}
    counts = {name: _read_count(name, content.get(name, 0)) for name in _COUNTS}
    figures = {str(name): _read_number("figures", value) for name, value in _read_object("figures", content).items()}
    return Ranker(
        name=check_name(content.get("name")),
        weights=check_weights(_read_object("weights", content)),
        trained_on=texts["trained_on"],
        version=counts["version"],
        index=texts["index"],
        questions=counts["questions"],
        figures=figures,
        note=texts["note"],
    )


def check_name(name: JsonValue) -> str:
    """Return a name with normalised whitespace. Raises InvalidInput."""
    try:
        return read_name(name)
    except ValueError:
        raise InvalidInput(f"Invalid ranker name {name!r}; use 1 to {MAX_NAME_CHARS} printable characters.") from None


def check_weights(weights: JsonObject) -> dict[str, float]:
    """Return weights by feature. Raises InvalidInput for unknown features, non-numbers, or only zeros."""
    for name in weights:
        if name not in NAMES:
            raise InvalidInput(f"Unknown feature {name!r}; the features are {list_choices(NAMES, 20)}.")
    numbers = {name: _read_number("weights", value) for name, value in weights.items()}
    if not any(numbers.values()):
        raise InvalidInput("All 'weights' of the ranker are 0; at least one must not be.")
    return numbers


@cache
def load_default_ranker() -> Ranker:
    text = files("workbench.retrieval").joinpath("shipped_ranker.json").read_text(encoding="utf-8")
    ranker = parse_ranker(text)
    assert ranker.name == DEFAULT_RANKER
    return ranker


def _read_object(name: str, content: Mapping[str, JsonValue]) -> JsonObject:
    entries = content.get(name, {})
    if not isinstance(entries, dict):
        raise InvalidInput(f"{name!r} of the ranker must be an object, not {entries!r}.")
    return dict(entries)


def _read_number(name: str, value: JsonValue) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= MAX_WEIGHT:
        raise InvalidInput(
            f"Invalid {name!r} of the ranker: {value!r}; use numbers from {-MAX_WEIGHT:g} to {MAX_WEIGHT:g}."
        )
    return float(value)


def _read_count(name: str, value: JsonValue) -> int:
    number = _read_number(name, value)
    if number < 0 or not math.isclose(number, round(number)):
        raise InvalidInput(f"Invalid {name!r} of the ranker: {value!r}; use a whole number of at least 0.")
    return round(number)


def _read_text(name: str, value: JsonValue) -> str:
    if not isinstance(value, str) or len(value) > MAX_TEXT_CHARS:
        raise InvalidInput(f"{name!r} of the ranker must be a text of at most {MAX_TEXT_CHARS:,} characters.")
    return value


# Arithmetic of a learned ranker

FeatureArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FeatureSheet:
    """The features of a question's candidates: one row per candidate, in order, and the columns ``NAMES``.

    ``raw`` are the features in their own units, ``scaled`` in 0..1; ``documents`` and ``spans`` locate each
    candidate.
    """

    ids: tuple[int, ...]
    documents: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    raw: FeatureArray
    scaled: FeatureArray


def scale_features(raw: FeatureArray, votes: Sequence[float]) -> FeatureArray:
    """Scale each column to 0..1 over the rows, then multiply by its leg's confidence; a constant column becomes 0."""
    low, high = raw.min(axis=0), raw.max(axis=0)
    width = high - low
    varies = width > 1e-12
    return np.where(varies, (raw - low) / np.where(varies, width, 1.0), 0.0) * np.asarray(votes, dtype=np.float64)


def make_weight_row(weights: Mapping[str, float]) -> FeatureArray:
    """Return the weights in the order of the table; missing features get 0."""
    return np.array([weights.get(name, 0.0) for name in NAMES], dtype=np.float64)


def compute_shares(scaled: FeatureArray, weights: FeatureArray) -> FeatureArray:
    """Return each feature's contribution to each candidate's score, at least 0; a row sums to the score, 0..1."""
    total = float(np.abs(weights).sum()) or 1.0
    return np.where(weights >= 0, scaled, 1.0 - scaled) * (np.abs(weights) / total)


def stretch_scores(scores: FeatureArray, low: float, high: float) -> FeatureArray:
    """Scale scores linearly to the range ``low``..``high``; equal scores all become ``high``.

    Learned scores thus have the same range as rerank's, and cutoffs relative to the best score still work.
    """
    width = float(scores.max() - scores.min())
    if width < 1e-12:
        return np.full_like(scores, high)
    return low + (high - low) * (scores - scores.min()) / width
