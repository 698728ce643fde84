"""The links of a Markdown text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from workbench.crawling.pieces import pieces

# Inline links, also around pictures; definitions; addresses in angle brackets. Possessive quantifiers and classes
# without "[" keep the search linear: a text of nothing but brackets is read in one go.
MARKDOWN_LINK = re.compile(
    r"(?<!!)\[(?:[^\[\]!]++|!(?!\[)|!\[[^\[\]]*+\]\([^()\s]*+\))*+\]\(\s{0,9}<?([^\s)>]{1,2000}+)"
    r"|^[ ]{0,3}\[[^\[\]\n]{1,999}+\]:[ \t]*+\n?[ \t]*+<?([^\s>]{1,2000}+)"
    r"|<(https?://[^<>\s]{1,2000}+)>",
    re.MULTILINE,
)


def markdown_links(text: str) -> Iterator[str]:
    """Yield the targets of a text's links as they are written, in order, pictures left aside."""
    for piece in pieces(text):
        for match in MARKDOWN_LINK.finditer(piece):
            yield match.group(1) or match.group(2) or match.group(3)
