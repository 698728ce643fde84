"""Fuzzy keywords: a word of the question that nothing in scope has is joined by the known words it may mean.

A guessed word counts less than the same word typed right, and less the more slips lie between, so that among
passages for one word the exact ones come first. Questions whose words are all known are left as they are.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from workbench.languages import is_unspaced, spaced_words
from workbench.retrieval.question_words import Guess, Words
from workbench.retrieval.request import Request
from workbench.retrieval.words.bm25 import weigh
from workbench.retrieval.words.query_words import read_words
from workbench.retrieval.words.spelling import Lexicon, guess, one_slip_away, slips_forgiven
from workbench.storage.database import Connection
from workbench.storage.passages import QueryTerm, TermWeights
from workbench.storage.ranking import (
    KnownTerm,
    Version,
    lexicon_terms,
    lexicon_version,
    terms_by_name,
    terms_of_variants,
)
from workbench.types.results import TimedStep

GUESSED = 0.7  # weight of a guessed word against a known one, before its slips are counted
OTHER_LETTER = 0.5  # of that weight where the first letter differs: there slips are rare
TRIED = 25  # near words of one term whose presence in the scope is looked up
USED = 3  # guesses a word that go into the search
LONGEST_VARIED = 25  # letters; spellings of longer words are not enumerated
MOST_WORDS = 12  # unknown words of a question that are guessed; a question with more is no question

_lexicons: dict[tuple[str, str, datetime | None], tuple[Version, Lexicon]] = {}
_lock = threading.Lock()


def read_fuzzy_words(request: Request, connection: Connection, query: str) -> Words:
    """Read the question's words and add guesses for the unknown; later readers of this request get the same."""
    words = read_words(request, connection, query)
    with request.trace.stage(TimedStep.SPELLING):
        guessed = with_guesses(request, connection, query, words)
    request.words[query] = guessed
    return guessed


def with_guesses(request: Request, connection: Connection, query: str, words: Words) -> Words:
    """Return the words with guesses for those that no passage in scope has; ``words.guesses`` says which."""
    unknown = _unknown(words)[:MOST_WORDS]
    if not unknown or request.scope.is_empty:
        return words
    chosen = _choose(request, connection, query, unknown)
    if not chosen:
        return words
    added, factors, guesses = [], [], []
    typed = [word.group() for word in spaced_words(query)]
    for term, likeliest in chosen:
        word = _word_at(typed, term)
        for slip, meant in likeliest:
            added.append(QueryTerm(meant.term, meant.id, meant.df, term.position, term.passages))
            factors.append(GUESSED * slip.similarity * (1 if _same_letter(slip) else OTHER_LETTER))
            guesses.append(replace(slip, typed=word))
    weights = _joined(words.weights, weigh(added, words.totals), factors)
    return replace(words, terms=(*words.terms, *added), weights=weights, guesses=tuple(guesses))


def _unknown(words: Words) -> list[QueryTerm]:
    """Return the terms of the words that nothing in scope has, in any language."""
    placed = {term.position for term in words.terms if term.id is not None}
    reach: dict[int, int] = {}
    for term in words.terms:
        reach[term.position] = reach.get(term.position, 0) + term.passages
    # A word that is no term in some language of the index is a stop word there: known, though nothing holds it.
    stopped = {position for position, passages in reach.items() if passages < words.totals.passages}
    unplaced = [term for term in words.terms if term.position not in placed | stopped]
    return [term for term in unplaced if slips_forgiven(term.term) and not is_unspaced(term.term)]


def _choose(
    request: Request, connection: Connection, query: str, unknown: Sequence[QueryTerm]
) -> list[tuple[QueryTerm, list[tuple[Guess, KnownTerm]]]]:
    index, scope = request.index.name, request.scope.place
    size = request.scope_size(connection)
    near = guess([term.term for term in unknown], lexicon_of(request, connection), limit=TRIED)
    typed = [word.group() for word in spaced_words(query)]
    for term in unknown:
        guesses = near.get(term.term, [])
        word = _word_at(typed, term)
        if (guesses and guesses[0].distance <= 1) or len(word) > LONGEST_VARIED or not word.isascii():
            continue
        varied = terms_of_variants(connection, index, one_slip_away(word))  # a slip in an ending hides the stem
        near[term.term] = [Guess(term.term, name, 1) for name in sorted(varied)] + guesses
    names = {guess.meant for guesses in near.values() for guess in guesses}
    in_index = terms_by_name(connection, index, sorted(names), scope, size) if names else {}
    chosen = []
    for term in unknown:
        present = [(guess, in_index[guess.meant]) for guess in near.get(term.term, ()) if guess.meant in in_index]
        if present:
            best = min(guess.distance for guess, _ in present)
            ranked = sorted(present, key=lambda pair: _likelihood(*pair))
            chosen.append((term, [pair for pair in ranked if pair[0].distance == best][:USED]))
    return chosen


def _word_at(typed: Sequence[str], term: QueryTerm) -> str:
    """Return the word, as typed, that a term comes from."""
    return typed[term.position - 1].lower() if 0 < term.position <= len(typed) else term.term


def _likelihood(guess: Guess, term: KnownTerm) -> tuple[int, bool, int, str]:
    """Order by fewest slips first; slips in the first letter are rare; the commoner word is likelier meant."""
    return guess.distance, not _same_letter(guess), -term.df, guess.meant


def _same_letter(guess: Guess) -> bool:
    return guess.meant[:1] == guess.typed[:1]


def _joined(exact: TermWeights, guessed: TermWeights, factors: Sequence[float]) -> TermWeights:
    weights = tuple(weight * factor for weight, factor in zip(guessed.weights, factors, strict=True))
    return replace(
        exact,
        ids=(*exact.ids, *guessed.ids),
        weights=(*exact.weights, *weights),
        counts=(*exact.counts, *guessed.counts),
    )


def lexicon_of(request: Request, connection: Connection) -> Lexicon:
    """Return the index's words, arranged; read again when words may have come."""
    index = request.index
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
