"""Wider texts for nodes: more of a document than the passage that was found, with the passage's score and legs.

A widened node keeps the id, score and attribution of the passage it stands for; "matched" in its metadata is that
passage's own span, "merged" the ids of all passages whose place it takes. A scope holds whole documents, so text of
the same document never leaves it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llama_index.core.schema import NodeWithScore

from workbench.retrieval.nodes import EXTRA, stored
from workbench.retrieval.request import Request
from workbench.storage.database import Connection
from workbench.storage.ranking import document_slices
from workbench.types.results import TimedStep


@dataclass(frozen=True, slots=True)
class Widening:
    """A node that is to show ``[start:end]`` of its document; ``merged`` are further nodes that it stands for."""

    node: NodeWithScore
    start: int
    end: int
    merged: tuple[NodeWithScore, ...] = ()


def span(node: NodeWithScore) -> tuple[int, int]:
    """Return the passage's own span in its document."""
    return stored(node).span


def widened(request: Request, connection: Connection, widenings: Sequence[Widening]) -> list[NodeWithScore]:
    """Return the nodes with the wider text, in order; where the index is behind the document, as they were."""
    places = [(stored(w.node).document_id, w.start, w.end) for w in widenings]
    with request.trace.stage(TimedStep.WIDEN):
        texts = document_slices(connection, request.index.name, places)
    nodes: list[NodeWithScore] = []
    for widening, text in zip(widenings, texts, strict=True):
        if text is None:
            request.trace.note("The index holds older versions of some documents; these passages stay as they are.")
            nodes += [widening.node, *widening.merged]
        else:
            nodes.append(_showing(widening, text))
    return nodes


def _showing(widening: Widening, text: str) -> NodeWithScore:
    node = widening.node
    extra: dict[str, object] = {"matched": list(span(node))}
    if widening.merged:
        extra["merged"] = [node.node.node_id, *(other.node.node_id for other in widening.merged)]
    metadata = {**node.node.metadata, "start": widening.start, "end": widening.end, EXTRA: extra}
    return NodeWithScore(node=node.node.model_copy(update={"text": text, "metadata": metadata}), score=node.score)
