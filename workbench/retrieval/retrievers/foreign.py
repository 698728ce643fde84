"""The retriever of a user's strategy: asks a foreign retriever and matches its hits to stored passages.

A hit is matched by the id of a passage; by the id, URL or path of a document, and within it by its text; or by its text
alone. A hit that matches nothing is shown with its own text. In a scope, every hit that is not known to be inside is
dropped, and none of these is counted.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

from llama_index.core.schema import NodeWithScore

from workbench.errors import ModelError
from workbench.retrieval.bm25 import weigh_terms
from workbench.retrieval.hits import Hit
from workbench.retrieval.nodes import EXTRA, CopyFolder, make_node
from workbench.retrieval.own import MAX_HITS_READ, OWN_NOTE, UNMATCHED_PREFIX, OwnAnswer, OwnHit, RetrieverFault
from workbench.retrieval.query import Query
from workbench.retrieval.retrievers.retriever import Retriever
from workbench.storage.passages import (
    Connection,
    NamedDocument,
    StoredPassage,
    fetch_document_passages,
    fetch_internal_ids,
    fetch_passages,
    find_named_documents,
)
from workbench.storage.postings import rank_everything
from workbench.storage.ranking import fetch_query_terms, filter_passages
from workbench.types import FAULT_END, MAX_RANKED_PASSAGES, OWN, VECTOR, Leg, ResolvedScope, TimedStep

# hits requested if there is a scope, as a multiple of the limit, since a foreign retriever ignores it
NARROW_FACTOR = 4
MIN_OVERLAP_CHARS = 40  # shared by two texts unless they are equal, because phrases recur in many passages
LOOKUP_TERMS = 12  # rarest terms of a text, used to look up passages that contain it
LOOKUP_PASSAGES = 20  # passages compared with a text
LOOKUP_CHARS = 4_000  # characters of a text whose terms are read
NEAR_BEST_SHARE = 0.8  # of the best overlap; a passage in scope with at least this much is preferred to one outside it
_WORD = re.compile(r"\w+")


class ForeignRetriever(Retriever):
    """A foreign retriever's hits as nodes of stored passages."""

    def find(self, query: Query) -> list[NodeWithScore]:
        """Call the retriever; if it fails, add a note and return nothing."""
        request, trace = self._request, self._request.trace
        retrieval = request.strategy.own
        assert retrieval is not None
        everything = request.scope.is_everything
        asked = request.limit if everything else min(MAX_RANKED_PASSAGES, NARROW_FACTOR * request.limit)
        try:
            with trace.stage(TimedStep.FRAMEWORK):
                answer = retrieval.ask(query.text, asked, request.parameters)
        except RetrieverFault as fault:
            trace.note(f"{OWN_NOTE}{fault}{FAULT_END}")
            return []
        with trace.stage(TimedStep.FETCH), request.store.reading() as connection:
            matching = _Matching(query, connection)
            shown = matching.match_first(answer.hits, request.limit)
            scores = self._score(shown)
            self._note_counts(answer, asked, matching.counts)
            nodes = _make_nodes(query, connection, shown, scores)
            return CopyFolder().add(nodes) if request.folds_when_found else nodes

    def _score(self, shown: Sequence[_Match]) -> list[float]:
        scores, fault = scale_scores([match.hit.score for match in shown])
        if fault:
            self._request.trace.note(f"{OWN_NOTE}{fault}, so its order is kept and passages are scored by rank")
        return scores

    def _note_counts(self, answer: OwnAnswer, asked: int, counts: Counter[str]) -> None:
        note = self._request.trace.note
        returned = len(answer.hits) + answer.unreadable
        number = f"over {MAX_HITS_READ:,} hits" if returned > MAX_HITS_READ else _count(returned)
        if answer.unreadable:
            note(f"{OWN_NOTE}{_count(answer.unreadable)} could not be read (the first: {answer.first_fault})")
        if not self._request.scope.is_whole_corpus:
            note(f"{OWN_NOTE}only its hits from documents in the scope are shown")
        elif returned > asked:
            note(f"{OWN_NOTE}it returned {number} instead of the {asked} requested")
        elif returned < self._request.limit:
            note(f"{OWN_NOTE}it returned {_count(returned)}, fewer than the {self._request.limit} requested")
        for name, reason in _REASONS.items():
            if counts[name]:
                note(f"{OWN_NOTE}{_count(counts[name])} {reason}")


REPEATED, OUTSIDE, UNMATCHED, BY_DOCUMENT = "repeated", "outside", "unmatched", "by document"
_REASONS = {
    REPEATED: "left out: already listed",
    OUTSIDE: "left out: outside the index",
    UNMATCHED: "matched to no stored document and shown as returned",
    BY_DOCUMENT: "matched to a document but to none of its passages, and shown by the most similar one",
}


def _count(hits: int) -> str:
    return "1 hit" if hits == 1 else f"{hits:,} hits"


def scale_scores(scores: Sequence[float | None]) -> tuple[list[float], str]:
    """Return scores in 0..1 that decrease with rank, and any problem with the given scores ("" if none).

    Scores in 0..1 are kept. Larger positive scores are divided by the highest; negative ones are scaled between the
    lowest and the highest. If scores are missing or increase with rank, they become (n - rank + 1) / n.
    """
    by_rank = [1 - place / len(scores) for place in range(len(scores))]
    known = [score for score in scores if score is not None]
    if not known:
        return by_rank, ""
    if len(known) < len(scores):
        return by_rank, f"{_count(len(scores) - len(known))} had no score"
    if any(later > earlier for earlier, later in pairwise(known)):
        return by_rank, "its scores do not decrease with rank"
    high, low = known[0], known[-1]
    if low >= 0 and high <= 1:
        return known, ""
    if low >= 0:
        return [score / high for score in known], ""
    return [(score - low) / (high - low) if high > low else 1.0 for score in known], ""


# Matching hits to stored passages


@dataclass(frozen=True, slots=True)
class _Match:
    hit: OwnHit
    passage: StoredPassage | None


class _Matching:
    """The matching of one answer's hits; ``counts`` are the numbers of hits that matched nothing, or only partly."""

    def __init__(self, query: Query, connection: Connection) -> None:
        self._query, self._request, self._connection = query, query.request, connection
        self._index = query.request.index.name
        self._passages: dict[str, list[StoredPassage]] = {}
        self.counts = Counter[str]()

    def match_first(self, hits: Sequence[OwnHit], limit: int) -> list[_Match]:
        """Return the matches of the first hits until there are ``limit``, without repeated passages."""
        shown: dict[str, _Match] = {}
        for hit in hits[: max(MAX_RANKED_PASSAGES, limit)]:
            match = self.match(hit)
            if match.passage is not None and shown.setdefault(match.passage.node_id, match) is not match:
                self.counts[REPEATED] += 1
            if len(shown) == limit:
                break
        return list(shown.values())

    def match(self, hit: OwnHit) -> _Match:
        by_id = fetch_internal_ids(self._connection, self._index, hit.ids)
        if by_id:
            number = next(by_id[key] for key in hit.ids if key in by_id)
            if not filter_passages(self._connection, self._index, self._request.scope, [number]):
                return self._drop(hit)
            return _Match(hit, fetch_passages(self._connection, self._index, [number])[number])
        named = self._find_documents(hit)
        inside = [document for document in named if document.inside]
        if inside:
            return self._match_within(hit, inside)
        found = self._find_by_text(hit) if hit.text.strip() else []  # a copy may be inside
        if found:
            return self._choose(hit, found)
        if named:
            return self._drop(hit)
        if not self._request.scope.is_whole_corpus:
            return _Match(hit, None)
        self.counts[UNMATCHED] += 1
        return _Match(hit, make_unmatched(hit, -1 - self.counts[UNMATCHED]))

    def _drop(self, hit: OwnHit) -> _Match:
        self.counts[OUTSIDE] += self._request.scope.is_whole_corpus
        return _Match(hit, None)

    def _find_documents(self, hit: OwnHit) -> list[NamedDocument]:
        """Return the stored documents that a hit names: by id, else by URL, else by path, else by key in the index."""
        found = find_named_documents(
            self._connection, self._index, self._request.scope, hit.ids, list_url_forms(hit.url), hit.path
        )
        urls = set(list_url_forms(hit.url))
        rules = (
            [one for one in found if one.id in hit.ids],
            [one for one in found if one.url in urls],
            [one for one in found if hit.path and is_same_file(one.path or "", hit.path)],
            [one for one in found if one.key in hit.ids and one.indexed],
        )
        return next((named for named in rules if named), [])

    def _match_within(self, hit: OwnHit, documents: Sequence[NamedDocument]) -> _Match:
        candidates = [passage for document in documents for passage in self._fetch_candidates(document.id)]
        best = max(candidates, key=lambda passage: measure_overlap(passage.text, hit.text), default=None)
        if best is None:
            return self._drop(hit)
        if not hit.text.strip() or not measure_overlap(best.text, hit.text):
            self.counts[BY_DOCUMENT] += bool(hit.text.strip())
            words = set(_WORD.findall((hit.text.strip() or self._query.text).lower()))
            best = max(candidates, key=lambda passage: len(words & set(_WORD.findall(passage.text.lower()))))
        return _Match(hit, best)

    def _fetch_candidates(self, document_id: str) -> list[StoredPassage]:
        if document_id not in self._passages:
            self._passages[document_id] = fetch_document_passages(self._connection, self._index, document_id)
        return self._passages[document_id]

    def _find_by_text(self, hit: OwnHit) -> list[tuple[int, StoredPassage]]:
        """Return passages of the whole index that share text with a hit, and how many characters, most first."""
        asked = fetch_query_terms(self._connection, self._index, hit.text[:LOOKUP_CHARS], ResolvedScope(), 0)
        rare = sorted((term for term in asked.terms if term.id is not None), key=lambda term: term.df)[:LOOKUP_TERMS]
        if not rare:
            return []
        ranked = rank_everything(self._connection, self._index, weigh_terms(rare, asked.totals), LOOKUP_PASSAGES).scores
        passages = fetch_passages(self._connection, self._index, list(ranked))
        shared = [(measure_overlap(passage.text, hit.text), passage) for passage in passages.values()]
        return sorted((one for one in shared if one[0]), key=lambda one: (-one[0], one[1].id))

    def _choose(self, hit: OwnHit, found: Sequence[tuple[int, StoredPassage]]) -> _Match:
        """Return the passage in scope that contains most of a hit's text; drop the hit if there is none."""
        near = [passage for shared, passage in found if shared >= NEAR_BEST_SHARE * found[0][0]]
        inside = filter_passages(self._connection, self._index, self._request.scope, [one.id for one in near])
        passage = next((one for one in near if one.id in inside), None)
        return self._drop(hit) if passage is None else _Match(hit, passage)


def list_url_forms(url: str) -> list[str]:
    """Return the forms in which a URL may be stored: unchanged, without fragment, with and without a trailing slash."""
    bare = url.partition("#")[0]
    return list(dict.fromkeys(form for form in (url, bare, bare.rstrip("/"), bare + "/") if form)) if url else []


def is_same_file(stored: str, path: str) -> bool:
    """Return whether two paths are equal or one ends with the other: "docs/a.md" and "/srv/docs/a.md"."""
    first, second = (text.replace("\\", "/").removeprefix("./") for text in (stored, path))
    return bool(first) and (first == second or first.endswith(f"/{second}") or second.endswith(f"/{first}"))


def measure_overlap(passage: str, text: str) -> int:
    """Return how many characters a passage and a text share, ignoring white space; 0 if they are merely similar.

    They share text if they are equal, one contains the other, or the end of one is the start of the other.
    """
    first, second = " ".join(passage.split()), " ".join(text.split())
    if not first or not second:
        return 0
    if first == second:
        return len(first) + 1  # better than any text that contains it
    shorter, longer = sorted((first, second), key=len)
    if len(shorter) >= MIN_OVERLAP_CHARS and shorter in longer:
        return len(shorter)
    return max(_measure_continuation(first, second), _measure_continuation(second, first))


def _measure_continuation(first: str, second: str) -> int:
    """Return how many characters at the end of ``first`` are the beginning of ``second``."""
    start = first.find(second[:MIN_OVERLAP_CHARS])
    while start >= 0 and len(first) - start >= MIN_OVERLAP_CHARS:
        if second.startswith(first[start:]):
            return len(first) - start
        start = first.find(second[:MIN_OVERLAP_CHARS], start + 1)
    return 0


def make_unmatched(hit: OwnHit, number: int) -> StoredPassage:
    """Return a passage with a hit's own text; ``number`` (negative) is its internal id."""
    named = hit.url or hit.path or (hit.ids[-1] if hit.ids else "") or hit.text
    document, passage = (
        hashlib.blake2b(part.encode(errors="replace"), digest_size=9).hexdigest() for part in (named, named + hit.text)
    )
    return StoredPassage(
        id=number,
        node_id=f"{UNMATCHED_PREFIX}{passage}",
        text=hit.text or named,
        metadata={"start": 0, "end": len(hit.text or named), "ordinal": 0},
        document_id=f"{UNMATCHED_PREFIX}{document}",
        source_id="",
        title=hit.title or hit.url or hit.path or (hit.ids[0] if hit.ids else "Not in the corpus"),
        path=hit.path or None,
        url=hit.url or None,
        document_type="text",
    )


def _make_nodes(
    query: Query, connection: Connection, shown: Sequence[_Match], scores: Sequence[float]
) -> list[NodeWithScore]:
    passages = [match.passage for match in shown if match.passage is not None]
    cosines: dict[int, float] = {}
    stored = [passage.id for passage in passages if passage.id > 0]
    if stored:
        with suppress(ModelError):  # then the passages are shown without a similarity
            cosines = query.request.store.fetch_cosines(connection, query.encoded.vector, stored)
    nodes: list[NodeWithScore] = []
    for rank, (match, passage, score) in enumerate(zip(shown, passages, scores, strict=False), start=1):
        raw = score if match.hit.score is None else match.hit.score
        legs = {OWN: Leg(raw, rank, score)}
        if passage.id in cosines:
            legs[VECTOR] = Leg(cosines[passage.id])
        node = make_node(passage, Hit(passage.id, score, legs))
        if passage.id < 0:
            node.node.metadata[EXTRA] = {"unmatched": True}
        nodes.append(node)
    return nodes
