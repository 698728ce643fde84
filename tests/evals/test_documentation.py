"""The guide to evaluation agrees with the code: its program runs, its options and metrics exist."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from evals.measures.metrics import PROVIDER_NAMES
from tests.evals.conftest import WriteTestSet
from workbench.cli.evaluation import declare_eval
from workbench.settings import Settings

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "evaluation.md").read_text(encoding="utf-8")


def test_the_guides_program_runs_as_it_is_on_a_smaller_test_set(
    make_settings: Callable[..., Settings], beir: WriteTestSet
) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    assert program.count('"sample"') == 1  # its 125 questions are asked in test_baseline.py
    program = program.replace('"sample"', repr(str(beir())))
    settings = make_settings()
    assert settings.database_url is not None
    environment = os.environ | {
        "WORKBENCH_HOME": str(settings.home),
        "WORKBENCH_DATABASE_URL": settings.database_url.get_secret_value(),
        "WORKBENCH_EMBEDDING_MODEL": "hash",
    }
    words = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    labels = {"keyword", "hybrid vector_weight=0.3", "hybrid vector_weight=0.7"}
    assert {line.partition(" 0.")[0] for line in done.stdout.splitlines()[:3]} == labels


def test_the_guides_commands_and_metrics_exist() -> None:
    parser = argparse.ArgumentParser(prog="workbench eval")
    declare_eval(parser)
    commands = [line.split("#")[0].split()[2:] for line in re.findall(r"^workbench eval .*", GUIDE, re.MULTILINE)]
    assert len(commands) == 16
    assert all(parser.parse_args(words).test_set for words in commands)
    assert set(re.findall(r"(?m)^\| `([a-z]+)(?:@K)?` \|", GUIDE)) == set(PROVIDER_NAMES), "run: make docs"
