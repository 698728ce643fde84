"""Import of a test set with its corpus as a job: from a folder in BEIR format, or from an uploaded zip."""

from __future__ import annotations

import tempfile
import zipfile
from io import BytesIO
from pathlib import Path

from evals.test_sets.folders import has_no_path, load_test_set
from evals.test_sets.store import TestSetInfo, TestSetStore
from workbench.errors import InvalidInput
from workbench.formatting import GB, count_text
from workbench.jobs.sharing import Assignment, Job, Outcome
from workbench.types import JsonObject, Progress, as_text, as_text_or_none
from workbench.workbench import Workbench

MAX_UNPACKED_BYTES = GB  # unpacked size of a zip


def enqueue_import(
    wb: Workbench,
    path: str | None = None,
    *,
    archive: tuple[str, bytes] | None = None,
    experiment: JsonObject | None = None,
) -> Job:
    """Import a test set in the background; ``archive`` is a zip's (name, bytes).

    ``path`` is a folder or data set on the worker's machine, or "sample". ``experiment`` is the plan of an experiment
    to run on the imported test set; ``evals.background`` writes and reads it.

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
        assignment.progress(
            progress.count_active_items()
        )  # a small corpus is a single batch, so count its parts in progress

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
