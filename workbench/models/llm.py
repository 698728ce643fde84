"""A chat model behind any OpenAI-compatible endpoint; every failure becomes a one-sentence ModelError."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from workbench.errors import ConfigurationError, ModelError, WorkbenchError
from workbench.runtime import check_extra
from workbench.types import JsonObject, mark_slow_step

if TYPE_CHECKING:
    from llama_index.llms.openai import OpenAI

T = TypeVar("T")
MAX_ATTEMPTS = 3  # for status 429 and 5xx
MAX_RETRY_DELAY_S = 20.0  # seconds, whatever Retry-After requests
CONTEXT_TOKENS = 8192  # reported to LlamaIndex, which cannot ask the endpoint; our prompts are far shorter
SETUP_HINT = "set WORKBENCH_LLM_BASE_URL and WORKBENCH_LLM_MODEL, or only the latter, to the path of a GGUF file"
_JSON = re.compile(r"\[.*\]|\{.*\}", re.DOTALL)


class Llm:
    """One chat model; it connects when first used. Thread-safe."""

    writes_by_grammar = False  # whether JSON output is constrained to its schema

    def __init__(self, base_url: str, model: str, api_key: str = "", timeout: float = 60.0) -> None:
        """Configure the model; ``timeout`` is in seconds until the next piece of an answer."""
        if not model:
            raise ConfigurationError("WORKBENCH_LLM_BASE_URL is set without a model; set WORKBENCH_LLM_MODEL too.")
        self.name, self.api_key = model, api_key
        self._base_url, self._timeout = base_url, timeout
        self._client: Any = None

    def base_url(self) -> str:
        """Return the URL of its API, without ``/chat/completions``."""
        return self._base_url

    def complete(self, system: str, prompt: str, schema: JsonObject | None = None) -> str:
        """Return the whole answer.

        Args:
            system: System prompt.
            prompt: User prompt.
            schema: JSON schema of the answer, for models with grammar-constrained output.

        Raises:
            ModelError: The endpoint did not answer, rejected the request, or did not return a chat message.
        """
        from llama_index.core.llms import ChatMessage

        messages = [ChatMessage(system, role="system"), ChatMessage(prompt, role="user")]
        response = self._attempt(lambda: self.framework.chat(messages, **self._options(schema)))
        return response.message.content or ""

    def stream(self, system: str, prompt: str) -> Iterator[str]:
        """Yield the answer piece by piece.

        Raises:
            ModelError: The endpoint failed, possibly in the middle of the answer.
        """
        from llama_index.core.llms import ChatMessage

        messages = [ChatMessage(system, role="system"), ChatMessage(prompt, role="user")]

        def begun() -> tuple[Any, Any]:
            pieces = self.framework.stream_chat(messages)
            return next(pieces, None), pieces  # requesting the first piece sends the request

        first, rest = self._attempt(begun)
        if first is None:
            raise self._failure(ValueError("no pieces"))
        yield first.delta or ""
        try:
            for piece in rest:
                yield piece.delta or ""
        except Exception as error:  # the errors of the package and its transport have no common class
            raise self._failure(error) from error

    def read_json(self, system: str, prompt: str, schema: JsonObject | None = None) -> object:
        """Return the JSON value in the answer, which may be inside prose or a code fence; ``schema`` as above.

        Raises:
            ModelError: The answer contains no JSON, or ``complete`` failed.
        """
        answer = self.complete(system, prompt, schema)
        match = _JSON.search(answer)
        try:
            return json.loads(match.group() if match else answer)
        except ValueError as error:
            beginning = " ".join(answer.split())[:80]
            raise ModelError(
                f"The LLM {self.name!r} did not return the requested JSON but {beginning!r}; try again, or use another "
                "model."
            ) from error

    @cached_property
    def framework(self) -> OpenAI:
        """The same model as a LlamaIndex LLM, for its engines.

        Raises:
            ConfigurationError: The extra ``llm`` is not installed.
        """
        check_extra("llm")
        from llama_index.core.base.llms.types import LLMMetadata
        from llama_index.llms.openai import OpenAI
        from openai import OpenAI as Client

        class Endpoint(OpenAI):
            """OpenAI's client for other vendors' models, whose names do not imply a context size."""

            @property
            def metadata(self) -> LLMMetadata:
                return LLMMetadata(context_window=CONTEXT_TOKENS, is_chat_model=True, model_name=self.model)

        address = self.base_url()
        self._client = Client(
            base_url=address,
            api_key=self.api_key or "none",  # otherwise the client would send OPENAI_API_KEY
            timeout=self._timeout,
            max_retries=0,
        )
        return Endpoint(
            model=self.name,
            api_base=address,
            api_key=self.api_key or "none",
            temperature=0.0,
            timeout=self._timeout,
            max_retries=0,
            openai_client=self._client,  # pyright: ignore[reportCallIssue] - only its __init__ names it
        )

    def close(self) -> None:
        """Close the connections; the model must not be used afterwards."""
        if self._client is not None:
            self._client.close()

    def _options(self, schema: JsonObject | None) -> JsonObject:
        """Return the options of a request; the schema is omitted, as an endpoint may not support it."""
        return {}

    def _unreachable(self) -> str:
        return "is unreachable, or closed the connection; start it or correct WORKBENCH_LLM_BASE_URL"

    def _attempt(self, ask: Callable[[], T]) -> T:
        for attempt in range(1, MAX_ATTEMPTS + 1):
            address = self.base_url()  # starts a local model if it is not running
            if self._client is not None:
                self._client.base_url = address  # its port may have changed
            try:
                with mark_slow_step():  # ends with its timeout
                    return ask()
            except Exception as error:
                if attempt == MAX_ATTEMPTS or not _is_transient(error):
                    raise self._failure(error) from error
                time.sleep(_retry_delay(error, attempt))
        raise AssertionError("unreachable")

    def _failure(self, error: Exception) -> ModelError:
        if isinstance(error, WorkbenchError):  # the extra is missing
            return ModelError(str(error))
        kind, status = type(error).__name__, getattr(error, "status_code", None)
        if "Timeout" in kind:
            what = f"did not answer within {self._timeout:g} s; raise WORKBENCH_LLM_TIMEOUT or try later"
        elif status == 429:
            what = f"returned too many requests (429), {MAX_ATTEMPTS} times; try later"
        elif status in (401, 403):
            what = f"rejected the API key ({status}); correct WORKBENCH_LLM_API_KEY"
        elif status == 404:
            what = "does not know that model or address (404); correct WORKBENCH_LLM_BASE_URL or WORKBENCH_LLM_MODEL"
        elif status == 400:
            what = "rejected the request (400), which may be longer than its context; ask for fewer passages"
        elif status is not None:
            what = f"failed ({status}); check its log"
        elif "Connect" in kind or "Protocol" in kind or "Network" in kind or "ReadError" in kind:
            what = self._unreachable()
        else:
            what = f"did not return a chat message ({kind}); check that it is OpenAI-compatible"
        place = f" at {self._base_url}" if self._base_url else ""
        return ModelError(f"The LLM {self.name!r}{place} {what}.")


def _is_transient(error: Exception) -> bool:
    status = getattr(error, "status_code", None)
    return status == 429 or (status is not None and status >= 500)


def _retry_delay(error: Exception, attempt: int) -> float:
    """Return the seconds to wait: as the endpoint requests, otherwise 1, 2, ..."""
    response = getattr(error, "response", None)
    try:
        wanted = float(response.headers["retry-after"]) if response is not None else float(2 ** (attempt - 1))
    except (KeyError, ValueError):
        wanted = float(2 ** (attempt - 1))
    return min(max(wanted, 0.0), MAX_RETRY_DELAY_S)
