"""Document names in a question: which documents they favour, how strongly, and which names are shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

from workbench.retrieval.names import MatchedName, Mention, NamesCache, NamesTable, QuestionNames, normalize_for_names
from workbench.retrieval.query import Query, Words
from workbench.storage.database import Connection
from workbench.storage.documents import fetch_title_terms
from workbench.storage.ranking import fetch_known_terms, fetch_word_terms
from workbench.text import iter_spaced_words
from workbench.types import DocumentName

# Documents named in a question

MIN_NAME_SHARE = 0.5  # smaller shares are common between any two texts on one subject


def name_confidence(share: float) -> float:
    """Return the confidence 0..1 that a document is meant, from the matched share of its name."""
    return max(0.0, (share - MIN_NAME_SHARE) / (1 - MIN_NAME_SHARE))


MIN_SURE_SHARE = 0.75  # minimum matched share for showing a title as preferred
MAX_TITLES_SHOWN = 3
OTHER_PERIOD_FACTOR = 0.5  # for documents whose label has another period than the question


def read_names(query: Query, connection: Connection) -> QuestionNames:
    """Return the names in a question, cached."""
    if query.names is None:
        query.names = _read_names(query, connection)
    return query.names


def compute_name_confidences(query: Query, connection: Connection, documents: Mapping[int, str]) -> dict[int, float]:
    """Return the confidence (0.5..1) that a question means the document of each given passage, by passage id.

    It is based on the matched share of the title or file name, or on the other names in the question.
    Passages of documents that are not named are omitted. Matched titles are stored in ``query.titles``.

    Args:
        documents: Ids of the passages' documents, by passage id.
    """
    scope = query.request.scope
    if scope.names == "ignore":
        return {}
    names = read_names(query, connection)
    strengths = names.strengths or {}
    ignored = _casefold_all(scope.ignored_names)
    shares: dict[str, float] = {}
    titles: list[MatchedName] = []
    distinct = sorted(set(documents.values()))
    matched = _match_names(query, connection, distinct)
    for document in distinct:
        name = matched.get(document, MatchedName(document))
        share = 0.0 if name.name.casefold() in ignored else name.share
        if share >= MIN_SURE_SHARE and document not in strengths:
            titles.append(name)
        share = max(share, MIN_NAME_SHARE + (1 - MIN_NAME_SHARE) * strengths.get(document, 0.0))
        if document in names.others:
            share = min(share, MIN_NAME_SHARE + OTHER_PERIOD_FACTOR * (share - MIN_NAME_SHARE))
        shares[document] = share
    query.titles = tuple(sorted(titles, key=lambda name: (-name.share, name.name)))
    confidences = {key: shares[document] for key, document in documents.items()}
    return {key: share for key, share in confidences.items() if share > MIN_NAME_SHARE}


def _match_names(query: Query, connection: Connection, documents: Sequence[str]) -> dict[str, MatchedName]:
    request, words = query.request, query.read_words(connection)

    def count(terms: Collection[str]) -> dict[str, int]:
        size = request.scope_size(connection)
        known = fetch_known_terms(connection, request.index.name, terms, request.scope.place, size)
        return {name: term.df for name, term in known.items()}

    cache = request.kept_names or NamesCache()
    load = partial(fetch_title_terms, connection)
    terms = _name_terms(query, connection, words)
    return cache.match_names(words.totals, request.scope, documents, terms, load, count)


def _name_terms(query: Query, connection: Connection, words: Words) -> frozenset[str]:
    """Return the terms of the question for matching titles; without the names that the scope ignores."""
    asked = read_names(query, connection).asked
    if asked == query.text and words.name_terms is not None:
        return words.name_terms
    spelt = normalize_for_names(asked)
    found = fetch_word_terms(connection, [(spelt, language) for language in words.totals.languages])
    return frozenset(term for terms in found.values() for term in terms)


def list_preferred_names(query: Query) -> tuple[DocumentName, ...]:
    """Return the names that caused documents to be preferred, most confident first."""
    if query.names is None:
        return ()
    titles = [DocumentName(title.name, "title") for title in (query.titles or ())[:MAX_TITLES_SHOWN]]
    names = {name.text.casefold(): name for name in [*(mention.name for mention in query.names.mentions), *titles]}
    return tuple(names.values())


def restrict_to_named(query: Query) -> Query:
    """Return the question, restricted to the documents that it names if the scope has names="only"."""
    request = query.request
    if request.scope.names != "only":
        return query
    with request.store.reading() as connection:
        documents = read_names(query, connection).documents_of_all()
    if documents is None:
        request.trace.note("names: the question names no document, so the whole scope was searched")
        return query
    within = request.scope.document_ids
    kept = tuple(sorted(documents if within is None else documents & set(within)))
    if kept == within:
        return query
    return query.rebind(replace(request, scope=replace(request.scope, document_ids=kept)))


def _read_names(query: Query, connection: Connection) -> QuestionNames:
    request, text = query.request, query.text
    if request.kept_names is None:
        return QuestionNames(text)
    words = query.read_words(connection)
    table = request.kept_names.table_in_scope(connection, request.index.name, words.totals, request.scope)
    mentions = table.mentions(text, _content_words(text, words))
    ignored = _casefold_all(request.scope.ignored_names)
    kept = tuple(mention for mention in mentions if mention.name.text.casefold() not in ignored)
    unsaid = [mention for mention in mentions if mention not in kept]
    asked = _remove_mentions(text, unsaid)
    return QuestionNames(asked, kept, _document_confidences(table, kept), table.of_other_periods(asked))


def _document_confidences(table: NamesTable, mentions: Sequence[Mention]) -> dict[str, float]:
    """Return the confidence 0..1 for each document by its share of the names' weight.

    A document with at most half of the weight is excluded: "Alpine, 2019" does not mean all documents of 2019.
    """
    weights: dict[str, float] = {}
    total = 0.0
    for mention in mentions:
        weight = table.weight(mention.name)
        total += weight
        for document in mention.documents:
            weights[document] = weights.get(document, 0.0) + weight
    meant = {document: name_confidence(weight / total) for document, weight in weights.items()} if total else {}
    return {document: min(1.0, total) * sure for document, sure in meant.items() if sure}


def _content_words(query: str, words: Words) -> frozenset[str]:
    """Return the folded words of a question that are not stop words in any language of the index.

    Otherwise a few German passages would make "the" a name, because it is not a German stop word.
    """
    reach = Counter[int]()
    for term in words.terms:
        reach[term.position] += term.passages
    positions = {position for position, passages in reach.items() if passages >= words.totals.passages}
    spaced = enumerate(iter_spaced_words(query), start=1)
    return frozenset(part for position, word in spaced if position in positions for part in _split_words(word[0]))


def _split_words(word: str) -> list[str]:
    return normalize_for_names(word).casefold().split()


def _remove_mentions(query: str, mentions: Sequence[Mention]) -> str:
    for mention in sorted(mentions, key=lambda mention: -mention.start):
        query = f"{query[: mention.start]} {query[mention.end :]}"
    return query


def _casefold_all(texts: Sequence[str]) -> frozenset[str]:
    return frozenset(text.casefold() for text in texts)
