"""Corrections of the question's unknown words, which are also tried as the known words they may mean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from workbench.languages import folded, spaced_words
from workbench.retrieval.question_words import Words
from workbench.retrieval.request import Request
from workbench.retrieval.words.guesses import read_fuzzy_words
from workbench.retrieval.words.highlight import MarkableText
from workbench.retrieval.words.query_words import read_words
from workbench.retrieval.words.spelling import slips_forgiven
from workbench.storage.database import Connection
from workbench.storage.ranking import terms_of_words
from workbench.types import Passage


def correct(request: Request, query: str) -> None:
    """Let the request's keyword leg also try the known words that unknown ones may mean.

    Questions whose words are all known cost nothing further; a word that the scope lacks is unknown.
    """
    with request.store.reading() as connection:
        if _has_unknown(read_words(request, connection, query)):
            read_fuzzy_words(request, connection, query)


def corrections(request: Request, query: str, passages: Sequence[Passage]) -> dict[str, tuple[str, ...]]:
    """Return {word as typed: known words tried for it} of a request that was served.

    The index knows stems; a word is told as the passages that were found write it, where they do.
    """
    words = request.words.get(query)
    if words is None or not words.guesses:
        return {}
    texts = [
        MarkableText(f"{passage.document_title} {passage.text}", str(passage.metadata.get("language", "english")))
        for passage in passages
    ]
    with request.store.reading() as connection:
        whole = whole_words(connection, {guess.meant for guess in words.guesses}, texts)
    tried: dict[str, list[str]] = {}
    for guess in words.guesses:
        tried.setdefault(guess.typed, []).append(guess.meant)
    return {
        typed: tuple(dict.fromkeys(whole[term] for term in meant if term in whole)) or tuple(dict.fromkeys(meant))
        for typed, meant in tried.items()
    }


def whole_words(connection: Connection, terms: Collection[str], texts: Sequence[MarkableText]) -> dict[str, str]:
    """Return each term's commonest word in the texts, in small letters; terms without a word there are left out."""
    heads = {term[:2] for term in terms}  # a stem keeps a word's first letters, but for the article in Arabic
    counts = Counter(
        (word.lower(), text.language)
        for text in texts
        for word in (match.group() for match in spaced_words(text.text))
        if text.language == "arabic" or folded(word).lower()[:2] in heads
    )
    terms_of = terms_of_words(connection, sorted(counts)) if counts else {}
    found: dict[str, str] = {}
    for pair, _ in counts.most_common():
        for term in terms_of.get(pair, ()):
            if term in terms:
                found.setdefault(term, pair[0])
    return found


def _has_unknown(words: Words) -> bool:
    positions = {term.position for term in words.terms if term.id is not None}
    return any(term.position not in positions and slips_forgiven(term.term) for term in words.terms)
