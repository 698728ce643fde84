"""A chat model behind any OpenAI-compatible endpoint; every failure becomes a one-sentence ModelError."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from workbench.errors import ConfigurationError, ModelError, WorkbenchError, describe_fault, list_choices
from workbench.models.model_names import (
    BYTES_PER_TOKEN,
    LLM_FAMILIES,
    LLM_OPTIONS,
    load_object,
    parse_model_name,
)
from workbench.runtime import check_extra
from workbench.telemetry import CHAT, measure
from workbench.types import JsonObject, mark_slow_step

if TYPE_CHECKING:
    import httpx
    from llama_index.core.llms import LLM
    from llama_index.llms.openai import OpenAI
    from openai.types import CompletionUsage

T = TypeVar("T")
MAX_ATTEMPTS = 3  # for status 429 and 5xx
MAX_RETRY_DELAY_S = 20.0  # seconds, whatever Retry-After requests
CONTEXT_TOKENS = 8192  # reported to LlamaIndex, which cannot ask the endpoint; our prompts are far shorter
_JSON = re.compile(r"\[.*\]|\{.*\}", re.DOTALL)


@dataclass(slots=True)
class LlmUsage:
    """Calls of LLMs and their tokens; the tokens of an endpoint that reports none are estimated."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


_usages: ContextVar[tuple[LlmUsage, ...]] = ContextVar("llm_usages", default=())


@contextmanager
def count_llm_usage() -> Generator[LlmUsage]:
    """Count the calls of LLMs within the block."""
    usage = LlmUsage()
    before = _usages.set((*_usages.get(), usage))
    try:
        yield usage
    finally:
        _usages.reset(before)


def _count(prompt: str, answer: str, reported: CompletionUsage | None) -> tuple[int, int]:
    """Add a call to the usages that are being counted, and return its tokens: (input, output)."""
    tokens = (len(prompt.encode()) // BYTES_PER_TOKEN, len(answer.encode()) // BYTES_PER_TOKEN)
    if reported is not None:
        tokens = (reported.prompt_tokens, reported.completion_tokens)
    for usage in _usages.get():
        usage.calls += 1
        usage.input_tokens += tokens[0]
        usage.output_tokens += tokens[1]
    return tokens


class Llm:
    """One chat model; it connects when first used. Thread-safe."""

    writes_by_grammar = False  # whether JSON output is constrained to its schema
    is_own = False  # whether it is an object of a user, without a URL

    def __init__(
        self,
        base_url: str,
        model: str,
        api_key: str = "",
        timeout: float = 60.0,
        settings: tuple[str, str, str] = ("WORKBENCH_LLM_API_KEY", "WORKBENCH_LLM_BASE_URL", "WORKBENCH_LLM_MODEL"),
    ) -> None:
        """Configure the model.

        Args:
            base_url: URL of its API.
            model: Its name there.
            api_key: The key; "" if it needs none.
            timeout: Seconds until the next piece of an answer.
            settings: What errors advise to correct: the key, the URL and the name.
        """
        if not model:
            raise ConfigurationError("WORKBENCH_LLM_BASE_URL is set without a model; set WORKBENCH_LLM_MODEL too.")
        self.name, self.api_key = model, api_key
        self._base_url, self._timeout, self._settings = base_url, timeout, settings
        self._client: Any = None
        self._responses = threading.local()  # .last: the response to the last request of this thread

    def base_url(self) -> str:
        """Return the URL of its API, without ``/chat/completions``."""
        return self._base_url

    def complete(self, system: str, prompt: str, schema: JsonObject | None = None) -> str:
        """Return the whole answer.

        Args:
            schema: JSON schema of the answer, for models with grammar-constrained output.

        Raises:
            ModelError: The endpoint did not answer, rejected the request, or did not return a chat message.
        """
        from llama_index.core.llms import ChatMessage

        messages = [ChatMessage(system, role="system"), ChatMessage(prompt, role="user")]
        with measure(CHAT, self.name) as call:
            response = self._attempt(lambda: self.framework.chat(messages, **self._options(schema)))
            answer = response.message.content or ""
            call.add_chat(system, prompt, answer, _count(system + prompt, answer, getattr(response.raw, "usage", None)))
        return answer

    def stream(self, system: str, prompt: str) -> Iterator[str]:
        """Yield the answer piece by piece.

        Raises:
            ModelError: The endpoint failed, possibly in the middle of the answer.
        """
        from llama_index.core.llms import ChatMessage

        messages = [ChatMessage(system, role="system"), ChatMessage(prompt, role="user")]

        def begun() -> tuple[Any, Any, httpx.Response | None]:
            pieces = self.framework.stream_chat(messages)
            first = next(pieces, None)  # sends the request
            return first, pieces, getattr(self._responses, "last", None)

        with measure(CHAT, self.name, is_parent=False, stream=True) as call:
            first, rest, response = self._attempt(begun)
            if first is None:
                raise self._failure(ValueError("no pieces"))
            answer = [first.delta or ""]
            try:
                yield answer[0]
                for piece in rest:
                    answer.append(piece.delta or "")
                    yield answer[-1]
            except Exception as error:  # the errors of the package and its transport have no common class
                raise self._failure(error) from error
            finally:
                if response is not None:
                    response.close()  # the client's stream is a cycle: a model would write on until it is collected
            written = "".join(answer)
            call.add_chat(system, prompt, written, _count(system + prompt, written, None))

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
        from openai import DefaultHttpxClient
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
            http_client=DefaultHttpxClient(
                event_hooks={"response": [lambda response: setattr(self._responses, "last", response)]}
            ),
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
        return f"is unreachable, or closed the connection; start it or correct {self._settings[1]}"

    def _attempt(self, ask: Callable[[], T]) -> T:
        from workbench.models.endpoints import choose_retry_delay

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
                delay = choose_retry_delay(getattr(error, "response", None), 2 ** (attempt - 1))
                time.sleep(min(delay, MAX_RETRY_DELAY_S))
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
            what = f"rejected the API key ({status}); correct {self._settings[0]}"
        elif status == 404:
            what = f"does not know that model or address (404); correct {self._settings[1]} or {self._settings[2]}"
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


class OwnLlm(Llm):
    """A LlamaIndex LLM of a user."""

    is_own = True

    def __init__(self, name: str, llm: LLM) -> None:
        super().__init__("", name)
        self.framework = llm  # pyright: ignore[reportIncompatibleVariableOverride, reportAttributeAccessIssue] - any LLM

    def _failure(self, error: Exception) -> ModelError:
        return ModelError(f"The LLM {self.name!r} failed ({describe_fault(error)}); correct it or use another one.")


def load_llm(
    name: str, base_url: str, api_key: str, timeout: float, variables: Mapping[str, str], *, any_url: bool = True
) -> Llm:
    """Return an LLM by name; nothing is sent before the first prompt.

    Args:
        name: ``FAMILY:MODEL?option=value``, ``python:PACKAGE.MODULE:ATTRIBUTE``, the path of a GGUF file, or the name
            of a model at the configured endpoint.
        base_url: URL of the configured endpoint; "" if there is none.
        api_key: Its key.
        timeout: Seconds until the next piece of an answer.
        variables: Environment variables, for the keys and URLs of providers.
        any_url: Whether prompts may be sent to a URL that is not among the variables.

    Raises:
        ConfigurationError: The name is invalid, or a key, a URL, a file or an extra is missing, or the URL is not
            allowed.
    """
    model = parse_model_name(name, LLM_OPTIONS) if name.partition(":")[0] in LLM_FAMILIES else None
    if model is None and (not base_url or name.lower().endswith(GGUF_SUFFIX)):
        return LocalLlm(name, timeout)
    if model is None:
        return Llm(base_url, name, api_key, timeout)
    if model.family == "python":
        from llama_index.core.llms import LLM

        own = load_object(model.text, model.model, lambda one: isinstance(one, LLM), "a LlamaIndex LLM")
        return OwnLlm(name, cast("LLM", own))
    from workbench.models.endpoints import LLM_PROVIDERS, find_endpoint

    provider = LLM_PROVIDERS[model.family]
    endpoint = find_endpoint(model, provider, variables, any_url=any_url)
    settings = (endpoint.key_variable or "its key", "its option url", "its name")
    return Llm(endpoint.url.rstrip("/") + provider.path, model.model, endpoint.key, timeout, settings)


# A chat model from a GGUF file, which llama.cpp runs in a child process (the extra local-llm)

GGUF_SUFFIX = ".gguf"
MAX_CONCURRENT_ANSWERS = 2  # concurrent answers; they share the context
KILL_TIMEOUT_S = 5.0  # seconds to wait for a killed process


class LocalLlm(Llm):
    """A GGUF model with the interface of an endpoint; its JSON output is constrained to the schema by a grammar.

    Its process is started on first use, and restarted if it has died.
    """

    writes_by_grammar = True

    def __init__(self, path: str, timeout: float = 60.0) -> None:
        """Configure the model.

        Args:
            timeout: Seconds until the next piece of an answer.

        Raises:
            ConfigurationError: There is no such file, or the extra ``local-llm`` is not installed.
        """
        model = Path(path).expanduser()
        if model.suffix.lower() != GGUF_SUFFIX:
            raise ConfigurationError(
                f"WORKBENCH_LLM_MODEL is {path!r}, which is not a GGUF file; set WORKBENCH_LLM_BASE_URL to the "
                f"endpoint that serves this model, or use FAMILY:MODEL with one of {list_choices(LLM_FAMILIES)}."
            )
        if not model.is_file():
            raise ConfigurationError(f"File not found: {path}. Correct WORKBENCH_LLM_MODEL.")
        check_extra("local-llm")
        super().__init__("", model.stem, timeout=timeout)
        self._file = model.resolve()
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0  # any at first, then the same if it is still free
        self._lock = threading.Lock()

    @property
    def process_id(self) -> int | None:
        """Id of the model's process; None if it is not running."""
        return None if self._process is None else self._process.pid

    def base_url(self) -> str:
        """Return the URL of the model's process, which is started if necessary.

        Raises:
            ModelError: Llama.cpp cannot load the file.
        """
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._end()
                self._start()
            return f"http://{HOST}:{self._port}/v1"

    def close(self) -> None:
        """Close the connections and end the model's process."""
        super().close()
        with self._lock:
            self._end()

    def _start(self) -> None:
        command = [sys.executable, "-m", "workbench.models.llm"]
        options = [str(self._file), str(self._port), str(CONTEXT_TOKENS), str(MAX_CONCURRENT_ANSWERS)]
        process = subprocess.Popen([*command, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdout is not None
        address = process.stdout.readline().decode().strip()
        self._process = process
        if not address:
            code, file = process.wait(), self._file.name
            self._end()
            if code == EXIT_NO_MODEL:
                raise ModelError(
                    f"llama.cpp cannot load {file}; download it again, or set WORKBENCH_LLM_MODEL to another file."
                )
            raise ModelError(f"The process of {file} exited with code {code} before it answered; check its output.")
        self._port = int(address.rsplit(":", 1)[1])

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate(timeout=KILL_TIMEOUT_S)  # closes its pipes

    def _options(self, schema: JsonObject | None) -> JsonObject:
        if schema is None:
            return {}
        return {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}}

    def _unreachable(self) -> str:
        return "exited while writing the answer; try again, which restarts it"


# The process that runs a GGUF model: ``python -m workbench.models.llm FILE PORT CONTEXT SLOTS``.
#
# It serves llama.cpp's OpenAI-compatible API on loopback and prints the address once the model is loaded. It ends when
# its input is closed, so it never outlives its parent, however that ends. If the port is taken, it uses any free one.
# Exit code 3: llama.cpp cannot load the file.

HOST = "127.0.0.1"
EXIT_NO_MODEL = 3  # exit code if the file is not a model
MAX_ANSWER_TOKENS = 512  # tokens; small models may never stop
# Small models tend to repeat a sentence. DRY (llama.cpp's "don't repeat yourself") makes each further token of a
# repetition less likely once it is longer than a name or a short quotation.
MIN_REPEATED_TOKENS, REPETITION_WINDOW_TOKENS = 8, 256  # tokens


def find_free_port(wanted: int) -> int:
    """Return the requested port if it is free, otherwise 0, which means any port."""
    try:
        with socket.create_server((HOST, wanted)):
            return wanted
    except OSError:
        return 0


def main() -> None:
    """Load the model, print its address and serve until the input is closed."""
    import xllamacpp

    native: Any = xllamacpp  # a compiled module without types
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches this process too; its parent decides
    path, port, context, slots = sys.argv[1], *map(int, sys.argv[2:5])
    parameters = native.CommonParams()
    parameters.model.path = path
    parameters.hostnames, parameters.port, parameters.ui = [HOST], find_free_port(port), False
    parameters.n_ctx, parameters.n_parallel, parameters.kv_unified = context, slots, True
    parameters.cpuparams.poll = parameters.cpuparams_batch.poll = 0  # wait without spinning
    # The threads of one answer synchronise at every layer: on busy cores two are five times slower than one.
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = max(1, (os.cpu_count() or 2) // 2)
    parameters.n_predict = MAX_ANSWER_TOKENS
    sampling = parameters.sampling
    sampling.dry_multiplier, sampling.dry_allowed_length = 0.8, MIN_REPEATED_TOKENS
    sampling.dry_penalty_last_n = REPETITION_WINDOW_TOKENS
    parameters.offline, parameters.warmup, parameters.verbosity = True, False, -1
    try:
        server = native.Server(parameters)
    except RuntimeError:
        os._exit(EXIT_NO_MODEL)  # a normal exit would wait for its threads
    print(server.listening_address, flush=True)
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    main()
