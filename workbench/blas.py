"""Matrix products of numpy on the thread that asks for them, in the processes that are ours.

OpenBLAS, which numpy's wheels bring, divides a product among threads of its own, and these go on spinning for some
milliseconds after it. A search multiplies small matrices between statements, so its threads take the cores from
Postgres: on two cores ``rerank`` took 48 ms of processor time with them and 27 without. And they are ended where
another thread forks, for which a product in their midst then waits without end.
"""

from __future__ import annotations

import os

VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")  # numpy from wheels, conda, on a Mac


def multiply_on_one_thread() -> None:
    """Set numpy's threads to one, before numpy is imported; what the environment says already stays."""
    for variable in VARIABLES:
        os.environ.setdefault(variable, "1")
