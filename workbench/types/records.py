"""Stored values: projects and folders, sources and documents, indexes, promotions and rankers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from workbench.text import AUTO
from workbench.types.json import JsonValue, Value
from workbench.types.parameter import ParameterValue

# Trained rankers


@dataclass(frozen=True, slots=True)
class Ranker(Value):
    """Weights of the strategy ``learned`` under a name."""

    name: str
    weights: Mapping[str, float]  # by feature; may be negative
    trained_on: str = ""  # titles of the test sets, separated by commas
    version: int = 0  # of the test set
    index: str = ""  # that the questions were asked on
    questions: int = 0  # number of training questions
    figures: Mapping[str, float] = field(default_factory=dict)  # cross-validated nDCG@10 of "learned", of the fixed
    # strategies on the same questions, and "p" of the paired test against "rerank"
    note: str = ""
    created_at: datetime | None = None


SOURCE_TYPES = ("upload", "crawl", "api", "workspace", "articles", "archive", "dataset")
DATASET = "dataset"  # sources of this type contain evaluation corpora and are never part of a user's scope
FAMILY_TYPES = ("workspace", "articles", "archive")  # searched by their own tools; other searches must name the source
APART_TYPES = (DATASET, *FAMILY_TYPES)  # neither listed nor counted among a user's sources and documents
ARTICLE_CATEGORIES = ("concepts", "patterns", "practices")  # folders of articles


@dataclass(frozen=True, slots=True)
class Project(Value):
    """A named body of work; sources may belong to one."""

    id: str
    title: str
    description: str = ""
    source_count: int = 0
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Folder(Value):
    """A folder of a project; names are unique within it."""

    id: str
    project_id: str
    name: str
    description: str = ""
    color: str = "#6366f1"
    icon_name: str = "folder"
    source_count: int = 0


@dataclass(frozen=True, slots=True)
class Source(Value):
    """A collection of documents that came from one place."""

    id: str
    title: str
    source_type: str = "upload"
    url: str | None = None
    scope: Literal["global", "project"] = "global"
    project_id: str | None = None
    folder_id: str | None = None
    folder_name: str | None = None
    tags: tuple[str, ...] = ()
    language: str = AUTO
    encoding: str = ""  # of its texts; "" to detect it for each file
    hidden: Literal["read", "skip"] = "read"  # hidden sheets, rows and columns of its files
    status: str = "active"
    documents_count: int = 0
    passages_count: int = 0
    created_at: datetime | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Document(Value):
    """A file, page or text."""

    id: str
    source_id: str
    title: str
    path: str | None = None
    url: str | None = None
    document_type: str = "text"
    content_hash: str = ""
    text: str | None = None
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)
    status: str = "completed"
    passages_count: int = 0
    created_at: datetime | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Index(Value):
    """All documents split by one chunker and embedded by one model, with tables of its own."""

    name: str
    chunker: str
    chunker_options: Mapping[str, ParameterValue]
    embedding_model: str
    dimensions: int
    is_default: bool = False
    dataset: str | None = None
    status: str = "ready"
    documents_count: int = 0
    passages_count: int = 0
    created_at: datetime | None = None
    has_graph: bool = False  # whether searches of everything use its HNSW graph instead of exact search
    graph: Mapping[str, JsonValue] | None = None  # ``GraphState``, measured when the graph was built or had grown
    transformations: Sequence[str] = ()  # components that passages go through before they are embedded
    nearness: Mapping[str, float] | None = None  # cosines that count as evidence; None: the model's own, or unknown
    notes: Sequence[str] = ()  # what the last build left out, in sentences


@dataclass(frozen=True, slots=True)
class Promotion(Value):
    """A strategy that serves, or served, a scope if a search names none."""

    scope: str  # "everywhere", "project:ID", "folder:ID" or "source:ID"
    version: int  # from 1 within the scope
    strategy: str
    parameters: Mapping[str, ParameterValue]
    index: str | None = None  # None: the default index
    note: str = ""
    serves: bool = True
    scope_title: str = ""
    promoted_at: datetime | None = None
    undone_at: datetime | None = None


# Suggested tags by category, as the specification of the scoped tools lists them

TAG_CATALOGUE: dict[str, tuple[str, ...]] = {
    "Framework": ("react", "nextjs", "fastapi", "django", "express"),
    "Language": ("python", "typescript", "javascript", "rust", "go"),
    "Architecture": ("microservices", "rest-api", "graphql", "event-driven"),
    "Security": ("authentication", "authorization", "encryption", "security-best-practices"),
    "Testing": ("unit-testing", "integration-testing", "e2e-testing"),
    "Deployment": ("docker", "kubernetes", "ci-cd"),
    "Database": ("postgresql", "mongodb", "redis", "vector-search"),
    "API": ("openapi", "websockets"),
    "UI": ("tailwind", "radix-ui", "design-system"),
    "Documentation": ("api-reference", "tutorial", "architecture-docs", "troubleshooting"),
}


def format_catalogue() -> str:
    """Return the catalogue as one line of text."""
    return "; ".join(f"{category}: {', '.join(tags)}" for category, tags in TAG_CATALOGUE.items())
