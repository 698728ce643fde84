"""What the stages after a source have in common: LlamaIndex's interface around one request."""

from __future__ import annotations

from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from pydantic import PrivateAttr

from workbench.retrieval.request import Request


class Stage(BaseNodePostprocessor):
    """A postprocessor of one request: ``apply`` takes nodes, best first, and returns nodes, best first."""

    _request: Request = PrivateAttr()

    def __init__(self, request: Request) -> None:
        super().__init__()
        self._request = request

    @classmethod
    def class_name(cls) -> str:
        """Name the stage as LlamaIndex wants it."""
        return cls.__name__

    def apply(self, query: str, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        """Do what the stage is for; ``nodes`` is never empty."""
        raise NotImplementedError

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if not nodes or query_bundle is None:
            return nodes
        # LlamaIndex's query engine hands on what it was given, and people give it a text
        return self.apply(query_bundle if isinstance(query_bundle, str) else query_bundle.query_str, nodes)
