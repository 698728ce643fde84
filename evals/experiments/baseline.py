"""The gate: a saved run to hold a new one against, question by question."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, cast

from evals.experiments.strategy_run import EvalRun
from evals.experiments.tables import to_json
from evals.measures.significance import Difference, compare
from evals.test_set import TestSet
from workbench.errors import InvalidInput, choices

BASELINE_DIGITS = 9  # far below what counts as a difference


class Baseline(TypedDict):
    """A saved run, as far as a comparison reads it; ``questions`` is strategy -> metric -> question id -> value."""

    hashes: dict[str, str]
    strategies: dict[str, dict[str, object]]
    questions: dict[str, dict[str, dict[str, float]]]


@dataclass(frozen=True)
class BaselineCheck:
    """A run against its baseline; ``regressions`` are the differences that are significantly below 0."""

    differences: tuple[Difference, ...]
    notes: tuple[str, ...] = ()

    @property
    def regressions(self) -> tuple[Difference, ...]:
        """The strategies that became significantly worse."""
        return tuple(difference for difference in self.differences if difference.significant)


def save(run: EvalRun, path: Path) -> None:
    """Write a run with its value for every question, so that it can be a baseline."""
    questions = {
        name: {metric: {key: round(value, BASELINE_DIGITS) for key, value in sorted(by_question.items())}}
        for name, strategy in run.strategies.items()
        for metric, by_question in list(strategy.values.items())[:1]
    }
    payload = to_json(run)
    for strategy in payload["strategies"].values():
        strategy.pop("latency_ms")  # another machine's times say nothing
        strategy.pop("ragas", None)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_compact({**payload, "questions": questions}), encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written ({error.strerror}); choose another place.") from error


def check(run: EvalRun, path: Path) -> BaselineCheck:
    """Compare a run with a saved one: for each strategy of both, is the first metric of the baseline lower now?

    The test is one-sided and corrected for the number of strategies.

    Raises:
        InvalidInput: the file is no baseline, or was made on another corpus or other questions.
    """
    baseline, measured = read(path), next(iter(run.strategies.values())).values
    shared = _shared(baseline, path, run.test_set, run.corpus.corpus_hash, tuple(run.strategies), tuple(measured))
    pairs, metric = [], _metric(baseline)
    for name in shared:
        before = baseline["questions"][name][metric]
        pairs.append((name, run.strategies[name].values[metric], f"{name} (baseline)", before))
    return BaselineCheck(tuple(compare(metric, pairs, alternative="less")), tuple(_notes(run, baseline, shared)))


def check_before(path: Path, test_set: TestSet, strategies: Sequence[str], metrics: Sequence[str]) -> None:
    """Refuse, before a run of these is begun, a baseline that it could not be compared with; raises what check does."""
    corpus_hash = test_set.corpus.hash if test_set.corpus is not None else None
    _shared(read(path), path, test_set, corpus_hash, strategies, metrics)


def _shared(
    baseline: Baseline,
    path: Path,
    test_set: TestSet,
    corpus_hash: str | None,
    strategies: Sequence[str],
    metrics: Sequence[str],
) -> list[str]:
    """Return the strategies of both. Raises InvalidInput where they do not stand on the same ground."""
    hashes = baseline["hashes"]
    again = f"save it anew with --save {path.name}"
    if corpus_hash is not None and hashes.get("corpus") != corpus_hash:
        raise InvalidInput(f"The baseline {path.name} was made on another corpus, so nothing can be compared; {again}.")
    if hashes.get("dataset") != test_set.questions_hash:
        raise InvalidInput(f"The baseline {path.name} was made with other questions or judgments; {again}.")
    shared = [name for name in baseline["questions"] if name in strategies]
    if not shared:
        raise InvalidInput(f"The baseline holds none of the strategies; it holds {choices(baseline['questions'], 20)}.")
    if _metric(baseline) not in metrics:
        raise InvalidInput(f"The baseline compares {_metric(baseline)}; add it to --metrics.")
    return shared


def _metric(baseline: Baseline) -> str:
    """Return what a baseline compares: the same for all its strategies."""
    return next(iter(next(iter(baseline["questions"].values()))))


def _notes(run: EvalRun, baseline: Baseline, shared: list[str]) -> list[str]:
    notes = []
    if baseline["hashes"].get("index") != run.corpus.index_hash:
        notes.append("The baseline's index was cut or embedded in another way.")
    parameters = {name: baseline["strategies"].get(name, {}).get("parameters") for name in shared}
    changed = [name for name in shared if parameters[name] != dict(run.strategies[name].parameters)]
    if changed:
        notes.append(f"The baseline ran with other parameters: {choices(changed, 20)}.")
    missing = [name for name in run.strategies if name not in baseline["questions"]]
    if missing:
        notes.append(f"Not in the baseline: {choices(missing, 20)}.")
    return notes


def read(path: Path) -> Baseline:
    """Return a saved run. Raises InvalidInput where there is none, or the file is something else."""
    try:
        payload = json.loads(path.read_text(encoding="utf-8"))
        parts = [payload[key] for key in ("hashes", "strategies", "questions")]
        if all(isinstance(part, dict) and part for part in parts) and _is_measured(*parts[1:]):
            return payload
    except OSError as error:
        raise InvalidInput(f"The baseline {path} cannot be read ({error.strerror}); check the path.") from error
    except (ValueError, KeyError, TypeError):
        pass
    raise InvalidInput(f"{path.name} is no baseline; write one with 'workbench eval DATASET --save {path.name}'.")


def _is_measured(strategies: Mapping[str, Any], questions: Mapping[str, Any]) -> bool:
    """Tell whether all strategies have the same metric, with a number for every question."""
    if not all(isinstance(entry, dict) and entry for entry in (*strategies.values(), *questions.values())):
        return False
    measured = [by_question for by_metric in questions.values() for by_question in by_metric.values()]
    if len({tuple(by_metric) for by_metric in questions.values()}) > 1:
        return False
    if not all(isinstance(by_question, dict) for by_question in measured):
        return False
    values = [value for by_question in measured for value in by_question.values()]
    return all(isinstance(value, int | float) and math.isfinite(value) for value in values)


def _compact(payload: Mapping[str, object]) -> str:
    """Return JSON with one line a strategy, so that a diff shows which one changed."""
    lines = []
    for key, value in payload.items():
        if key in ("strategies", "questions"):
            entries = cast("Mapping[str, object]", value).items()
            inner = ",\n".join(f"    {json.dumps(name)}: {json.dumps(item)}" for name, item in entries)
            lines.append(f"  {json.dumps(key)}: {{\n{inner}\n  }}")
        elif key != "significance":
            lines.append(f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"
