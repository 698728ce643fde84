"""A strategy: one row of the table, with everything that screens, tools and the engine need to know of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.errors import ConfigurationError
from workbench.models.llm import HOW_TO_SET
from workbench.types import JsonObject, Parameter, ParameterValue, Value
from workbench.types.parameter import KEYWORD

if TYPE_CHECKING:
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.retrievers import BaseRetriever

_SAID = ("name", "title", "summary", "parameters", "needs_scope", "needs_llm", "needs_reranker")


@dataclass(frozen=True, slots=True)
class Strategy(Value):
    """A named way to retrieve; ``retriever`` and ``stages`` make its parts from a request (see
    ``makers``), the rest is for people and for other code.

    ``legs`` are the keys that an attribution of its passages can have (workbench.retrieval.legs).
    ``has_keyword_leg`` is true if that leg can serve alone when the embedding model fails. ``pools`` is true if
    the candidates are the fused first ones of both legs (``hybrid.depth``); ``is_one_leg`` where they are the first
    ones of a single leg, and nothing comes after it. ``doubts_slips`` lets meaning count
    less for a question whose words are misspelled.
    """

    name: str
    title: str
    summary: str
    retriever: Callable[..., BaseRetriever]
    legs: tuple[str, ...]
    parameters: tuple[Parameter, ...] = ()
    stages: tuple[Callable[..., BaseNodePostprocessor], ...] = ()
    has_keyword_leg: bool = False
    pools: bool = False
    is_one_leg: bool = False
    doubts_slips: bool = False
    needs_scope: bool = False
    needs_llm: bool = False
    needs_reranker: bool = False

    @property
    def uses_words(self) -> bool:
        """True for strategies that look the question's words up in the lexicon."""
        return KEYWORD in self.legs

    def declares(self, parameter: Parameter) -> bool:
        """Return whether the strategy has this parameter."""
        return parameter in self.parameters

    @property
    def needs(self) -> str:
        """The settings it needs before it can be used, as a sentence; "" if it needs none."""
        if self.needs_llm:
            return f"It needs an LLM: {HOW_TO_SET}."
        if self.needs_reranker:
            return "It needs a cross-encoder: set WORKBENCH_RERANKER to a Hugging Face id or a local folder."
        return ""

    def to_dict(self) -> JsonObject:
        """Return what can be said of it in JSON."""
        values: JsonObject = {name: getattr(self, name) for name in _SAID}
        return values | {"parameters": [parameter.to_dict() for parameter in self.parameters], "needs": self.needs}


class ParametersOf(dict[str, ParameterValue]):
    """The parameters of one strategy; asking for one that its row does not name is an error that says so."""

    def __init__(self, strategy: str, values: Mapping[str, ParameterValue]) -> None:
        super().__init__(values)
        self._strategy = strategy

    def __missing__(self, name: str) -> ParameterValue:
        raise ConfigurationError(
            f"The strategy {self._strategy!r} has no parameter {name!r}, which its retriever or a stage asks for; name "
            "it in the strategy's row in workbench/retrieval/strategies.py."
        )
