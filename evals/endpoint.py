"""The judge at an OpenAI-compatible endpoint, kept within limits of time, calls and tokens."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workbench.errors import ConfigurationError, ModelError
from workbench.settings import Settings


@dataclass(frozen=True, slots=True)
class Limits:
    """What judging may cost; whatever is reached first ends it, and what was measured by then is kept."""

    seconds: float = 600.0
    calls: int = 2_000
    tokens: int = 1_000_000  # of prompts and answers, as the endpoint counts them (else characters / 4)
    timeout: float = 60.0  # seconds for one request
    retries: int = 2  # after 429 and 5xx, as the endpoint asks to wait
    at_once: int = 4


@dataclass(slots=True)
class Spent:
    """What judging has cost so far."""

    calls: int = 0
    tokens: int = 0
    seconds: float = 0.0


class LimitReached(ModelError):
    """Judging has cost what it may; nothing more is asked."""


class Endpoint:
    """One judge; ``spent`` counts what it has cost."""

    def __init__(
        self,
        base_url: str,
        model: str,
        api_key: str = "",
        limits: Limits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``base_url`` ends before ``/chat/completions``, as OpenAI's client wants it."""
        self.model, self.limits, self.spent = model, limits or Limits(), Spent()
        self._base_url, self._api_key, self._clock = base_url, api_key, clock
        self._began = clock()
        self._gate: asyncio.Semaphore | None = None
        self._client: Any = None

    @classmethod
    def from_settings(cls, settings: Settings, limits: Limits | None = None) -> Endpoint:
        """Return the judge the settings name. Raises ConfigurationError where they name none."""
        if not settings.llm_base_url or not settings.llm_model:
            raise ConfigurationError("No LLM is configured; set WORKBENCH_LLM_BASE_URL and WORKBENCH_LLM_MODEL.")
        key = settings.llm_api_key.get_secret_value() if settings.llm_api_key else ""
        return cls(settings.llm_base_url, settings.llm_model, key, limits or Limits(timeout=settings.llm_timeout))

    async def __aenter__(self) -> Endpoint:
        from openai import AsyncOpenAI

        self._gate = asyncio.Semaphore(self.limits.at_once)
        self._client = AsyncOpenAI(
            base_url=self._base_url,
            api_key=self._api_key or "none",  # without any key the client looks for OPENAI_API_KEY and sends it
            timeout=self.limits.timeout,
            max_retries=self.limits.retries,
        )
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._client.close()

    async def complete(self, prompt: str, temperature: float = 0.0) -> str:
        """Return the answer to a prompt.

        Raises:
            LimitReached: time, calls or tokens are used up.
            ModelError: the endpoint did not answer, refused, or sent no chat message; one sentence says which.
        """
        assert self._gate is not None, "use the endpoint in 'async with'"
        async with self._gate:
            self._check()
            self.spent.calls += 1
            left = self.limits.seconds - (self._clock() - self._began)
            try:
                async with asyncio.timeout(left):
                    answer = await self._ask(prompt, temperature)
            except TimeoutError:
                raise LimitReached(f"The time limit of {self.limits.seconds:g} s was reached.") from None
            finally:
                self.spent.seconds = self._clock() - self._began
        return answer

    def _check(self) -> None:
        limits, spent = self.limits, self.spent
        if self._clock() - self._began >= limits.seconds:
            raise LimitReached(f"The time limit of {limits.seconds:g} s was reached.")
        if spent.calls >= limits.calls:
            raise LimitReached(f"The limit of {limits.calls:,} calls was reached.")
        if spent.tokens >= limits.tokens:
            raise LimitReached(f"The limit of {limits.tokens:,} tokens was reached.")

    async def _ask(self, prompt: str, temperature: float) -> str:
        from openai import APIConnectionError, APIStatusError, APITimeoutError, OpenAIError

        messages: Any = [{"role": "user", "content": prompt}]
        try:
            reply = await self._client.chat.completions.create(
                model=self.model, messages=messages, temperature=temperature
            )
            text = reply.choices[0].message.content or ""
        except APITimeoutError:
            raise ModelError(f"The judge did not answer within {self.limits.timeout:g} s.") from None
        except APIConnectionError:
            raise ModelError("The judge cannot be reached.") from None
        except APIStatusError as error:
            raise ModelError(f"The judge refused ({error.status_code}).") from None
        except (OpenAIError, AttributeError, IndexError, TypeError, ValueError):
            raise ModelError("The judge sent something that is no chat message.") from None
        counted = getattr(getattr(reply, "usage", None), "total_tokens", None)
        self.spent.tokens += int(counted or (len(prompt) + len(text)) // 4)
        return text
