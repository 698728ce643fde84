"""Frozen values that travel between the layers: no I/O, no framework, plain Python types."""

from workbench.types.corpus import (
    ARTICLE_CATEGORIES,
    DATASET,
    SOURCE_TYPES,
    Document,
    Folder,
    Index,
    Project,
    Promotion,
    Source,
)
from workbench.types.ingest import IngestFailure, IngestReport, Progress
from workbench.types.parameter import Parameter, read_parameters
from workbench.types.result import Comparison, Leg, Passage, SearchResult
from workbench.types.scope import ResolvedScope, Scope, ScopeKind
from workbench.types.value import Value, plain

__all__ = [
    "ARTICLE_CATEGORIES",
    "Comparison",
    "DATASET",
    "Document",
    "Folder",
    "Index",
    "IngestFailure",
    "IngestReport",
    "Leg",
    "Parameter",
    "Passage",
    "Progress",
    "Project",
    "Promotion",
    "ResolvedScope",
    "SOURCE_TYPES",
    "Scope",
    "ScopeKind",
    "SearchResult",
    "Source",
    "Value",
    "plain",
    "read_parameters",
]
