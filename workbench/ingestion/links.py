"""Find what a text points at: Markdown links, references, HTML links, wiki links, bare URLs and bare paths.

Works on the text as it is stored (Markdown, or plain text), by bounded patterns: broken or huge input costs time in
proportion to its length and never raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MOST_LINKS = 5_000  # a document; a page with more is a dump, and its first links say what it is
LONGEST_CONTEXT = 300  # characters

# How sure it is that a citation is meant. A bare path may be an example; a title in words may be a coincidence.
CONFIDENCE = {"link": 1.0, "reference": 1.0, "html": 1.0, "url": 1.0, "wiki": 1.0, "path": 0.9, "mention": 0.6}

_FENCE = re.compile(r"^[ \t>]*(```+|~~~+)[^\n]*\n.*?(?:^[ \t>]*\1|\Z)", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_CODE_SHORTCODE = re.compile(
    r"\{\{[<%]\s{0,3}(highlight|code-toggle)\b[^{}\n]{0,300}(?<!/)[>%]\}\}.{0,5000}?\{\{[<%]\s{0,3}/\s{0,3}\1\s{0,3}[%>]\}\}",
    re.DOTALL,
)
_TOML_TABLE = re.compile(r"^[ \t]*\[\[[\w.-]{1,100}\]\][ \t]*$(?=\n[ \t]*[\w.-]{1,100}[ \t]*=)", re.MULTILINE)
_CODE_SPAN = re.compile(r"(?<!`)(`{1,3})(?!`)((?:(?!\n\n).){1,300}?)(?<!`)\1(?!`)", re.DOTALL)
_DESTINATION = re.compile(
    r"\(\s{0,9}(?:<([^<>\n]{0,2000})>"
    r"|\{\{[<%]\s{0,9}(?:rel)?ref\s+\"([^\"\n]{1,500})\"\s{0,9}[>%]\}\}"
    r"|((?:[^\s()<>\\]|\\.|\((?:[^\s()\\]|\\.){0,500}\)){0,2000}))"
    r"(?:\s+(?:\"[^\"]{0,500}\"|'[^']{0,500}'|\([^()]{0,500}\)))?\s{0,9}\)"
)
_DEFINITION = re.compile(
    r"^ {0,3}\[([^\[\]\n]{1,300})\]:[ \t]{0,9}\n?[ \t]{0,9}(<[^<>\n]{1,2000}>|[^\s<>]{1,2000})", re.MULTILINE
)
_FULL_REFERENCE = re.compile(r"(?<!!)\[([^\[\]]{1,300})\]\[([^\[\]]{0,300})\]")
_SHORTCUT = re.compile(r"(?<![!\]])\[([^\[\]]{1,300})\](?![\[(:])")
_HTML = re.compile(r"<a\s[^<>]{0,500}?href\s{0,9}=\s{0,9}([\"'])([^\"'<>\n]{1,2000})\1[^<>]{0,500}>", re.IGNORECASE)
_WIKI = re.compile(r"\[\[([^\[\]|#\n]{1,200})(?:#[^\[\]|\n]{0,200})?(?:\|([^\[\]\n]{1,200}))?\]\]")
_URL = re.compile(r"https?://[^\s<>\"'`\[\]{}|\\^\x01]{1,2000}", re.IGNORECASE)
_PATH = re.compile(
    r"(?<![\w/.:@%-])(?<!\]\()(?:\.{1,2}/|/)?(?:[\w.-]{1,100}/){0,12}[\w-][\w.-]{0,100}"
    r"\.(?:md|markdown|mdx|rst|txt|html?|pdf|docx|ipynb)(?![\w/])"
)
_NOT_FOLLOWED = re.compile(r"\A(?:#|mailto:|tel:|javascript:|data:|ftp:|file:)", re.IGNORECASE)
_IMAGE = re.compile(r"\.(?:png|jpe?g|gif|svg|webp|ico|avif|bmp|mp4|webm)\Z", re.IGNORECASE)
_INDEX_FILES = frozenset(("index.md", "_index.md", "README.md", "readme.md", "index.html", "index.htm"))
_SENTENCE_END = re.compile(
    r"(?<=[.!?])[\"')\]]{0,2}\s+(?=[\"'(\[*_<]{0,2}[A-Z0-9])|\n\s*\n|\n(?=[ \t]*(?:[-*+#>|]|\d+[.)]))"
)


@dataclass(frozen=True, slots=True)
class Link:
    """One link of a text: ``target`` as written, without its fragment; ``[start:end]`` is where it stands."""

    kind: str
    target: str
    label: str
    start: int
    end: int


def extract_links(text: str) -> list[Link]:
    """Return the links of a text in reading order, at most 5,000; images, mail and in-page links are left out."""
    without_fences = text
    for pattern in (_FENCE, _COMMENT, _CODE_SHORTCODE, _TOML_TABLE):
        without_fences = _blank(pattern, without_fences)
    masked = _CODE_SPAN.sub(lambda match: "\x01" * len(match.group()), without_fences)
    found: list[Link] = []
    taken: list[tuple[int, int]] = []
    for finder in (_inline, _references, _html, _wiki):
        for link, span in finder(text, masked):
            taken.append(span)
            if link is not None:
                found.append(link)
        if len(found) > MOST_LINKS:
            break
    free = _without(masked, taken)
    found += _bare(_URL, "url", free, text)
    free_with_code = _without(_URL.sub(lambda match: " " * len(match.group()), without_fences), taken)
    found += _bare(_PATH, "path", free_with_code, text)
    return sorted(found, key=lambda link: (link.start, link.end))[:MOST_LINKS]


def context_of(text: str, link: Link) -> str:
    """Return the sentence a link stands in, as written, at most 300 characters."""
    half = LONGEST_CONTEXT
    before, after = text[max(0, link.start - half) : link.start], text[link.end : link.end + half]
    starts = [match.end() for match in _SENTENCE_END.finditer(before)]
    end = _SENTENCE_END.search(after)
    first = before[starts[-1] :] if starts else before
    last = after[: end.start()] if end else after
    linked = text[link.start : link.end]
    room = max(0, LONGEST_CONTEXT - len(linked))
    first = first[-max(room // 2, room - len(last)) :] if room else ""
    return " ".join(f"{first}{linked[:LONGEST_CONTEXT]}{last[: room - len(first)]}".split())


def _inline(text: str, masked: str) -> Iterator[tuple[Link | None, tuple[int, int]]]:
    place = masked.find("](")
    while place >= 0:
        match = _DESTINATION.match(masked, place + 1)
        start = _label_start(masked, place) if match else -1
        if match and start >= 0:
            target = next((text[slice(*match.span(group))] for group in (1, 2, 3) if match.group(group)), "")
            is_image = start > 0 and masked[start - 1] == "!"
            link = None if is_image else _link("link", target, text[start + 1 : place], start, match.end())
            yield link, (place if is_image else start, match.end())
        place = masked.find("](", place + 2)


def _label_start(masked: str, close: int) -> int:
    """Return where the bracket that ``masked[close]`` closes was opened, or -1; looks back 1,000 characters."""
    depth = 0
    for place in range(close, max(-1, close - 1000), -1):
        if masked[place] == "]":
            depth += 1
        elif masked[place] == "[":
            depth -= 1
            if depth == 0:
                return place
    return -1


def _references(text: str, masked: str) -> Iterator[tuple[Link | None, tuple[int, int]]]:
    definitions: dict[str, tuple[str, int, int]] = {}
    for match in _DEFINITION.finditer(masked):
        label = text[slice(*match.span(1))]
        if not label.startswith("^"):
            definitions.setdefault(_label_key(label), (text[slice(*match.span(2))].strip("<>"), *match.span()))
            yield None, match.span()
    if not definitions:
        return
    used = set()
    for pattern in (_FULL_REFERENCE, _SHORTCUT):
        for match in pattern.finditer(masked):
            label = text[slice(*match.span(1))]
            name = text[slice(*match.span(2))] if match.re.groups > 1 and match.group(2) else label
            if _label_key(name) in definitions:
                used.add(_label_key(name))
                target = definitions[_label_key(name)][0]
                yield _link("reference", target, label, *match.span()), match.span()
    for key in definitions.keys() - used:
        target, start, end = definitions[key]
        yield _link("reference", target, key, start, end), (start, end)


def _html(text: str, masked: str) -> Iterator[tuple[Link | None, tuple[int, int]]]:
    for match in _HTML.finditer(masked):
        yield _link("html", text[slice(*match.span(2))], "", *match.span()), match.span()


def _wiki(text: str, masked: str) -> Iterator[tuple[Link | None, tuple[int, int]]]:
    for match in _WIKI.finditer(masked):
        target = match.group(1).strip()
        yield _link("wiki", target, match.group(2) or target, *match.span()), match.span()


def _bare(pattern: re.Pattern[str], kind: str, free: str, text: str) -> list[Link]:
    found = []
    for match in pattern.finditer(free):
        written = match.group().rstrip(".,;:!?*_~'")
        while written.endswith(")") and written.count(")") > written.count("("):
            written = written[:-1].rstrip(".,;:!?*_~'")
        if written in _INDEX_FILES:
            continue  # the name of a kind of file, not of one
        link = _link(kind, written, written, match.start(), match.start() + len(written))
        if link is not None:
            found.append(link)
        if len(found) >= MOST_LINKS:
            break
    return found


def _link(kind: str, target: str, label: str, start: int, end: int) -> Link | None:
    """Return a link, or None where it leads to no document."""
    bare = target.strip().partition("#")[0].strip()
    if not bare or "{{" in bare or _NOT_FOLLOWED.match(target.strip()) or _IMAGE.search(bare.partition("?")[0]):
        return None
    return Link(kind, bare, " ".join(label.split())[:LONGEST_CONTEXT], start, end)


def _label_key(label: str) -> str:
    return " ".join(label.split()).casefold()


def _blank(pattern: re.Pattern[str], text: str) -> str:
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def _without(text: str, spans: list[tuple[int, int]]) -> str:
    """Blank out spans, so that what lies inside a link is not found again."""
    pieces, at = [], 0
    for start, end in sorted(spans):
        if end > at:
            begin = max(start, at)
            pieces += [text[at:begin], " " * (end - begin)]
            at = end
    return "".join([*pieces, text[at:]])
