"""A stage after a retriever: LlamaIndex's node postprocessor around one request."""

from __future__ import annotations

from typing import ClassVar, Self

from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from pydantic import PrivateAttr

from workbench.retrieval.query import Request


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

    def apply(self, query: str, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        """Return the nodes that this stage makes of ``nodes``, which are never empty."""
        raise NotImplementedError

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if not nodes or query_bundle is None:
            return nodes
        # LlamaIndex's query engine hands on what it was given, and people give it a text
        return self.apply(query_bundle if isinstance(query_bundle, str) else query_bundle.query_str, nodes)
