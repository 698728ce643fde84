"""The way to ragas: imported quietly when first needed (it takes seconds), and given our endpoint as its LLM."""

from __future__ import annotations

import asyncio
import os
import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

from evals.endpoint import Endpoint


@dataclass(frozen=True, slots=True)
class Ragas:
    """What we use of ragas besides its metrics."""

    SingleTurnSample: Any
    RagasOutputParserException: Any


@cache
def ragas() -> Ragas:
    """Import ragas once, quietly, and without the usage reports it would send."""
    os.environ["RAGAS_DO_NOT_TRACK"] = "true"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ragas import SingleTurnSample
        from ragas.exceptions import RagasOutputParserException
    return Ragas(SingleTurnSample, RagasOutputParserException)


def judge_llm(endpoint: Endpoint) -> Any:
    """Return the endpoint as ragas' LLM; the endpoint retries, so ragas does not."""
    ragas()
    from langchain_core.outputs import Generation, LLMResult
    from ragas.llms import BaseRagasLLM
    from ragas.run_config import RunConfig

    class JudgeLlm(BaseRagasLLM):
        """Answers by the endpoint, within its limits."""

        def generate_text(self, prompt: Any, n: int = 1, *args: Any, **more: Any) -> Any:
            raise NotImplementedError("ragas' metrics ask asynchronously")

        async def agenerate_text(
            self, prompt: Any, n: int = 1, temperature: float | None = 0.0, stop: Any = None, callbacks: Any = None
        ) -> Any:
            warmth = 0.0 if n == 1 else 0.3
            texts = await asyncio.gather(*(endpoint.complete(prompt.to_string(), warmth) for _ in range(n)))
            return LLMResult(generations=[[Generation(text=text) for text in texts]])

        def is_finished(self, response: Any) -> bool:
            return True

    return JudgeLlm(run_config=RunConfig(max_retries=1, timeout=int(endpoint.limits.seconds)))
