"""The source that a crawl goes into: a named one, the one of its host, or a new one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from workbench.errors import Conflict, InvalidInput
from workbench.services.naming import check_title
from workbench.services.sources import PlaceNames, SourceService
from workbench.storage.crawls import CrawlPlan
from workbench.storage.jobs import Job
from workbench.types import JsonObject, Source, as_object, as_text_or_none, as_texts

MOST_NAMESAKES = 1_000  # sources of one title that are told apart by a number
LONGEST_NUMBERED = 290  # characters of a title before its number


@dataclass(frozen=True, slots=True)
class CrawlTarget:
    """Where the documents of a crawl are to go.

    ``source`` is an id or title, ``title`` that of a source to be made; ``new`` asks for a source of its own even
    where the host has one.
    """

    source: str | None = None
    title: str | None = None
    project: str | None = None
    folder: str | None = None
    tags: Sequence[str] = ()
    new: bool = False

    def to_json(self) -> JsonObject:
        """Return the target as its job keeps it."""
        return {
            "source": self.source,
            "title": self.title,
            "project": self.project,
            "folder": self.folder,
            "tags": list(self.tags),
            "new": self.new,
        }


def target_of(job: Job) -> CrawlTarget:
    """Return the target that a job keeps."""
    kept = as_object(job.parameters.get("target") or {})
    names = {name: as_text_or_none(kept.get(name)) for name in ("source", "title", "project", "folder")}
    return CrawlTarget(**names, tags=as_texts(kept.get("tags") or []), new=bool(kept.get("new")))


def source_of_plan(sources: SourceService, plan: CrawlPlan, job: Job) -> Source:
    """Return the source of a crawl, made anew where it went away because nothing had come in."""
    if plan.source_id:
        return sources.get(plan.source_id)
    return source_of_crawl(sources, plan.url, target_of(job))[0]


def source_of_crawl(sources: SourceService, url: str, target: CrawlTarget) -> tuple[Source, bool]:
    """Return the source, and whether it was made just now; a crawl that brings nothing into it takes it away again.

    Raises:
        NotFound: no such source, project or folder. InvalidInput: the title or the tags cannot be used.
        Conflict: too many sources have that title.
    """
    place = PlaceNames(project=target.project, folder=target.folder)
    if target.source:
        if target.new:
            raise InvalidInput("Give a source or ask for a new one, not both.")
        return sources.ensure(target.source, **place, tags=target.tags, source_type="crawl", for_ingest=True), False
    title = check_title(target.title or f"Crawled: {urlsplit(url).netloc}")
    for number in range(1, MOST_NAMESAKES if target.new else 2):
        numbered = title if number == 1 else f"{title[:LONGEST_NUMBERED]} ({number})"
        try:
            source = sources.create(numbered, source_type="crawl", url=url, **place, tags=target.tags, for_ingest=True)
        except Conflict:
            continue
        return source, True
    if target.new:
        raise Conflict(f"There are {MOST_NAMESAKES - 1} sources titled {title!r}; give another title.")
    return sources.ensure(title, **place, tags=target.tags, source_type="crawl", for_ingest=True), False
