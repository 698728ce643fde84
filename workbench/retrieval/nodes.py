"""Between our hits and LlamaIndex's nodes: a node carries its internal id and its attribution in its metadata."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.schema import NodeWithScore, TextNode

from workbench.retrieval.request import Hit, Request
from workbench.storage.rows import StoredPassage
from workbench.types import Leg, Passage

ID, LEGS, PASSAGE, EXTRA = "_id", "_legs", "_passage", "_extra"  # extra: what a stage adds to be shown
_INTERNAL = [ID, LEGS, PASSAGE, EXTRA]
_KINDS = {"vector": {"vector", "feedback", "hyde"}, "keyword": {"keyword"}}
_SHOWN = ("heading_path", "page", "kind", "language", "ordinal", "window", "parent", "table_header")


def to_nodes(request: Request, connection: Any, hits: Sequence[Hit]) -> list[NodeWithScore]:
    """Fetch the hits' passages and return them as nodes, in the hits' order."""
    with request.trace.stage("fetch"):
        stored = request.store.passages(connection, [hit.id for hit in hits], only_same=request.remembered)
    return [node_of(stored[hit.id], hit) for hit in hits if hit.id in stored]


def node_of(passage: StoredPassage, hit: Hit) -> NodeWithScore:
    """Return one passage as a node; what is internal stays out of prompts and embeddings."""
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


def hit_of(node: NodeWithScore) -> Hit:
    """Return the hit a node stands for."""
    metadata = node.node.metadata
    return Hit(metadata[ID], float(node.score or 0.0), metadata[LEGS])


def to_passages(nodes: Sequence[NodeWithScore]) -> tuple[Passage, ...]:
    """Return nodes as the passages that faces show, ranked from 1 in the given order, scores in 0..1."""
    return tuple(_passage(rank, node) for rank, node in enumerate(nodes, start=1))


def _passage(rank: int, node: NodeWithScore) -> Passage:
    text_node = node.node
    metadata = text_node.metadata
    stored: StoredPassage = metadata[PASSAGE]
    legs: dict[str, Leg] = metadata[LEGS]
    known = stored.metadata
    shown = {key: known[key] for key in _SHOWN if key in known and known[key] is not None and known[key] != []}
    return Passage(
        rank=rank,
        score=min(1.0, max(0.0, float(node.score or 0.0))),
        passage_id=text_node.node_id,
        document_id=stored.document_id,
        document_title=stored.title,
        source_id=stored.source_id,
        path=stored.path,
        url=stored.url,
        text=text_node.get_content(),
        start=int(metadata.get("start", known["start"])),
        end=int(metadata.get("end", known["end"])),
        match_type=match_type(legs),
        attribution=legs,
        metadata=shown | {"document_type": stored.document_type} | metadata.get(EXTRA, {}),
    )


def match_type(legs: dict[str, Leg]) -> str:
    """Say how a passage was found: "vector" (by any meaning leg alone), "keyword", or "hybrid" for both."""
    ranked = {name for name, leg in legs.items() if leg.rank is not None}
    found = [kind for kind, names in _KINDS.items() if ranked & names]
    return "hybrid" if len(found) != 1 else found[0]
