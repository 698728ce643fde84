"""Frozen values that travel between the layers: no I/O, no framework, plain Python types."""

from workbench.types.ingest import IngestFailure, IngestReport
from workbench.types.json import (
    JsonObject,
    JsonValue,
    as_items,
    as_number,
    as_object,
    as_text,
    as_text_or_none,
    as_texts,
    as_whole,
)
from workbench.types.name import Name, preference
from workbench.types.parameter import Parameter, ParameterValue, read_parameters
from workbench.types.progress import Countdown, OnProgress, Progress, ShouldStop, far_text, span_text, time_left
from workbench.types.ranker import Ranker
from workbench.types.records import (
    APART_TYPES,
    ARTICLE_CATEGORIES,
    DATASET,
    FAMILY_TYPES,
    SOURCE_TYPES,
    Document,
    Folder,
    Index,
    Project,
    Promotion,
    Source,
)
from workbench.types.result import CLOSE, Comparison, Evidence, Findings, Leg, Passage, SearchResult, far_sentence
from workbench.types.scope import NamesUse, ResolvedScope, Scope, ScopeKind
from workbench.types.value import Value, plain

__all__ = [
    "ARTICLE_CATEGORIES",
    "CLOSE",
    "Comparison",
    "Countdown",
    "DATASET",
    "APART_TYPES",
    "FAMILY_TYPES",
    "Document",
    "Evidence",
    "Findings",
    "Folder",
    "Index",
    "IngestFailure",
    "IngestReport",
    "JsonObject",
    "JsonValue",
    "Leg",
    "Name",
    "NamesUse",
    "OnProgress",
    "Parameter",
    "ParameterValue",
    "Passage",
    "Progress",
    "Project",
    "Promotion",
    "Ranker",
    "ResolvedScope",
    "SOURCE_TYPES",
    "Scope",
    "ScopeKind",
    "SearchResult",
    "ShouldStop",
    "Source",
    "Value",
    "as_items",
    "as_number",
    "as_object",
    "as_text",
    "as_text_or_none",
    "as_texts",
    "as_whole",
    "far_sentence",
    "far_text",
    "plain",
    "preference",
    "read_parameters",
    "span_text",
    "time_left",
]
