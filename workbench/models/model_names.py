"""Names of models that are not built in: ``FAMILY:MODEL?option=value&...``, and the prefixes that models expect.

An index stores only the name of its model, so everything that affects a vector is part of the name. Keys are never part
of a name; they come from environment variables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import cast
from urllib.parse import parse_qsl

from workbench.errors import ConfigurationError, InvalidInput, describe_fault
from workbench.types import Parameter, ParameterValue, read_parameters

MAX_DIMENSIONS = 16_000  # that pgvector stores

URL = Parameter("url", "text", "", "Base URL of the endpoint, instead of the provider's.")
DIMENSIONS = Parameter("dimensions", "int", 0, "Length of a vector, if the model can shorten it.", 0, MAX_DIMENSIONS)
BATCH = Parameter("batch", "int", 0, "Texts per request; 0 means the provider's usual number.", 0, 2048)
CONCURRENCY = Parameter("concurrency", "int", 1, "Concurrent requests.", 1, 64)
RATE = Parameter("rate", "float", 0.0, "Maximum requests per minute; 0 means no limit.", 0.0, 100_000.0)
RETRIES = Parameter("retries", "int", 3, "Retries after status 429, 5xx or a broken connection.", 0, 10)
TIMEOUT = Parameter("timeout", "float", 60.0, "Timeout of a request, in seconds.", 0.1, 3600.0)
MAX_TOKENS = Parameter("max_tokens", "int", 384, "Tokens of a passage that the model reads.", 16, 32_768)
QUERY_PREFIX = Parameter("query_prefix", "text", "", "Prefix for queries, instead of the model's usual one.")
PASSAGE_PREFIX = Parameter("passage_prefix", "text", "", "Prefix for passages, instead of the model's usual one.")
TOKENS = Parameter(
    "tokens",
    "choice",
    "minilm",
    "Built-in model that adds token vectors, for late interaction and evidence; none leaves both out.",
    choices=("minilm", "multilingual", "none"),
)
PRICE = Parameter("price", "float", 0.0, "Dollars per million tokens, for estimates; 0 if unknown.", 0.0, 10_000.0)
LLM_PRICE = Parameter("price", "text", "", "Dollars per million tokens, INPUT or INPUT/OUTPUT, for estimates.")
SEARCH_PRICE = Parameter(
    "price", "float", 0.0, "Dollars per 1,000 searches, for estimates; 0 if unknown.", 0.0, 10_000.0
)
BYTES_PER_TOKEN = 4  # of English text, for estimates
CALLS = (URL, BATCH, CONCURRENCY, RATE, RETRIES, TIMEOUT)
EMBEDDING_OPTIONS = (*CALLS, PRICE, DIMENSIONS, MAX_TOKENS, QUERY_PREFIX, PASSAGE_PREFIX, TOKENS)
RERANKER_OPTIONS = (URL, RATE, RETRIES, TIMEOUT, SEARCH_PRICE)
LLM_OPTIONS = (URL, LLM_PRICE)
LLM_FAMILIES = ("openai", "anthropic", "cohere", "gemini", "mistral", "ollama", "endpoint", "python")
_SECRET = re.compile(r"key|token$|secret|password", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ModelName:
    """A parsed name."""

    text: str  # as it was given
    family: str  # such as "voyage"
    model: str  # as the provider calls it
    options: Mapping[str, ParameterValue]  # every option, given or by default
    given: frozenset[str]  # names of the options in the text

    def read_number(self, option: Parameter) -> float:
        return float(self.options[option.name])

    def read_text(self, option: Parameter) -> str:
        return str(self.options[option.name])

    @property
    def prefixes(self) -> tuple[str, str]:
        """The prefixes of queries and passages: the given ones, or those the model was trained with."""
        query, passage = find_prefixes(self.model)
        return (
            self.read_text(QUERY_PREFIX) if QUERY_PREFIX.name in self.given else query,
            self.read_text(PASSAGE_PREFIX) if PASSAGE_PREFIX.name in self.given else passage,
        )


def parse_model_name(text: str, declared: tuple[Parameter, ...]) -> ModelName | None:
    """Return the parts of a name; None if it has no ``FAMILY:``.

    Raises:
        ConfigurationError: An option is unknown, invalid, or a secret.
    """
    address, _, query = text.partition("?")
    family, separator, model = address.partition(":")
    if not separator or not family or not model:
        return None
    given = dict(parse_qsl(query, keep_blank_values=True))
    for name in given:
        if _SECRET.search(name) and name not in {option.name for option in declared}:
            raise ConfigurationError(
                f"Remove {name!r} from the name of the model {address!r}: names are stored; set keys as environment "
                "variables."
            )
    try:
        options = read_parameters(f"The model {address!r}", declared, given)
    except InvalidInput as error:
        raise ConfigurationError(str(error)) from error
    return ModelName(text, family, model, MappingProxyType(options), frozenset(given))


def has_same_vectors(first: str, second: str) -> bool:
    """Return whether two names differ at most in how the model is called, or in its price."""
    calls = {option.name for option in (BATCH, CONCURRENCY, RATE, RETRIES, TIMEOUT, PRICE)}

    def strip_calls(text: str) -> tuple[str, list[tuple[str, str]]]:
        address, _, query = text.partition("?")
        return address, sorted(pair for pair in parse_qsl(query, keep_blank_values=True) if pair[0] not in calls)

    return strip_calls(first) == strip_calls(second)


def find_price(text: str) -> float:
    """Return the price in the name of a model: dollars per million tokens, or per 1,000 searches; 0 if unknown."""
    given = dict(parse_qsl(text.partition("?")[2]))
    return float(SEARCH_PRICE.read(given.get(PRICE.name, 0.0)))


def parse_llm_price(text: str, place: str = "The price of an LLM") -> tuple[float, float]:
    """Return the dollars per million tokens that an LLM reads and writes, from INPUT or INPUT/OUTPUT.

    ``place`` is what has the price, for errors.

    Raises:
        ConfigurationError: The text has another form.
    """
    try:
        prices = [float(part) for part in (text.strip() or "0").split("/")]
        if len(prices) > 2 or not all(0 <= price < 1e6 for price in prices):
            raise ValueError
    except ValueError:
        raise ConfigurationError(
            f"{place} is {text!r}; use dollars per million tokens, INPUT or INPUT/OUTPUT such as 0.15/0.60."
        ) from None
    return prices[0], prices[-1]


# Models of users: ``python:package.module:attribute``


def load_object(text: str, path: str, is_model: Callable[[object], bool], wanted: str) -> object:
    """Return the model behind ``python:package.module:attribute``, or with a dot instead of the second colon.

    A class, or a function without arguments, makes the model.

    Args:
        text: Name of the model, for errors.
        path: Its part after ``python:``.
        is_model: Returns whether an object is a model.
        wanted: What it should be.

    Raises:
        ConfigurationError: There is no such attribute, making it failed, or it has another type.
    """
    from importlib.metadata import EntryPoint  # imported on use, because it takes 20 ms

    try:
        found: object = EntryPoint("", path if ":" in path else ":".join(path.rsplit(".", 1)), "").load()
        if callable(found) and (isinstance(found, type) or not is_model(found)):
            found = cast("Callable[[], object]", found)()
    except Exception as error:  # also of the user's function
        raise ConfigurationError(
            f"The model '{text}' was not loaded ({describe_fault(error)}); use python:PACKAGE.MODULE:ATTRIBUTE, of a "
            "module that Python finds."
        ) from error
    if not is_model(found):
        raise ConfigurationError(f"The model '{text}' is a {type(found).__name__}; it must be {wanted}.")
    return found


# Prefixes that models were trained with, from their model cards on Hugging Face

_TASK = "Instruct: Given a web search query, retrieve relevant passages that answer the query\n"
_BGE = "Represent this sentence for searching relevant passages: "
PREFIXES: tuple[tuple[str, str, str], ...] = (  # pattern of the model's name, before a question, before a passage
    (r"e5-.*instruct|e5-mistral", f"{_TASK}Query: ", ""),
    (r"(^|[/-])e5-(small|base|large)", "query: ", "passage: "),
    (r"qwen3-embedding", f"{_TASK}Query:", ""),
    (r"nomic-embed-text", "search_query: ", "search_document: "),
    (r"bge-(small|base|large)-en", _BGE, ""),
    (r"bge-(small|base|large)-zh", "为这个句子生成表示以用于检索相关文章：", ""),
    (r"mxbai-embed", _BGE, ""),
    (r"arctic-embed.*v2", "query: ", ""),
    (r"arctic-embed", _BGE, ""),
    (r"embedding-?gemma", "task: search result | query: ", "title: none | text: "),
)


def find_prefixes(model: str) -> tuple[str, str]:
    """Return the prefixes that a model expects before queries and passages; empty for an unknown model."""
    name = model.lower().replace("_", "-")
    return next(((query, passage) for pattern, query, passage in PREFIXES if re.search(pattern, name)), ("", ""))
