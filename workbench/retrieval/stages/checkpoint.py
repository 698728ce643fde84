"""A stage between the stages of a watched request: it notes which passages came through, and in which order."""

from __future__ import annotations

from llama_index.core.schema import NodeWithScore
from pydantic import PrivateAttr

from workbench.retrieval.nodes import hit_of
from workbench.retrieval.request import Request
from workbench.retrieval.stages.stage import Stage

RETRIEVED = "retrieved"  # the name of what the retriever hands to the stages


class Checkpoint(Stage):
    """A stage that writes down the order under a name and passes everything on."""

    _name: str = PrivateAttr()

    def __init__(self, request: Request, name: str) -> None:
        super().__init__(request)
        self._name = name

    def apply(self, query: str, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        """Note the internal ids."""
        passed = self._request.trace.passed
        if passed is not None:
            passed[self._name] = tuple(hit_of(node).id for node in nodes)
        return nodes
