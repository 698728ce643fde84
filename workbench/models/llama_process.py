"""The process that runs a GGUF model: ``python -m workbench.models.llama_process FILE PORT CONTEXT SLOTS``.

It serves llama.cpp's OpenAI-compatible API on loopback and prints the address once the model is loaded. It ends when
its input is closed, so it never outlives its parent, however the parent ends. If the port is taken, it uses any free
one. Exit code 3: llama.cpp cannot load the file.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from typing import Any

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
