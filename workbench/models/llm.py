"""A chat model at any OpenAI-compatible endpoint; every failure there comes out as one sentence."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from workbench.errors import ConfigurationError, ModelError, WorkbenchError
from workbench.runtime import check_extra
from workbench.types import JsonObject
from workbench.types.progress import slow_step

if TYPE_CHECKING:
    from llama_index.llms.openai import OpenAI

T = TypeVar("T")
ATTEMPTS = 3  # for 429 and 5xx: endpoints ask for it, and a person can still wait that long
LONGEST_WAIT = 20.0  # seconds, whatever Retry-After says
CONTEXT_TOKENS = 8192  # told to LlamaIndex, which cannot ask the endpoint; our own prompts stay far below
HOW_TO_SET = "set WORKBENCH_LLM_BASE_URL and WORKBENCH_LLM_MODEL, or the latter alone to the path of a GGUF file"
_JSON = re.compile(r"\[.*\]|\{.*\}", re.DOTALL)


class Llm:
    """One chat model; opens nothing before the first question. May be used from several threads."""

    writes_by_grammar = False  # whether JSON is held to its schema while it is written

    def __init__(self, base_url: str, model: str, api_key: str = "", timeout: float = 60.0) -> None:
        """Take ``timeout``, the seconds to wait for the next piece of an answer."""
        if not model:
            raise ConfigurationError("WORKBENCH_LLM_BASE_URL is set without a model; set WORKBENCH_LLM_MODEL too.")
        self.name, self.api_key = model, api_key
        self._base_url, self._timeout = base_url, timeout
        self._client: Any = None

    def base_url(self) -> str:
        """Return the address of its API, which ends before ``/chat/completions``."""
        return self._base_url

    def complete(self, system: str, prompt: str, schema: JsonObject | None = None) -> str:
        """Return the whole answer; ``schema`` is what its JSON is held to, where the model writes by grammar.

        Raises:
            ModelError: the endpoint did not answer, refused, or answered with something else than a chat message.
        """
        from llama_index.core.llms import ChatMessage

        messages = [ChatMessage(system, role="system"), ChatMessage(prompt, role="user")]
        response = self._attempted(lambda: self.framework.chat(messages, **self._options(schema)))
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

    def read_json(self, system: str, prompt: str, schema: JsonObject | None = None) -> object:
        """Return the JSON value in the answer, which may stand in prose or a code fence; ``schema`` as above.

        Raises:
            ModelError: the answer holds no JSON, or as for ``complete``.
        """
        answer = self.complete(system, prompt, schema)
        match = _JSON.search(answer)
        try:
            return json.loads(match.group() if match else answer)
        except ValueError as error:
            beginning = " ".join(answer.split())[:80]
            raise ModelError(
                f"The LLM {self.name!r} was asked for JSON and answered {beginning!r}; try again or another model."
            ) from error

    @cached_property
    def framework(self) -> OpenAI:
        """The same model as LlamaIndex's LLM, for its engines. Raises ConfigurationError without the extra ``llm``."""
        check_extra("llm")
        from llama_index.core.base.llms.types import LLMMetadata
        from llama_index.llms.openai import OpenAI
        from openai import OpenAI as Client

        class Endpoint(OpenAI):
            """OpenAI's client for models that are not OpenAI's: their names say nothing of their context."""

            @property
            def metadata(self) -> LLMMetadata:
                return LLMMetadata(context_window=CONTEXT_TOKENS, is_chat_model=True, model_name=self.model)

        address = self.base_url()
        self._client = Client(
            base_url=address,
            api_key=self.api_key or "none",  # a client without any key looks for OPENAI_API_KEY and sends it
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
        """Give back the connections; a closed model cannot be asked again."""
        if self._client is not None:
            self._client.close()

    def _options(self, schema: JsonObject | None) -> JsonObject:
        """Return what a request says besides its messages; an endpoint may not know of schemas."""
        return {}

    def _unreachable(self) -> str:
        return "cannot be reached, or broke off; start it or correct WORKBENCH_LLM_BASE_URL"

    def _attempted(self, ask: Callable[[], T]) -> T:
        for attempt in range(1, ATTEMPTS + 1):
            address = self.base_url()  # a model of this machine is started where it is not there
            if self._client is not None:
                self._client.base_url = address  # its old port may have been taken
            try:
                with slow_step():  # it ends with its timeout
                    return ask()
            except Exception as error:
                if attempt == ATTEMPTS or not _is_passing(error):
                    raise self._failure(error) from error
                time.sleep(_wait(error, attempt))
        raise AssertionError("unreachable")

    def _failure(self, error: Exception) -> ModelError:
        if isinstance(error, WorkbenchError):  # the extra is missing
            return ModelError(str(error))
        kind, status = type(error).__name__, getattr(error, "status_code", None)
        if "Timeout" in kind:
            what = f"did not answer within {self._timeout:g} s; raise WORKBENCH_LLM_TIMEOUT or try later"
        elif status == 429:
            what = f"had too many requests (429), {ATTEMPTS} times; try later"
        elif status in (401, 403):
            what = f"refused the key ({status}); correct WORKBENCH_LLM_API_KEY"
        elif status == 404:
            what = "does not know that model or address (404); correct WORKBENCH_LLM_BASE_URL or WORKBENCH_LLM_MODEL"
        elif status == 400:
            what = "refused the question (400), which may be longer than it reads; ask for fewer passages"
        elif status is not None:
            what = f"failed ({status}); look at its log"
        elif "Connect" in kind or "Protocol" in kind or "Network" in kind or "ReadError" in kind:
            what = self._unreachable()
        else:
            what = f"answered with something that is no chat message ({kind}); check that it is OpenAI-compatible"
        place = f" at {self._base_url}" if self._base_url else ""
        return ModelError(f"The LLM {self.name!r}{place} {what}.")


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
