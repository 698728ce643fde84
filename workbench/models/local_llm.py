"""A chat model from a GGUF file, which llama.cpp runs in a child process (the extra ``local-llm``)."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from workbench.errors import ConfigurationError, ModelError
from workbench.models.llm import CONTEXT_TOKENS, Llm
from workbench.runtime import check_extra
from workbench.types import JsonObject

GGUF_SUFFIX = ".gguf"
MAX_CONCURRENT_ANSWERS = 2  # concurrent answers; they share the context
KILL_TIMEOUT_S = 5.0  # seconds to wait for a killed process


class LlamaServer:
    """The process of one model, started on first use and restarted if it has died. Thread-safe."""

    def __init__(self, model: Path) -> None:
        """Set the path of the model's file."""
        self._model = model
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0  # any at first, then the same if it is still free
        self._lock = threading.Lock()

    @property
    def process_id(self) -> int | None:
        """Id of the process; None if it is not running."""
        return None if self._process is None else self._process.pid

    def url(self) -> str:
        """Return the URL of its API, once the model is loaded.

        Raises:
            ModelError: Llama.cpp cannot load the file.
        """
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._end()
                self._start()
            return f"http://127.0.0.1:{self._port}/v1"

    def close(self) -> None:
        """End the process; the next question starts a new one."""
        with self._lock:
            self._end()

    def _start(self) -> None:
        command = [sys.executable, "-m", "workbench.models.local_llm"]
        options = [str(self._model), str(self._port), str(CONTEXT_TOKENS), str(MAX_CONCURRENT_ANSWERS)]
        process = subprocess.Popen([*command, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdout is not None
        address = process.stdout.readline().decode().strip()
        self._process = process
        if not address:
            code = process.wait()
            self._end()
            raise ModelError(_load_failure_text(self._model, code))
        self._port = int(address.rsplit(":", 1)[1])

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait(KILL_TIMEOUT_S)
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    stream.close()


class LocalLlm(Llm):
    """A GGUF model with the interface of an endpoint; its JSON output is constrained to the schema by a grammar."""

    writes_by_grammar = True

    def __init__(self, path: str, timeout: float = 60.0) -> None:
        """Configure the model.

        Args:
            path: The GGUF file.
            timeout: Seconds until the next piece of an answer.

        Raises:
            ConfigurationError: There is no such file, or the extra ``local-llm`` is not installed.
        """
        model = Path(path).expanduser()
        if model.suffix.lower() != GGUF_SUFFIX:
            raise ConfigurationError(
                f"WORKBENCH_LLM_MODEL is {path!r}, which is not a GGUF file; set WORKBENCH_LLM_BASE_URL to the "
                "endpoint that serves this model."
            )
        if not model.is_file():
            raise ConfigurationError(f"File not found: {path}. Correct WORKBENCH_LLM_MODEL.")
        check_extra("local-llm")
        super().__init__("", model.stem, timeout=timeout)
        self._server = LlamaServer(model.resolve())

    @property
    def process_id(self) -> int | None:
        """Id of the model's process; None if it is not running."""
        return self._server.process_id

    def base_url(self) -> str:
        """Return the URL of the model's process, which is started if necessary.

        Raises:
            ModelError: Llama.cpp cannot load the file.
        """
        return self._server.url()

    def close(self) -> None:
        """Close the connections and end the model's process."""
        super().close()
        self._server.close()

    def _options(self, schema: JsonObject | None) -> JsonObject:
        if schema is None:
            return {}
        return {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}}

    def _unreachable(self) -> str:
        return "exited while writing the answer; try again, which restarts it"


def _load_failure_text(model: Path, code: int) -> str:
    if code == EXIT_NO_MODEL:
        return f"llama.cpp cannot load {model.name}; download it again, or set WORKBENCH_LLM_MODEL to another file."
    return f"The process of {model.name} exited with code {code} before it answered; check its output."


# The process that runs a GGUF model: ``python -m workbench.models.local_llm FILE PORT CONTEXT SLOTS``.
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
    sampling.dry_multiplier, sampling.dry_allowed_length, sampling.dry_penalty_last_n = (
        0.8,
        MIN_REPEATED_TOKENS,
        REPETITION_WINDOW_TOKENS,
    )
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
