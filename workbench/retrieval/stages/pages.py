"""Page rerank: a page is found by its best passage, supported by the next best one of the same page.

Long reports say the same words in many places. A page with a second good passage is more likely to be about the
question, and once a page is among the results, another page adds more than its second passage. So with the scores
s1 >= s2 >= ... of a page's candidates, without what they have for their document's name, its best passage gets

    (1 - SUPPORT_SHARE) * s1 + SUPPORT_SHARE * s2

(s2 is 0 if there is only one), and each other one (1 - SUPPORT_SHARE) * s. A passage without a page gets the mean
support, so that documents with and without pages compete equally; if no candidate has a page, nothing changes.
"""

from __future__ import annotations

from collections.abc import Sequence

from llama_index.core.schema import NodeWithScore

from workbench.retrieval.hits import hit_from_legs, scale_contributions
from workbench.retrieval.nodes import node_hit, node_passage, replace_hits
from workbench.retrieval.stages.stage import Query, Stage
from workbench.types import DOCUMENT

# On annual reports (docs/decisions/016-document-names.md) the shares from .1 to .5 differ by at most two questions.
SUPPORT_SHARE = 0.2

Place = tuple[str, object]  # document and page


class PageRerank(Stage):
    """A stage that prefers pages with several good passages, and puts other pages before a page's further passages."""

    def apply(self, query: Query, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        """Return the nodes by page support; unchanged if none has a page."""
        pages = [_find_page(node) for node in nodes]
        if not any(pages):
            return nodes
        hits = [node_hit(node) for node in nodes]
        scores = [sum(leg.contribution for name, leg in hit.legs.items() if name != DOCUMENT) for hit in hits]
        moved = [
            hit_from_legs(hit.id, scale_contributions(hit.legs, factor, DOCUMENT))
            for hit, factor in zip(hits, compute_page_factors(scores, pages), strict=True)
        ]
        return replace_hits(nodes, sorted(moved, key=lambda hit: (-hit.score, hit.id)))


def _find_page(node: NodeWithScore) -> Place | None:
    passage = node_passage(node)
    page = passage.metadata.get("page")
    return None if page is None else (passage.document_id, page)


def compute_page_factors(scores: Sequence[float], pages: Sequence[Place | None]) -> list[float]:
    """Return the factor (0..1) of each score. ``scores`` are in 0..1, best first; ``pages`` are None if unknown."""
    of_page: dict[Place, list[float]] = {}
    for score, page in zip(scores, pages, strict=True):
        if page is not None:
            of_page.setdefault(page, []).append(score)
    padded = ((page, (*inside, 0.0)) for page, inside in of_page.items())
    support = {page: second / first if first else 0.0 for page, (first, second, *_) in padded}
    mean = sum(support.values()) / max(1, len(support))
    # The best passage of a page comes first and takes its support.
    gains = [mean if page is None else support.pop(page, 0.0) for page in pages]
    return [1 - SUPPORT_SHARE + SUPPORT_SHARE * gain for gain in gains]
