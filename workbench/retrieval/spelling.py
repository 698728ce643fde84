"""Spelling correction by optimal string alignment.

The distance counts a missing, extra, wrong or transposed letter as one (Damerau 1964, in the
restricted form of Oommen & Loke 1997); rapidfuzz computes it.
"""

from __future__ import annotations

import string
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice

from rapidfuzz import process
from rapidfuzz.distance import OSA

from workbench.retrieval.bm25 import weigh_terms
from workbench.retrieval.highlight import MarkableText
from workbench.retrieval.query import Guess, Query, Request, Words
from workbench.storage.database import Connection
from workbench.storage.passages import QueryTerm
from workbench.storage.ranking import (
    KnownTerm,
    Version,
    fetch_known_terms,
    fetch_lexicon_terms,
    fetch_lexicon_version,
    fetch_variant_terms,
    fetch_word_terms,
)
from workbench.text import count_spaced_words, fold_word, is_unspaced, iter_spaced_words
from workbench.types import Passage, TimedStep

SHORT_WORD_LETTERS = 5  # one typo is allowed up to this length, two above
MAX_TYPOS = 2
MIN_WORD_LETTERS = 4  # shorter words are not corrected: one typo turns any into any other
MIN_STEM_LETTERS = 3  # of a word of that length


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Known words by length, because only words of similar length can be near."""

    by_length: dict[int, list[str]] = field(default_factory=dict)

    @classmethod
    def from_words(cls, words: Iterable[str]) -> Lexicon:
        arranged: dict[int, list[str]] = {}
        for word in words:
            arranged.setdefault(len(word), []).append(word)
        return cls(arranged)

    def within(self, word: str, distance: int) -> list[tuple[str, int]]:
        """Return (known word, distance) of the words within a distance, nearest first."""
        near_words: list[tuple[str, int]] = []
        for length in range(len(word) - distance, len(word) + distance + 1):
            near = process.extract(
                word, self.by_length.get(length, ()), scorer=OSA.distance, score_cutoff=distance, limit=None
            )
            near_words += [(match, int(slips)) for match, slips, _ in near]
        return sorted(near_words, key=lambda item: (item[1], item[0][:1] != word[:1], item[0]))


def max_typos(word: str) -> int:
    """Return the number of typos allowed in a stem: 0 if shorter than 3 or with digits, 1 up to 5 letters, else 2."""
    if len(word) < MIN_STEM_LETTERS or not word.isalpha():
        return 0
    return 1 if len(word) <= SHORT_WORD_LETTERS else MAX_TYPOS


def guess_words(terms: Sequence[str], lexicon: Lexicon, most: int = MAX_TYPOS) -> dict[str, list[Guess]]:
    """Return the corrections of each term within ``most`` typos, likeliest first; terms without any are omitted.

    Fewest typos come first, then the same first letter. A known term is not its own correction.
    """
    guesses: dict[str, list[Guess]] = {}
    for term in terms:
        slips = min(max_typos(term), most)
        near = lexicon.within(term, slips) if slips else []
        likely = [Guess(term, word, distance) for word, distance in near if word != term and word.isalpha()]
        if likely:
            guesses[term] = likely
    return guesses


def enumerate_typos(word: str) -> list[str]:
    """Return every spelling within one typo of a word of plain letters, before stemming."""
    letters = string.ascii_lowercase
    cuts = [(word[:place], word[place:]) for place in range(len(word) + 1)]
    dropped = [a + b[1:] for a, b in cuts if b]
    swapped = [a + b[1] + b[0] + b[2:] for a, b in cuts if len(b) > 1]
    changed = [a + letter + b[1:] for a, b in cuts if b for letter in letters]
    added = [a + letter + b for a, b in cuts for letter in letters]
    return [spelling for spelling in dict.fromkeys(dropped + swapped + changed + added) if spelling != word]


# Corrections of unknown words

GUESS_WEIGHT = 0.7  # weight of a correction relative to a known word, before counting typos
OTHER_FIRST_LETTER_FACTOR = 0.5  # if the first letter differs, as typos are rare there
MAX_GUESSES_USED = 3  # corrections per word used in the search
MAX_ENUMERATED_LETTERS = 25  # typos of longer words are not enumerated
MAX_UNKNOWN_WORDS = 12  # unknown words corrected; a text with more is not a question

_lexicons: dict[tuple[str, str, datetime | None], tuple[Version, Lexicon]] = {}
_lock = threading.Lock()


def correct_words(request: Request, connection: Connection, query: str, words: Words) -> Words:
    """Return the words of a question, with ``guesses`` for those that no passage in scope contains.

    Without unknown words this is free.
    """
    typed = [word.group() for word in iter_spaced_words(query)]
    long_enough = (term for term in _unknown_terms(words) if len(_find_typed_word(typed, term)) >= MIN_WORD_LETTERS)
    unknown = list(islice(long_enough, MAX_UNKNOWN_WORDS))
    if not unknown or request.scope.is_empty:
        return words
    with request.trace.stage(TimedStep.SPELLING):
        chosen = _choose_guesses(request, connection, typed, unknown)
    if not chosen:
        return words
    added, factors, guesses = [], [], []
    for term, likeliest in chosen:
        word = _find_typed_word(typed, term)
        for slip, meant in likeliest:
            added.append(QueryTerm(meant.term, meant.id, meant.df, term.position, term.passages, meant.postings))
            factors.append(
                GUESS_WEIGHT * slip.similarity * (1 if _has_same_first_letter(slip) else OTHER_FIRST_LETTER_FACTOR)
            )
            guesses.append(replace(slip, typed=word))
    exact, guessed = words.weights, weigh_terms(added, words.totals)
    weights = replace(
        exact,
        ids=(*exact.ids, *guessed.ids),
        weights=(*exact.weights, *(w * factor for w, factor in zip(guessed.weights, factors, strict=True))),
        counts=(*exact.counts, *guessed.counts),
    )
    return replace(words, terms=(*words.terms, *added), weights=weights, guesses=tuple(guesses))


def _unknown_terms(words: Words) -> list[QueryTerm]:
    """Return the terms of words that no passage in scope contains, in any language."""
    placed = {term.position for term in words.terms if term.id is not None}
    reach: dict[int, int] = {}
    for term in words.terms:
        reach[term.position] = reach.get(term.position, 0) + term.passages
    # A word that is not a term in some language of the index is a stop word there, so it is known.
    stopped = {position for position, passages in reach.items() if passages < words.totals.passages}
    unplaced = [term for term in words.terms if term.position not in placed | stopped]
    return [term for term in unplaced if max_typos(term.term) and not is_unspaced(term.term)]


def _choose_guesses(
    request: Request, connection: Connection, typed: Sequence[str], unknown: Sequence[QueryTerm]
) -> list[tuple[QueryTerm, list[tuple[Guess, KnownTerm]]]]:
    """Return the likeliest words in the scope for each unknown one: those with one typo, or else two.

    Words are looked up in the scope before any is dropped, so that words outside it cannot take their place.
    """
    index, scope = request.index.name, request.scope.place
    size = request.scope_size(connection)
    lexicon = load_lexicon(request, connection)

    def variants(term: QueryTerm) -> list[Guess]:
        word = _find_typed_word(typed, term)
        if len(word) > MAX_ENUMERATED_LETTERS or not word.isascii():
            return []
        found = fetch_variant_terms(connection, index, enumerate_typos(word))  # a typo in an ending hides the stem
        return [Guess(term.term, name, 1) for name in sorted(found)]

    def at_distance(distance: int) -> Callable[[QueryTerm], list[Guess]]:
        def guess(term: QueryTerm) -> list[Guess]:
            near = guess_words([term.term], lexicon, distance)
            return [guess for guess in near.get(term.term, ()) if guess.distance == distance]

        return guess

    chosen: dict[str, list[tuple[Guess, KnownTerm]]] = {}
    for step in (at_distance(1), variants, at_distance(2)):
        guesses = [guess for term in unknown if term.term not in chosen for guess in step(term)]
        known = fetch_known_terms(connection, index, {guess.meant for guess in guesses}, scope, size)
        for guess in guesses:
            if guess.meant in known:
                chosen.setdefault(guess.typed, []).append((guess, known[guess.meant]))
    ranked = {word: sorted(pairs, key=lambda pair: _likelihood_key(*pair)) for word, pairs in chosen.items()}
    return [(term, ranked[term.term][:MAX_GUESSES_USED]) for term in unknown if term.term in ranked]


def _find_typed_word(typed: Sequence[str], term: QueryTerm) -> str:
    return typed[term.position - 1].lower() if 0 < term.position <= len(typed) else term.term


def _likelihood_key(guess: Guess, term: KnownTerm) -> tuple[int, bool, int, str]:
    """Sort by fewest typos, then the same first letter, then the more common word."""
    return guess.distance, not _has_same_first_letter(guess), -term.df, guess.meant


def _has_same_first_letter(guess: Guess) -> bool:
    return guess.meant[:1] == guess.typed[:1]


def load_lexicon(request: Request, connection: Connection) -> Lexicon:
    """Return the lexicon of the index, reloaded when words may have been added."""
    index = request.index
    key = (request.store.database_url, index.name, index.created_at)
    version = fetch_lexicon_version(connection, index.name)
    with _lock:
        cached = _lexicons.get(key)
    if cached is not None and cached[0] == version:
        return cached[1]
    lexicon = Lexicon.from_words(fetch_lexicon_terms(connection, index.name))
    with _lock:
        _lexicons[key] = (version, lexicon)
        while len(_lexicons) > 16:
            _lexicons.pop(next(iter(_lexicons)))
    return lexicon


# Corrections for display

MAX_READ_PASSAGES = 20  # first passages in whose texts corrected words are looked up


def list_corrections(query: Query, passages: Sequence[Passage]) -> dict[str, tuple[str, ...]]:
    """Return {typed word: corrections searched for} of a finished search.

    The index has only stems; words are shown as they occur in the first found passages, if they do.
    """
    request = query.request
    if request.correct is None or not query.words.guesses:
        return {}
    words = query.words
    texts = [
        MarkableText(f"{passage.document_title} {passage.text}", str(passage.metadata.get("language", "english")))
        for passage in passages[:MAX_READ_PASSAGES]
    ]
    with request.store.reading() as connection:
        whole = find_whole_words(connection, {guess.meant for guess in words.guesses}, texts)
    tried: dict[str, list[str]] = {}
    for guess in words.guesses:
        tried.setdefault(guess.typed, []).append(guess.meant)
    return {
        typed: tuple(dict.fromkeys(whole[term] for term in meant if term in whole)) or tuple(dict.fromkeys(meant))
        for typed, meant in tried.items()
    }


def find_whole_words(connection: Connection, terms: Collection[str], texts: Sequence[MarkableText]) -> dict[str, str]:
    """Return each term's most common word in the texts, in lower case; terms without one are omitted."""
    heads = {term[:2] for term in terms}  # a stem starts like its word, except for the article in Arabic
    written: dict[str, Counter[str]] = defaultdict(Counter)
    for text in texts:
        written[text.language].update(count_spaced_words(text.text))
    counts = Counter[tuple[str, str]]()
    for language, words in written.items():
        for word, count in words.items():
            if language == "arabic" or fold_word(word).lower()[:2] in heads:
                counts[word.lower(), language] += count
    terms_of = fetch_word_terms(connection, sorted(counts)) if counts else {}
    found: dict[str, str] = {}
    for pair, _ in counts.most_common():
        for term in terms_of.get(pair, ()):
            if term in terms:
                found.setdefault(term, pair[0])
    return found
