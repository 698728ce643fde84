"""ragas as a judge: its own prompts and metrics, asked through our endpoint. Needs the extra ``ragas``."""

from __future__ import annotations

import asyncio
import json
import os
import warnings
from functools import cache
from types import ModuleType
from typing import Any

from evals.judges.endpoint import INVALID_ANSWER_REASON, Endpoint
from evals.judges.scores import Sample, Scorer
from workbench.errors import ModelError
from workbench.models.encoder import Encoder
from workbench.types import JsonObject

SCHEMA_MARKER = "specified in JSON Schema:"  # the end of ragas' sentence before the schema


@cache
def ragas() -> ModuleType:
    """Import ragas once, without its warnings and usage reports."""
    os.environ["RAGAS_DO_NOT_TRACK"] = "true"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ragas as module
    return module


def extract_schema(prompt: str) -> JsonObject | None:
    """Return the JSON schema in a prompt of ragas; None if there is none."""
    _, announced, rest = prompt.partition(SCHEMA_MARKER)
    start = rest.find("{")
    if not announced or start < 0:
        return None
    try:
        return json.JSONDecoder().raw_decode(rest[start:])[0]
    except ValueError:
        return None


def _judge_llm(endpoint: Endpoint) -> object:
    """Return the endpoint as ragas' LLM; ragas does not retry, because the endpoint does."""
    ragas()
    from langchain_core.outputs import Generation, LLMResult
    from langchain_core.prompt_values import PromptValue
    from ragas.llms import BaseRagasLLM
    from ragas.run_config import RunConfig

    class JudgeLlm(BaseRagasLLM):
        """The endpoint as a ragas LLM."""

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
            schema = extract_schema(text)
            texts = await asyncio.gather(*(endpoint.complete(text, warmth, schema) for _ in range(n)))
            return LLMResult(generations=[[Generation(text=text) for text in texts]])

        def is_finished(self, response: LLMResult) -> bool:
            return True

    return JudgeLlm(run_config=RunConfig(max_retries=1, timeout=int(endpoint.limits.seconds)))


_METRIC_CLASSES = {
    "faithfulness": "Faithfulness",
    "answer_relevancy": "ResponseRelevancy",
    "context_precision": "LLMContextPrecisionWithReference",
    "context_recall": "LLMContextRecall",
    "factual_correctness": "FactualCorrectness",
}


def make_scorer(name: str, endpoint: Endpoint, encoder: Encoder | None) -> Scorer:
    """Return the function that measures a sample with one of ragas' metrics."""
    ragas()
    needs: dict[str, object] = {"llm": _judge_llm(endpoint)}
    if name == "answer_relevancy":
        needs["embeddings"] = _Embeddings(encoder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ragas deprecates its own classes in favour of ones that need OpenAI's client
        from ragas import metrics

        metric: Any = getattr(metrics, _METRIC_CLASSES[name])(**needs)

    async def measure(sample: Sample) -> float:
        try:
            return float(await metric.single_turn_ascore(_to_ragas_sample(sample)))
        except ModelError:
            raise
        except (
            ragas().exceptions.RagasOutputParserException,
            ValueError,
            TypeError,
            KeyError,
            IndexError,
            AttributeError,
        ):
            raise ModelError(INVALID_ANSWER_REASON) from None  # the exception depends on the invalid answer

    return measure


def _to_ragas_sample(sample: Sample) -> object:
    return ragas().SingleTurnSample(
        user_input=sample.question,
        retrieved_contexts=list(sample.passages),
        response=sample.answer,
        reference=sample.reference_answer,
    )


class _Embeddings:
    """The encoder as ragas needs it."""

    def __init__(self, encoder: Encoder | None) -> None:
        self._encoder = encoder

    def embed_query(self, text: str) -> list[float]:
        assert self._encoder is not None
        return self._encoder.encode_query(text).vector.tolist()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        assert self._encoder is not None
        return self._encoder.encode(texts).vectors.tolist()
