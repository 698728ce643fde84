"""The way to ragas: imported quietly when first needed (it takes seconds), and given our endpoint as its LLM."""

from __future__ import annotations

import asyncio
import json
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from evals.judges.endpoint import Endpoint
from workbench.types import JsonObject, JsonValue

SCHEMA_FOLLOWS = "specified in JSON Schema:"  # the end of ragas' sentence before it
MOST_LETTERS, MOST_ITEMS = 240, 8  # of a text and of a list that a grammar lets a model write


@dataclass(frozen=True, slots=True)
class Ragas:
    """The parts of ragas that are used besides its metrics."""

    SingleTurnSample: Callable[..., object]
    RagasOutputParserException: type[Exception]


class Scorer(Protocol):
    """One of ragas' metrics."""

    async def single_turn_ascore(self, sample: object) -> float:
        """Return the metric of one question, 0..1 or NaN; raises what ragas raises."""
        ...


@cache
def ragas() -> Ragas:
    """Import ragas once, quietly, and without the usage reports it would send."""
    os.environ["RAGAS_DO_NOT_TRACK"] = "true"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ragas import SingleTurnSample
        from ragas.exceptions import RagasOutputParserException
    return Ragas(SingleTurnSample, RagasOutputParserException)


def schema_in(prompt: str) -> JsonObject | None:
    """Return the JSON schema that ragas writes into its prompt; None where it writes none."""
    _, announced, rest = prompt.partition(SCHEMA_FOLLOWS)
    start = rest.find("{")
    if not announced or start < 0:
        return None
    try:
        return _ending(json.JSONDecoder().raw_decode(rest[start:])[0])
    except ValueError:
        return None


def _ending(schema: JsonObject) -> JsonObject:
    """Return a schema whose texts and lists end: a small model may write on and on."""
    bounds: dict[JsonValue, JsonObject] = {"string": {"maxLength": MOST_LETTERS}, "array": {"maxItems": MOST_ITEMS}}
    inner = {key: _ending_value(value) for key, value in schema.items()}
    kind = schema.get("type")
    return {**bounds.get(kind, {}), **inner} if isinstance(kind, str) else inner


def _ending_value(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return _ending(value)
    return [_ending_value(part) for part in value] if isinstance(value, list) else value


def judge_llm(endpoint: Endpoint) -> object:
    """Return the endpoint as ragas' LLM; the endpoint retries, so ragas does not."""
    ragas()
    from langchain_core.outputs import Generation, LLMResult
    from langchain_core.prompt_values import PromptValue
    from ragas.llms import BaseRagasLLM
    from ragas.run_config import RunConfig

    class JudgeLlm(BaseRagasLLM):
        """Answers by the endpoint, within its limits."""

        def generate_text(self, prompt: PromptValue, n: int = 1, *args: object, **more: object) -> LLMResult:
            raise NotImplementedError("ragas' metrics ask asynchronously")

        async def agenerate_text(
            self,
            prompt: PromptValue,
            n: int = 1,
            temperature: float | None = 0.0,
            stop: list[str] | None = None,
            callbacks: object = None,
        ) -> LLMResult:
            warmth, text = 0.0 if n == 1 else 0.3, prompt.to_string()
            schema = schema_in(text)
            texts = await asyncio.gather(*(endpoint.complete(text, warmth, schema) for _ in range(n)))
            return LLMResult(generations=[[Generation(text=text) for text in texts]])

        def is_finished(self, response: LLMResult) -> bool:
            return True

    return JudgeLlm(run_config=RunConfig(max_retries=1, timeout=int(endpoint.limits.seconds)))
