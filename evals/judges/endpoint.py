"""A judge at an OpenAI-compatible endpoint, with limits on time, calls and tokens."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from workbench.errors import SETUP_HINT, Cancelled, ConfigurationError, ModelError
from workbench.settings import Settings
from workbench.telemetry import CHAT, measure
from workbench.types import JsonObject, JsonValue, ShouldStop, mark_slow_step
from workbench.workbench import Workbench

INVALID_ANSWER_REASON = "The judge's answers did not have the requested form."
MAX_TEXT_CHARS, MAX_LIST_ITEMS = 240, 8  # maximum length of texts and lists written by grammar

Reply = TypeVar("Reply", bound=BaseModel)
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of judging; the first limit reached ends it, and values measured by then are kept."""

    seconds: float = 600.0
    calls: int = 2_000
    tokens: int = 1_000_000  # prompts and answers, as counted by the endpoint (else characters / 4)
    dollars: float = math.inf  # what is left of a budget
    price: tuple[float, float] = (0.0, 0.0)  # dollars per million tokens read and written
    timeout: float = 60.0  # seconds per request
    retries: int = 2  # after 429 and 5xx, with the endpoint's Retry-After
    at_once: int = 4

    @classmethod
    def from_settings(cls, settings: Settings) -> Limits:
        """Return the limits of the settings."""
        return cls(settings.judge_seconds, settings.judge_calls, settings.judge_tokens, timeout=settings.llm_timeout)


@dataclass(slots=True)
class Spending:
    """The cost of judging so far; ``began`` is the time of the first call by the endpoint's clock."""

    calls: int = 0
    tokens: int = 0
    written: int = 0  # of the tokens, those of answers
    dollars: float = 0.0
    began: float | None = None


class LimitReached(ModelError):
    """A limit of judging was reached; no more calls are made."""


class Endpoint:
    """One judge; ``spent`` is its cost so far."""

    def __init__(
        self,
        base_url: str | Callable[[], str],
        model: str,
        api_key: str = "",
        limits: Limits | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        writes_by_grammar: bool = False,
    ) -> None:
        """``base_url`` ends before ``/chat/completions``, as for OpenAI's client.

        It may be a function that starts a local model. ``writes_by_grammar`` if the model is a small one that
        constrains answers to a JSON schema, whose texts and lists then need bounds.
        """
        self.model, self.limits, self.spent = model, limits or Limits(), Spending()
        self._base_url, self._api_key, self._clock = base_url, api_key, clock
        self._writes_by_grammar = writes_by_grammar
        self._part, self._takes_schemas = False, True
        self._gate: asyncio.Semaphore | None = None
        self._client: Any = None
        self._own: Any = None  # an LLM that is asked instead of the URL

    @classmethod
    def from_workbench(cls, wb: Workbench, limits: Limits | None = None) -> Endpoint:
        """Return the workbench's language model as a judge. Raises ConfigurationError if there is none."""
        llm = wb.corpus.llm
        if llm is None:
            raise ConfigurationError(f"No LLM is configured; {SETUP_HINT}.")
        limits = limits or Limits.from_settings(wb.settings)
        judge = cls(llm.base_url, llm.name, llm.api_key, limits, writes_by_grammar=llm.writes_by_grammar)
        judge._own = llm if llm.is_own else None
        return judge

    def share(self, parts: int) -> Endpoint:
        """Return this judge for the first of ``parts`` unjudged runs, with an equal part of the remaining limits.

        Whatever one run does not use is available to later runs.
        """
        spent, limits = self.spent, self.limits
        elapsed = self._elapsed()
        part = copy(self)
        part._part = parts > 1
        part.limits = replace(
            limits,
            seconds=elapsed + max(0.0, limits.seconds - elapsed) / parts,
            calls=spent.calls + max(0, limits.calls - spent.calls) // parts,
            tokens=spent.tokens + max(0, limits.tokens - spent.tokens) // parts,
        )
        return part

    def _elapsed(self) -> float:
        return 0.0 if self.spent.began is None else self._clock() - self.spent.began

    async def __aenter__(self) -> Endpoint:
        from openai import AsyncOpenAI

        self._gate = asyncio.Semaphore(self.limits.at_once)
        address = self._base_url if isinstance(self._base_url, str) else await asyncio.to_thread(self._base_url)
        self._client = AsyncOpenAI(
            base_url=address,
            api_key=self._api_key or "none",  # without a key the client would send OPENAI_API_KEY
            timeout=self.limits.timeout,
            max_retries=self.limits.retries,
        )
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._client.close()

    async def ask(self, prompt: str, form: type[Reply], temperature: float = 0.0) -> Reply:
        """Return the answer to a prompt that requests JSON, in the form of a class.

        Raises:
            ModelError: As for ``complete``, or the answer does not have the form.
        """
        answer = await self.complete(prompt, temperature, form.model_json_schema())
        start, end = answer.find("{"), answer.rfind("}")  # some models write a sentence or a fence around it
        try:
            return form.model_validate_json(answer[start : end + 1])
        except ValidationError:
            raise ModelError(INVALID_ANSWER_REASON) from None

    async def complete(self, prompt: str, temperature: float = 0.0, schema: JsonObject | None = None) -> str:
        """Return the answer to a prompt; ``schema`` constrains its JSON if the endpoint supports that.

        Raises:
            LimitReached: Time, calls or tokens are used up.
            ModelError: The endpoint did not answer, refused, or did not send a chat message.
        """
        assert self._gate is not None, "use the endpoint in 'async with'"
        async with self._gate:
            if self.spent.began is None:
                self.spent.began = self._clock()
            self._check()
            self.spent.calls += 1
            seconds = self.limits.seconds - self._elapsed()
            try:
                with mark_slow_step():
                    async with asyncio.timeout(seconds):
                        answer = await self._ask(prompt, temperature, schema)
            except TimeoutError:
                raise self._make_error("seconds") from None
        return answer

    def _check(self) -> None:
        spent = self.spent
        used = {"seconds": self._elapsed(), "calls": spent.calls, "tokens": spent.tokens, "dollars": spent.dollars}
        for name, amount in used.items():
            if amount >= getattr(self.limits, name):
                raise self._make_error(name)

    def _make_error(self, name: str) -> LimitReached:
        if name == "dollars":
            return LimitReached("The budget was used up before this judgment.")
        if self._part:
            return LimitReached(
                f"This run's share of the judge's {name} is used up; raise WORKBENCH_JUDGE_{name.upper()}."
            )
        limit = getattr(self.limits, name)
        text = f"time limit of {limit:g} s" if name == "seconds" else f"limit of {limit:,} {name}"
        return LimitReached(f"The {text} was reached.")

    async def _ask(self, prompt: str, temperature: float, schema: JsonObject | None) -> str:
        if self._own is not None:
            text = await asyncio.to_thread(self._own.complete, "", prompt)
            self._count(len(prompt) // 4, len(text) // 4)
            return text
        with measure(CHAT, self.model) as call:
            text, tokens = await self._send(prompt, temperature, schema)
            call.add_chat("", prompt, text, tokens)
        self._count(*tokens)
        return text

    async def _send(self, prompt: str, temperature: float, schema: JsonObject | None) -> tuple[str, tuple[int, int]]:
        """Return the answer, and the tokens of the prompt and of the answer."""
        from openai import APIConnectionError, APIStatusError, APITimeoutError, BadRequestError, OpenAIError

        messages: Any = [{"role": "user", "content": prompt}]
        bounded = _bound_schema(schema) if schema and self._writes_by_grammar else schema
        answer_as: Any = {"type": "json_schema", "json_schema": {"name": "answer", "schema": bounded}}
        options: Any = {"response_format": answer_as} if schema and self._takes_schemas else {}
        try:
            reply = await self._client.chat.completions.create(
                model=self.model, messages=messages, temperature=temperature, **options
            )
            text = reply.choices[0].message.content or ""
        except BadRequestError as error:
            if not options:
                raise ModelError(f"The judge answered with HTTP status {error.status_code}.") from None
            self._takes_schemas = False
            return await self._send(prompt, temperature, schema)
        except APITimeoutError:
            raise ModelError(f"The judge did not answer within {self.limits.timeout:g} s.") from None
        except APIConnectionError:
            raise ModelError("The judge is unreachable; check WORKBENCH_LLM_BASE_URL.") from None
        except APIStatusError as error:
            raise ModelError(f"The judge answered with HTTP status {error.status_code}.") from None
        except (OpenAIError, AttributeError, IndexError, TypeError, ValueError):
            raise ModelError("The judge's answer is not a chat message.") from None
        usage = getattr(reply, "usage", None)
        read, written = (getattr(usage, f"{name}_tokens", None) for name in ("prompt", "completion"))
        return text, (int(read or len(prompt) // 4), int(written or len(text) // 4))

    def _count(self, read: int, written: int) -> None:
        self.spent.tokens += read + written
        self.spent.written += written
        self.spent.dollars += (read * self.limits.price[0] + written * self.limits.price[1]) / 1e6


def _bound_schema(schema: JsonObject) -> JsonObject:
    """Return a schema with bounded texts and lists: a small model might never stop writing."""
    bounds: dict[JsonValue, JsonObject] = {
        "string": {"maxLength": MAX_TEXT_CHARS},
        "array": {"maxItems": MAX_LIST_ITEMS},
    }
    inner = {key: _bound_value(value) for key, value in schema.items()}
    kind = schema.get("type")
    return {**bounds.get(kind, {}), **inner} if isinstance(kind, str) else inner


def _bound_value(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return _bound_schema(value)
    return [_bound_value(part) for part in value] if isinstance(value, list) else value


# Cancellable judging

POLL_INTERVAL_S = 0.2  # seconds between checks of a stop
CLOSE_TIMEOUT_S = 1.0  # seconds for calls in flight to close their connections


def run_judging(work: Callable[[], Coroutine[object, object, Result]], should_stop: ShouldStop | None = None) -> Result:
    """Run a coroutine in its own event loop, even if the caller (a notebook) has one, and return its result.

    Raises:
        Cancelled: ``should_stop`` returned True; calls in flight are abandoned.
    """
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, _watch(work, should_stop)).result()


def check_stop(should_stop: ShouldStop | None) -> None:
    """Raise Cancelled if a stop was requested."""
    if should_stop is not None and should_stop():
        raise Cancelled("Stopped; the judgments so far are kept.")


async def _watch(work: Callable[[], Coroutine[object, object, Result]], should_stop: ShouldStop | None) -> Result:
    task = asyncio.ensure_future(work())
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=POLL_INTERVAL_S)
            if not task.done():
                check_stop(should_stop)
    except Cancelled:
        task.cancel()
        await asyncio.wait({task}, timeout=CLOSE_TIMEOUT_S)
        raise
    return task.result()
