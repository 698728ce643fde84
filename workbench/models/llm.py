"""A chat model at any OpenAI-compatible endpoint; what goes wrong there comes out as one sentence."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from workbench.errors import ConfigurationError, ModelError

if TYPE_CHECKING:
    from llama_index.llms.openai import OpenAI

ATTEMPTS = 3  # for 429 and 5xx: endpoints ask for it, and a person can still wait that long
LONGEST_WAIT = 20.0  # seconds, whatever Retry-After says
CONTEXT_TOKENS = 8192  # told to LlamaIndex, which cannot ask the endpoint; our own prompts stay far below
_JSON = re.compile(r"\[.*\]|\{.*\}", re.DOTALL)


class Llm:
    """One chat model; opens nothing before the first question. May be used from several threads."""

    def __init__(self, base_url: str, model: str, api_key: str = "", timeout: float = 60.0) -> None:
        """``timeout`` is how long to wait for the next piece of an answer, in seconds."""
        if not model:
            raise ConfigurationError("WORKBENCH_LLM_BASE_URL is set without a model; set WORKBENCH_LLM_MODEL too.")
        self.name = model
        self._base_url, self._api_key, self._timeout = base_url, api_key, timeout
        self._client: Any = None

    def complete(self, system: str, prompt: str) -> str:
        """Return the whole answer.

        Raises:
            ModelError: the endpoint did not answer, refused, or answered with something else than a chat message.
        """
        from llama_index.core.llms import ChatMessage

        messages = [ChatMessage(system, role="system"), ChatMessage(prompt, role="user")]
        response = self._attempted(lambda: self.framework.chat(messages))
        return response.message.content or ""

    def stream(self, system: str, prompt: str) -> Iterator[str]:
        """Yield the answer piece by piece. Raises ModelError, also in the middle."""
        from llama_index.core.llms import ChatMessage

        messages = [ChatMessage(system, role="system"), ChatMessage(prompt, role="user")]

        def begun() -> tuple[Any, Any]:
            pieces = self.framework.stream_chat(messages)
            return next(pieces, None), pieces  # the request is sent when the first piece is asked for

        first, rest = self._attempted(begun)
        if first is None:
            raise self._failure(ValueError("no pieces"))
        yield first.delta or ""
        try:
            for piece in rest:
                yield piece.delta or ""
        except Exception as error:  # the package's and its transport's errors have no class in common
            raise self._failure(error) from error

    def read_json(self, system: str, prompt: str) -> Any:
        """Return the JSON value in the answer, which may stand in prose or a code fence.

        Raises:
            ModelError: the answer holds no JSON, or as for ``complete``.
        """
        answer = self.complete(system, prompt)
        found = _JSON.search(answer)
        try:
            return json.loads(found.group() if found else answer)
        except ValueError as error:
            shown = " ".join(answer.split())[:80]
            raise ModelError(
                f"The LLM {self.name!r} was asked for JSON and answered {shown!r}; try again or another model."
            ) from error

    @cached_property
    def framework(self) -> OpenAI:
        """The same model as LlamaIndex's LLM, for its engines."""
        from llama_index.core.base.llms.types import LLMMetadata
        from llama_index.llms.openai import OpenAI
        from openai import OpenAI as Client

        class Endpoint(OpenAI):
            """OpenAI's client for models that are not OpenAI's: their names say nothing of their context."""

            @property
            def metadata(self) -> LLMMetadata:
                return LLMMetadata(context_window=CONTEXT_TOKENS, is_chat_model=True, model_name=self.model)

        self._client = Client(
            base_url=self._base_url,
            api_key=self._api_key or "none",  # a client without any key looks for OPENAI_API_KEY and sends it
            timeout=self._timeout,
            max_retries=0,
        )
        return Endpoint(
            model=self.name,
            api_base=self._base_url,
            api_key=self._api_key or "none",
            temperature=0.0,
            timeout=self._timeout,
            max_retries=0,
            openai_client=self._client,  # pyright: ignore[reportCallIssue] - only its __init__ names it
        )

    def close(self) -> None:
        """Give back the connections; a closed model cannot be asked again."""
        if self._client is not None:
            self._client.close()

    def _attempted(self, ask: Any) -> Any:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return ask()
            except Exception as error:
                if attempt == ATTEMPTS or not _is_passing(error):
                    raise self._failure(error) from error
                time.sleep(_wait(error, attempt))
        raise AssertionError("unreachable")

    def _failure(self, error: Exception) -> ModelError:
        kind, status = type(error).__name__, getattr(error, "status_code", None)
        if "Timeout" in kind:
            what = f"did not answer within {self._timeout:g} s; raise WORKBENCH_LLM_TIMEOUT or try later"
        elif status == 429:
            what = f"had too many requests (429), {ATTEMPTS} times; try later"
        elif status in (401, 403):
            what = f"refused the key ({status}); correct WORKBENCH_LLM_API_KEY"
        elif status == 404:
            what = "does not know that model or address (404); correct WORKBENCH_LLM_BASE_URL or WORKBENCH_LLM_MODEL"
        elif status is not None:
            what = f"failed ({status}); look at its log"
        elif "Connect" in kind or "Protocol" in kind or "Network" in kind or "ReadError" in kind:
            what = "cannot be reached, or broke off; start it or correct WORKBENCH_LLM_BASE_URL"
        else:
            what = f"answered with something that is no chat message ({kind}); check that it is OpenAI-compatible"
        return ModelError(f"The LLM {self.name!r} at {self._base_url} {what}.")


def _is_passing(error: Exception) -> bool:
    status = getattr(error, "status_code", None)
    return status == 429 or (status is not None and status >= 500)


def _wait(error: Exception, attempt: int) -> float:
    """Return how long the endpoint asks to wait, else 1, 2, ... seconds."""
    response = getattr(error, "response", None)
    try:
        wanted = float(response.headers["retry-after"]) if response is not None else float(2 ** (attempt - 1))
    except (KeyError, ValueError):
        wanted = float(2 ** (attempt - 1))
    return min(max(wanted, 0.0), LONGEST_WAIT)
