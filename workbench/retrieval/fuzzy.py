"""Fuzzy keywords: a word of the question that nothing in scope has is joined by the known words it may mean.

A guessed word counts less than the same word typed right, and less the more slips lie between, so that among
passages for one word the exact ones come first. Questions whose words are all known are left as they are.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from workbench.retrieval.bm25 import weigh
from workbench.retrieval.keyword import Words, read_words
from workbench.retrieval.request import Request
from workbench.retrieval.spelling import Guess, Lexicon, guess, one_slip_away, slips_forgiven
from workbench.storage.lexicon import (
    KnownTerm,
    Version,
    lexicon_terms,
    lexicon_version,
    terms_by_name,
    terms_of_variants,
)
from workbench.storage.rows import QueryTerm, TermWeights

GUESSED = 0.7  # what a guessed word weighs against a known one, before its slips are counted
OTHER_LETTER = 0.5  # what is left of that where the first letter differs: there slips are rare
TRIED = 25  # near words of one term whose presence in the scope is looked up
USED = 3  # guesses a word that go into the search
LONGEST_VARIED = 25  # letters; spellings of longer words are not enumerated
MOST_WORDS = 12  # unknown words of a question that are guessed; a question with more is no question

_WORD = re.compile(r"[^\W_]+")
_lexicons: dict[tuple[str, str, Any], tuple[Version, Lexicon]] = {}
_lock = threading.Lock()


def read_fuzzy_words(request: Request, connection: Any, query: str) -> Words:
    """Read the question's words and add guesses for the unknown; later readers of this request get the same."""
    words = read_words(request, connection, query)
    with request.trace.stage("spelling"):
        guessed = with_guesses(request, connection, query, words)
    request.words[query] = guessed
    return guessed


def vector_weight(words: Words, weight: float) -> float:
    """Return what meaning may weigh: less the more of the question's words are misspelt, which no model can read."""
    positions = {term.position for term in words.terms}
    misspelt = {one.typed for one in words.guesses}
    return weight * (1 - min(1.0, len(misspelt) / len(positions))) if misspelt else weight


def with_guesses(request: Request, connection: Any, query: str, words: Words) -> Words:
    """Return the words with guesses for those that no passage in scope has; ``words.guesses`` says which."""
    unknown = _unknown(request, connection, words)[:MOST_WORDS]
    if not unknown or request.scope.is_empty:
        return words
    chosen = _choose(request, connection, query, unknown)
    if not chosen:
        return words
    added, factors, guesses = [], [], []
    typed = _WORD.findall(query)
    for term, found in chosen:
        word = _word_at(typed, term)
        for one, known in found:
            added.append(QueryTerm(known.term, known.id, known.df, term.position, term.passages))
            factors.append(GUESSED * one.similarity * (1 if _same_letter(one) else OTHER_LETTER))
            guesses.append(replace(one, typed=word))
    weights = _joined(words.weights, weigh(added, words.totals), factors)
    return replace(words, terms=(*words.terms, *added), weights=weights, guesses=tuple(guesses))


def _unknown(request: Request, connection: Any, words: Words) -> list[QueryTerm]:
    """Return the terms of the words that nothing in scope has, in any language."""
    known = {term.term for term in words.terms if term.id is not None}
    if known and not request.scope.is_everything:
        held = terms_by_name(connection, request.store.index.name, sorted(known), request.scope)
        known = {name for name, term in held.items() if term.in_scope}
    placed = {term.position for term in words.terms if term.term in known}
    reach: dict[int, int] = {}
    for term in words.terms:
        reach[term.position] = reach.get(term.position, 0) + term.passages
    # What is no term in some language of the index is a stop word there: known, though nothing holds it.
    stopped = {position for position, passages in reach.items() if passages < words.totals.passages}
    left = [term for term in words.terms if term.position not in placed | stopped]
    return [term for term in left if slips_forgiven(term.term)]


def _choose(
    request: Request, connection: Any, query: str, unknown: Sequence[QueryTerm]
) -> list[tuple[QueryTerm, list[tuple[Guess, KnownTerm]]]]:
    index = request.store.index.name
    near = guess([term.term for term in unknown], lexicon_of(request, connection), limit=TRIED)
    typed = _WORD.findall(query)
    for term in unknown:
        found = near.get(term.term, [])
        word = _word_at(typed, term)
        if (found and found[0].distance <= 1) or len(word) > LONGEST_VARIED or not word.isascii():
            continue
        varied = terms_of_variants(connection, index, one_slip_away(word))  # a slip in an ending hides the stem
        near[term.term] = [Guess(term.term, name, 1) for name in sorted(varied)] + found
    names = {one.meant for found in near.values() for one in found}
    held = terms_by_name(connection, index, sorted(names), request.scope) if names else {}
    chosen = []
    for term in unknown:
        present = [(one, held[one.meant]) for one in near.get(term.term, ()) if one.meant in held]
        present = [(one, known) for one, known in present if known.in_scope]
        if present:
            best = min(one.distance for one, _ in present)
            ranked = sorted(present, key=lambda pair: _likelihood(*pair))
            chosen.append((term, [pair for pair in ranked if pair[0].distance == best][:USED]))
    return chosen


def _word_at(typed: Sequence[str], term: QueryTerm) -> str:
    """Return the word, as typed, that a term comes from."""
    return typed[term.position - 1].lower() if 0 < term.position <= len(typed) else term.term


def _likelihood(one: Guess, known: KnownTerm) -> tuple[int, bool, int, str]:
    """Fewest slips first; slips in the first letter are rare; the commoner word is likelier meant."""
    return one.distance, not _same_letter(one), -known.df, one.meant


def _same_letter(one: Guess) -> bool:
    return one.meant[:1] == one.typed[:1]


def _joined(exact: TermWeights, guessed: TermWeights, factors: Sequence[float]) -> TermWeights:
    weights = tuple(weight * factor for weight, factor in zip(guessed.weights, factors, strict=True))
    return replace(exact, ids=(*exact.ids, *guessed.ids), weights=(*exact.weights, *weights))


def lexicon_of(request: Request, connection: Any) -> Lexicon:
    """Return the index's words, arranged; read again when words may have come."""
    index = request.store.index
    key = (request.store.database_url, index.name, index.created_at)
    version = lexicon_version(connection, index.name)
    with _lock:
        cached = _lexicons.get(key)
    if cached is not None and cached[0] == version:
        return cached[1]
    lexicon = Lexicon.of(lexicon_terms(connection, index.name))
    with _lock:
        _lexicons[key] = (version, lexicon)
        while len(_lexicons) > 16:
            _lexicons.pop(next(iter(_lexicons)))
    return lexicon
