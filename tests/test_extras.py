"""Extras: each is named by the message that users without it see, and declared in pyproject.toml."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib

import pytest
from written_tables import ROOT

from workbench.errors import ConfigurationError
from workbench.runtime import EXTRAS, check_extra, find_missing_extra

DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]

# a fresh interpreter that has none of an extra's modules, as a bare installation
WITHOUT = """
import sys, importlib.abc
class Bare(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {modules}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Bare())
import importlib.util as util
found = util.find_spec
util.find_spec = lambda name, package=None: None if name.split(".")[0] in {modules} else found(name, package)
"""


def without(extra: str, code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter without the modules of an extra."""
    modules = {module.split(".")[0] for module in EXTRAS[extra].modules} - {"llama_index"}
    script = WITHOUT.format(modules=modules) + code
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("extra", EXTRAS)
def test_every_extra_of_the_table_is_declared_and_belongs_to_all(extra: str) -> None:
    assert DECLARED[extra]
    assert (extra in DECLARED["all"][0]) == (extra != "ragas")  # it brings an old LangChain


def test_only_the_extra_of_ragas_needs_langchain() -> None:
    needing = [name for name, needs in DECLARED.items() if any("langchain" in one or "ragas>" in one for one in needs)]
    assert needing == ["ragas"]


def test_metrics_are_judged_without_ragas_and_ragas_names_its_extra() -> None:
    done = without(
        "ragas",
        "from evals import Sample, measure_samples\n"
        "from evals.judges.judging import check_judge\n"
        "one = Sample('q', 'Why?', ('Because.',), ('a',), ('Because.',), ('a', 'b'))\n"
        "print(measure_samples([one], ['id_context_recall'])['id_context_recall'].mean)\n"
        "try: check_judge('ragas')\n"
        "except Exception as error: print(error)\n",
    )
    assert done.stdout.splitlines() == [
        "0.5",
        "Judging with ragas' own prompts needs the extra 'ragas'; run: pip install 'rag-workbench[ragas]'.",
    ], done.stderr


@pytest.mark.parametrize(
    ("command", "extra"),
    [("app", "app"), ("eval sample", "eval")],
)
def test_a_command_without_its_extra_names_it_in_one_sentence(command: str, extra: str) -> None:
    words = json.dumps(command.split())
    done = without(extra, f"from workbench.cli import main; sys.exit(main({words}))")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.strip().endswith(f"needs the extra '{extra}'; run: pip install 'rag-workbench[{extra}]'.")
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("asked", ["to_pandas", "plot"])
def test_a_table_or_plot_without_its_extra_names_it(asked: str) -> None:
    script = f"""
from workbench.types import Comparison
from workbench.errors import ConfigurationError
try:
    Comparison(query="x", strategies={{}}, agreement={{}}).{asked}()
except ConfigurationError as error:
    print(error)
"""
    done = without("app", script)
    assert done.stdout == f"{EXTRAS['app'].sentence}\n", done.stderr


def test_a_language_model_without_its_extra_names_it_and_blames_no_endpoint() -> None:
    asked = """
from workbench.errors import ModelError
from workbench.models.llm import Llm
llm = Llm("http://127.0.0.1:9/v1", "x")
for ask in (lambda: llm.complete("a", "b"), lambda: list(llm.stream("a", "b"))):
    try:
        ask()
    except ModelError as error:
        print(error)
"""
    done = without("llm", asked)
    assert (
        done.stdout.splitlines()
        == ["A language model needs the extra 'llm'; run: pip install 'rag-workbench[llm]'."] * 2
    ), done.stderr


def test_a_module_that_is_missing_deep_inside_names_its_extra_too() -> None:
    error = find_missing_extra(ModuleNotFoundError("No module named 'crawl4ai.models'", name="crawl4ai.models"))
    assert error is not None and "rag-workbench[crawl]" in str(error)
    assert find_missing_extra(ModuleNotFoundError("No module named 'nowhere'", name="nowhere")) is None


def test_work_whose_extra_is_there_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    for extra in EXTRAS:
        check_extra(extra)
    monkeypatch.setattr("workbench.runtime.find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match=r"Reading web pages needs the extra 'crawl'"):
        check_extra("crawl")
