"""Checks: the experiments of a configuration file against their bars, as a table, JUnit XML and Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from evals.configuration import Bar, Configuration, ExperimentDefinition, find_unapplied, read_configuration
from evals.experiments import report
from evals.experiments.catalogue import Experiment, Experiments
from evals.experiments.leaderboard import describe_weaknesses
from evals.experiments.runs import EvalRun, StrategyRun
from evals.gateway import index_corpus
from evals.measures.significance import SIGNIFICANCE_LEVEL, Difference, compare_pairs, format_p
from workbench.errors import InvalidInput
from workbench.types import JsonObject, OnProgress, ShouldStop, Value, to_plain
from workbench.workbench import Workbench


@dataclass(frozen=True, slots=True)
class Verdict(Value):
    """The outcome of one bar of one run."""

    experiment: str
    run: str
    metric: str
    bar: str  # such as "at least 0.8" or "at most 0.02 below hybrid"
    value: float | None  # the mean; None if the run failed
    state: str  # "passed", "failed", "error" or "skipped"
    detail: str

    @property
    def is_failure(self) -> bool:
        """True if it fails the check."""
        return self.state in ("failed", "error")


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The outcome of all bars of a file, and what weakens it."""

    file: str
    verdicts: tuple[Verdict, ...]
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """True if no bar failed and no run did."""
        return not any(verdict.is_failure for verdict in self.verdicts)

    @property
    def failures(self) -> tuple[Verdict, ...]:
        """What fails the check."""
        return tuple(verdict for verdict in self.verdicts if verdict.is_failure)

    @property
    def summary(self) -> str:
        """The outcome in one sentence."""
        counts = {state: sum(one.state == state for one in self.verdicts) for state in ("passed", "failed", "error")}
        parts = [f"{count} {state.replace('error', 'could not run')}" for state, count in counts.items() if count]
        skipped = sum(one.state == "skipped" for one in self.verdicts)
        return f"{', '.join([*parts, *([f'{skipped} not judged'] if skipped else [])])}."

    def to_dict(self) -> JsonObject:
        """Return the report as JSON."""
        verdicts = [to_plain(verdict) for verdict in self.verdicts]
        return {"file": self.file, "passed": self.passed, "checks": verdicts, "notes": list(self.notes)}

    def to_markdown(self) -> str:
        """Return a table for a pull request."""
        title = f"### {'✅' if self.passed else '❌'} Retrieval checks of {_escape(self.file)}: {self.summary}"
        rows = ["| | Experiment | Run | Metric | Value | Bar | Detail |", "|---|---|---|---|---:|---|---|"]
        marks = {"passed": "✅", "failed": "❌", "error": "⚠️", "skipped": "➖"}
        for one in self.verdicts:
            cells = (marks[one.state], one.experiment, one.run, one.metric, _format_value(one), one.bar, one.detail)
            rows.append(f"| {' | '.join(_escape(cell) for cell in cells)} |")
        notes = [f"- {_escape(note)}" for note in self.notes]
        return "\n".join([title, "", *rows, *(["", *notes] if notes else [])]) + "\n"

    def to_junit(self) -> str:
        """Return JUnit XML: one suite for each experiment, one case for each bar."""
        root = ElementTree.Element("testsuites", name="workbench check")
        by_experiment: dict[str, list[Verdict]] = {}
        for verdict in self.verdicts:
            by_experiment.setdefault(verdict.experiment, []).append(verdict)
        for title, verdicts in by_experiment.items():
            counts = {
                name: str(sum(one.state == state for one in verdicts))
                for name, state in (("failures", "failed"), ("errors", "error"), ("skipped", "skipped"))
            }
            attributes = {"name": _clean(title), "tests": str(len(verdicts)), **counts}
            suite = ElementTree.SubElement(root, "testsuite", attributes)
            for one in verdicts:
                name = _clean(f"{one.run}: {one.metric} {one.bar}")
                case = ElementTree.SubElement(suite, "testcase", classname=_clean(title), name=name)
                if one.state == "passed":
                    ElementTree.SubElement(case, "system-out").text = _clean(one.detail)
                    continue
                tag = {"failed": "failure", "error": "error", "skipped": "skipped"}[one.state]
                ElementTree.SubElement(case, tag, message=_clean(one.detail))
        ElementTree.indent(root)
        return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def check(
    wb: Workbench,
    path: str | Path,
    *,
    save: bool = False,
    on_progress: OnProgress | None = None,
    should_stop: ShouldStop | None = None,
) -> CheckReport:
    """Run the experiments of a configuration file and compare them with their bars.

    Args:
        wb: The workbench that the file was applied to.
        path: The file.
        save: Write the baselines instead of comparing with them.
        on_progress: Called with each ``Progress``.
        should_stop: Polled between questions; return True to stop.

    Raises:
        InvalidInput: The file is invalid, has no experiments or is not applied, or a baseline is missing or was made
            on other documents or questions.
        Cancelled: ``should_stop`` returned True; the answers so far are kept.
    """
    configuration = read_configuration(wb, path)
    _check_applied(wb, configuration)
    for definition in configuration.experiments:
        if definition.needs_baseline and not save:
            _read_baseline(wb, definition)
    verdicts: list[Verdict] = []
    notes: list[str] = []
    for definition in configuration.experiments:
        experiment = _run(wb, definition, on_progress, should_stop)
        results = {result.position: result for result in Experiments(wb).results(experiment.id)}
        names = list(definition.runs)
        runs = {names[at]: result.run for at, result in results.items() if result.run is not None}
        errors = {
            name: (results[at].error if at in results else None) or "it did not run" for at, name in enumerate(names)
        }
        verdicts += _judge(wb, definition, experiment, runs, errors, save)
        run = _collect(wb, definition, experiment, runs)
        notes += [
            f"{definition.title}: {note}" for note in describe_weaknesses(run.test_set, runs, definition.metrics[0])
        ]
        if save and definition.baseline is not None and runs:
            report.save_baseline(run, definition.baseline)
            notes.append(f"{definition.title}: the baseline is saved in {definition.baseline}.")
    return CheckReport(configuration.path.name, tuple(verdicts), tuple(notes))


def _check_applied(wb: Workbench, configuration: Configuration) -> None:
    name = configuration.path.name
    if not configuration.experiments:
        raise InvalidInput(f"{name} has no experiments; add a table [experiments.NAME].")
    if waiting := find_unapplied(wb, configuration):
        first = ", ".join(f"{change.action} the {change.kind} {change.name!r}" for change in waiting[:5])
        raise InvalidInput(f"{name} is not applied ({first}); run: workbench apply {configuration.path}")


def _read_baseline(wb: Workbench, definition: ExperimentDefinition) -> report.Baseline:
    """Return the baseline of an experiment. Raises InvalidInput if it is missing or not comparable."""
    assert definition.baseline is not None
    if not definition.baseline.is_file():
        raise InvalidInput(f"There is no baseline {definition.baseline}; write it with: workbench check FILE --save")
    test_set = Experiments(wb).test_sets.load(definition.test_set).first(definition.limit)
    report.check_comparable(definition.baseline, test_set, list(definition.runs), definition.metrics)
    baseline = report.read_baseline(definition.baseline)
    for bar in definition.bars:
        if bar.max_drop is not None and not bar.against and bar.metric not in baseline["questions"].get(bar.run, {}):
            raise InvalidInput(
                f"The baseline {definition.baseline} has no {bar.metric} of {bar.run}; write it again with: workbench "
                "check FILE --save"
            )
    return baseline


def _run(
    wb: Workbench, definition: ExperimentDefinition, on_progress: OnProgress | None, should_stop: ShouldStop | None
) -> Experiment:
    """Run an experiment, stored like those of the app; unchanged answers are reused."""
    experiments = Experiments(wb)
    made = experiments.create(
        definition.title,
        definition.test_set,
        list(definition.runs.values()),
        metrics=definition.metrics,
        limit_queries=definition.limit,
    )
    return experiments.run(made.id, on_progress=on_progress, should_stop=should_stop)


def _collect(
    wb: Workbench, definition: ExperimentDefinition, experiment: Experiment, runs: Mapping[str, StrategyRun]
) -> EvalRun:
    test_set = Experiments(wb).test_set(experiment)
    corpus = index_corpus(wb, test_set, next(iter(definition.runs.values())).index)
    return EvalRun(test_set, corpus, runs)


# Bars


@dataclass(frozen=True, slots=True)
class _Fall:
    """A bar on a fall, with the values by question that are compared."""

    bar: Bar
    reference: str
    values: Mapping[str, float]
    before: Mapping[str, float]


def _judge(
    wb: Workbench,
    definition: ExperimentDefinition,
    experiment: Experiment,
    runs: Mapping[str, StrategyRun],
    errors: Mapping[str, str],
    save: bool,
) -> Iterator[Verdict]:
    """Yield a verdict for each bar, and one for each run that failed or has no bar."""
    failed = [name for name in definition.runs if name not in runs]
    for name in failed:
        yield Verdict(definition.title, name, definition.metrics[0], "runs", None, "error", errors[name])
    judged = {bar.run for bar in definition.bars}
    for name in definition.runs:
        if name in runs and name not in judged:
            mean = runs[name].means[definition.metrics[0]]
            yield Verdict(definition.title, name, definition.metrics[0], "no bar", mean, "skipped", "measured only")
    bars = [bar for bar in definition.bars if bar.run in runs]
    yield from (_judge_minimum(definition.title, bar, runs[bar.run]) for bar in bars if bar.min is not None)
    yield from _judge_falls(wb, definition, experiment, [bar for bar in bars if bar.max_drop is not None], runs, save)


def _judge_minimum(title: str, bar: Bar, run: StrategyRun) -> Verdict:
    mean, least = run.means[bar.metric], bar.min or 0.0
    state = "passed" if mean >= least - 1e-9 else "failed"
    detail = f"{mean:.4f} is {'not ' if state == 'passed' else ''}below {least:g}"
    return Verdict(title, bar.run, bar.metric, f"at least {least:g}", mean, state, detail)


def _judge_falls(
    wb: Workbench,
    definition: ExperimentDefinition,
    experiment: Experiment,
    bars: Sequence[Bar],
    runs: Mapping[str, StrategyRun],
    save: bool,
) -> Iterator[Verdict]:
    """Yield the verdicts of bars on falls, whose tests are one-sided and corrected for their number."""
    baseline = None
    if definition.needs_baseline and not save:
        baseline = _read_baseline(wb, definition)
        if baseline["hashes"].get("corpus") != experiment.corpus_hash:
            raise InvalidInput(
                f"The baseline {definition.baseline} was made on other documents; write it again with: workbench check "
                "FILE --save"
            )
    falls: list[_Fall] = []
    for bar in bars:
        reference = bar.against or "the baseline"
        if bar.against:
            before = runs[bar.against].values[bar.metric] if bar.against in runs else None
        else:
            before = baseline["questions"].get(bar.run, {}).get(bar.metric) if baseline else None
        if before is None:
            reason = "the baseline is being saved" if save and not bar.against else f"{reference} has no values of it"
            text, mean = _describe_fall(bar), runs[bar.run].means[bar.metric]
            yield Verdict(definition.title, bar.run, bar.metric, text, mean, "skipped", reason)
        else:
            falls.append(_Fall(bar, reference, runs[bar.run].values[bar.metric], before))
    by_metric: dict[str, list[_Fall]] = {}
    for fall in falls:
        by_metric.setdefault(fall.bar.metric, []).append(fall)
    for metric, group in by_metric.items():
        pairs = [(one.bar.run, one.values, one.reference, one.before) for one in group]
        for fall, difference in zip(group, compare_pairs(metric, pairs, alternative="less"), strict=True):
            yield _judge_fall(definition.title, fall.bar, runs[fall.bar.run].means[metric], difference)


def _describe_fall(bar: Bar) -> str:
    return f"at most {bar.max_drop:g} below {bar.against or 'the baseline'}"


def _judge_fall(title: str, bar: Bar, mean: float, difference: Difference) -> Verdict:
    """Fail a fall that is larger than tolerated, unless the paired test finds that it may be noise."""
    drop = -difference.difference
    too_large = drop > (bar.max_drop or 0.0) + 1e-9
    state = "failed" if too_large and difference.significant else "passed"
    change = f"{difference.difference:+.4f} against {difference.b}, {format_p(difference.p_corrected)}"
    counts = f"won {difference.wins:,} and lost {difference.losses:,} questions"
    noise = f"; a larger fall than {bar.max_drop:g}, but it may be noise (p is not below {SIGNIFICANCE_LEVEL:g})"
    detail = f"{change}, {counts}{noise if too_large and state == 'passed' else ''}"
    return Verdict(title, bar.run, bar.metric, _describe_fall(bar), mean, state, detail)


# Text


def write_report(path: Path, text: str) -> None:
    """Write a report. Raises InvalidInput if the file is not writable."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{path} is not writable ({error.strerror}); choose another path.") from error


def _format_value(verdict: Verdict) -> str:
    return "-" if verdict.value is None else f"{verdict.value:.4f}"


def _escape(text: str) -> str:
    """Return a text for a cell of a Markdown table."""
    return re.sub(r"([\\|<>*_`\[\]])", r"\\\1", " ".join(_clean(text).split()))


def _clean(text: str) -> str:
    """Return a text without the characters that XML cannot hold."""
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", " ", text)
