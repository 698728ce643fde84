"""A stage after a retriever: LlamaIndex's node postprocessor for one request."""

from __future__ import annotations

from typing import ClassVar, Self

from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from pydantic import PrivateAttr

from workbench.retrieval.nodes import CopyFolder, node_hit
from workbench.retrieval.parameters import CUTOFF
from workbench.retrieval.query import Query, Request


class Stage(BaseNodePostprocessor):
    """A postprocessor of one request: ``apply`` takes nodes, best first, and returns nodes, best first.

    ``leg`` is the key of its scores in an attribution; "" for none. ``widens`` is
    true if it shows more of a document than the found passage.
    """

    leg: ClassVar[str] = ""
    widens: ClassVar[bool] = False
    _request: Request = PrivateAttr()

    def __init__(self, request: Request) -> None:
        super().__init__()
        self._request = request

    @classmethod
    def make(cls, request: Request) -> Self:
        """Make the stage for a request; type checkers only see pydantic's ``__init__``."""
        return cls(request)  # pyright: ignore[reportCallIssue]

    @classmethod
    def class_name(cls) -> str:
        return cls.__name__

    @property
    def step(self) -> str:
        """The name in a traced request: the leg's key, or the class name."""
        return self.leg or self.class_name()

    def apply(self, query: Query, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        raise NotImplementedError

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if not nodes or query_bundle is None:
            return nodes
        return self.apply(self._request.question(query_bundle), nodes)


# Checkpoints between the stages of a traced request

RETRIEVED_STEP = "retrieved"  # the retriever's result


class Checkpoint(Stage):
    """A stage that records the order under a name and changes nothing."""

    _name: str = PrivateAttr()

    def __init__(self, request: Request, name: str) -> None:
        super().__init__(request)
        self._name = name

    def apply(self, query: Query, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        passed = self._request.trace.passed
        if passed is not None:
            passed[self._name] = tuple(node_hit(node).id for node in nodes)
        return nodes


# Last stage of every strategy

TIE_DECIMALS = 4  # scores equal to this many decimals are ties


class FinalOrder(Stage):
    """A stage that puts the scope's preferred sources first among ties, folds copies, and applies limit and cutoff."""

    def apply(self, query: Query, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        request, nodes = self._request, put_preferred_first(self._request, nodes)
        unfolded = request.fold_copies and not request.folds_when_found
        first = (CopyFolder().add(nodes) if unfolded else nodes)[: request.limit]
        cutoff = request.float_param(CUTOFF, otherwise=0.0)
        if cutoff:
            floor = cutoff * (first[0].score or 0.0)
            worthy = [node for node in first if (node.score or 0.0) >= floor]
            request.trace.cut = len(first) - len(worthy)
            return worthy
        return first


def put_preferred_first(request: Request, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
    """Return the nodes by score, with the scope's preferred sources first among ties."""
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
