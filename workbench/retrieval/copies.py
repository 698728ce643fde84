"""Copies among the found passages: nearly equal texts are folded under the best one.

Two texts are copies if they have the same words in the same order, whatever their case, markup, punctuation and
spaces. They are also copies if most of their word triples are the same and they differ only in spelling, in function
words, or in words that one of them adds. A different number, sign, name, negation or value of a field is another text:
two data sheets and two tickets are never copies.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property

from llama_index.core.schema import NodeWithScore

from workbench.marking import FUNCTION_WORDS
from workbench.retrieval.nodes import COPIES, node_passage
from workbench.storage.passages import StoredPassage

MIN_SHARED_TRIPLES = 0.8  # share of the word triples of both texts that are in both
MIN_SHARED_WORDS = 0.5  # share of the larger text's words, as split by spaces, below which texts are not compared
MIN_SPLIT_WORDS = 8  # texts with fewer words between spaces, as in Chinese, are always compared
MIN_SPELLING_RATIO = 0.8  # of two spellings of a word
NEGATIONS = frozenset((
    "not", "no", "never", "none", "neither", "nor", "without", "cannot", "nicht", "kein", "keine", "keinen", "nie",
    "ohne", "ne", "pas", "jamais", "sans", "sin",
))  # fmt: skip

_INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u200b\u2060\ufeff"))
_LINE_MARKUP = re.compile(r"^[ \t]*(?:#{1,6}|[-*+>])[ \t]+|^[ \t]*[=-]{2,}[ \t]*$", re.MULTILINE)
_TOKEN = re.compile(
    r"(?:(?<![^\W_])[-\u2212])?\d+(?:[.,:/-]\d+)*"  # numbers, versions and dates with their signs
    r"|[^\W_]+"
    r"|[^\w\s]"  # signs, see ``_iter_tokens``
)
_MEANT, _MARKUP = frozenset("%‰#@&§"), frozenset("|~`^")
_FIELD = re.compile(r"\||^[^.!?:\n]{1,40}:[ \t]", re.MULTILINE)  # a table row, or "Colour: red"
_NEGATED = re.compile(r"n['\u2019]t\b")


@dataclass(frozen=True)
class _Text:
    """A passage's text for comparisons; the costly parts are computed when first needed."""

    raw: str

    @cached_property
    def split_words(self) -> frozenset[str]:
        return frozenset(self.raw.casefold().split())

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        return tuple(match.group() for match in _iter_tokens(self._plain))

    @cached_property
    def folded(self) -> tuple[str, ...]:
        return tuple(token.casefold() for token in self.tokens)

    @cached_property
    def triples(self) -> frozenset[tuple[str, ...]]:
        return frozenset(self.folded[at : at + 3] for at in range(max(1, len(self.folded) - 2)))

    @cached_property
    def fixed(self) -> tuple[bool, ...]:
        """Whether each token may not differ: in fields, and all but plain lower-case words or starts of sentences."""
        text = self._plain
        return tuple(_is_fixed(text, match) for match in _iter_tokens(text))

    @cached_property
    def _plain(self) -> str:
        text = unicodedata.normalize("NFKC", self.raw.translate(_INVISIBLE))
        return _LINE_MARKUP.sub("", _NEGATED.sub(" not", text))


def are_copies(one: str, other: str) -> bool:
    """Return whether two texts are copies of each other."""
    return _are_copies(_Text(one), _Text(other))


def fold_copies(nodes: Sequence[NodeWithScore]) -> list[NodeWithScore]:
    """Return the nodes without copies of better ones, which get them in their metadata; the order is kept."""
    kept: list[tuple[NodeWithScore, _Text]] = []
    for node in nodes:
        text = _Text(node.node.get_content())
        best = next((other for other, known in kept if _are_copies(known, text)), None)
        if best is None:
            kept.append((node, text))
            continue
        passages: dict[int, StoredPassage] = best.node.metadata.setdefault(COPIES, {})
        for passage in (node_passage(node), *node.node.metadata.get(COPIES, {}).values()):
            if passage.id != node_passage(best).id:
                passages[passage.id] = passage
    return [node for node, _ in kept]


def _are_copies(one: _Text, other: _Text) -> bool:
    most = max(len(one.split_words), len(other.split_words))
    if most >= MIN_SPLIT_WORDS and len(one.split_words & other.split_words) < MIN_SHARED_WORDS * most:
        return False
    if one.folded == other.folded:
        return bool(one.folded) or one.raw == other.raw
    shared = len(one.triples & other.triples)
    if shared < MIN_SHARED_TRIPLES * len(one.triples | other.triples):
        return False
    return _differ_only_in_wording(one, other)


def _differ_only_in_wording(one: _Text, other: _Text) -> bool:
    """Return whether two texts differ only in spelling, function words and added words."""
    for kind, a, b, c, d in SequenceMatcher(None, one.folded, other.folded, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        if any(one.fixed[a:b]) or any(other.fixed[c:d]):
            return False
        ours, theirs = one.folded[a:b], other.folded[c:d]
        if ours and theirs and not ({*ours, *theirs} <= FUNCTION_WORDS or _is_respelled(ours, theirs)):
            return False
    return True


def _is_respelled(ours: Sequence[str], theirs: Sequence[str]) -> bool:
    """Return whether some words are other spellings of the same words: "colour" and "color", "on-line" and "online"."""
    one, other = "".join(ours), "".join(theirs)
    return one[0] == other[0] and SequenceMatcher(None, one, other, autojunk=False).ratio() >= MIN_SPELLING_RATIO


def _iter_tokens(text: str) -> Iterator[re.Match[str]]:
    """Return the numbers, words, and signs that are neither punctuation nor markup: +, <, %, €, emoji."""
    for match in _TOKEN.finditer(text):
        sign = match.group()
        is_sign = len(sign) == 1 and not sign.isalnum() and sign not in _MEANT
        if not (is_sign and (sign in _MARKUP or unicodedata.category(sign)[0] in "PCM")):
            yield match


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
