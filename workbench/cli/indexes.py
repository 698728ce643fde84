"""``workbench indexes``: chunk and embed the same documents in several ways, side by side."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from workbench.cli.options import Subcommands, add_repeated, add_yes_option, confirm
from workbench.cli.output import Output, format_own
from workbench.cli.session import cancel_on_sigint
from workbench.errors import InvalidInput
from workbench.formatting import parse_assignments, size_text

if TYPE_CHECKING:
    from workbench.types import Index
    from workbench.workbench import Workbench


def declare_indexes(parser: argparse.ArgumentParser) -> None:
    verbs = Subcommands(parser)
    verbs.add("list", "List indexes with their counts.", _list_indexes)
    verbs.add("show", "Show one index.", _show_index, "name")
    _add_create(verbs)
    update = verbs.add("update", "Update an index, or make it the default.", _update_index, "name")
    update.add_argument("--build", action="store_true", help="add missing documents")
    update.add_argument("--default", action="store_true", help="make it the default for searches")
    update.add_argument(
        "--refuse-below",
        metavar="SIMILARITY",
        help="passages less similar to a question (0 to 1) are no evidence for an answer; 'model' restores the model's",
    )
    _add_background(update)
    build = verbs.add("build", "Same as 'update NAME --build'.", _build_index, "name")
    build.add_argument("--dry-run", action="store_true", help="only estimate the cost of its transformations")
    _add_background(build)
    verbs.add("default", "Same as 'update NAME --default'.", _default_index, "name")
    _add_preview(verbs)
    _add_attach(verbs)
    verbs.add("sync", "Read the new, changed and deleted rows of an attached table.", _sync_index, "name")
    add_yes_option(verbs.add("delete", "Delete an index; its documents are kept.", _delete_index, "name"))


def _add_create(verbs: Subcommands) -> None:
    create = verbs.add("create", "Create an empty index; 'build' fills it from the stored documents.", _create_index)
    create.add_argument("name", metavar="NAME", help="lower-case letters, digits and _")
    create.add_argument(
        "--chunker",
        default="structure",
        metavar="C",
        help="chunker, or a LlamaIndex parser as python:PACKAGE.MODULE:NAME (%(default)s)",
    )
    add_repeated(create, "--option", "K=V", "option of the chunker")
    add_repeated(
        create,
        "--transformation",
        "T",
        "LlamaIndex extractor or other transformation as python:PACKAGE.MODULE:NAME[?K=V]",
    )
    create.add_argument("--model", metavar="M", help="embedding model (WORKBENCH_EMBEDDING_MODEL)")
    create.add_argument("--build", action="store_true", help="build it now")
    _add_background(create)


def _add_preview(verbs: Subcommands) -> None:
    preview = verbs.add("preview", "Show the passages of a document by several chunkers; nothing is stored.", _preview)
    preview.add_argument("document", metavar="ID", help="the document")
    add_repeated(preview, "--chunker", "C", "a chunker (structure, recursive and sentence)")
    preview.add_argument("--model", metavar="M", help="embedding model (WORKBENCH_EMBEDDING_MODEL)")


def _preview(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    document = wb.documents.get(arguments.document)
    chunkers = list(dict.fromkeys(arguments.chunker or wb.indexes.PREVIEWED))
    value = {name: wb.indexes.preview(document.id, name, model=arguments.model) for name in chunkers}
    rows = [
        (name, place, len(each.text), " ".join(each.text.split())[:80])
        for name in value
        for place, each in enumerate(value[name], 1)
    ]
    return out.table({"chunkers": value}, ("Chunker", "Passage", "Characters", "Text"), rows, "No passages.")


def _add_attach(verbs: Subcommands) -> None:
    attach = verbs.add(
        "attach",
        "Search a pgvector table in place, such as LangChain's or LlamaIndex's; nothing is written there.",
        _attach_index,
    )
    attach.add_argument("name", metavar="NAME", help="lower-case letters, digits and _")
    attach.add_argument("table", metavar="TABLE", help="table or view, with its schema unless that is public")
    attach.add_argument(
        "--url",
        metavar="URL",
        help="Postgres URL of its server, stored, never shown; '-' reads it from stdin (default: the workbench's own)",
    )
    add_repeated(
        attach, "--column", "ROLE=COLUMN", "column of the id, text, vector or metadata if it is not recognised"
    )
    attach.add_argument("--model", metavar="M", help="embedding model of its vectors (WORKBENCH_EMBEDDING_MODEL)")
    attach.add_argument("--collection", metavar="C", help="collection of a LangChain table, if it has several")
    add_repeated(attach, "--filter", "FIELD=VALUE", "only rows with this value in a column or a field of the metadata")
    attach.add_argument("--distance", metavar="D", help="cosine, l2 or ip (default: that of the table's vector index)")
    _add_background(attach)


def _add_background(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--background", action="store_true", help="build it as a job; see 'workbench jobs'")


def _list_indexes(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    indexes = wb.indexes.list()
    sizes = {index.name: wb.indexes.bytes_on_disk(index.name) for index in indexes}
    rows = [
        (
            index.name,
            "default" if index.is_default else index.status,
            index.chunker,
            index.chunker_options,
            index.embedding_model,
            format_own(index.documents_count, index.family_count),
            index.passages_count,
            size_text(sizes[index.name]),
        )
        for index in indexes
    ]
    columns = ("Name", "Status", "Chunker", "Options", "Model", "Documents", "Passages", "On disk")
    value = {"indexes": [index.to_dict() | {"bytes": sizes[index.name]} for index in indexes], "total": len(indexes)}
    return out.table(value, columns, rows, "No indexes.")


def _show_index(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    return _print_index(out, wb, wb.indexes.get(arguments.name))


def _create_index(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    options = parse_assignments(arguments.option, "--option")
    index = wb.indexes.create(
        arguments.name,
        chunker=arguments.chunker,
        options=options,
        transformations=arguments.transformation,
        embedding_model=arguments.model,
    )
    if arguments.background:
        return _enqueue(out, wb, index.name)
    if arguments.build:
        index = _fill_index(wb, out, index.name)
    return _print_index(out, wb, index)


def _update_index(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    if arguments.background and arguments.default:
        raise InvalidInput("Use --default after the build job has ended, not with --background.")
    if not (arguments.build or arguments.default or arguments.background or arguments.refuse_below):
        raise InvalidInput(
            "Nothing to change; use --build to add missing documents, --default to make it the default, or "
            "--refuse-below."
        )
    index = wb.indexes.get(arguments.name)
    if arguments.refuse_below:
        wb.indexes.set_threshold(index.name, _parse_similarity(arguments.refuse_below))
    if arguments.background:
        return _enqueue(out, wb, index.name)
    if arguments.build:
        index = _fill_index(wb, out, index.name)
    if arguments.default:
        wb.indexes.set_default(index.name)
    return _print_index(out, wb, wb.indexes.get(index.name))


def _parse_similarity(text: str) -> float | None:
    try:
        return None if text == "model" else float(text)
    except ValueError:
        raise InvalidInput(f"Invalid similarity {text!r}; use a number from 0 to 1, or 'model'.") from None


def _build_index(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    if arguments.dry_run:
        cost = wb.indexes.estimate(arguments.name)
        return out.sentence(asdict(cost), str(cost))
    if arguments.background:
        return _enqueue(out, wb, arguments.name)
    return _print_index(out, wb, _fill_index(wb, out, arguments.name))


def _attach_index(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    columns = parse_assignments(arguments.column, "--column")
    filters = parse_assignments(arguments.filter, "--filter")
    url = sys.stdin.readline() if arguments.url == "-" else arguments.url
    with out.progress(f"Attach {arguments.name}") as show, cancel_on_sigint(out) as should_stop:
        index = wb.indexes.attach(
            arguments.name,
            url,
            arguments.table,
            columns,
            model=arguments.model,
            collection=arguments.collection,
            filter=filters,
            distance=arguments.distance,
            fill=not arguments.background,
            on_progress=show,
            should_stop=should_stop,
        )
        return _enqueue(out, wb, index.name) if arguments.background else _print_index(out, wb, index)


def _sync_index(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    with out.progress(f"Sync {arguments.name}") as show, cancel_on_sigint(out) as should_stop:
        index = wb.indexes.sync(arguments.name, on_progress=show, should_stop=should_stop)
    return _print_index(out, wb, index)


def _default_index(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    wb.indexes.set_default(arguments.name)
    return _print_index(out, wb, wb.indexes.get(arguments.name))


def _delete_index(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    index = wb.indexes.get(arguments.name)
    confirm(arguments, out, f"The index {index.name!r} has {index.passages_count:,} passages.")
    wb.indexes.delete(index.name)
    return out.sentence(index, f"Deleted the index {index.name!r}; its documents are kept.")


def _enqueue(out: Output, wb: Workbench, name: str) -> int:
    """Queue the build for a worker."""
    out.message(wb.indexes.describe_cost(name))
    job = wb.jobs.enqueue_index_build(name)
    value = {"job": job.id, "index": name, "status": job.status, "missing_documents": wb.indexes.count_missing(name)}
    return out.job(job.id, value)


def _fill_index(wb: Workbench, out: Output, name: str) -> Index:
    out.message(wb.indexes.describe_cost(name))
    if wb.indexes.get(name).transformations:
        out.message(str(wb.indexes.estimate(name)))
    with out.progress(f"Build {name}") as show, cancel_on_sigint(out) as should_stop:
        return wb.indexes.build(name, on_progress=show, should_stop=should_stop)


_SHOWN_OF_TABLES = (
    *("place", "table", "collection", "filter", "distance"),
    *("rows", "matched", "synced_at", "notes", "left_out"),
)


def _print_index(out: Output, wb: Workbench, index: Index) -> int:
    size = wb.indexes.bytes_on_disk(index.name)
    value = index.to_dict() | {"bytes": size, "missing_documents": wb.indexes.count_missing(index.name)}
    row: dict[str, object] = {name: item for name, item in value.items() if name not in ("bytes", "attachment")}
    if index.attachment is not None:
        row |= {name: index.attachment[name] for name in _SHOWN_OF_TABLES}
    return out.fields(value, row | {"on_disk": size_text(size)})
