"""The Evaluate page: experiments, test sets, tuning and learning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

import streamlit as st

from evals.background import WITH_LLM, enqueue_experiment, enqueue_on_sample
from evals.evaluation import (
    DEFAULT_METRICS,
    MAX_REPEATS,
    NO_PRICE,
    OFFERED_METRICS,
    Bar,
    Cell,
    Experiments,
    TestSet,
    TestSetStore,
    estimate_cost,
    gain_bars,
    list_variants,
    make_cells,
    metric_title,
    repeat_cells,
)
from evals.experiments.leaderboard import (
    Pair,
    Winner,
    check_comparable,
    find_shared_metrics,
    pair_runs,
    winner_trend,
)
from evals.measures.significance import count_least, count_pairs, describe_power, explain_difference, measure_power
from evals.test_sets.folders import SAMPLE_NAME, load_test_set
from workbench.app.evaluate.charts import TrendPoint, choose_ends, make_trend_chart
from workbench.app.evaluate.experiment import format_experiment_scope, leave_view, show_experiment
from workbench.app.evaluate.learning import show_learning
from workbench.app.evaluate.outcome import BAR_STATES, format_settings, load_outcome
from workbench.app.evaluate.test_sets import (
    choose_strategies,
    choose_test_set,
    judge_on_compare,
    show_test_set,
    show_test_sets,
)
from workbench.app.evaluate.tune import show_tuning
from workbench.app.shell.work import show_add_button
from workbench.app.state import address
from workbench.app.state.shared import OPENING, choose_in_url, current_theme, name_tab
from workbench.app.widgets.looks import (
    escape_markdown,
    make_label_function,
    show_message,
    strategy_look,
    strategy_title,
)
from workbench.app.widgets.notices import report_errors, show_notice, store_warning
from workbench.app.widgets.reader import show_reader
from workbench.app.widgets.rows import Noted, RowCell, make_figure, show_rows
from workbench.errors import NotFound
from workbench.formatting import count_text
from workbench.retrieval.strategies import STRATEGIES
from workbench.runtime import EXTRAS
from workbench.types import JsonObject, Parameter, ParameterValue

if TYPE_CHECKING:
    from evals.experiments.runs import Experiment
    from workbench.workbench import Workbench

# Two experiments side by side


def show_side_by_side(wb: Workbench, first_id: str, second_id: str) -> None:
    """Compare the two experiments named in the URL."""
    st.button("Experiments", icon=":material/arrow_back:", type="tertiary", on_click=leave_view)
    first, second = load_outcome(wb, first_id, ""), load_outcome(wb, second_id, "")
    name_tab(part=f"{first.experiment.title} → {second.experiment.title}")
    st.header("Two experiments", anchor=False)
    for letter, experiment in (("A", first.experiment), ("B", second.experiment)):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{letter}** {_describe_experiment(experiment)}", width="stretch")
            change = {"experiment": experiment.id, "second": None}
            st.button(
                f"Open {letter}", key=f"open_{experiment.id}", type="tertiary", on_click=address.put, kwargs=change
            )
    metrics = find_shared_metrics(first.cells, second.cells)
    if not metrics:
        st.info("The two experiments have no metric in common. Run both with the same metric to compare them.")
        return
    titles = {metric: metric_title(metric) for metric in metrics}
    metric = choose_in_url("Metric", titles, "metric", "beside_metric", labelled=True)
    pairs = pair_runs(
        first.cells, second.cells, metric, paired=_check_same_questions(first.experiment, second.experiment)
    )
    ends = choose_ends([score.interval for pair in pairs for score in (pair.first, pair.second) if score])
    rows = {pair.label: _make_compared_cells(pair, ends) for pair in pairs}
    columns = ("Run", "A", "B", "B - A", "Verdict")
    show_rows("second", columns, rows, label="Runs of both experiments", noun="runs")


def _check_same_questions(first: Experiment, second: Experiment) -> bool:
    """Return whether questions and judgments are the same; show a warning about any difference."""
    with report_errors(st.warning):
        check_comparable(first, second)
    return first.test_set_hash == second.test_set_hash


def _describe_experiment(experiment: Experiment) -> str:
    name = escape_markdown(f"{experiment.title}, {_format_start(experiment)}")
    return f"{name} {format_experiment_scope(experiment)}"


def _format_start(experiment: Experiment) -> str:
    return experiment.created_at.astimezone().strftime("%-d %b %Y, %H:%M:%S") if experiment.created_at else "–"


def _make_compared_cells(pair: Pair, ends: tuple[float, float]) -> Sequence[RowCell]:
    first, second = pair.first, pair.second
    difference = second.mean - first.mean if first and second and pair.difference else None
    return (
        Noted(
            strategy_look(pair.strategy) | {"text": strategy_title(pair.strategy)},
            format_settings(pair.label, pair.strategy),
        ),
        first and _make_score_cell(first.mean, first.interval, ends),
        second and _make_score_cell(second.mean, second.interval, ends),
        make_figure(difference, "+.3f"),
        _verdict_cell(pair),
    )


def _make_score_cell(mean: float, interval: tuple[float, float], ends: tuple[float, float]) -> dict[str, object]:
    return {"value": mean, "low": interval[0], "high": interval[1], "ends": list(ends)}


def _verdict_cell(pair: Pair) -> dict[str, str]:
    """Return whether B is better, as a cell."""
    if pair.first is None or pair.second is None:
        return {"state": "waiting", "text": "only in B" if pair.first is None else "only in A"}
    difference = pair.difference
    if difference is None:
        return {"state": "waiting", "text": "not comparable"}
    if not difference.significant:
        return {"state": "same", "text": explain_difference(difference)}
    return {"state": "done" if difference.difference > 0 else "failed", "text": explain_difference(difference)}


# The form of a new experiment

# The matrix of runs

STEPS = (0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0)  # step between the offered values of a share or weight
MAX_STEPS = 4  # maximum number offered
ROUND_FACTORS = (1, 2, 5)  # times a power of ten, because counts matter by ratio
MAX_VALUES_PRESELECTED = 3  # values that are preselected; with more, two parameters make dozens of runs
PARAMETERS_PER_ROW = 3  # varied parameters per row

Varied = Mapping[str, Sequence[ParameterValue]]  # values by "strategy.parameter"


def show_matrix_form(wb: Workbench) -> list[Cell]:
    """Ask for strategies, indexes and parameters; return every combination as a cell."""
    strategies = choose_strategies(wb, "build_strategies")
    left, right = st.columns(2)
    with left:
        indexes = _choose_indexes(wb)
    with right:
        tunable = {f"{name}.{p.name}": p for name in strategies for p in STRATEGIES[name].parameters}
        chosen = _choose_parameters(tunable)
    names = [ranker.name for ranker in wb.rankers.list()]
    varied = _choose_values({key: tunable[key] for key in chosen}, names)
    if not strategies or not indexes:
        return []
    with report_errors():
        return make_cells(strategies, indexes, combine_values(varied))
    return []


def combine_values(varied: Varied) -> dict[str, list[dict[str, ParameterValue]]]:
    """Return {strategy: every combination of its parameters' values}."""
    by_strategy: dict[str, dict[str, Sequence[ParameterValue]]] = {}
    for key, values in varied.items():
        strategy, _, parameter = key.partition(".")
        if values:
            by_strategy.setdefault(strategy, {})[parameter] = list(values)
    return {strategy: list_variants(parameters) for strategy, parameters in by_strategy.items()}


def list_values(parameter: Parameter, names: Sequence[str] = ()) -> list[ParameterValue]:
    """Return rounded values across a parameter's range, including its default, in ascending order.

    Args:
        parameter: The parameter.
        names: Names of the rankers.
    """
    if parameter.kind == "name":
        return list(names) or [parameter.default]
    if parameter.kind == "text":
        return [parameter.default]
    if parameter.kind == "choice":
        return list(parameter.choices)
    if parameter.kind == "bool":
        return [True, False]
    low, high = float(parameter.low or 0), float(parameter.high or 0)
    if parameter.kind == "int":
        sizes = (size * 10**power for power in range(len(str(int(high)))) for size in ROUND_FACTORS)
        return sorted(
            {int(low), *(size for size in sizes if low < size < high), int(high), parameter.default}, key=float
        )
    step = next((step for step in STEPS if (high - low) / step <= MAX_STEPS), high - low)
    values = (round(low + place * step, 3) for place in range(MAX_STEPS + 1))
    return sorted({*(value for value in values if value <= high), parameter.default}, key=float)


def preselect_values(offered: Sequence[ParameterValue]) -> list[ParameterValue]:
    """Return at most three of the offered values, evenly spread, to preselect."""
    return list(offered[:: ceil(len(offered) / MAX_VALUES_PRESELECTED)])


def _choose_indexes(wb: Workbench) -> list[str | None]:
    """Return the chosen indexes; None is the default one."""
    indexes = wb.indexes.list()
    names = {index.name: f"{index.name} ({index.chunker}, {index.embedding_model})" for index in indexes}
    default = next(index.name for index in indexes if index.is_default)
    chosen = st.multiselect(
        "Indexes", list(names), [default], format_func=make_label_function(names), key="build_indexes"
    )
    return [None if name == default else name for name in chosen]


def _choose_parameters(tunable: Mapping[str, Parameter]) -> list[str]:
    names = {key: f"{strategy_title(key.split('.')[0])}: {p.name.replace('_', ' ')}" for key, p in tunable.items()}
    return st.multiselect(
        "Vary parameters",
        list(tunable),
        format_func=make_label_function(names),
        key="build_vary",
        placeholder="None (use defaults)",
        help="Each combination of a strategy's parameter values is a run.",
    )


def _choose_values(parameters: Mapping[str, Parameter], names: Sequence[str]) -> Varied:
    varied: dict[str, Sequence[ParameterValue]] = {}
    keys = list(parameters)
    for row in (keys[start : start + PARAMETERS_PER_ROW] for start in range(0, len(keys), PARAMETERS_PER_ROW)):
        for key, column in zip(row, st.columns(PARAMETERS_PER_ROW), strict=False):
            parameter = parameters[key]
            offered = list_values(parameter, names)
            varied[key] = column.multiselect(
                f"{strategy_title(key.split('.')[0])}: {parameter.name.replace('_', ' ')}",
                offered,
                preselect_values(offered),
                key=f"build_values_{key}",
                help=parameter.why,
                accept_new_options=True,
            )
    return varied


RAGAS_TITLES = {"none": "No", "free": "Yes, without an LLM", "llm": "Yes, the LLM judges the answers"}
WITH_RAGAS_TITLE = {"llm-ragas": "Yes, with the LLM and ragas' prompts"}  # if the extra is installed


def show_plan_form(wb: Workbench) -> None:
    """Show the form; starting the experiment opens it."""
    with st.container(border=True, key="experiment_build"):
        test_set = _choose_test_set(wb)
        cells = show_matrix_form(wb)
        more = st.expander("More options")
        with more:
            measures = _choose_measures(wb, cells)
        chosen = load_test_set(SAMPLE_NAME) if test_set == SAMPLE_NAME else TestSetStore(wb).load(test_set)
        chosen = chosen.spread(measures.limit)
        questions, has_llm = len(chosen.answerable), wb.settings.has_llm
        planned = repeat_cells(chosen, cells, measures.repeats, answers=measures.answers, has_llm=has_llm)
        costs = estimate_cost(wb, chosen, planned, judges=measures.ragas in WITH_LLM)
        wanted, hypothesis, bars = None, "", ()
        if len(cells) > 1 and test_set != SAMPLE_NAME:
            with more, st.container(horizontal=True, vertical_alignment="bottom"):
                wanted = st.number_input(
                    "Difference to show", 0.001, 1.0, None, key="build_wanted", placeholder="Any", width=160,
                    help="How many questions this difference needs is estimated from the newest experiment.",
                )  # fmt: skip
                hypothesis, bars = _choose_bars(cells, measures.metrics[0], wanted)
        with st.container(horizontal=True, vertical_alignment="bottom"):
            if costs and NO_PRICE not in costs:
                budget = st.number_input(
                    "Budget ($)", 0.01, None, None, key="build_budget", placeholder="None", width=140,
                    help="The experiment stops when its searches, answers and judgments have cost this much.",
                )  # fmt: skip
                measures = measures._replace(budget=budget)
            go = st.button("Run experiment", type="primary", key="experiment_go", disabled=not cells or not questions)
            size = _describe_size(len(cells), chosen, planned)
            power = _describe_power(wb, test_set, measures.metrics[0], len(cells), questions, wanted)
            st.caption(escape_markdown(" ".join(filter(None, (size, costs, power)))))
            if not questions and st.button("Judge on Compare", key="experiment_judge", type="tertiary"):
                judge_on_compare(TestSetStore(wb).info(test_set))
        if go:
            _start_experiment(wb, test_set, cells, measures, hypothesis, bars)


def _choose_bars(cells: Sequence[Cell], metric: str, wanted: float | None) -> tuple[str, tuple[Bar, ...]]:
    """Show the fields for a bar once there is a difference; return the hypothesis, and the bar of each other run."""
    labels = [cell.label for cell in cells]
    baseline = None
    if wanted:
        baseline = st.selectbox(
            "As a bar over", labels, None, strategy_title, key="build_baseline", placeholder="No bar", width=180,
            help="Every other run has to be better than this one by the difference. Bars are stored before the runs.",
        )  # fmt: skip
    if baseline is None:
        return "", ()
    hypothesis = st.text_input("Hypothesis", key="build_hypothesis", placeholder="Optional", max_chars=500, width=260)
    return hypothesis, gain_bars(baseline, wanted, labels, metric)


def show_planned(wb: Workbench, job_id: str) -> None:
    """Show that an experiment is waiting for the sample, and open it once it has started."""
    job = wb.jobs.get(job_id)
    if began := job.result.get("experiment"):
        address.put(experiment=str(began), planned=None)
        st.rerun()
    if job.is_finished:
        store_warning("The sample was not loaded. See the job below to resume it.")
        address.put(planned=None)
        st.rerun()
    show_message("The experiment starts when the sample is loaded", "Progress is shown below. You can leave this page.")


def _choose_test_set(wb: Workbench) -> str:
    test_sets = TestSetStore(wb).list()
    is_stored = SAMPLE_NAME in {info.title for info in test_sets}
    left, right = st.columns(2)
    with left:
        others = {} if is_stored else {SAMPLE_NAME: "Sample questions on the sample articles"}
        chosen = choose_test_set(test_sets, "build_dataset", others)
    with right:
        st.text_input("Title", key="build_title", placeholder="Defaults to the test set's name")
    return chosen


class _Measures(NamedTuple):
    metrics: Sequence[str]
    limit: int | None  # maximum number of questions
    ragas: str
    answers: bool
    repeats: int
    budget: float | None = None  # dollars


def _choose_measures(wb: Workbench, cells: Sequence[Cell]) -> _Measures:
    metrics = st.multiselect(
        "Metrics",
        OFFERED_METRICS,
        DEFAULT_METRICS,
        help="The leaderboard is sorted by the first metric.",
        format_func=metric_title,
        key="build_metrics",
    )
    left, right = st.columns(2)
    with left:
        limit = st.number_input("Max questions", 1, 100_000, None, key="build_limit", placeholder="All")
    with right:
        titles = RAGAS_TITLES | (WITH_RAGAS_TITLE if EXTRAS["ragas"].is_installed else {})
        judges = list(titles) if wb.settings.has_llm else ["none", "free"]
        ragas = st.selectbox("Ragas metrics", judges, format_func=titles.__getitem__, key="build_ragas")
    answers, repeats = False, 1
    with st.container(horizontal=True, vertical_alignment="center"):
        writer = "with the LLM" if wb.settings.has_llm else "with quoted sentences (no LLM is set up)"
        answers = st.checkbox(
            f"Answer the questions {writer}", key="build_answers",
            help="Measures whether answers contain the reference answer and cite relevant passages.",
        )  # fmt: skip
        if wb.settings.has_llm and (answers or any(STRATEGIES[cell.strategy].needs_llm for cell in cells)):
            repeats = st.number_input(
                "Repetitions", 1, MAX_REPEATS, 1, key="build_repeats", width=180,
                help="How often the LLM is asked; scores are means, and ± is their standard deviation.",
            )  # fmt: skip
    return _Measures(metrics or DEFAULT_METRICS, limit, ragas, answers, repeats)


def _describe_size(runs: int, test_set: TestSet, planned: Sequence[Cell]) -> str:
    questions, answering = len(test_set.answerable), sum(cell.answers for cell in planned)
    if not questions:
        return "No question of this test set has a relevant result yet."
    answers = f" and {answering * len(test_set.scorable):,} answers" if answering else ""
    return (
        f"{count_text(runs, 'run')} × {count_text(questions, 'question')} = up to "
        f"{(len(planned) - answering) * questions:,} searches{answers}; cached results are reused."
    )


PILOT_QUESTIONS = 20  # enough to estimate the variance


def _describe_power(wb: Workbench, test_set: str, metric: str, runs: int, questions: int, wanted: float | None) -> str:
    """Return which differences a planned experiment can show, estimated from the newest one on its test set."""
    if test_set == SAMPLE_NAME or runs < 2 or not questions:
        return ""
    comparisons = count_pairs(runs)
    if questions < (least := count_least(comparisons)):
        corrected = f", corrected for {count_text(comparisons, 'comparison')}" if comparisons > 1 else ""
        return f"{count_text(questions, 'question')} cannot show any difference: it takes at least {least}{corrected}."
    for experiment in Experiments(wb).list(test_set):
        cells = load_outcome(wb, experiment.id, metric).done_cells if experiment.status == "done" else []
        values = {cell.run_id: cell.run.values.get(metric, {}) for cell in cells if cell.run}
        if len(values) > 1 and all(len(by_question) > 1 for by_question in values.values()):
            power = measure_power(metric, values, questions, wanted, comparisons)
            return f"{' '.join(describe_power(power))} Based on {experiment.title}."
    if questions <= PILOT_QUESTIONS:
        return ""
    return f"For a pilot, limit the questions to {PILOT_QUESTIONS}; its result shows which differences all can show."


def _start_experiment(
    wb: Workbench, test_set: str, cells: Sequence[Cell], measures: _Measures, hypothesis: str, bars: Sequence[Bar]
) -> None:
    with report_errors():
        title = st.session_state["build_title"].strip()
        if test_set == SAMPLE_NAME:
            job = enqueue_on_sample(wb, title, cells, **measures._asdict())
            address.put(planned=job.id, new=None, dataset=None)
            st.rerun()
        experiment = Experiments(wb).create(
            title, test_set, cells, metrics=measures.metrics, limit_queries=measures.limit,
            answers=measures.answers, repeats=measures.repeats, hypothesis=hypothesis, bars=bars,
        )  # fmt: skip
        enqueue_experiment(wb, experiment.id, ragas=measures.ragas, budget=measures.budget)
        address.put(experiment=experiment.id, new=None, dataset=None)
        st.rerun()


# The list of experiments

STATUS_STATES = {"running": "busy", "done": "done", "stopped": "waiting", "failed": "failed"}
EXPERIMENT_COLUMNS = ("Experiment", "Best", "Score", "Status", "Started")
COMPARED_EXPERIMENTS = 2  # experiments in a comparison


def show_experiments(wb: Workbench) -> None:
    """Show the experiments, newest first, and the form for a new one if requested or if there are none."""
    catalogue = Experiments(wb)
    experiments = catalogue.list()
    planned = address.get("planned")
    if planned:
        show_planned(wb, planned)
    elif address.get("new") or not experiments:
        if not experiments:
            show_message(
                "Which strategy works best for your documents?",
                "Run the same questions on each strategy and compare the scores.",
            )
            if not wb.documents.count():
                with st.container(horizontal=True, vertical_alignment="center", key="evaluate_ways"):
                    st.caption("You have no documents yet, so this experiment uses the sample articles and questions.")
                    show_add_button("library")
                    show_add_button("crawl")
        show_plan_form(wb)
    if not experiments:
        return
    above = st.container(horizontal=True, vertical_alignment="center")
    winners = catalogue.winners(experiments)
    chosen = show_rows(
        "experiments", EXPERIMENT_COLUMNS, _make_rows(experiments, winners), label="Experiments", noun="experiments",
        opens=True, filters=True, selectable=len(experiments) > 1,
    )  # fmt: skip
    with above:
        selected = [experiment.id for experiment in reversed(experiments) if experiment.id in chosen.selected]
        _show_buttons(selected, len(experiments))
    if chosen.opened:
        address.put(experiment=chosen.opened, new=None)
        st.rerun()


def _show_buttons(selected: Sequence[str], total: int) -> None:
    """Offer a new experiment, and a comparison of the two selected of all; the older one is A."""
    if not address.get("new"):
        st.button("New experiment", type="primary", icon=":material/add:", on_click=lambda: address.put(new="1"))
    ready = len(selected) == COMPARED_EXPERIMENTS
    label = "Compare selected" if ready else "Select two to compare"
    if total > 1 and st.button(label, icon=":material/compare_arrows:", disabled=not ready, key="compare_selected"):
        address.put(experiment=selected[0], second=selected[1], new=None)
        st.rerun()


def _make_rows(experiments: Sequence[Experiment], winners: Mapping[str, Winner]) -> dict[str, Sequence[RowCell]]:
    """Return the experiments as rows, with all scores on a common scale."""
    ends = choose_ends([winner.interval for winner in winners.values()])
    return {experiment.id: _make_cells(experiment, winners.get(experiment.id), ends) for experiment in experiments}


def _make_cells(experiment: Experiment, winner: Winner | None, ends: tuple[float, float]) -> Sequence[RowCell]:
    about = f"{experiment.test_set_title}, version {experiment.test_set_version} · scope: {experiment.over} · "
    tags = "".join(f" · #{tag}" for tag in experiment.tags)
    brief = f" · {experiment.brief}" if experiment.note else ""
    broken = sum(BAR_STATES[bar["state"]] == "failed" for bar in experiment.bars)
    problem = f"{count_text(broken, 'bar')} failed" if broken else ""
    if experiment.message and experiment.status != "done":
        problem = experiment.message
    score, settings = None, ""
    if winner is not None:
        score = Noted(_make_score_cell(winner.score, winner.interval, ends), metric_title(winner.metric))
        settings = format_settings(winner.label, winner.strategy)
        if winner.tied > 1:
            settings = "All have the same score."
        elif not winner.is_decided and experiment.runs > 1:
            settings = " · ".join(filter(None, (settings, "not decided")))
    return (
        Noted(experiment.title, about + count_text(experiment.runs, "run") + tags + brief),
        Noted(_strategy_cell(winner), settings),
        score,
        Noted({"state": STATUS_STATES[experiment.status], "text": experiment.status}, problem),
        experiment.created_at,
    )


def _strategy_cell(winner: Winner | None) -> JsonObject | None:
    if winner is None:
        return None
    if winner.tied > 1:
        return {"text": f"Tie of {winner.tied} runs"}
    return strategy_look(winner.strategy) | {"text": strategy_title(winner.strategy)}


# Trends: the best scores of a test set over time

TREND_HEIGHT_PX = 280  # height of the chart


def show_trends(wb: Workbench) -> None:
    """Show the best scores on a test set over time, as a chart and a table that opens the experiments."""
    experiments = {one.id: one for one in Experiments(wb).list()}
    winners = Experiments(wb).winners(list(experiments.values()))
    infos = [info for info in TestSetStore(wb).list() if winner_trend(winners.values(), info.id)]
    if not infos:
        show_message("No trends yet", "Run an experiment. Each further one on the same test set adds a point.")
        return
    left, _ = st.columns(2)
    with left:
        test_set = choose_test_set(infos, "trend_dataset")
    trend = winner_trend(winners.values(), test_set)
    st.header(f"Best {metric_title(trend[-1].metric)} over time", anchor=False)
    st.caption("The best run of each experiment, with its 95% interval")
    points = [TrendPoint(experiments[w.experiment_id].title, w.strategy, w.score, w.interval) for w in trend]
    listed = ", ".join(f"{point.name} {point.score:.3f}" for point in points)
    st.echarts_chart(
        make_trend_chart(points, current_theme()), key="trend", height=TREND_HEIGHT_PX, renderer="svg", alt=listed
    )
    rows = {}
    made = _make_rows([experiments[win.experiment_id] for win in trend], winners)
    for (key, cells), before, after in zip(made.items(), [None, *trend], trend, strict=False):
        rows = {key: (*cells[:3], _make_change_cell(before, after, experiments), cells[-1]), **rows}
    columns = (*EXPERIMENT_COLUMNS[:3], "Change", EXPERIMENT_COLUMNS[-1])
    chosen = show_rows("trends", columns, rows, label="Trend", noun="experiments", opens=True)
    if chosen.opened:
        address.put(experiment=chosen.opened, view=None)
        st.rerun()


def _make_change_cell(before: Winner | None, after: Winner, experiments: Mapping[str, Experiment]) -> RowCell:
    """Return the change of the best score since the experiment before, and what else changed."""
    if before is None:
        return make_figure(None)
    old, new = experiments[before.experiment_id], experiments[after.experiment_id]
    others = {
        "other judgments": old.test_set_hash != new.test_set_hash,
        "other documents": old.corpus_hash != new.corpus_hash,
    }
    change = make_figure(after.score - before.score, "+.3f")
    return Noted(change, ", ".join(text for text, is_so in others.items() if is_so))


VIEWS = {"experiments": "Experiments", "datasets": "Test sets", "trends": "Trends", "tune": "Tune", "learn": "Learn"}


def page() -> None:
    """Show the view named in the URL: an experiment, a comparison of two, a test set, or one of the lists."""
    wb = OPENING.workbench
    show_notice()
    st.title("Evaluate", anchor=False)
    try:
        _show_view(wb)
    except NotFound as error:  # a wrong URL, or deleted in another tab
        store_warning(str(error))
        address.put(experiment=None, second=None, open=None, planned=None)
        st.rerun()
    show_reader(wb)


def _show_view(wb: Workbench) -> None:
    if address.get("experiment") and address.get("second"):
        show_side_by_side(wb, address.get("experiment"), address.get("second"))
    elif address.get("experiment"):
        show_experiment(wb, address.get("experiment"))
    elif address.get("open"):
        show_test_set(wb, address.get("open"))
    else:
        view = choose_in_url("View", VIEWS, "view", "evaluate_view")
        if view == "datasets":
            show_test_sets(wb)
        elif view == "trends":
            show_trends(wb)
        elif view == "tune":
            show_tuning(wb)
        elif view == "learn":
            show_learning(wb)
        else:
            show_experiments(wb)
