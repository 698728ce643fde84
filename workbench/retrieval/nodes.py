"""Conversion between hits and LlamaIndex nodes, which carry the internal id and attribution in their metadata."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property, lru_cache
from pathlib import PurePath
from typing import TYPE_CHECKING

from llama_index.core.schema import NodeWithScore, TextNode

from workbench.marking import FUNCTION_WORDS
from workbench.retrieval.hits import Hit
from workbench.retrieval.legs import leg_kind
from workbench.retrieval.query import Request
from workbench.storage.database import Connection
from workbench.storage.passages import StoredPassage, fetch_passages
from workbench.types import Copy, Leg, Passage, TimedStep

if TYPE_CHECKING:
    from PIL.Image import Image

ID, LEGS, PASSAGE, EXTRA = "_id", "_legs", "_passage", "_extra"  # extra: a stage's own metadata, shown with the passage
COPIES = "_copies"  # passages folded under this one, by internal id
_INTERNAL_KEYS = [ID, LEGS, PASSAGE, EXTRA, COPIES]
_SHOWN_METADATA = (
    "heading_path",
    "page",
    "page_label",
    "kind",
    "language",
    "ordinal",
    "window",
    "parent",
    "table_header",
)


def to_nodes(request: Request, connection: Connection, hits: Sequence[Hit]) -> list[NodeWithScore]:
    with request.trace.stage(TimedStep.FETCH):
        passages = fetch_passages(connection, request.index.name, [hit.id for hit in hits], request.same_as)
    return [make_node(passages[hit.id], hit) for hit in hits if hit.id in passages]


def make_node(passage: StoredPassage, hit: Hit) -> NodeWithScore:
    """Return one passage as a node; its internal metadata is excluded from prompts and embeddings."""
    metadata = {
        "document_id": passage.document_id,
        "document_title": passage.title,
        "source_id": passage.source_id,
        ID: passage.id,
        LEGS: dict(hit.legs),
        PASSAGE: passage,
    }
    node = TextNode(
        id_=passage.node_id,
        text=passage.text,
        metadata=metadata,
        excluded_llm_metadata_keys=[*_INTERNAL_KEYS, "document_id", "source_id"],
        excluded_embed_metadata_keys=_INTERNAL_KEYS,
    )
    return NodeWithScore(node=node, score=hit.score)


def node_passage(node: NodeWithScore) -> StoredPassage:
    return node.node.metadata[PASSAGE]


def node_hit(node: NodeWithScore) -> Hit:
    metadata = node.node.metadata
    return Hit(metadata[ID], float(node.score or 0.0), metadata[LEGS])


def replace_hits(nodes: Sequence[NodeWithScore], hits: Sequence[Hit]) -> list[NodeWithScore]:
    """Return the nodes of the hits with their scores and attribution, in the hits' order.

    The nodes belong to the request and are modified in place.
    """
    by_id = {node_hit(node).id: node for node in nodes}
    for hit in hits:
        by_id[hit.id].node.metadata[LEGS] = dict(hit.legs)
    return [NodeWithScore(node=by_id[hit.id].node, score=hit.score) for hit in hits]


def to_passages(
    nodes: Sequence[NodeWithScore], draw_page: Callable[[Passage], Image] | None = None
) -> tuple[Passage, ...]:
    """Return nodes as passages for callers, ranked from 1 in the given order, with scores in 0..1.

    ``draw_page`` draws the page of a passage.
    """
    return tuple(_passage(rank, node, draw_page) for rank, node in enumerate(nodes, start=1))


def _passage(rank: int, node: NodeWithScore, draw_page: Callable[[Passage], Image] | None) -> Passage:
    text_node = node.node
    metadata = text_node.metadata
    passage: StoredPassage = metadata[PASSAGE]
    legs: dict[str, Leg] = metadata[LEGS]
    facts = passage.metadata
    shown = {key: facts[key] for key in _SHOWN_METADATA if facts.get(key) not in (None, [])}
    return Passage(
        rank=rank,
        score=min(1.0, max(0.0, float(node.score or 0.0))),
        passage_id=text_node.node_id,
        document_id=passage.document_id,
        document_title=passage.title,
        source_id=passage.source_id,
        path=passage.path,
        url=passage.url,
        text=text_node.get_content(),
        start=int(metadata.get("start", facts["start"])),
        end=int(metadata.get("end", facts["end"])),
        match_type=match_type(legs),
        attribution=legs,
        metadata=shown | {"document_type": passage.document_type} | metadata.get(EXTRA, {}),
        copies=tuple(
            Copy(one.node_id, one.document_id, one.title, one.source_id, one.path, one.url, *one.span)
            for one in metadata.get(COPIES, {}).values()
        ),
        draw_page=draw_page if passage.id > 0 else None,  # a hit that matched no stored passage has no page
    )


def match_type(legs: Mapping[str, Leg]) -> str:
    """Return how a passage was found: "vector" (only by semantic legs), "keyword", or "hybrid" for both."""
    matches = {leg_kind(name).match for name, leg in legs.items() if leg.rank is not None} - {None}
    return str(matches.pop()) if len(matches) == 1 else "hybrid"


# Copies: nearly equal texts are folded under the best one
#
# Two texts are copies if they have the same words in the same order, whatever their case, markup, punctuation and
# spaces. They are also copies if most of their word triples are the same and they differ only in spelling, in function
# words, or in words that one of them adds. A different number, sign, name, negation or value of a field is another
# text: two data sheets and two tickets are never copies. Short passages of two sources are no copies, nor those of two
# documents whose titles or file names differ in more than what marks a copy: a sentence that is the same in two reports
# is two facts. Long texts are compared without the headings above them, which are often the titles.

MIN_SHARED_TRIPLES = 0.8  # share of the word triples of both texts that are in both
MIN_SHARED_WORDS = 0.5  # share of the larger text's words, as split by spaces, below which texts are not compared
MIN_SPLIT_WORDS = 8  # texts with fewer words between spaces, as in Chinese, are always compared
MIN_SPELLING_RATIO = 0.8  # of two spellings of a word
MIN_LONG_WORDS = 30  # from which on a text in another source or under another title may be a copy
MIN_LONG_BYTES = 240  # the same in UTF-8, for scripts without spaces: 80 Chinese characters
LONGEST_WORDS, MIN_LONGEST = 4, 8  # long texts are compared if their longest words, of so many letters, are the same
NEGATIONS = frozenset((
    "not", "no", "never", "none", "neither", "nor", "without", "cannot", "nicht", "kein", "keine", "keinen", "nie",
    "ohne", "ne", "pas", "jamais", "sans", "sin",
))  # fmt: skip

COPY_WORDS = frozenset(("copy", "copie", "kopie", "copia", "duplicate", "final", "old", "new", "backup"))
_TITLE_WORD = re.compile(r"[^\W_]+")
_NUMBERED_WORD = re.compile(r"([^\W\d_]{3,})\d{1,2}\b")  # copy2, but not Q2

_AROUND_WORDS = "*_`'\"()[].,;:!?"
_HEADINGS = re.compile(r"(?:\s*#{1,6} .*)+")
_INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u200b\u2060\ufeff"))
_LINE_MARKUP = re.compile(r"^[ \t]*(?:#{1,6}|[-*+]|>[> ]*)(?:[ \t]+|$)|^[ \t]*[=-]{2,}[ \t]*$", re.MULTILINE)
_TOKEN = re.compile(
    r"(?:(?<![^\W_])[-\u2212])?\d+(?:[.,:/-]\d+)*"  # numbers, versions and dates with their signs
    r"|[^\W_]+"
    r"|[^\w\s]"  # signs, see ``_is_token``
)
_MEANT, _MARKUP = frozenset("%‰#@&§"), frozenset("|~`^")
_FIELD = re.compile(r"\||^[^.!?:\n]{1,40}:[ \t]", re.MULTILINE)  # a table row, or "Colour: red"
_NEGATED_VERB = re.compile(r"n['\u2019]t\b")


@dataclass(frozen=True)
class ComparedText:
    """A passage's text for comparisons; the costly parts are computed when first needed."""

    raw: str

    @cached_property
    def split_words(self) -> frozenset[str]:
        return frozenset(self.raw.casefold().split())

    @cached_property
    def longest_words(self) -> tuple[str, ...]:
        """The longest words of a long text, which copies of it have too; empty for a short text."""
        words = self.raw.casefold().split()
        if len(words) < MIN_LONG_WORDS and len(self.raw.encode()) < MIN_LONG_BYTES:
            return ()
        some = {word.strip(_AROUND_WORDS) for word in words if len(word) >= MIN_LONGEST}
        return tuple(sorted(sorted(some), key=len)[-LONGEST_WORDS:]) or ("",)

    @cached_property
    def keys(self) -> tuple[str, ...]:
        return tuple(token.casefold() for token in _TOKEN.findall(self._plain) if token.isalnum() or _is_token(token))

    @cached_property
    def triples(self) -> frozenset[tuple[str, ...]]:
        return frozenset(self.keys[at : at + 3] for at in range(max(1, len(self.keys) - 2)))

    @cached_property
    def constraints(self) -> tuple[bool, ...]:
        """Whether each token may not differ: in fields, and all but plain lower-case words or starts of sentences."""
        text = self._plain
        return tuple(_is_fixed(text, match) for match in _TOKEN.finditer(text) if _is_token(match.group()))

    @cached_property
    def _plain(self) -> str:
        text = unicodedata.normalize("NFKC", self.raw.translate(_INVISIBLE))
        return _LINE_MARKUP.sub("", _NEGATED_VERB.sub(" not", text))


class CopyFolder:
    """Nodes without copies of better ones, which get them in their metadata; nodes are added best first."""

    def __init__(self) -> None:
        self.nodes: list[NodeWithScore] = []
        self._kept: dict[tuple[object, ...], list[tuple[NodeWithScore, ComparedText]]] = {}

    def add(self, nodes: Sequence[NodeWithScore]) -> list[NodeWithScore]:
        """Add further nodes and return all that are not copies."""
        for node in nodes:
            passage, text = node_passage(node), _make_compared_text(node.node.get_content())
            kept = self._kept.setdefault((passage.source_id, *_read_titles(passage.title, passage.path)), [])
            longest = text.longest_words
            alike = self._kept.setdefault(longest, []) if longest else []
            best = next((one for one, known in (*kept, *alike) if are_copies(known, text)), None)
            if best is None:
                kept.append((node, text))
                alike.append((node, text))
                self.nodes.append(node)
                continue
            passages: dict[int, StoredPassage] = best.node.metadata.setdefault(COPIES, {})
            for copied in (passage, *node.node.metadata.get(COPIES, {}).values()):
                if copied.id != node_passage(best).id:
                    passages[copied.id] = copied
        return self.nodes


def _make_compared_text(raw: str) -> ComparedText:
    """Return a text without the headings above it if the rest is long."""
    headings = _HEADINGS.match(raw)
    body = ComparedText(raw[headings.end() :]) if headings else None
    return body if body is not None and body.longest_words else ComparedText(raw)


@lru_cache(4096)  # the hits of a search have few titles, and each is read for every comparison
def _read_titles(title: str, path: str | None) -> tuple[frozenset[str], frozenset[str]]:
    """Return the words of a title and a file name without what marks a copy: "notice copy (2)" is "notice"."""
    file = "" if path is None else PurePath(path).stem
    words = (_TITLE_WORD.findall(_NUMBERED_WORD.sub(r"\1", text.casefold())) for text in (title, file))
    first, second = (
        frozenset(word for word in some if word not in COPY_WORDS and not (word.isdecimal() and len(word) < 3))
        for some in words
    )
    return first, second


def are_copies(one: ComparedText, other: ComparedText) -> bool:
    most = max(len(one.split_words), len(other.split_words))
    if most >= MIN_SPLIT_WORDS and len(one.split_words & other.split_words) < MIN_SHARED_WORDS * most:
        return False
    if one.keys == other.keys:
        return bool(one.keys) or one.raw == other.raw
    shared = len(one.triples & other.triples)
    if shared < MIN_SHARED_TRIPLES * len(one.triples | other.triples):
        return False
    return _differ_only_in_wording(one, other)


def _differ_only_in_wording(one: ComparedText, other: ComparedText) -> bool:
    """Return whether two texts differ only in spelling, function words and added words."""
    for kind, a, b, c, d in SequenceMatcher(None, one.keys, other.keys, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        if any(one.constraints[a:b]) or any(other.constraints[c:d]):
            return False
        ours, theirs = one.keys[a:b], other.keys[c:d]
        if ours and theirs and not ({*ours, *theirs} <= FUNCTION_WORDS or _is_respelled(ours, theirs)):
            return False
    return True


def _is_respelled(ours: Sequence[str], theirs: Sequence[str]) -> bool:
    """Return whether some words are other spellings of the same words: "colour" and "color", "on-line" and "online"."""
    one, other = "".join(ours), "".join(theirs)
    return one[0] == other[0] and SequenceMatcher(None, one, other, autojunk=False).ratio() >= MIN_SPELLING_RATIO


def _is_token(text: str) -> bool:
    """Return whether a match is a number, a word, or a sign other than punctuation and markup: +, <, %, €, emoji."""
    if len(text) > 1 or text.isalnum() or text in _MEANT:
        return True
    return text not in _MARKUP and unicodedata.category(text)[0] not in "PCM"


def _is_fixed(text: str, match: re.Match[str]) -> bool:
    token = match.group()
    if not token.isalpha() or token.casefold() in NEGATIONS:
        return True
    line_start = text.rfind("\n", 0, match.start()) + 1
    line_end = text.find("\n", match.end())
    if _FIELD.search(text[line_start : line_end if line_end >= 0 else len(text)]):
        return True
    if token.islower():
        return False
    before = text[line_start : match.start()].rstrip(" \"'*_([\u2018\u201c\u201e\u00ab")
    starts_sentence = not before or before[-1] in ".!?:"
    return not (starts_sentence and token.istitle() and token.casefold() in FUNCTION_WORDS)
