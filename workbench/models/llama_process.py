"""The process in which a GGUF model answers: ``python -m workbench.models.llama_process FILE PORT CONTEXT SLOTS``.

It serves llama.cpp's own OpenAI-compatible API on loopback, prints the address once the model is loaded, and ends when
its input does, so that it never outlives the process that started it, however that one ended. Where the port is taken,
it takes any that is free. Code 3: the file is not a model that llama.cpp can load.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from typing import Any

HOST = "127.0.0.1"
NO_MODEL = 3  # the code with which the process ends over a file that is none
LONGEST_ANSWER = 512  # tokens; a small model may never find an end
# A small model falls into saying one sentence again and again; DRY (llama.cpp's "don't repeat yourself") makes each
# further token of a repetition less likely, once that is longer than a name or a short quotation.
REPEATED, REPEATED_WITHIN = 8, 256  # tokens


def free_port(wanted: int) -> int:
    """Return the wanted port if it is free, else 0, which stands for any."""
    try:
        with socket.create_server((HOST, wanted)):
            return wanted
    except OSError:
        return 0


def main() -> None:
    """Load the model, print its address and answer until the input ends."""
    import xllamacpp

    native: Any = xllamacpp  # a compiled module without types
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches it, too; the process that started it decides
    path, port, context, slots = sys.argv[1], *map(int, sys.argv[2:5])
    parameters = native.CommonParams()
    parameters.model.path = path
    parameters.hostnames, parameters.port, parameters.ui = [HOST], free_port(port), False
    parameters.n_ctx, parameters.n_parallel, parameters.kv_unified = context, slots, True
    parameters.cpuparams.poll = parameters.cpuparams_batch.poll = 0  # waits without turning a core over
    # Threads of one answer wait for each other at every layer: on cores that others use, two are five times slower.
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = max(1, (os.cpu_count() or 2) // 2)
    parameters.n_predict = LONGEST_ANSWER
    sampling = parameters.sampling
    sampling.dry_multiplier, sampling.dry_allowed_length, sampling.dry_penalty_last_n = 0.8, REPEATED, REPEATED_WITHIN
    parameters.offline, parameters.warmup, parameters.verbosity = True, False, -1
    try:
        server = native.Server(parameters)
    except RuntimeError:
        os._exit(NO_MODEL)  # its threads would be waited for
    print(server.listening_address, flush=True)
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    main()
