"""A strategy: one row of the table, with all that screens, tools and the engine need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.errors import ConfigurationError
from workbench.models.llm import SETUP_HINT
from workbench.types import KEYWORD, JsonObject, Parameter, ParameterValue, Value

if TYPE_CHECKING:
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.retrievers import BaseRetriever

    from workbench.retrieval.own import OwnRetrieval

_SAID = ("name", "title", "summary", "parameters", "needs_scope", "needs_llm", "needs_reranker")


@dataclass(frozen=True, slots=True)
class Strategy(Value):
    """A named way to retrieve.

    Attributes:
        name: Name in calls and URLs.
        title: Name for people.
        summary: One sentence for people.
        retriever: Makes the retriever of a request.
        legs: Keys that an attribution of its passages can have (``workbench.retrieval.legs``).
        parameters: Parameters that it takes.
        stages: Make the stages of a request, in order.
        has_keyword_leg: Whether that leg can serve alone if the embedding model fails.
        pools: Whether the candidates are the fused first ones of both legs (``hybrid.depth``).
        is_one_leg: Whether they are the first ones of a single leg, with no stage after it.
        doubts_slips: Whether meaning counts less for a question with misspelled words.
        needs_scope: Whether it refuses to search everything.
        needs_llm: Whether it needs a language model.
        needs_reranker: Whether it needs a cross-encoder.
        own: What a strategy that a user has added asks; None for a built-in one.
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
    own: OwnRetrieval | None = None

    @property
    def uses_words(self) -> bool:
        """True for strategies that look the question's words up in the lexicon."""
        return KEYWORD in self.legs

    def declares(self, parameter: Parameter) -> bool:
        """Return whether the strategy has this parameter."""
        return parameter in self.parameters

    @property
    def needs(self) -> str:
        """The settings it needs, as a sentence; "" if it needs none."""
        if self.needs_llm:
            return f"It needs an LLM: {SETUP_HINT}."
        if self.needs_reranker:
            return "It needs a cross-encoder: set WORKBENCH_RERANKER to a Hugging Face id or a local folder."
        return ""

    def to_dict(self) -> JsonObject:
        """Return its row as JSON."""
        values: JsonObject = {name: getattr(self, name) for name in _SAID}
        return values | {"parameters": [parameter.to_dict() for parameter in self.parameters], "needs": self.needs}


class ParametersOf(dict[str, ParameterValue]):
    """Parameters of one strategy; reading one that its row does not declare is an error."""

    def __init__(self, strategy: str, values: Mapping[str, ParameterValue]) -> None:
        super().__init__(values)
        self._strategy = strategy

    def __missing__(self, name: str) -> ParameterValue:
        raise ConfigurationError(
            f"The strategy {self._strategy!r} has no parameter {name!r}, which its retriever or a stage asks for; name "
            "it in the strategy's row in workbench/retrieval/strategies.py."
        )
