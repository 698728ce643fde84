"""Configuration in git: a TOML or YAML file that describes models, indexes, strategies, test sets and experiments.

``read_configuration`` reads and checks it, ``make_plan`` compares it with the workbench, ``apply`` makes the changes.
``check`` runs its experiments and compares them with their bars.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar, cast
from urllib.parse import urlencode
from xml.etree import ElementTree

from evals.experiments import report
from evals.experiments.catalogue import Cell, Experiment, Experiments
from evals.experiments.leaderboard import Verdict, describe_changed_bars, describe_weaknesses, judge_bars
from evals.experiments.runs import Bar, CellResult, EvalRun, StrategyRun, check_repeats, list_variants
from evals.gateway import index_corpus, read_configuration_file
from evals.measures.metrics import DEFAULT_METRICS, check_metrics
from evals.test_set import TestSet
from evals.test_sets.exchange import read_csv
from evals.test_sets.folders import SAMPLE_NAME, has_no_path, load_test_set, read_text
from evals.test_sets.store import TestSetStore
from workbench.errors import Cancelled, ConfigurationError, InvalidInput, NotFound, WorkbenchError, list_choices
from workbench.formatting import count_text
from workbench.ingestion.chunking import CHUNKERS, DEFAULT_CHUNKER, complete_options
from workbench.ingestion.components import is_component, name_component
from workbench.models.model_names import has_same_vectors
from workbench.retrieval.strategies import strategy_named
from workbench.types import Index, JsonObject, OnProgress, ParameterValue, ShouldStop, Value, read_parameters, to_plain
from workbench.workbench import Workbench

write_report = report.write_report  # of the command

# What a file describes


@dataclass(frozen=True, slots=True)
class IndexDefinition:
    """An index of the file."""

    name: str
    chunker: str
    options: Mapping[str, ParameterValue]  # all options of the chunker, or arguments of a LlamaIndex parser
    model: str  # "" for the model of new indexes, or the one that the index has
    is_default: bool
    transformations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TestSetDefinition:
    """A test set of the file."""

    title: str
    origin: str  # "sample", a data set, or the absolute path of a folder or a CSV file
    description: str


@dataclass(frozen=True, slots=True)
class ExperimentDefinition:
    """An experiment of the file."""

    title: str
    test_set: str
    runs: Mapping[str, Cell]  # as "rerank", "rerank@precise", or "rerank candidates=50" if it has several values
    metrics: tuple[str, ...]
    limit: int | None
    baseline: Path | None
    bars: tuple[Bar, ...]
    hypothesis: str = ""  # what is expected, in words
    answers: bool = False  # whether the runs also answer the questions
    repeats: int = 1  # how often strategies that call an LLM run

    @property
    def bars_by_label(self) -> list[Bar]:
        """The bars by the labels of the runs."""
        labels = {name: cell.label for name, cell in self.runs.items()}
        return [replace(bar, run=labels[bar.run], against=labels.get(bar.against, "")) for bar in self.bars]

    @property
    def needs_baseline(self) -> bool:
        """True if a bar compares a run with the baseline file."""
        return any(bar.is_compared and not bar.against for bar in self.bars)


@dataclass(frozen=True)
class Configuration:
    """A file, read and checked by itself."""

    path: Path
    models: Mapping[str, str] = field(default_factory=dict)  # full names by short name
    strategies: Mapping[str, Mapping[str, object]] = field(default_factory=dict)  # tables by name
    indexes: tuple[IndexDefinition, ...] = ()
    test_sets: tuple[TestSetDefinition, ...] = ()
    experiments: tuple[ExperimentDefinition, ...] = ()


# Reading

KINDS = ("models", "indexes", "strategies", "test_sets", "experiments")
_KIND_NAMES: dict[type, str] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
}
_Kind = TypeVar("_Kind", str, int, float, bool, "list[object]", "dict[object, object]")


class _Table:
    """A table of the file; every key is read once, and ``end`` rejects the others."""

    def __init__(self, file: str, place: str, values: object) -> None:
        if not isinstance(values, Mapping):
            raise InvalidInput(f"{file}, {place}: expected a table of keys and values, not {values!r}.")
        self._file, self._place = file, place
        self._values = cast("Mapping[object, object]", values)
        self._read = set[str]()
        for key in self._values:
            if not isinstance(key, str):
                raise InvalidInput(f"{file}, {place}: the key {key!r} is not a text; put it between quotes.")

    def fail(self, key: str, problem: str) -> InvalidInput:
        """Return the error for a key: file, place and what to do."""
        return InvalidInput(f"{self._file}, {self._locate(key)}: {problem}")

    @contextmanager
    def blame(self, key: str) -> Generator[None]:
        """Name the key in errors of the block."""
        try:
            yield
        except Cancelled:
            raise
        except WorkbenchError as error:
            raise self.fail(key, str(error)) from error

    def read(self, key: str, kind: type[_Kind], default: _Kind) -> _Kind:
        """Return a value of a kind, or the default."""
        self._read.add(key)
        value = self._values.get(key, default)
        accepted = (int, float) if kind is float else kind
        if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
            raise self.fail(key, f"expected {_KIND_NAMES.get(kind, 'a table')}, not {value!r}.")
        return cast("_Kind", value)

    def read_number(self, key: str) -> float | None:
        """Return a number of 0 or more, or None if there is none."""
        self._read.add(key)
        if key not in self._values:
            return None
        value = self.read(key, float, 0.0)
        if not 0 <= value < float("inf"):
            raise self.fail(key, f"expected a number of 0 or more, not {value!r}.")
        return float(value)

    def read_texts(self, key: str) -> list[str]:
        """Return a list of different texts; one text is a list of itself."""
        given = self._values.get(key, [])
        self._read.add(key)
        values = [given] if isinstance(given, str) else given
        if not isinstance(values, list) or not all(isinstance(value, str) and value for value in values):
            raise self.fail(key, f"expected a list of texts, not {given!r}.")
        texts = cast("list[str]", values)
        if len(set(texts)) < len(texts):
            raise self.fail(key, "a name is repeated; write each once.")
        return texts

    def read_tables(self, key: str) -> dict[str, _Table]:
        """Return the tables below a key by name."""
        inner = self.read(key, dict, {})
        return {str(name): _Table(self._file, self._locate(f"{key}.{name}"), value) for name, value in inner.items()}

    def read_list(self, key: str) -> list[_Table]:
        """Return the tables of a list."""
        values = self.read(key, list, [])
        return [_Table(self._file, self._locate(f"{key}[{n}]"), value) for n, value in enumerate(values, 1)]

    def rest(self) -> dict[str, object]:
        """Return all values that have not been read."""
        return {str(key): value for key, value in self._values.items() if key not in self._read}

    def end(self) -> None:
        """Raise InvalidInput if a key was not read, and is therefore unknown."""
        for key in self.rest():
            near = difflib.get_close_matches(key, self._read, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"use {list_choices(sorted(self._read), 20)}."
            raise self.fail(key, f"unknown key; {hint}")

    def _locate(self, key: str) -> str:
        return ".".join(filter(None, (self._place, key)))


def read_configuration(wb: Workbench, path: str | Path) -> Configuration:
    """Read a file and check all that can be checked without comparing it with what is stored.

    Raises:
        InvalidInput: There is no such file, or it is invalid; the message names the line or the key.
    """
    place = Path(path)
    try:
        tables = read_configuration_file(place)
    except FileNotFoundError:
        raise InvalidInput(f"There is no file {place}; give a TOML or YAML file.") from None
    except ConfigurationError as error:
        raise InvalidInput(str(error)) from error
    file = _Table(place.name, "", tables)
    models = {name: _read_model(table) for name, table in file.read_tables("models").items()}
    strategies: dict[str, Mapping[str, object]] = {}
    for name, table in file.read_tables("strategies").items():
        strategies[name] = table.rest()
        with table.blame(""):
            wb.strategies.define(name, strategies[name])
    indexes = tuple(_read_index(name, table, models) for name, table in file.read_tables("indexes").items())
    sets = tuple(_read_test_set(name, table, place) for name, table in file.read_tables("test_sets").items())
    base = Configuration(place, models, strategies, indexes, sets)
    experiments = file.read_tables("experiments")
    made = tuple(_read_experiment(wb, name, table, base) for name, table in experiments.items())
    file.end()
    defaults = [index.name for index in indexes if index.is_default]
    if len(defaults) > 1:
        raise file.fail("indexes", f"{list_choices(defaults)} have default = true; only one can be the default.")
    if not any((models, strategies, indexes, sets, made)):
        raise InvalidInput(f"{place.name} is empty; add tables such as [indexes.NAME] or [test_sets.NAME].")
    return replace(base, experiments=made)


def _read_model(table: _Table) -> str:
    """Return the full name of a model: its name, with the other keys as options."""
    name = table.read("name", str, "")
    if not name:
        raise table.fail("name", "a model needs a name, such as 'minilm' or 'voyage:voyage-3.5'.")
    options = table.rest()
    for key, value in options.items():
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise table.fail(key, f"expected a text or a number, not {value!r}.")
    joint = "&" if "?" in name else "?"
    return name + (joint + urlencode({key: str(value) for key, value in options.items()}) if options else "")


def _read_index(name: str, table: _Table, models: Mapping[str, str]) -> IndexDefinition:
    chunker = table.read("chunker", str, DEFAULT_CHUNKER)
    model = table.read("model", str, "")
    default = table.read("default", bool, False)
    options = {str(key): value for key, value in table.read("options", dict, {}).items()}
    with table.blame("transformations"):
        transformations = tuple(name_component(one) for one in table.read_texts("transformations"))
    table.end()
    if is_component(chunker):
        with table.blame("chunker"):
            name_component(chunker)
        given = cast("Mapping[str, ParameterValue]", options)
        return IndexDefinition(name, chunker, given, models.get(model, model), default, transformations)
    if chunker not in CHUNKERS:
        raise table.fail("chunker", f"there is no chunker {chunker!r}; use one of {list_choices(CHUNKERS, 20)}.")
    with table.blame("options"):
        checked = complete_options(CHUNKERS[chunker], options)
    return IndexDefinition(name, chunker, checked, models.get(model, model), default, transformations)


def _read_test_set(title: str, table: _Table, file: Path) -> TestSetDefinition:
    origin = table.read("from", str, "")
    description = table.read("description", str, "")
    table.end()
    if not origin:
        raise table.fail("from", "a test set needs the path of a folder or a CSV file, a data set, or 'sample'.")
    place = origin if has_no_path(origin) else str((file.parent / origin).absolute())
    if not has_no_path(origin) and not Path(place).exists():
        raise table.fail("from", f"there is no folder or file {place}; paths are relative to the file.")
    return TestSetDefinition(title, place, description)


def _read_experiment(wb: Workbench, title: str, table: _Table, base: Configuration) -> ExperimentDefinition:
    test_set = table.read("test_set", str, "")
    if test_set not in (SAMPLE_NAME, *(one.title for one in base.test_sets)):
        with table.blame("test_set"):
            TestSetStore(wb).info(test_set)
    index = table.read("index", str, "") or None
    parameters = {name: inner.rest() for name, inner in table.read_tables("parameters").items()}
    runs: dict[str, Cell] = {}
    for name in table.read_texts("strategies"):
        with table.blame("strategies"):
            given = parameters.pop(name, {})
            for values in list_variants(given):
                varied = [f" {key}={value}" for key, value in values.items() if given[key] != value]
                runs[name + "".join(varied)] = _make_cell(wb, name, index, values, base)
    if not runs:
        raise table.fail("strategies", "an experiment needs strategies, such as ['hybrid', 'rerank'].")
    if parameters:
        raise table.fail("parameters", f"{next(iter(parameters))!r} is not one of the strategies.")
    with table.blame("metrics"):
        metrics = tuple(check_metrics(table.read_texts("metrics") or DEFAULT_METRICS))
    limit = table.read("limit", int, 0)
    if limit < 0:
        raise table.fail("limit", "expected a number of questions of at least 1.")
    saved = table.read("baseline", str, "")
    baseline = base.path.parent / saved if saved else None
    hypothesis = table.read("hypothesis", str, "")
    answers, repeats = table.read("answers", bool, False), table.read("repeats", int, 1)
    with table.blame("repeats"):
        check_repeats(repeats)
    bars = tuple(bar for one in table.read_list("bars") for bar in _read_bars(one, runs, metrics, baseline))
    table.end()
    return ExperimentDefinition(
        title, test_set, runs, metrics, limit or None, baseline, bars, hypothesis, answers, repeats
    )


def _make_cell(
    wb: Workbench, name: str, index: str | None, parameters: Mapping[str, object], base: Configuration
) -> Cell:
    """Return the cell of "strategy" or "strategy@index". Raises InvalidInput or NotFound for an unknown name."""
    strategy, at, own = name.partition("@")
    if at and not own:
        raise InvalidInput(f"{name!r} names no index; use {strategy}@INDEX.")
    chosen = own or index
    if chosen is not None and chosen not in [one.name for one in base.indexes]:
        wb.corpus.index(chosen)
    is_new = strategy in base.strategies
    row = wb.strategies.define(strategy, base.strategies[strategy]) if is_new else strategy_named(strategy)
    models = {one.name for one in row.parameters if one.kind == "text"}
    full = {key: base.models.get(str(value), value) if key in models else value for key, value in parameters.items()}
    checked = read_parameters(f"The strategy {strategy!r}", row.parameters, full)
    return Cell(strategy, {key: checked[key] for key in parameters}, chosen)


def _read_bars(table: _Table, runs: Mapping[str, Cell], metrics: Sequence[str], baseline: Path | None) -> list[Bar]:
    """Return the bars of one table: for each of its strategies, or for all."""
    wanted = table.read_texts("strategy") or list(runs)
    metric = table.read("metric", str, metrics[0])
    against = table.read("against", str, "")
    least, drop, gain = (table.read_number(key) for key in ("min", "max_drop", "min_gain"))
    table.end()
    for key, name in [*(("strategy", name) for name in wanted), *([("against", against)] if against else [])]:
        if name not in runs:
            raise table.fail(key, f"{name!r} is not one of the experiment's strategies {list_choices(runs, 20)}.")
    if metric not in metrics:
        raise table.fail("metric", f"{metric!r} is not measured; add it to the experiment's metrics.")
    compared = "min_gain" if gain is not None else "max_drop" if drop is not None else ""
    if least is None and not compared:
        raise table.fail("min", "a bar needs min or max_drop, or min_gain.")
    if drop is not None and gain is not None:
        raise table.fail("min_gain", "a bar has either max_drop or min_gain; write two bars.")
    if against and not compared:
        raise table.fail("against", "add max_drop, the tolerated drop below that strategy, or min_gain.")
    if compared and not against and baseline is None:
        raise table.fail(compared, "add against = another strategy, or a baseline = FILE to the experiment.")
    if compared and not against and metric != metrics[0]:
        raise table.fail(
            "metric", f"a baseline holds the first metric only, {metrics[0]}; set against, or reorder the metrics."
        )
    return [Bar(name, metric, least, drop, against, gain) for name in wanted if name != against]


# Comparing with the workbench


@dataclass(frozen=True, slots=True)
class Change(Value):
    """The action for one object of the file: create, change, build, keep, or check for an experiment."""

    kind: str  # "index", "strategy", "test set" or "experiment"
    name: str
    action: str
    detail: str = ""

    @property
    def is_needed(self) -> bool:
        """True if applying the file changes this object."""
        return self.action not in ("keep", "check")


Step = Callable[[OnProgress | None, ShouldStop | None], object]
Plan = list[tuple[Change, Step | None]]


def make_plan(wb: Workbench, configuration: Configuration) -> Plan:
    """Return what has to change, with the step that does it; nothing is changed.

    Raises:
        InvalidInput: A test set or a model is invalid.
    """
    file = configuration.path.name
    plan = _plan_strategies(wb, configuration)
    existing = {index.name: index for index in wb.indexes.list()}
    for definition in configuration.indexes:
        with _Table(file, "indexes", {}).blame(definition.name):
            plan += _plan_index(wb, definition, existing)
    for wanted in configuration.test_sets:
        with _Table(file, "test_sets", {}).blame(wanted.title):
            plan.append(_plan_test_set(wb, wanted))
    for one in configuration.experiments:
        bars = count_text(len(one.bars), "bar") if one.bars else "no bars"
        detail = f"{', '.join(one.runs)} on {one.test_set}, {bars}; workbench check runs it"
        plan.append((Change("experiment", one.title, "check", detail), None))
    return plan


def apply(
    wb: Workbench, plan: Plan, *, on_progress: OnProgress | None = None, should_stop: ShouldStop | None = None
) -> list[Change]:
    """Do what a plan needs, in its order, and return the changes that were made.

    A stopped or failed build is kept and resumed by the next call.

    Raises:
        Cancelled: ``should_stop`` returned True.
        WorkbenchError: A step failed; the steps before it are done.
    """
    done: list[Change] = []
    for change, step in plan:
        if step is not None and change.is_needed:
            if should_stop is not None and should_stop():
                raise Cancelled("Stopped; run it again to resume.")
            step(on_progress, should_stop)
            done.append(change)
    return done


def _plan_strategies(wb: Workbench, configuration: Configuration) -> Plan:
    stored = wb.strategies.read_stored()
    plan: Plan = []
    for name, table in configuration.strategies.items():
        action = "keep" if stored.get(name) == table else "change" if name in stored else "create"

        def store(progress: OnProgress | None, stop: ShouldStop | None, name: str = name) -> None:
            wb.strategies.store({name: configuration.strategies[name]})

        plan.append((Change("strategy", name, action, str(table.get("use") or table.get("url"))), store))
    return plan


def _plan_index(wb: Workbench, definition: IndexDefinition, existing: Mapping[str, Index]) -> Plan:
    """Return the change of an index, and that of the default if it becomes that."""
    name, index = definition.name, existing.get(definition.name)
    wb.indexes.check_name(name)
    if index is not None and index.is_attached:
        raise InvalidInput(f"The index {name!r} reads a table in place; choose another name in the file.")
    model = wb.corpus.encoder(definition.model or (index.embedding_model if index else None))
    shape = f"{definition.chunker}, {model.name}"
    plan: Plan = []
    if index is None:
        size = f"{model.dimensions:,} dimensions"  # asks an endpoint, so that errors come before the first change
        costs = wb.indexes.describe_cost(name, model.name)
        change = Change("index", name, "create", "; ".join(filter(None, (f"{shape}, {size}", costs))))
        plan.append((change, lambda progress, stop: _build(wb, _create(wb, definition, name), progress, stop)))
    elif not _is_built_as(index, definition, model.name):
        taken = existing.get(_name_successor(name))
        if taken is not None and taken.status == "ready" and not _is_built_as(taken, definition, model.name):
            raise InvalidInput(f"The index {taken.name!r} already exists; delete it, or rename {name!r} in the file.")
        before = f"{index.chunker}, {index.embedding_model}"
        _ = model.dimensions  # asks an endpoint, so that errors come before the first change
        old = _options(index)
        changed = [
            f"{key} {value}, was {old.get(key, 'not set')}"
            for key, value in definition.options.items()
            if old.get(key) != value
        ]
        if tuple(index.transformations) != definition.transformations:
            changed.append(f"transformations {', '.join(definition.transformations) or 'none'}")
        costs = wb.indexes.describe_cost(_name_successor(name), model.name)
        parts = [f"{shape}, was {before}", *changed, "built first, then switched", costs]
        detail = "; ".join(filter(None, parts))
        plan.append((Change("index", name, "change", detail), lambda *to: _rebuild(wb, definition, *to)))
    elif index.embedding_model != model.name:
        change = Change("index", name, "change", f"{model.name} without rebuilding; was {index.embedding_model}")
        plan.append((change, lambda progress, stop: wb.indexes.rename_model(name, model.name)))
    elif index.status != "ready" or wb.indexes.count_missing(name):
        missing = count_text(wb.indexes.count_missing(name), "document")
        detail = "; ".join(filter(None, (f"{missing} missing", wb.indexes.describe_cost(name))))
        plan.append((Change("index", name, "build", detail), lambda *to: _build(wb, name, *to)))
    else:
        plan.append((Change("index", name, "keep", shape), None))
    if definition.is_default and not (index and index.is_default):
        default = Change("index", name, "default", "searches that name no index use it")
        plan.append((default, lambda progress, stop: wb.indexes.set_default(name)))
    return plan


def _options(index: Index) -> dict[str, ParameterValue]:
    """Return all options of an index's chunker, or the arguments of its parser."""
    known = CHUNKERS.get(index.chunker)
    return dict(index.chunker_options) if known is None else complete_options(known, index.chunker_options)


def _is_built_as(index: Index, definition: IndexDefinition, model: str) -> bool:
    same = index.chunker == definition.chunker and _options(index) == dict(definition.options)
    same = same and tuple(index.transformations) == definition.transformations
    return same and has_same_vectors(index.embedding_model, model)


def _create(wb: Workbench, definition: IndexDefinition, name: str) -> str:
    return wb.indexes.create(
        name,
        chunker=definition.chunker,
        options=definition.options,
        transformations=definition.transformations,
        embedding_model=definition.model or None,
    ).name


def _build(wb: Workbench, name: str, on_progress: OnProgress | None, should_stop: ShouldStop | None) -> None:
    """Build an index as a job, which this process and other workers run."""
    job = wb.jobs.list_builds().get(name) or wb.jobs.enqueue_index_build(name)
    wb.work()
    while not (job := wb.jobs.wait(job.id, timeout=0.3, on_progress=on_progress)).is_finished:
        if should_stop is not None and should_stop() and not job.cancel_requested:
            wb.jobs.cancel(job.id)
    if job.status == "cancelled":
        raise Cancelled("Stopped; documents added so far are kept, and the next apply resumes.")
    if job.status == "failed":
        raise InvalidInput(f"The index {name!r} was not built: {job.error}")


def _name_successor(name: str) -> str:
    """Return the name of the index that is built to replace another one."""
    return f"{name[:35]}_next"


def _rebuild(
    wb: Workbench, definition: IndexDefinition, on_progress: OnProgress | None, should_stop: ShouldStop | None
) -> None:
    """Build the new form of an index under another name, then rename it; searches continue with the old one."""
    wanted = replace(definition, model=definition.model or wb.indexes.get(definition.name).embedding_model)
    successor = _name_successor(definition.name)
    started = next((index for index in wb.indexes.list() if index.name == successor), None)
    if started is not None and not _is_built_as(started, wanted, wb.corpus.encoder(wanted.model).name):
        wb.indexes.delete(successor)
        started = None
    if started is None:
        _create(wb, wanted, successor)
    _build(wb, successor, on_progress, should_stop)
    wb.indexes.replace(definition.name, successor)


def _plan_test_set(wb: Workbench, definition: TestSetDefinition) -> tuple[Change, Step | None]:
    store = TestSetStore(wb)
    try:
        info = store.info(definition.title)
        stored = store.load(info.id)
    except NotFound:
        info, stored = None, TestSet(definition.title, (), ())
    test_set, problems = _load_test_set(wb, definition, stored)
    counts = f"{count_text(len(test_set.questions), 'question')}, {count_text(len(test_set.judgments), 'judgment')}"
    detail = "; ".join([counts, *problems])

    def add(progress: OnProgress | None, stop: ShouldStop | None) -> None:
        made = store.add(
            test_set,
            definition.title,
            definition.description,
            replace_corpus=True,
            on_progress=progress,
            should_stop=stop,
        )
        if definition.description:
            store.update(made.id, description=definition.description)

    if info is None:
        return Change("test set", definition.title, "create", detail), add
    imported, given = store.match(info.id, test_set)
    changed = [
        what
        for what, is_changed in (
            ("documents", getattr(stored.corpus, "hash", "") != getattr(test_set.corpus, "hash", "")),
            ("questions or judgments", imported.questions_hash != given.questions_hash),
            ("description", bool(definition.description) and info.description != definition.description),
        )
        if is_changed
    ]
    if not changed:
        return Change("test set", definition.title, "keep", detail), None
    return Change("test set", definition.title, "change", f"other {' and '.join(changed)}; {detail}"), add


def _load_test_set(wb: Workbench, definition: TestSetDefinition, stored: TestSet) -> tuple[TestSet, Sequence[str]]:
    """Return the test set of a folder or a CSV, with a sentence on each part that is left out."""
    if not definition.origin.lower().endswith(".csv"):
        test_set = load_test_set(definition.origin)
        return test_set, test_set.problems
    text = read_text(Path(definition.origin))
    questions, ratings, problems = read_csv(wb, replace(stored, corpus=None), text)
    judgments = [rating.judgment for rating in ratings]
    if not any(judgment.grade > 0 for judgment in judgments):
        reason = problems[0] if problems else "it has no row with a document or a quote"
        raise InvalidInput(f"{definition.origin} has no relevant document: {reason}")
    places = {(one.question_id, one.document, one.start, one.end): one for one in judgments}
    made = TestSet(definition.title, tuple(questions), tuple(places.values()), scope=stored.scope)
    return made, problems


# Checks: experiments against their bars, as a table, JUnit XML and Markdown


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The outcome of all bars of a file, with notes that weaken it."""

    file: str
    verdicts: tuple[Verdict, ...]
    notes: tuple[str, ...] = ()

    @property
    def is_passed(self) -> bool:
        """True if no bar failed and no run did."""
        return not any(verdict.is_failure for verdict in self.verdicts)

    @property
    def failures(self) -> tuple[Verdict, ...]:
        """The bars and runs that fail the check."""
        return tuple(verdict for verdict in self.verdicts if verdict.is_failure)

    @property
    def summary(self) -> str:
        """The outcome in one sentence."""
        states = ("passed", "failed", "undecided", "error")
        counts = {state: sum(one.state == state for one in self.verdicts) for state in states}
        parts = [f"{count} {state.replace('error', 'could not run')}" for state, count in counts.items() if count]
        skipped = sum(one.state == "skipped" for one in self.verdicts)
        return f"{', '.join([*parts, *([f'{skipped} not judged'] if skipped else [])])}."

    def to_dict(self) -> JsonObject:
        """Return the report as JSON."""
        verdicts = [to_plain(verdict) for verdict in self.verdicts]
        return {"file": self.file, "passed": self.is_passed, "checks": verdicts, "notes": list(self.notes)}

    def to_markdown(self) -> str:
        """Return a table for a pull request."""
        title = f"### {'✅' if self.is_passed else '❌'} Retrieval checks of {_escape(self.file)}: {self.summary}"
        rows = ["| | Experiment | Run | Metric | Value | Bar | Detail |", "|---|---|---|---|---:|---|---|"]
        marks = {"passed": "✅", "failed": "❌", "error": "⚠️", "skipped": "➖", "undecided": "❔"}
        for one in self.verdicts:
            value = "-" if one.value is None else f"{one.value:.4f}"
            cells = (marks[one.state], one.experiment, one.run, one.metric, value, one.bar, one.detail)
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
                name: str(sum(one.state in states for one in verdicts))
                for name, states in (
                    ("failures", ("failed",)),
                    ("errors", ("error",)),
                    ("skipped", ("skipped", "undecided")),
                )
            }
            attributes = {"name": _clean(title), "tests": str(len(verdicts)), **counts}
            suite = ElementTree.SubElement(root, "testsuite", attributes)
            for one in verdicts:
                name = _clean(f"{one.run}: {one.metric} {one.bar}")
                case = ElementTree.SubElement(suite, "testcase", classname=_clean(title), name=name)
                if one.state == "passed":
                    ElementTree.SubElement(case, "system-out").text = _clean(one.detail)
                    continue
                tag = {"failed": "failure", "error": "error"}.get(one.state, "skipped")
                ElementTree.SubElement(case, tag, message=_clean(one.detail))
        ElementTree.indent(root)
        return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def check(
    wb: Workbench,
    path: str | Path,
    *,
    save: bool = False,
    budget: float | None = None,
    on_progress: OnProgress | None = None,
    should_stop: ShouldStop | None = None,
) -> CheckReport:
    """Run the experiments of a configuration file and compare them with their bars.

    Args:
        wb: The workbench that the file was applied to.
        path: The file.
        save: Write the baselines instead of comparing with them.
        budget: Stop each experiment when its searches and answers have cost this many dollars.
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
    experiments = Experiments(wb)
    for definition in configuration.experiments:
        made = experiments.create(
            definition.title, definition.test_set, list(definition.runs.values()), metrics=definition.metrics,
            limit_queries=definition.limit, hypothesis=definition.hypothesis, bars=definition.bars_by_label,
            answers=definition.answers, repeats=definition.repeats, budget=budget,
        )  # fmt: skip
        changed = describe_changed_bars(made, experiments.list(definition.test_set))
        experiment = experiments.run(made.id, on_progress=on_progress, should_stop=should_stop)
        results = {result.cell.label: result for result in experiments.results(made.id)}
        named = {name: results.get(cell.label) for name, cell in definition.runs.items()}
        runs = {name: result.run for name, result in named.items() if result is not None and result.run is not None}
        own = list(_judge(wb, definition, experiment, runs, _list_reasons(experiment, named), save))
        experiments.save_bars(made.id, [one for one in own if one.bar != "no bar"])
        verdicts += own
        test_set = experiments.test_set(experiment)
        expected = [f"Hypothesis: {definition.hypothesis}"] if definition.hypothesis else []
        weaknesses = describe_weaknesses(test_set, runs, definition.metrics[0])
        notes += [f"{definition.title}: {sentence}" for sentence in (*changed, *expected, *weaknesses)]
        if save and definition.baseline is not None and runs:
            corpus = index_corpus(wb, test_set, next(iter(definition.runs.values())).index)
            report.save_baseline(EvalRun(test_set, corpus, runs), definition.baseline)
            notes.append(f"{definition.title}: the baseline is saved in {definition.baseline}.")
    return CheckReport(configuration.path.name, tuple(verdicts), tuple(notes))


def _list_reasons(experiment: Experiment, results: Mapping[str, CellResult | None]) -> dict[str, str]:
    """Return why each run has no figures, if it has none."""
    reason = experiment.message if experiment.status == "stopped" else "it did not run"
    return {name: (result.error if result else None) or reason for name, result in results.items()}


def _check_applied(wb: Workbench, configuration: Configuration) -> None:
    """Raise InvalidInput if a file has no experiments, or the workbench is not as it describes."""
    file = configuration.path.name
    if not configuration.experiments:
        raise InvalidInput(f"{file} has no experiments; add a table [experiments.NAME].")
    if waiting := [change for change, _ in make_plan(wb, configuration) if change.is_needed]:
        first = ", ".join(f"{change.action} the {change.kind} {change.name!r}" for change in waiting[:5])
        raise InvalidInput(f"{file} is not applied ({first}); run: workbench apply {configuration.path}")


def _read_baseline(wb: Workbench, definition: ExperimentDefinition) -> report.Baseline:
    """Return the baseline of an experiment. Raises InvalidInput if it is missing or not comparable."""
    assert definition.baseline is not None
    if not definition.baseline.is_file():
        raise InvalidInput(f"There is no baseline {definition.baseline}; write it with: workbench check FILE --save")
    test_set = Experiments(wb).test_sets.load(definition.test_set).spread(definition.limit)
    report.check_comparable(definition.baseline, test_set, list(definition.runs), definition.metrics)
    baseline = report.read_baseline(definition.baseline)
    for bar in definition.bars:
        if bar.is_compared and not bar.against and bar.metric not in baseline.questions.get(bar.run, {}):
            raise InvalidInput(
                f"The baseline {definition.baseline} has no {bar.metric} of {bar.run}; write it again with: workbench "
                "check FILE --save"
            )
    return baseline


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
    baseline = None
    if definition.needs_baseline and not save:
        saved = _read_baseline(wb, definition)
        if saved.hashes.get("corpus") != experiment.corpus_hash:
            raise InvalidInput(
                f"The baseline {definition.baseline} was made on different documents; write it again with: workbench "
                "check FILE --save"
            )
        baseline = saved.questions
    missing = "the baseline is being saved" if save else "the baseline has no values for it"
    yield from judge_bars(definition.title, definition.bars, runs, baseline, missing)


# Texts of reports


def _escape(text: str) -> str:
    """Return a text for a cell of a Markdown table."""
    return re.sub(r"([\\|<>*_`\[\]])", r"\\\1", " ".join(_clean(text).split()))


def _clean(text: str) -> str:
    """Return a text without the characters that XML cannot hold."""
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", " ", text)
