"""Experiments: a matrix of indexes, strategies and parameters on one test set, stored as it runs.

A cell of the matrix is a run. A run is stored under the hash of everything it depends on, so an unchanged cell is
never run again, in this experiment or another. Each answer is stored immediately, so a stopped or killed experiment can
resume.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from evals.experiments.answers import (
    AnswerScores,
    Lift,
    add_answer_values,
    compare_answers,
    measure_answers,
    read_answers,
)
from evals.experiments.leaderboard import (
    LeaderboardLine,
    Verdict,
    Winner,
    check_bars,
    describe_changed_bars,
    describe_judged_outside,
    describe_leaderboard,
    describe_weaknesses,
    describe_wording,
    find_winner,
    judge_bars,
    load_winner,
    make_leaderboard,
    select_measured,
)
from evals.experiments.runs import (
    FREE,
    Bar,
    Cell,
    CellResult,
    CellRuns,
    Experiment,
    Judging,
    Prices,
    RunFile,
    Share,
    ShareOutcome,
    estimate_cost,
    hash_json,
    make_cells,
    make_run_row,
    mean_cost,
    merge_repetitions,
    parse_answer,
    parse_experiment,
    plan_cells,
    read_run_file,
    repeat_cells,
    score_answers,
)
from evals.gateway import (
    ExperimentTables,
    Row,
    RunTables,
    check_title,
    clean_tags,
    hash_documents,
    index_corpus,
    read_judged_texts,
)
from evals.measures.metrics import DEFAULT_METRICS, StoredVerdict, Verdicts, check_metrics, max_ranking_depth
from evals.test_set import TestSet
from evals.test_sets.store import TestSetStore, check_length
from workbench.errors import Cancelled, Conflict, InvalidInput, NotFound, list_choices
from workbench.formatting import format_dollars
from workbench.jobs.sharing import Assignment, make_progress_reporter, share_parts
from workbench.types import JsonObject, OnProgress, ParameterValue, Progress, ShouldStop, to_plain
from workbench.workbench import Workbench

__all__ = ["Cell", "CellResult", "Experiment", "Experiments", "make_cells"]

MAX_NOTE_CHARS = 1_000
MAX_COMPARED = 2  # runs that a saved view compares
RunShares = Callable[[Experiment, TestSet], Sequence[ShareOutcome]]


class Experiments:
    """Operations on experiments."""

    def __init__(self, wb: Workbench) -> None:
        self._wb = wb
        self.test_sets = TestSetStore(wb)
        self._experiments, self._runs = ExperimentTables(wb.corpus.database), RunTables(wb.corpus.database)

    def create(
        self,
        title: str,
        test_set: str,
        cells: Sequence[Cell | str],
        *,
        parameters: Mapping[str, Sequence[Mapping[str, ParameterValue]]] | None = None,
        metrics: Sequence[str] = DEFAULT_METRICS,
        limit_queries: int | None = None,
        experiment_id: str | None = None,
        hypothesis: str = "",
        bars: Sequence[Bar] = (),
        answers: bool = False,
        repeats: int = 1,
        budget: float | None = None,
    ) -> Experiment:
        """Create an experiment on the current version of a stored test set; ``run`` executes it.

        Args:
            title: Its title; that of the test set if empty.
            test_set: Title or id of a stored test set; ``sample`` is stored if it is not.
            cells: What to run: strategies (NAME or NAME@INDEX), or cells.
            parameters: For the strategies, sets of parameters by strategy; each is a run.
            metrics: Metrics to measure.
            limit_queries: Use this many questions, evenly from the test set.
            experiment_id: Its id; a new one if None.
            hypothesis: What is expected, in words.
            bars: What runs must reach, by their labels; ``run`` judges them.
            answers: Whether each run also answers the questions, by extracts if no LLM is configured.
            repeats: How often strategies that call an LLM run, and a configured LLM answers (1..20).
            budget: Stop when the stored searches and answers of its runs have cost this many dollars.

        Raises:
            NotFound: No such test set or index. ScopeError: A part of the test set's scope has been deleted.
            InvalidInput: An unknown metric, no answerable question, no price, or an overlong title or hypothesis.
        """
        info = self.test_sets.find_or_add(test_set)
        chosen = self.test_sets.load(info.id).spread(limit_queries)
        if not chosen.answerable:
            raise InvalidInput(f"No question of {info.title!r} has a relevant document; judge some first.")
        has_llm = self._wb.corpus.llm is not None
        planned = repeat_cells(chosen, plan_cells(cells, parameters), repeats, answers=answers, has_llm=has_llm)
        estimate_cost(self._wb, chosen, planned, budget=budget)
        measured, expected = check_metrics(metrics), check_length("hypothesis", hypothesis.strip(), MAX_NOTE_CHARS)
        check_bars(bars, [cell.label for cell in planned if cell == cell.run], measured)
        plan: JsonObject = {
            "cells": [to_plain(cell) for cell in planned], "metrics": list(measured), "limit_queries": limit_queries,
            "hypothesis": expected, "bars": [to_plain(bar) for bar in bars],
        }  # fmt: skip
        plan["bars_hash"] = hash_json(plan) if expected or bars else ""
        plan |= {"answers": answers, "repeats": repeats, "budget": budget}
        values: JsonObject = {
            "id": experiment_id,
            "title": check_title(title) if title.strip() else info.title,
            "dataset_id": info.id,
            "dataset_version": info.version,
            "dataset_hash": chosen.questions_hash,
            "corpus_hash": chosen.corpus.hash if chosen.corpus else hash_documents(self._wb, chosen.scope),
        }
        return parse_experiment(self._experiments.create(values | {"plan": plan}))

    def list(self, test_set: str | None = None) -> list[Experiment]:
        """Return experiments, newest first."""
        test_set_id = self.test_sets.info(test_set).id if test_set else None
        return [parse_experiment(row) for row in self._experiments.list(test_set_id)]

    def get(self, experiment_id: str) -> Experiment:
        """Return one experiment. Raises NotFound."""
        return parse_experiment(self._experiments.get(experiment_id))

    def add_run_file(self, experiment_id: str, name: str, content: str) -> RunFile:
        """Add a run file (TREC or CSV) to an experiment that is not running, replacing any with the same name.

        Raises:
            NotFound: No such experiment. InvalidInput: The name is a strategy's, or the file is unreadable.
            Conflict: The experiment is running, or the user's documents changed since it began.
        """
        experiment = self.get(experiment_id)
        if experiment.status == "running":
            raise Conflict(f"{experiment.title!r} is running; add the run file when it is done.")
        test_set = self.test_set(experiment)
        corpus = index_corpus(self._wb, test_set)
        if corpus.corpus_hash != experiment.corpus_hash:
            raise Conflict("The corpus has changed since the experiment started; start a new one to compare fairly.")
        depth = max_ranking_depth(experiment.metrics)
        run_file = read_run_file(self._wb, test_set, corpus, name, content, depth)
        cell = Cell(run_file.name, file_hash=hash_json(content))
        cells = list(experiment.cells)
        position = next((p for p, c in enumerate(cells) if c.file_hash and c.strategy == cell.strategy), len(cells))
        cells[position : position + 1] = [cell]
        row = make_run_row(test_set, corpus, cell.strategy, {}, depth, cell.file_hash)
        run_id = self._runs.begin(row)["id"]
        self._runs.add_answers(run_id, [answer.to_dict() for answer in run_file.answers.values()])
        self._runs.complete(run_id)
        self._experiments.change_plan(experiment.id, {"cells": [to_plain(cell) for cell in cells]})
        self._experiments.add_run(experiment.id, position, run_id, cell.label, {})
        return run_file

    def annotate(
        self, experiment_id: str, run: str | None = None, *, note: str | None = None, tags: Sequence[str] | None = None
    ) -> None:
        """Set the note and the tags of an experiment, or of one of its runs by its label; None leaves them unchanged.

        Raises:
            NotFound: No such experiment, or no started run with that label.
            InvalidInput: A tag is invalid, or the note too long.
        """
        if len(note or "") > MAX_NOTE_CHARS:
            raise InvalidInput(f"The note has {len(note or ''):,} characters; use at most {MAX_NOTE_CHARS:,}.")
        experiment = self.get(experiment_id)
        if run is not None:
            self._check_runs(experiment, [run])
        self._experiments.annotate(experiment.id, run, note, None if tags is None else clean_tags(tags))

    def save_view(self, experiment_id: str, metric: str = "", runs: Sequence[str] = (), tag: str = "") -> None:
        """Store what an experiment shows when it is opened, without arguments everything.

        Args:
            experiment_id: The experiment.
            metric: Metric of the leaderboard; "" for the first one.
            runs: Labels of the runs A and B; () for the best two.
            tag: Only the runs with this tag; "" for all.

        Raises:
            NotFound: No such experiment or run. InvalidInput: The metric is unknown, or there are more than two runs.
        """
        experiment = self.get(experiment_id)
        self._check_runs(experiment, runs)
        if metric and metric not in {name for one in self.results(experiment.id) if one.run for name in one.run.values}:
            raise InvalidInput(f"{metric} was not measured in {experiment.title!r}.")
        if len(runs) > MAX_COMPARED:
            raise InvalidInput(f"A view compares at most {MAX_COMPARED} runs, not {len(runs)}.")
        self._experiments.save_view(experiment.id, {"metric": metric, "runs": list(runs), "tag": tag})

    def prepare(self, experiment_id: str, *, judge: str = "", budget: float | None = None) -> None:
        """Change what an experiment does when it runs; if an argument is invalid, nothing is changed.

        Args:
            experiment_id: The experiment.
            judge: Plan the judging of every run by this judge, unless that has been done; an LLM judges answers, which
                are then planned too.
            budget: Its new budget, in dollars, for what its runs have stored and will store; None keeps it.

        Raises:
            NotFound: No such experiment. InvalidInput: The budget is 0 or less, or no price is known.
        """
        experiment = self.get(experiment_id)
        cells, known = list(experiment.cells), {cell.judge for cell in experiment.cells if cell.judge}
        runs = [one for one in cells if one == one.run and not one.file_hash]
        if {judge, *known} - {"", FREE} and not any(cell.answers for cell in cells):
            cells += [replace(one, answers=True) for one in runs]
        if judge and judge not in known and not (judge == FREE and known):
            cells += [replace(one, judge=judge) for one in runs]
        changes: JsonObject = {"cells": [to_plain(cell) for cell in cells]} if cells != [*experiment.cells] else {}
        if budget is not None:
            estimate_cost(self._wb, self.test_set(experiment), cells, budget=budget)
            changes["budget"] = budget
        if changes:
            self._experiments.change_plan(experiment.id, changes)

    def verdicts(self, experiment: Experiment, judge: str) -> dict[str, list[StoredVerdict]]:
        """Return what a judge has stored on each run, by the label of the run."""
        found: dict[str, list[StoredVerdict]] = {}
        for row in self._experiments.runs(experiment.id):
            cell = experiment.cells[row["position"]]
            if cell.judge == judge:
                answers = self._runs.answers(row["id"])
                found[cell.run.label] = [
                    StoredVerdict(**one["reply"], question_id=one["question_id"]) for one in answers
                ]
        return found

    def estimate(self, experiment_id: str) -> str:
        """Return a sentence on what its runs take and cost at least, before any has run, as ``Workbench.estimate``."""
        experiment = self.get(experiment_id)
        return estimate_cost(self._wb, self.test_set(experiment), experiment.cells)

    def save_bars(self, experiment_id: str, verdicts: Sequence[Verdict]) -> None:
        """Store the verdicts on the bars of an experiment."""
        keys = ("run", "metric", "bar", "state", "detail")
        self._experiments.save_bars(experiment_id, [{key: getattr(one, key) for key in keys} for one in verdicts])

    def _check_runs(self, experiment: Experiment, labels: Sequence[str]) -> None:
        rows = self._experiments.runs(experiment.id)
        started = [
            row["label"] for row in rows if experiment.cells[row["position"]].run == experiment.cells[row["position"]]
        ]
        for label in labels:
            if label not in started:
                raise NotFound("run", label, f"Use one of {list_choices(started, 20)}.")

    def delete(self, experiment_id: str) -> None:
        """Delete an experiment; its runs are kept for others."""
        self._experiments.delete(self.get(experiment_id).id)

    def test_set(self, experiment: Experiment) -> TestSet:
        """Return the version of the test set that the experiment uses."""
        stored = self.test_sets.load(experiment.test_set_id, experiment.test_set_version)
        return stored.spread(experiment.limit_queries)

    def run(
        self,
        experiment_id: str,
        *,
        budget: float | None = None,
        on_progress: OnProgress | None = None,
        should_stop: ShouldStop | None = None,
        ask_all: RunShares | None = None,
        judge: Judging | None = None,
    ) -> Experiment:
        """Run the unfinished cells. If a cell fails, its error is stored and the others continue.

        ``budget`` replaces the experiment's own, as in ``prepare``; None keeps it. ``judge`` scores
        the texts if the experiment has a judge; ``evals.judges.judging`` makes it. ``ask_all`` replaces the
        sequential run of all shares; it reports their progress and stops itself.

        Raises:
            Conflict: The user's documents changed since the experiment started.
            Cancelled: ``should_stop`` returned True; ``run`` resumes from there.
            InvalidInput: The budget is 0 or less, or no price is known.
        """
        self.prepare(experiment_id, budget=budget)
        experiment = self.get(experiment_id)
        test_set = self.test_set(experiment)
        self._experiments.set_status(experiment.id, "running")
        try:
            if ask_all is not None:
                outcomes = ask_all(experiment, test_set)
            else:
                outcomes = _run_sequentially(CellRuns(self._wb, experiment, test_set, on_progress, should_stop, judge))
        except Cancelled:
            self._experiments.set_status(experiment.id, "stopped", "Stopped; run it again to resume.")
            raise
        except Exception as error:
            self._experiments.set_status(experiment.id, "failed", str(error))
            raise
        left_out = any(outcome.left_out for outcome in outcomes)
        done = {row["position"] for row in self._experiments.runs(experiment.id) if row["status"] == "done"}
        judging = {position for position, cell in enumerate(experiment.cells) if cell.judge}
        unjudged = judge is None and ask_all is None and not judging <= done
        message = _summarise(experiment, outcomes)
        if unjudged:
            message += f" Its texts are not all judged; run: workbench experiments resume {experiment.id}"
        self._judge_bars(experiment)
        self._experiments.set_status(experiment.id, "stopped" if left_out or unjudged else "done", message.strip())
        return self.get(experiment.id)

    def _judge_bars(self, experiment: Experiment) -> None:
        """Store the verdict on each bar, and as its note, if it has none, the hypothesis and whether bars changed."""
        if not experiment.bars_hash:
            return
        runs = {result.cell.label: result.run for result in self.results(experiment.id) if result.run is not None}
        self.save_bars(experiment.id, list(judge_bars(experiment.title, experiment.planned_bars, runs)))
        changed = describe_changed_bars(experiment, self.list(experiment.test_set_id))
        if not experiment.note:
            expected = [f"Hypothesis: {experiment.hypothesis}"] if experiment.hypothesis else []
            self.annotate(experiment.id, note="\n\n".join([*expected, *changed])[:MAX_NOTE_CHARS])

    def results(self, experiment_id: str) -> list[CellResult]:
        """Return every started cell, measured with the judgments of the experiment's test set version."""
        experiment = self.get(experiment_id)
        test_set = self.test_set(experiment)
        prices = Prices.from_settings(self._wb.settings)
        stored = self._experiments.runs(experiment.id)
        rows = [row for row in stored if not experiment.cells[row["position"]].judge]
        answering = [row for row in rows if experiment.cells[row["position"]].answers]
        searches = [self._result(experiment, test_set, row, prices) for row in rows if row not in answering]
        results = merge_repetitions(searches)
        return add_answer_values([self._add_answers(experiment, test_set, one, answering, prices) for one in results])

    def answers(self, experiment_id: str, metric: str | None = None) -> tuple[dict[str, AnswerScores], list[Lift]]:
        """Return what the answers of the runs contain and cite, and whether better retrieval reached them.

        Args:
            experiment_id: Id of an experiment made with ``answers``; others have none.
            metric: A metric of retrieval; the experiment's first if None.

        Raises:
            NotFound: No such experiment. InvalidInput: The metric was not measured.
        """
        results = self.results(experiment_id)
        chosen = metric or self.get(experiment_id).metrics[0]
        lines = make_leaderboard(results, chosen)
        scores = read_answers(results)
        return {line.label: scores[line.label] for line in lines if line.label in scores}, compare_answers(
            results, chosen
        )

    def leaderboard(self, experiment_id: str, metric: str | None = None) -> list[LeaderboardLine]:
        """Return the finished runs, best first, each compared with the best and corrected for every pair of runs.

        Args:
            experiment_id: Id of the experiment.
            metric: A measured metric; the experiment's first if None.

        Raises:
            NotFound: No such experiment. InvalidInput: The metric was not measured.
        """
        chosen = metric or self.get(experiment_id).metrics[0]
        return make_leaderboard(self.results(experiment_id), chosen)

    def describe(
        self, experiment: Experiment, results: Sequence[CellResult], metric: str, difference: float | None = None
    ) -> list[str]:
        """Return sentences: whether the best run is decided, what the whole test set can show, and its weaknesses.

        Args:
            experiment: The experiment, which may have asked a pilot of the questions.
            results: Its results.
            metric: A measured metric.
            difference: Also report how many questions this difference needs.

        Raises:
            InvalidInput: The metric was not measured, or the difference is outside 0..1.
        """
        whole = self.test_sets.load(experiment.test_set_id, experiment.test_set_version)
        test_set, measured = whole.spread(experiment.limit_queries), select_measured(results, metric)
        runs = {result.cell.label: result.run for result in measured if result.run is not None}
        asked = len(whole.answerable)
        lines = make_leaderboard(measured, metric)
        return [
            *describe_leaderboard(lines, measured, metric, questions=asked, difference=difference),
            *describe_judged_outside(self._wb, test_set),
            *describe_weaknesses(test_set, runs, metric),
            *describe_wording(test_set, read_judged_texts(self._wb, test_set)),
        ]

    def winners(self, experiments: Sequence[Experiment]) -> dict[str, Winner]:
        """Return the best run of each finished experiment, by experiment id; it is computed once and stored."""
        kept = self._experiments.winners()
        best: dict[str, Winner] = {}
        for experiment in experiments:
            if "is_decided" in kept.get(experiment.id, {}):
                best[experiment.id] = load_winner(experiment, kept[experiment.id])
            elif experiment.status == "done" and (win := find_winner(experiment, self.results(experiment.id))):
                self._experiments.keep_winner(experiment.id, win.to_dict())
                best[experiment.id] = win
        return best

    def state(self, experiment_id: str) -> dict[str, str]:
        """Return what results depend on: the status, verdicts, note and tags of each started run."""
        rows = self._experiments.runs(experiment_id)
        return {row["id"]: f"{row['status']} {sorted(row['extra'])} {row['note']} {row['tags']}" for row in rows}

    def note(self, experiment: Experiment, result: CellResult, extra: Verdicts) -> None:
        """Store the verdicts on a run in addition to its metrics."""
        self._experiments.add_run(experiment.id, result.position, result.run_id, result.cell.label, extra)

    def _add_answers(
        self, experiment: Experiment, test_set: TestSet, result: CellResult, rows: Sequence[Row], prices: Prices
    ) -> CellResult:
        """Return a result with the scores of its answers once all are there, or with the reason for missing ones."""
        cells = enumerate(experiment.cells)
        planned = {position for position, cell in cells if cell.answers and cell.run == result.cell}
        own = [row for row in rows if row["position"] in planned]
        error = next((row["error"] for row in own if row["status"] == "failed"), None)
        if error is not None:
            return replace(result, error=result.error or f"Its answers failed: {error}")
        if not planned or sum(row["status"] == "done" for row in own) < len(planned):
            return result
        rounds, costs = [], []
        for row in own:
            rounds.append({answer["question_id"]: parse_answer(answer) for answer in self._runs.answers(row["id"])})
            search = (row["strategy"], row["parameters"], row["index_settings"]["embedding_model"])
            costs.append(prices.mean_cost(test_set.scorable, rounds[-1], *search))
        scores = measure_answers(test_set, rounds, mean_cost(costs))
        return replace(result, extra={**result.extra, "answers": scores})

    def _result(self, experiment: Experiment, test_set: TestSet, row: Row, prices: Prices) -> CellResult:
        run = None
        if row["status"] == "done":
            answers = {answer["question_id"]: parse_answer(answer) for answer in self._runs.answers(row["id"])}
            asked, model = (row["strategy"], row["parameters"]), row["index_settings"]["embedding_model"]
            dollars = prices.mean_cost(test_set.answerable, answers, *asked, model)
            run = replace(score_answers(test_set, *asked, answers, experiment.metrics), dollars=dollars)
        size = self._wb.corpus.indexes.bytes_on_disk(row["index_name"])
        cell = experiment.cells[row["position"]]
        place = (row["index_name"], size, row["error"], row["position"], row["extra"], row["note"], tuple(row["tags"]))
        return CellResult(cell, row["id"], row["status"], run, *place)


def _run_sequentially(runs: CellRuns) -> list[ShareOutcome]:
    """Run every share in this process, except shares of failed cells."""
    outcomes: list[ShareOutcome] = []
    for share in runs.shares():
        if not any(outcome.failed and outcome.cell == share.cell for outcome in outcomes):
            outcomes.append(runs.answer(share))
    runs.end()
    return outcomes


def _summarise(experiment: Experiment, outcomes: Sequence[ShareOutcome]) -> str:
    """Report the numbers of new, stored and failed answers."""
    failed = len({experiment.cells[one.cell].run.label for one in outcomes if one.failed})
    sentences = [f"{failed} of {experiment.runs} runs failed."] if failed else []
    judged = [one for one in outcomes if experiment.cells[one.cell].judge]
    searches = [one for one in outcomes if one not in judged and not experiment.cells[one.cell].answers]
    answers = [one for one in outcomes if experiment.cells[one.cell].answers]
    for verb, own in (("questions run", searches), ("answers written", answers), ("questions judged", judged)):
        if own:
            sentences.append(f"{sum(one.asked for one in own):,} {verb}, {sum(one.stored for one in own):,} cached.")
    if any(one.left_out for one in outcomes):
        left = [sum(one.left_out for one in own) for own in (searches, answers, judged)]
        judgments = f", and {left[2]:,} questions not judged" if left[2] else ""
        sentences.append(
            f"The budget of {format_dollars(experiment.budget or 0)} was used up: {left[0]:,} searches and {left[1]:,} "
            f"answers are left out{judgments}. Resume it with a higher budget: "
            f"workbench experiments resume {experiment.id} --budget DOLLARS."
        )
    return " ".join(sentences)


# Experiments as shared jobs


def run_shared(wb: Workbench, experiment_id: str, assignment: Assignment, judge: Judging | None = None) -> Experiment:
    """Run the unfinished cells of an experiment, or help another worker with them.

    A helper returns when no share is left for it, though others may still be working. Raises what ``Experiments.run``
    raises, and PartLost if another worker took over one of its shares.
    """
    experiments = Experiments(wb)

    def ask_together(experiment: Experiment, test_set: TestSet) -> Sequence[ShareOutcome]:
        return _run_shares(wb, experiment, test_set, assignment, judge)

    if assignment.leads:
        progress, stop = assignment.progress, assignment.should_stop
        return experiments.run(experiment_id, on_progress=progress, should_stop=stop, ask_all=ask_together)
    experiment = experiments.get(experiment_id)
    ask_together(experiment, experiments.test_set(experiment))
    return experiment


def _run_shares(
    wb: Workbench, experiment: Experiment, test_set: TestSet, assignment: Assignment, judge: Judging | None
) -> Sequence[ShareOutcome]:
    """Run the shares that this worker claims, and return the outcomes of all finished shares."""
    report: OnProgress | None = assignment.progress if assignment.leads else None

    def on_progress(progress: Progress) -> None:
        if report is not None:
            report(progress)

    runs = CellRuns(wb, experiment, test_set, on_progress, assignment.should_stop, judge)

    def plan() -> None:
        for position in runs.list_asked_cells():  # so that only one worker indexes a corpus
            runs.look()
            runs.open(position)
        parts = [(share.to_dict(), share.last - share.first) for share in runs.shares()]
        wb.jobs.table.parts.plan(assignment.job.id, parts)

    with share_parts(wb.jobs.table, assignment, plan) as in_hand:
        report = make_progress_reporter(assignment, in_hand, "questions")
        for part in in_hand.all_taken():
            runs.look()
            if part is None:
                continue
            share = Share(**cast("dict[str, Any]", part.content))
            before = [_parse_outcome(result) for _, result in in_hand.results()]
            failed = any(each.failed and each.cell == share.cell for each in before)
            outcome = ShareOutcome(share.cell, 0, 0, failed=True) if failed else runs.answer(share)
            with wb.corpus.database.transaction() as connection:
                in_hand.done(connection, part, outcome.to_dict())
        return [_parse_outcome(result) for _, result in in_hand.results()]


def _parse_outcome(result: JsonObject) -> ShareOutcome:
    return ShareOutcome(**cast("dict[str, Any]", result))
