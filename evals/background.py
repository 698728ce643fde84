"""The kinds of jobs of evaluation: experiments, tuning, imports of test sets, training."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from evals.experiments.catalogue import Experiments, run_shared
from evals.experiments.runs import Cell, parse_cells
from evals.experiments.tuning import tune
from evals.gateway import check_title, index_corpus
from evals.judges.endpoint import Endpoint
from evals.judges.generation import add_llm_questions
from evals.judges.judging import make_judging, note_verdicts, rate_by_llm
from evals.learning.training import DEFAULT_RANKER_NAME, check_enough, learn
from evals.measures.metrics import check_metrics
from evals.measures.significance import EQUALITY_TOLERANCE
from evals.test_sets.folders import SAMPLE_NAME, has_no_path, load_test_set
from evals.test_sets.store import TestSetInfo, TestSetStore
from workbench.errors import Conflict, InvalidInput, NotFound
from workbench.formatting import GB, count_text
from workbench.jobs.runners import Runner
from workbench.jobs.sharing import Assignment, Job, Outcome
from workbench.runtime import check_extra
from workbench.types import (
    JsonObject,
    Progress,
    as_integer,
    as_number,
    as_object,
    as_text,
    as_text_or_none,
    as_texts,
    to_plain,
)
from workbench.workbench import Workbench

MAX_UNPACKED_BYTES = GB  # unpacked size of a zip
MAX_RECENT_JOBS = 200  # jobs searched for an experiment's own


JUDGES = {"free": "free", "llm": "built-in", "llm-ragas": "ragas"}  # by the value of ``ragas``
WITH_LLM = ("llm", "llm-ragas")  # of them, those that call an LLM


def make_runners(wb: Workbench) -> dict[str, Runner]:
    """Return the job runners of evaluation, for the entry points that start workers."""
    return {
        "experiment": lambda assignment: run_experiment(wb, assignment),
        "optimise": lambda assignment: run_optimise(wb, assignment),
        "learn": lambda assignment: run_learn(wb, assignment),
        "test_set": lambda assignment: run_import_and_plan(wb, assignment),
    }


def enqueue_experiment(wb: Workbench, experiment_id: str, *, ragas: str = "none", budget: float | None = None) -> Job:
    """Run an experiment in the background, or resume one that was stopped.

    ``ragas`` scores the texts afterwards: "free" without a language model, "llm" with the configured one, "llm-ragas"
    with it and the prompts of ragas. ``budget`` replaces that of the experiment; None keeps it.

    Raises:
        NotFound: No such experiment. InvalidInput: A budget that is not valid. Conflict: It is already running.
        ConfigurationError: No LLM for "llm", or the extra ``eval`` or ``ragas`` is not installed.
    """
    _check_judging(wb, ragas)
    experiment = Experiments(wb).get(experiment_id)
    job = find_job(wb, experiment.id)
    if job is not None and not job.is_finished:
        raise Conflict(f"{experiment.title!r} is already {job.status}; cancel its job first to restart it.")
    Experiments(wb).prepare(experiment.id, judge=JUDGES.get(ragas, ""), budget=budget)
    return wb.jobs.enqueue("experiment", experiment.title, {"experiment": experiment.id})


def enqueue_on_sample(
    wb: Workbench,
    title: str,
    cells: Sequence[Cell],
    *,
    metrics: Sequence[str],
    limit: int | None,
    ragas: str,
    answers: bool = False,
    repeats: int = 1,
    budget: float | None = None,
) -> Job:
    """Import the sample in the background, then run an experiment on its questions.

    The job's result names the ``experiment``, which runs as a separate job, as with ``enqueue_experiment``. ``limit``
    is the maximum number of questions; ``answers``, ``repeats`` and ``budget`` are those of the experiment.

    Raises:
        NotFound: No such index. InvalidInput: A wrong metric, or an overlong title. ConfigurationError: As
            ``enqueue_experiment``.
    """
    _check_judging(wb, ragas)
    for index in {cell.index for cell in cells}:
        wb.corpus.index(index)
    plan: JsonObject = {"title": title and check_title(title), "limit": limit, "ragas": ragas, "answers": answers}
    plan |= {"cells": [to_plain(cell) for cell in cells], "repeats": repeats, "budget": budget}
    plan["metrics"] = list(check_metrics(metrics))
    return enqueue_import(wb, SAMPLE_NAME, experiment=plan)


def _check_judging(wb: Workbench, ragas: str) -> None:
    check_extra("eval")
    if ragas in WITH_LLM:
        Endpoint.from_workbench(wb)
    if ragas == "llm-ragas":
        check_extra("ragas")


def enqueue_optimise(wb: Workbench, test_set: str, strategies: Sequence[str], seconds: float, metric: str) -> Job:
    """Tune parameters in the background. Raises NotFound, or InvalidInput without time or strategies."""
    check_extra("eval")
    if seconds <= 0 or not strategies:
        raise InvalidInput("Tuning needs a time limit above 0 seconds and at least one strategy.")
    info = TestSetStore(wb).info(test_set)
    parameters = {"dataset": info.id, "strategies": list(strategies), "seconds": seconds, "metric": metric}
    return wb.jobs.enqueue("optimise", f"Tune parameters on {info.title}", parameters)


def enqueue_learn(wb: Workbench, test_set: str, index: str | None = None) -> Job:
    """Train a ranker on a stored test set in the background; the job's result contains it, but it is not saved.

    Raises:
        NotFound: No such test set or index. InvalidInput: Fewer than 30 judged questions.
    """
    check_extra("eval")
    info = TestSetStore(wb).info(test_set)
    check_enough(info.title, info.answerable)
    wb.corpus.index(index)
    return wb.jobs.enqueue("learn", f"Train a ranker on {info.title}", {"dataset": info.id, "index": index})


def enqueue_rating(wb: Workbench, test_set: str) -> Job:
    """Let the LLM judge twice, in the background, what people have judged. Raises NotFound, or ConfigurationError."""
    check_extra("eval")
    Endpoint.from_workbench(wb)
    info = TestSetStore(wb).info(test_set)
    return wb.jobs.enqueue("test_set", f"Judge {info.title} with the LLM", {"rate": info.id})


def enqueue_questions(wb: Workbench, test_set: str, count: int) -> Job:
    """Let the LLM write up to ``count`` questions in the background. Raises NotFound, or ConfigurationError."""
    check_extra("eval")
    Endpoint.from_workbench(wb)
    info = TestSetStore(wb).info(test_set)
    return wb.jobs.enqueue("test_set", f"Write questions for {info.title}", {"write": info.id, "count": count})


def _run_writing(wb: Workbench, assignment: Assignment) -> Outcome:
    """Write questions with the LLM; a resumed job writes as many again, about other passages."""
    key, count = as_text(assignment.job.parameters["write"]), as_integer(assignment.job.parameters["count"])
    endpoint = Endpoint.from_workbench(wb)
    report = add_llm_questions(wb, TestSetStore(wb), key, count, endpoint, assignment.progress, assignment.should_stop)
    message = " ".join([f"{count_text(report.questions, 'question')} added.", *report.problems])
    return Outcome({"test_set": key}, message, with_errors=bool(report.problems))


def _run_rating(wb: Workbench, assignment: Assignment) -> Outcome:
    """Judge with the LLM; a resumed job starts again, and its grades take the place of the earlier ones."""
    store = TestSetStore(wb)
    info = store.info(as_text(assignment.job.parameters["rate"]))
    rated = rate_by_llm(wb, store, info, rounds=2, on_progress=assignment.progress, should_stop=assignment.should_stop)
    missing = (f"Missing: {count:,}. {reason}" for reason, count in rated.reasons.items())
    message = " ".join([f"{count_text(rated.judged, 'judgment')} stored by {rated.rater}.", *missing])
    return Outcome({"test_set": info.id}, message, with_errors=bool(rated.reasons))


def find_job(wb: Workbench, experiment_id: str) -> Job | None:
    """Return the newest job that runs an experiment; None if it did not run as a job, or the job's record is gone."""
    jobs = wb.jobs.list(kind="experiment", limit=MAX_RECENT_JOBS)
    return next((job for job in jobs if job.parameters["experiment"] == experiment_id), None)


def run_experiment(wb: Workbench, assignment: Assignment) -> Outcome:
    """Run the rest of an experiment, and judge its texts, shared with other workers."""
    experiments = Experiments(wb)
    experiment = experiments.get(as_text(assignment.job.parameters["experiment"]))
    judge, model = make_judging(wb, experiment, should_stop=assignment.should_stop)
    done = run_shared(wb, experiment.id, assignment, judge)
    if not assignment.leads:
        return Outcome({}, "No work is left to share.")
    failed = [result for result in experiments.results(done.id) if result.error]
    for result in failed:
        assignment.log(f"{result.cell.label}: {result.error}", "error")
    note_verdicts(experiments, done, model)
    return Outcome({"experiment": done.id, "failed": len(failed)}, done.message, with_errors=bool(failed))


def run_import_and_plan(wb: Workbench, assignment: Assignment) -> Outcome:
    """Import a test set, then enqueue the experiment planned on it, if any; or let the LLM write or judge questions.

    If the worker died and the job resumes, an experiment that it had already created is reused.
    """
    if "rate" in assignment.job.parameters:
        return _run_rating(wb, assignment)
    if "write" in assignment.job.parameters:
        return _run_writing(wb, assignment)
    outcome = run_import(wb, assignment)
    planned = assignment.job.parameters.get("experiment")
    if planned is None:
        return outcome
    plan = as_object(planned)
    limit = None if plan["limit"] is None else as_integer(plan["limit"])
    experiment_id = assignment.job.id.replace("job_", "exp_")  # a second attempt finds what the first one created
    try:
        experiment = Experiments(wb).get(experiment_id)
    except NotFound:
        experiment = Experiments(wb).create(
            as_text(plan["title"]), as_text(outcome.result["test_set"]), parse_cells(plan["cells"]),
            metrics=as_texts(plan["metrics"]), limit_queries=limit, experiment_id=experiment_id,
            answers=plan["answers"] is True, repeats=as_integer(plan["repeats"]),
        )  # fmt: skip
    if find_job(wb, experiment.id) is None:
        budget = None if plan.get("budget") is None else as_number(plan["budget"])
        enqueue_experiment(wb, experiment.id, ragas=as_text(plan["ragas"]), budget=budget)
    return Outcome(outcome.result | {"experiment": experiment.id}, outcome.message)


def run_optimise(wb: Workbench, assignment: Assignment) -> Outcome:
    """Tune parameters; a resumed job keeps its answers and gets the remaining time."""
    parameters, spent = assignment.job.parameters, assignment.job.done  # the job's progress counts seconds
    seconds, metric = as_number(parameters["seconds"]), as_text(parameters["metric"])
    test_set = TestSetStore(wb).load(as_text(parameters["dataset"]))

    def report_indexing(progress: Progress) -> None:
        assignment.progress(Progress(spent, int(seconds), f"indexing, {progress.message}"))

    corpus = index_corpus(wb, test_set, on_progress=report_indexing, should_stop=assignment.should_stop)
    outcome = tune(
        wb, test_set, corpus, as_texts(parameters["strategies"]), seconds, metric=metric, spent=spent,
        on_progress=assignment.progress, should_stop=assignment.should_stop,
    )  # fmt: skip
    best = outcome.finalists[0]
    tied = sum(abs(finalist.held_out - best.held_out) <= EQUALITY_TOLERANCE for finalist in outcome.finalists)
    leads = f"the best on held-out questions is {best.candidate.strategy}"
    if tied > 1:
        leads = f"{tied} settings tie on held-out questions"
    tried = f"Tried {outcome.tried} settings in {outcome.seconds:.0f} s of {seconds:g}, {outcome.varied} of them"
    message = " ".join([f"{tried} non-default; {leads}.", *outcome.notes])
    return Outcome(outcome.to_dict(), message)


def run_learn(wb: Workbench, assignment: Assignment) -> Outcome:
    """Train a ranker; a resumed job restarts."""
    parameters = assignment.job.parameters
    test_set, index = as_text(parameters["dataset"]), as_text_or_none(parameters["index"])
    learned = learn(
        wb,
        test_set,
        DEFAULT_RANKER_NAME,
        index=index,
        on_progress=assignment.progress,
        should_stop=assignment.should_stop,
    )
    return Outcome(learned.to_dict(), learned.verdict)


# Import of a test set with its corpus: from a folder in BEIR format, or from an uploaded zip


def enqueue_import(
    wb: Workbench,
    path: str | None = None,
    *,
    archive: tuple[str, bytes] | None = None,
    experiment: JsonObject | None = None,
) -> Job:
    """Import a test set in the background; ``archive`` is a zip's (name, bytes).

    ``path`` is a folder or data set on the worker's machine, or "sample". ``experiment`` is the plan of an experiment
    to run on the imported test set.

    Raises:
        InvalidInput: Neither or both were given, there is no such folder, or the zip is not readable.
    """
    if (path is None) == (archive is None):
        raise InvalidInput("Choose a zip, or enter the path of a folder on this machine.")
    if archive is not None:
        name, content = archive
        _open_zip(content).close()
        return wb.jobs.enqueue("test_set", f"Import {name}", {"path": None, "title": Path(name).stem}, files=[archive])
    place = str(path)
    if not has_no_path(place):
        place = str(Path(place).expanduser().absolute())
        if not Path(place).is_dir():
            raise InvalidInput(f"There is no folder {place}; enter the path of one on this machine with queries.jsonl.")
    name = place if has_no_path(place) else Path(place).name
    title, parameters = f"Import test set {name}", {"path": place, "title": None}
    if experiment is not None:
        title, parameters = f"{title}, then run an experiment", parameters | {"experiment": experiment}
    return wb.jobs.enqueue("test_set", title, parameters)


def run_import(wb: Workbench, assignment: Assignment) -> Outcome:
    """Import the job's test set; a resumed job continues with the documents that are not indexed yet."""
    parameters, files = assignment.job.parameters, wb.jobs.table.files
    path = as_text_or_none(parameters["path"])
    if path is not None:
        info, problems = _import_folder(wb, assignment, path, None)
    else:
        ((position, _, _),) = files.uploads(assignment.job.id)
        with tempfile.TemporaryDirectory() as place:
            folder = unpack_zip(files.bytes(assignment.job.id, position), Path(place))
            info, problems = _import_folder(wb, assignment, folder, as_text(parameters["title"]))
        files.forget_bytes(assignment.job.id)
    message = f"{info.title}: {info.questions:,} questions, {info.judgments:,} judgments."
    if problems:
        message += f" {count_text(problems, 'note')} on its files: see the log."
    return Outcome({"test_set": info.id}, message)


def _import_folder(
    wb: Workbench, assignment: Assignment, folder: Path | str, title: str | None
) -> tuple[TestSetInfo, int]:
    """Import a folder; return the test set and the number of problems in its files."""

    def report(progress: Progress) -> None:
        # a small corpus is a single batch, so count its parts in progress
        assignment.progress(progress.count_active_items())

    test_set = load_test_set(folder)
    for problem in test_set.problems:
        assignment.log(problem, "warning")
    info = TestSetStore(wb).add(test_set, title, on_progress=report, should_stop=assignment.should_stop)
    return info, len(test_set.problems)


def unpack_zip(content: bytes, place: Path) -> Path:
    """Unpack a zip and return its folder with queries.jsonl. Raises InvalidInput."""
    try:
        with _open_zip(content) as archive:
            archive.extractall(place)  # extraction keeps paths inside the folder
    except (zipfile.BadZipFile, OSError, RuntimeError) as error:
        raise InvalidInput(f"The zip is not readable ({error}); zip the folder again.") from None
    paths = sorted(place.rglob("queries.jsonl"), key=lambda path: len(path.parts))
    return paths[0].parent


def _open_zip(content: bytes) -> zipfile.ZipFile:
    """Open a zip that contains a test set and is not too large. Raises InvalidInput."""
    try:
        archive = zipfile.ZipFile(BytesIO(content))
    except zipfile.BadZipFile as error:
        raise InvalidInput(f"The zip is not readable ({error}); zip the folder again.") from None
    if sum(item.file_size for item in archive.infolist()) > MAX_UNPACKED_BYTES:
        raise InvalidInput("The zip unpacks to more than 1 GB; enter the folder's path instead.")
    if not any(Path(item.filename).name == "queries.jsonl" for item in archive.infolist()):
        raise InvalidInput("The zip has no queries.jsonl; zip the folder that contains it.")
    return archive
