"""Articles: Markdown files with front matter in three folders, listed, read and searched as they are on disk now."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import ConfigurationError, InvalidInput, NotFound, choices
from workbench.services.corpus import Corpus
from workbench.services.knowledge import KnowledgeService
from workbench.services.mirror import FolderMirror, stamps_of
from workbench.services.pages import PageService
from workbench.types import ARTICLE_CATEGORIES as CATEGORIES
from workbench.types import Scope, Value

if TYPE_CHECKING:
    from workbench.ingestion.incoming import Incoming

SHOWN = ("Live", "Experimental")  # the only statuses that exist for a reader
TITLE, TAG, DESCRIPTION = 3, 2, 1  # what a match weighs
LONGEST_FILE = 4 * 2**20  # bytes; no article is that long
SEMANTIC_RESULTS = 20


@dataclass(frozen=True, slots=True)
class Article(Value):
    """An article; ``content`` is None where only the description was asked for."""

    slug: str
    category: str
    title: str
    description: str
    tags: tuple[str, ...]
    last_updated: str
    status: str
    content: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form of the articles tools."""
        shown = {
            "slug": self.slug,
            "category": self.category,
            "title": self.title,
            "description": self.description,
            "tags": list(self.tags),
            "lastUpdated": self.last_updated,
            "status": self.status,
        }
        return shown if self.content is None else shown | {"content": self.content}

    def without_content(self) -> Article:
        """Return the article's description alone."""
        return replace(self, content=None)


class ArticleService:
    """The verbs over one folder of articles."""

    def __init__(self, corpus: Corpus, knowledge: KnowledgeService, pages: PageService, folder: Path) -> None:
        self._pages, self._folder = pages, folder
        self._mirror = FolderMirror(corpus, knowledge, "articles")
        self._read: dict[str, tuple[Any, Article | None]] = {}
        self._lock = threading.Lock()

    def list(self, category: str | None = None, limit: int = 50) -> list[Article]:
        """Return articles without content, by category and title.

        Raises:
            InvalidInput: no such category, or a limit under 1.
        """
        if category is not None and category not in CATEGORIES:
            raise InvalidInput(f"There is no category {category!r}; use one of {choices(CATEGORIES)}.")
        if limit < 1:
            raise InvalidInput(f"limit cannot be {limit}; use a whole number from 1.")
        found = [article for article in self._all() if category in (None, article.category)]
        return [article.without_content() for article in found[:limit]]

    def get(self, slug: str) -> Article:
        """Return an article with its content. Raises NotFound."""
        for article in self._all():
            if article.slug == slug:
                return article
        raise NotFound("article", slug, "List the articles to see their slugs.")

    def search(self, query: str, *, content: bool = False) -> list[Article]:
        """Return the articles that hold the query, whole, in title, a tag or the description; "" matches all.

        Ordered by score (title 3, any tag 2, description 1), then by date, newest first.
        """
        scored = [(score_match(article, query), article) for article in self._all()]
        found = sorted((item for item in scored if item[0] > 0), key=lambda item: _newest_first(item[1]))
        ranked = [article for _, article in sorted(found, key=lambda item: -item[0])]
        return ranked if content else [article.without_content() for article in ranked]

    def search_by_meaning(self, query: str, *, content: bool = False, limit: int = SEMANTIC_RESULTS) -> list[Article]:
        """Return the articles that answer a question best, by the default strategy. Raises what a search raises."""
        folder, known = self._checked_folder(), self._by_path()
        source_id = self._mirror.refresh(folder, lambda: self._items(folder, known))
        found = self._pages.search(query, limit=limit, scope=Scope(sources=(source_id,)))
        ranked = [known[path] for page in found.pages if (path := page.best.path or "") in known]
        return ranked if content else [article.without_content() for article in ranked]

    def _items(self, folder: Path, known: Mapping[str, Article]) -> list[Incoming]:
        from workbench.ingestion.incoming import files_under

        return [item for item in files_under([folder]).items if item.key in known]

    def _checked_folder(self) -> Path:
        folder = self._folder.expanduser().resolve()
        if not folder.is_dir():
            raise ConfigurationError(f"There is no folder {folder}; correct WORKBENCH_ARTICLES_DIR.")
        return folder

    def _all(self) -> list[Article]:
        """Return the articles that exist for a reader, by category and title."""
        found = self._by_path().values()
        return sorted(found, key=lambda article: (CATEGORIES.index(article.category), article.title, article.slug))

    def _by_path(self) -> dict[str, Article]:
        """Return the articles that exist for a reader by path; a file is read again only when it has changed."""
        folder = self._checked_folder()
        with self._lock:
            before, self._read = self._read, {}
            for path, stamp in stamps_of(folder).items():
                category, slash, _ = path.partition("/")
                if category in CATEGORIES and slash and path.endswith((".md", ".mdx")):
                    cached = before.get(path)
                    unchanged = cached is not None and cached[0] == stamp
                    article = cached[1] if unchanged and cached else read_article(folder / path, category)
                    self._read[path] = (stamp, article)
            return {path: found for path, (_, found) in self._read.items() if found and found.status in SHOWN}


def read_article(path: Path, category: str) -> Article | None:
    """Return the article in a file, or None where the file is none (no front matter, broken, unreadable, huge)."""
    from workbench.errors import UnreadableDocument
    from workbench.ingestion.decoding import decode
    from workbench.ingestion.normalise import normalise
    from workbench.ingestion.readers.markdown import split_front_matter

    try:
        if path.stat().st_size > LONGEST_FILE:
            return None
        metadata, body = split_front_matter(decode(path.read_bytes(), path.name).replace("\r\n", "\n"))
    except (OSError, UnreadableDocument):
        return None
    if not metadata.get("title"):
        return None
    return Article(
        slug=path.stem,
        category=category,
        title=_text(metadata.get("title")),
        description=_text(metadata.get("description")),
        tags=_tags(metadata.get("tags")),
        last_updated=_text(metadata.get("lastUpdated")),
        status=_text(metadata.get("status")),
        content=normalise(body).strip(),
    )


def score_match(article: Article, query: str) -> int:
    """Return 3 for the query in the title, plus 2 in any tag, plus 1 in the description; case does not count."""
    wanted = query.lower()
    score = TITLE if wanted in article.title.lower() else 0
    score += TAG if any(wanted in tag.lower() for tag in article.tags) else 0
    return score + (DESCRIPTION if wanted in article.description.lower() else 0)


def _newest_first(article: Article) -> float:
    try:
        return -float(date.fromisoformat(article.last_updated[:10]).toordinal())
    except ValueError:
        return 0.0  # no date that can be read: after all that have one


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        value = value.date()
    return "" if value is None else " ".join(str(value).split())


def _tags(value: Any) -> tuple[str, ...]:
    given = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    return tuple(_text(tag) for tag in given if _text(tag))
