"""Articles as Markdown files with front matter, read from disk without the corpus."""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path

from workbench.errors import Ambiguous, ConfigurationError, InvalidInput, NotFound, UnreadableDocument, list_choices
from workbench.formatting import MB
from workbench.ingestion.stamps import Stamp, stamp_files
from workbench.marking import content_stems
from workbench.types import ARTICLE_CATEGORIES as CATEGORIES
from workbench.types import JsonObject, Value

ARTICLE_SUFFIXES = (".md", ".mdx")  # of articles
VISIBLE_STATUSES = ("Live", "Experimental")  # statuses that are shown to readers; articles with others are hidden
TITLE_SCORE, TAG_SCORE, DESCRIPTION_SCORE = 3, 2, 1  # weights of a match
MAX_FILE_BYTES = 4 * MB  # bytes; larger files are not articles


@dataclass(frozen=True, slots=True)
class Article(Value):
    """An article with its front matter."""

    slug: str
    category: str
    title: str
    description: str
    tags: tuple[str, ...]
    last_updated: str  # ISO date
    status: str
    content: str | None = None  # Markdown; None if only the description was requested

    def to_dict(self) -> JsonObject:
        """Return the JSON form of the articles tools."""
        fields = Value.to_dict(self).items()
        values = {"lastUpdated" if name == "last_updated" else name: value for name, value in fields}
        return {name: value for name, value in values.items() if name != "content" or value is not None}

    def without_content(self) -> Article:
        """Return a copy without the content."""
        return replace(self, content=None)


class ArticleFolder:
    """Operations on a folder of articles that read only its files; thread-safe."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, tuple[Stamp, Article | None]] = {}
        self._lock = threading.Lock()

    def list(self, category: str | None = None, limit: int = 50) -> list[Article]:
        """Return articles without content, by category and title.

        Raises:
            InvalidInput: No such category, or the limit is below 1.
        """
        if category is not None and category not in CATEGORIES:
            raise InvalidInput(f"There is no category {category!r}; use one of {list_choices(CATEGORIES)}.")
        if limit < 1:
            raise InvalidInput(f"Invalid limit {limit}: use a whole number of at least 1.")
        articles = [article for article in self._all() if category in (None, article.category)]
        return [article.without_content() for article in articles[:limit]]

    def get(self, slug: str) -> Article:
        """Return an article with its content, by SLUG or CATEGORY/SLUG.

        Raises:
            NotFound: No such article.
            Ambiguous: Several categories have an article with this slug.
        """
        found = [article for article in self._all() if slug in (article.slug, f"{article.category}/{article.slug}")]
        if not found:
            raise NotFound("article", slug, "List the articles to see their slugs.")
        if len(found) > 1:
            raise Ambiguous("article", slug, {f"{article.category}/{slug}": article.title for article in found})
        return found[0]

    def search(self, query: str, *, content: bool = False) -> list[Article]:
        """Return the articles that contain the whole query in the title, a tag or the description; "" matches all.

        They are ordered by score (title 3, any tag 2, description 1), then by date, newest first.
        """
        scored = [(score_match(article, query), article) for article in self._all()]
        matching = sorted((item for item in scored if item[0] > 0), key=lambda item: _date_sort_key(item[1]))
        ranked = [article for _, article in sorted(matching, key=lambda item: -item[0])]
        return ranked if content else [article.without_content() for article in ranked]

    def search_by_words(self, question: str, *, content: bool = False) -> list[Article]:
        """Return the articles that contain any word of a question, compared by stem; the most matches come first.

        Ties are ordered by the sum of their scores, as in ``search``; matches in the text score 0.
        """
        words = content_stems(question)
        scored = [(*_score_words(article, words), article) for article in self._all()]
        matching = sorted((item for item in scored if item[0]), key=lambda item: _date_sort_key(item[2]))
        ranked = [article for _, _, article in sorted(matching, key=lambda item: (-item[0], -item[1]))]
        return ranked if content else [article.without_content() for article in ranked]

    def place(self) -> Path:
        """Return the folder with symbolic links resolved. Raises ConfigurationError if the folder does not exist."""
        folder = self._folder.expanduser().resolve()
        if not folder.is_dir():
            raise ConfigurationError(f"There is no folder {folder}; correct WORKBENCH_ARTICLES_DIR.")
        return folder

    def _all(self) -> list[Article]:
        """Return all published articles, by category and title."""
        articles = self.by_path().values()
        return sorted(articles, key=lambda article: (CATEGORIES.index(article.category), article.title, article.slug))

    def by_path(self) -> dict[str, Article]:
        """Return the published articles, by path; only changed files are reread."""
        folder = self.place()
        with self._lock:
            before, self._read = self._read, {}
            for path, stamp in stamp_files(folder).items():
                category, slash, _ = path.partition("/")
                if category in CATEGORIES and slash and path.endswith(ARTICLE_SUFFIXES):
                    cached = before.get(path)
                    unchanged = cached is not None and cached[0] == stamp
                    article = cached[1] if unchanged and cached else read_article(folder / path, category)
                    self._read[path] = (stamp, article)
            return {
                path: article
                for path, (_, article) in self._read.items()
                if article and article.status in VISIBLE_STATUSES
            }


def read_article(path: Path, category: str) -> Article | None:
    """Return the article in a file; None if it has no title in front matter, is unreadable or too large."""
    from workbench.ingestion.readers.plain_text import split_front_matter
    from workbench.ingestion.text import decode_text, normalise

    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            return None
        metadata, body = split_front_matter(decode_text(path.read_bytes(), path.name).replace("\r\n", "\n"))
    except (OSError, UnreadableDocument):
        return None
    if not metadata.get("title"):
        return None
    return Article(
        slug=path.stem,
        category=category,
        title=_clean_text(metadata.get("title")),
        description=_clean_text(metadata.get("description")),
        tags=_parse_tags(metadata.get("tags")),
        last_updated=_clean_text(metadata.get("lastUpdated")),
        status=_clean_text(metadata.get("status")),
        content=normalise(body).strip(),
    )


def score_match(article: Article, query: str) -> int:
    """Return 3 for a match in the title, plus 2 for any tag, plus 1 for the description; case is ignored."""
    wanted = query.lower()
    score = TITLE_SCORE if wanted in article.title.lower() else 0
    score += TAG_SCORE if any(wanted in tag.lower() for tag in article.tags) else 0
    return score + (DESCRIPTION_SCORE if wanted in article.description.lower() else 0)


def _score_words(article: Article, words: Collection[str]) -> tuple[int, int]:
    """Return how many of the words an article contains, and the sum of their scores."""
    scores = {word: score_match(article, word) for word in words}
    text = (article.content or "").lower()
    return sum(scores[word] > 0 or word in text for word in words), sum(scores.values())


def _date_sort_key(article: Article) -> float:
    try:
        return -float(date.fromisoformat(article.last_updated[:10]).toordinal())
    except ValueError:
        return 0.0  # without a valid date, after all others


def _clean_text(value: object) -> str:
    if isinstance(value, datetime):
        value = value.date()
    return "" if value is None else " ".join(str(value).split())


def _parse_tags(value: object) -> tuple[str, ...]:
    items: Sequence[object] = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    return tuple(_clean_text(tag) for tag in items if _clean_text(tag))
