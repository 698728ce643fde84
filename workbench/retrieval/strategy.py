"""A strategy: one row of the table, with everything that screens, tools and the engine need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.errors import SETUP_HINT, ConfigurationError
from workbench.types import KEYWORD, JsonObject, Parameter, ParameterValue, Value

if TYPE_CHECKING:
    from workbench.retrieval.own import OwnRetrieval

_PUBLIC_FIELDS = ("name", "title", "summary", "parameters", "needs_scope", "needs_llm", "needs_reranker")


@dataclass(frozen=True, slots=True)
class Strategy(Value):
    """A named way to retrieve."""

    name: str  # name in calls and URLs
    title: str  # display name
    summary: str  # one sentence for users
    retriever: str  # class of the retriever (``workbench.retrieval.strategies.load_retrievers``)
    legs: tuple[str, ...]  # possible keys in the attribution of its passages (``workbench.retrieval.legs``)
    parameters: tuple[Parameter, ...] = ()  # its parameters
    stages: tuple[str, ...] = ()  # classes of the stages, in order
    needs_scope: bool = False  # whether it requires a scope
    needs_llm: bool = False  # whether it needs a language model
    needs_reranker: bool = False  # whether it needs a cross-encoder
    reads_attached: bool = False  # whether it can search the table of an attached index
    own: OwnRetrieval | None = None  # the retriever behind a user's strategy; None for a built-in one

    @property
    def uses_words(self) -> bool:
        """True for strategies that look up the question's words in the lexicon."""
        return KEYWORD in self.legs

    @property
    def is_one_leg(self) -> bool:
        """True if the candidates are the top passages of a single leg, without stages."""
        return self.retriever in ("VectorRetriever", "KeywordRetriever")

    @property
    def has_keyword_leg(self) -> bool:
        """True if keyword search alone can serve if the embedding model fails."""
        return self.uses_words and not self.is_one_leg

    @property
    def pools(self) -> bool:
        """True if the candidates are the fused top passages of both legs (``hybrid.leg_depth``)."""
        return self.retriever == "HybridRetriever"

    @property
    def typo_tolerant(self) -> bool:
        """True if similarity counts less for a question with misspelled words."""
        return self.retriever == "FuzzyRetriever"

    def declares(self, parameter: Parameter) -> bool:
        return parameter in self.parameters

    @property
    def needs(self) -> str:
        """The required settings as a sentence; "" if there are none."""
        if self.needs_llm:
            return f"It needs an LLM: {SETUP_HINT}."
        if self.needs_reranker:
            return (
                "It needs a cross-encoder: set WORKBENCH_RERANKER, or the parameter reranker, to a Hugging Face id, a "
                "local folder or a provider's model such as cohere:rerank-v3.5."
            )
        return ""

    def to_dict(self) -> JsonObject:
        values: JsonObject = {name: getattr(self, name) for name in _PUBLIC_FIELDS}
        return values | {"parameters": [parameter.to_dict() for parameter in self.parameters], "needs": self.needs}


class ParametersOf(dict[str, ParameterValue]):
    """Parameters of one strategy; reading a parameter that its row does not declare is an error."""

    def __init__(self, strategy: str, values: Mapping[str, ParameterValue]) -> None:
        super().__init__(values)
        self._strategy = strategy

    def __missing__(self, name: str) -> ParameterValue:
        raise ConfigurationError(
            f"The strategy {self._strategy!r} has no parameter {name!r}, which its retriever or a stage reads; add "
            "it to the strategy's row in workbench/retrieval/strategies.py."
        )
