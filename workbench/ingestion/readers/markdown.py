"""The reader of Markdown: front matter becomes metadata, the rest is the text as it stands."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from workbench.ingestion.decoding import decode
from workbench.ingestion.raw import Draft

if TYPE_CHECKING:
    from yaml import Node, SafeLoader

FRONT_MATTER = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)(?:^|\n)(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL)
FENCED = re.compile(r"^ {0,3}(```+|~~~+).*?(?:^ {0,3}\1|\Z)", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.+?)[ \t]*#*[ \t]*$|^(\S.*)\n=+[ \t]*$", re.MULTILINE)
MARKUP = re.compile(r"\*\*|__|`|\{#[^}]*\}$")
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")


def read_markdown(data: bytes, name: str) -> Draft:
    """Return the text without its front matter; broken front matter stays part of the text."""
    metadata, body = split_front_matter(decode(data, name).replace("\r\n", "\n"))
    title = str(metadata.get("title") or "").strip()
    if not body.strip() and metadata.get("description"):  # a section's index page is often all front matter
        body = f"# {title}\n\n{metadata['description']}" if title else str(metadata["description"])
    return Draft(body, title or first_heading(body), metadata)


def split_front_matter(text: str) -> tuple[dict[str, object], str]:
    """Return (front matter, rest); ({}, the whole text) where there is none or it is no valid YAML mapping."""
    match = FRONT_MATTER.match(text)
    if not match:
        return {}, text
    import yaml

    try:
        loaded = yaml.load(match.group(1), Loader=_loader())
    except (yaml.YAMLError, ValueError, RecursionError):  # ValueError: a date such as 2024-13-45
        return {}, text
    if loaded is None:
        return {}, text[match.end() :]
    return (loaded, text[match.end() :]) if isinstance(loaded, dict) else ({}, text)


def first_heading(text: str) -> str:
    """Return the words of the first heading outside code fences, or ""."""
    match = HEADING.search(FENCED.sub("", text[:20_000]))
    if not match:
        return ""
    return MARKUP.sub("", LINK.sub(r"\1", match.group(1) or match.group(2))).strip()


def _loader() -> type[SafeLoader]:
    """Return a safe loader that refuses aliases, with which a short text can unfold to gigabytes."""
    import yaml

    class PlainLoader(yaml.SafeLoader):
        def compose_node(self, parent: Node | None, index: int) -> Node | None:
            if self.check_event(yaml.events.AliasEvent):
                raise yaml.YAMLError("aliases are not read in front matter")
            return super().compose_node(parent, index)

    return PlainLoader
