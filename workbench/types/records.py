"""Values that are kept: projects and folders, sources and documents, indexes, and which strategy serves where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from workbench.text import AUTO
from workbench.types.json import JsonValue, Value
from workbench.types.parameter import ParameterValue

# --- A ranker: what each feature of a candidate counts, and where these weights come from ---


@dataclass(frozen=True, slots=True)
class Ranker(Value):
    """The weights of the strategy ``learned`` under a name, by the feature's name; they may be negative.

    ``trained_on`` is the title of the test set (several with commas), ``version`` its version, ``index`` the index it
    was asked on, ``questions`` how many were learned from. ``figures`` are nDCG@10 cross-validated ("learned"), of the
    fixed strategies on the same questions, and "p" of the paired test against "rerank"; ``note`` says more.
    """

    name: str
    weights: Mapping[str, float]
    trained_on: str = ""
    version: int = 0
    index: str = ""
    questions: int = 0
    figures: Mapping[str, float] = field(default_factory=dict)
    note: str = ""
    created_at: datetime | None = None


SOURCE_TYPES = ("upload", "crawl", "api", "workspace", "articles", "archive", "dataset")
DATASET = "dataset"  # sources of this type hold evaluation corpora and are never part of a person's scope
FAMILY_TYPES = ("workspace", "articles", "archive")  # searched by their own tools; others need to name the source
APART_TYPES = (DATASET, *FAMILY_TYPES)  # neither listed nor counted among a person's sources and documents
ARTICLE_CATEGORIES = ("concepts", "patterns", "practices")  # the folders that articles lie in


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
    status: str = "active"
    documents_count: int = 0
    passages_count: int = 0
    created_at: datetime | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Document(Value):
    """One file, page or text, whole; ``text`` is None where only a listing was asked for."""

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
    """One way of cutting and embedding all documents: a (chunker, embedding model) pair and its table."""

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
    has_graph: bool = False  # searches of everything use its graph; otherwise they compute every distance
    graph: Mapping[str, JsonValue] | None = None  # ``GraphState`` of its graph, measured when it was built or grew


@dataclass(frozen=True, slots=True)
class Promotion(Value):
    """A strategy that serves, or served, a scope when none is named.

    ``scope`` is "everywhere", "project:ID", "folder:ID" or "source:ID"; ``index`` None is the default index;
    ``version`` counts from 1 within the scope.
    """

    scope: str
    version: int
    strategy: str
    parameters: Mapping[str, ParameterValue]
    index: str | None = None
    note: str = ""
    serves: bool = True
    scope_title: str = ""
    promoted_at: datetime | None = None
    undone_at: datetime | None = None
