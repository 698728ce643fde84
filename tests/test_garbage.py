"""Permanent objects are not collected again and again: separate interpreters with the collector as configured."""

from __future__ import annotations

import subprocess
import sys

import pytest

BEGUN = """
import gc
from workbench.runtime import pause_gc
runs = []
gc.callbacks.append(lambda phase, about: runs.append(phase))
"""


def print_in_interpreter(script: str) -> str:
    """Return the output of a fresh interpreter."""
    done = subprocess.run([sys.executable, "-c", BEGUN + script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_nothing_is_collected_in_the_meantime_and_what_was_made_is_old_afterwards() -> None:
    script = """
with pause_gc():
    made = [[] for _ in range(100_000)]
print(runs, any(item is made for item in gc.get_objects(generation=2)), gc.isenabled(), gc.get_freeze_count())
"""
    assert print_in_interpreter(script) == "[] True True 0"


def test_a_collector_that_was_off_stays_off_and_what_was_frozen_stays_frozen() -> None:
    script = """
gc.disable(); gc.freeze(); before = gc.get_freeze_count()
with pause_gc():
    pass
print(gc.isenabled(), gc.get_freeze_count() == before > 0)
"""
    assert print_in_interpreter(script) == "False True"


@pytest.mark.slow
def test_the_framework_leaves_nothing_behind_that_the_next_search_has_to_look_through() -> None:
    script = """
gc.set_threshold(50_000)
from workbench.services.corpus import import_framework
runs.clear()
import_framework()
print(runs, len(gc.get_objects(generation=0)) < 1_000, len(gc.get_objects(generation=2)) > 100_000)
"""
    assert print_in_interpreter(script) == "[] True True"
