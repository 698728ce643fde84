"""A stage after a retriever: LlamaIndex's node postprocessor around one request."""

from __future__ import annotations

from typing import ClassVar, Self

from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from pydantic import PrivateAttr

from workbench.retrieval.nodes import node_hit
from workbench.retrieval.parameters import CUTOFF
from workbench.retrieval.query import Query, Request


class Stage(BaseNodePostprocessor):
    """A postprocessor of one request: ``apply`` takes nodes, best first, and returns nodes, best first.

    ``leg`` is the key under which it adds its scores to an attribution; "" for a stage that adds none. ``widens`` is
    true for a stage that shows more of a document than the passage that was found.
    """

    leg: ClassVar[str] = ""
    widens: ClassVar[bool] = False
    _request: Request = PrivateAttr()

    def __init__(self, request: Request) -> None:
        super().__init__()
        self._request = request

    @classmethod
    def of(cls, request: Request) -> Self:
        """Make the stage for a request; type checkers see only the ``__init__`` that pydantic makes up."""
        return cls(request)  # pyright: ignore[reportCallIssue]

    @classmethod
    def class_name(cls) -> str:
        """Name the stage as LlamaIndex wants it."""
        return cls.__name__

    @property
    def step(self) -> str:
        """The name in a watched request: its leg's key, or its class name."""
        return self.leg or self.class_name()

    def apply(self, query: Query, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        """Return the nodes that this stage makes of ``nodes``, which are never empty."""
        raise NotImplementedError

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if not nodes or query_bundle is None:
            return nodes
        return self.apply(self._request.question(query_bundle), nodes)


# Checkpoints between the stages of a traced request

RETRIEVED = "retrieved"  # the name of what the retriever hands to the stages


class Checkpoint(Stage):
    """A stage that writes down the order under a name and passes everything on."""

    _name: str = PrivateAttr()

    def __init__(self, request: Request, name: str) -> None:
        super().__init__(request)
        self._name = name

    def apply(self, query: Query, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        """Note the internal ids."""
        passed = self._request.trace.passed
        if passed is not None:
            passed[self._name] = tuple(node_hit(node).id for node in nodes)
        return nodes


# Last stage of every strategy

TIE_DECIMALS = 4  # scores that agree to this many decimals count as equally good


class FinalOrder(Stage):
    """A stage that prefers the scope's preferred sources between equals, and cuts to the limit and at the cutoff."""

    def apply(self, query: Query, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        """Return as many of the nodes as are asked for."""
        first = put_preferred_first(self._request, nodes)[: self._request.limit]
        cutoff = self._request.number(CUTOFF, otherwise=0.0)
        if cutoff:
            floor = cutoff * (first[0].score or 0.0)
            worthy = [node for node in first if (node.score or 0.0) >= floor]
            self._request.trace.cut = len(first) - len(worthy)
            return worthy
        return first


def put_preferred_first(request: Request, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
    """Return the nodes by score, those of the scope's preferred sources first among equals."""
    preferred = set(request.scope.preferred_source_ids)
    if not preferred:
        return nodes
    return sorted(
        nodes,
        key=lambda node: (
            -round(node.score or 0.0, TIE_DECIMALS),
            node.node.metadata["source_id"] not in preferred,
            -(node.score or 0.0),
        ),
    )
