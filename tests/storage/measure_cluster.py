"""Hold an index on three real servers against one server: ``python -m tests.storage.measure_cluster`` [--passages N].

Synthetic passages lie in both. It prints, for each strategy, the questions whose first fifty passages and scores (to nine
digits) are the same, and the milliseconds of both, asked one after the other. The graphs are walked far enough on both
sides to be exact (ef_search 1,000, the most there is), since the nearest that a graph misses say nothing of the cluster.
"""

from __future__ import annotations

import argparse
import sys
import time
from itertools import batched  # pyright: ignore

import numpy as np
