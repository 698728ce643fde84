"""Conversion between hits and LlamaIndex nodes, which have internal id and attribution in their metadata."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from llama_index.core.schema import NodeWithScore, TextNode

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
_INTERNAL = [ID, LEGS, PASSAGE, EXTRA, COPIES]
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
    """Fetch the passages of hits and return them as nodes, in the same order."""
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
        excluded_llm_metadata_keys=[*_INTERNAL, "document_id", "source_id"],
        excluded_embed_metadata_keys=_INTERNAL,
    )
    return NodeWithScore(node=node, score=hit.score)


def node_passage(node: NodeWithScore) -> StoredPassage:
    """Return the stored passage of a node."""
    return node.node.metadata[PASSAGE]


def node_hit(node: NodeWithScore) -> Hit:
    """Return the hit of a node."""
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
        copies=tuple(_copy(copied) for copied in metadata.get(COPIES, {}).values()),
        draw_page=draw_page if passage.id > 0 else None,  # no stored document has a hit that matched none
    )


def _copy(passage: StoredPassage) -> Copy:
    return Copy(
        passage.node_id, passage.document_id, passage.title, passage.source_id, passage.path, passage.url, *passage.span
    )


def match_type(legs: Mapping[str, Leg]) -> str:
    """Return how a passage was found: "vector" (only by legs of meaning), "keyword", or "hybrid" for both."""
    matches = {leg_kind(name).match for name, leg in legs.items() if leg.rank is not None} - {None}
    return str(matches.pop()) if len(matches) == 1 else "hybrid"
