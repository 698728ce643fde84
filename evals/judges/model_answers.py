"""Answers that the judge's model gives from the passages, so that ragas has something to judge."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from evals.judges.endpoint import Endpoint
from evals.judges.ragas_metrics import Sample
from evals.judges.stopping import run_judging
from workbench.errors import ModelError
from workbench.types import ShouldStop

EMPTY = "The model's answer was empty."


def answered(endpoint: Endpoint, samples: Sequence[Sample], should_stop: ShouldStop | None = None) -> list[Sample]:
    """Return the samples with the model's answers; where there is none, ``no_answer`` says why.

    Raises:
        Cancelled: ``should_stop`` said so.
    """

    async def ask() -> list[Sample]:
        async with endpoint:
            return list(await asyncio.gather(*(_answered(endpoint, sample) for sample in samples)))

    return run_judging(ask, should_stop)


async def _answered(endpoint: Endpoint, sample: Sample) -> Sample:
    passages = "\n\n".join(f"[{n}] {text}" for n, text in enumerate(sample.passages, start=1))
    prompt = f"Answer the question from these passages only.\n\n{passages}\n\nQuestion: {sample.question}\nAnswer:"
    try:
        answer = (await endpoint.complete(prompt)).strip()
    except ModelError as error:
        return replace(sample, no_answer=str(error))
    return replace(sample, answer=answer, no_answer="" if answer else EMPTY)
