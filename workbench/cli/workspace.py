"""``workbench workspace``: embed and search conversations on disk."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.cli.options import VerbFunction, Verbs, run_verb
from workbench.cli.output import Out, print_fields, print_table
from workbench.cli.session import opened, stoppable
from workbench.errors import InvalidInput
from workbench.types import far_sentence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workbench.services.workspaces import ConversationHit
    from workbench.types import Evidence

run = run_verb


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verbs."""
    verbs = Verbs(parser)
    embed = _verb(verbs, "embed", "Embed new and changed conversations of a workspace or of one path in it.", _embed)
    embed.add_argument(
        "path", nargs="?", metavar="PATH", help="conversation, a file in it, or a folder of conversations"
    )
    search = _verb(verbs, "search", "Find conversations.", _search)
    search.add_argument("query", metavar="QUERY")
    search.add_argument("--limit", type=int, default=10, metavar="N")
    search.add_argument("--type", default="", metavar="TYPE", help="only this type, such as plan")
    search.add_argument("--date", default="", metavar="YYYY-MM[-DD]", help="only this month or day")
    similar = _verb(verbs, "similar", "Find conversations similar to one.", _similar)
    similar.add_argument("path", metavar="PATH")
    similar.add_argument("--limit", type=int, default=10, metavar="N")
    _verb(verbs, "status", "Show which conversations are embedded.", _status)


def _verb(verbs: Verbs, name: str, purpose: str, serve: VerbFunction) -> argparse.ArgumentParser:
    verb = verbs.add(name, purpose, serve)
    verb.add_argument(
        "--workspace", default=".", metavar="FOLDER", help="workspace folder (default: the current directory)"
    )
    return verb


def _folder(arguments: argparse.Namespace) -> Path:
    folder = Path(arguments.workspace).expanduser().resolve()
    if not folder.is_dir():
        raise InvalidInput(f"No such folder {arguments.workspace!r}; use a folder of conversations.")
    return folder


def _embed(arguments: argparse.Namespace, out: Out) -> int:
    folder = _folder(arguments)
    path = (folder / arguments.path).resolve() if arguments.path else None
    if path is not None and not path.is_relative_to(folder):
        raise InvalidInput(f"{arguments.path!r} is outside the workspace; set its workspace with --workspace.")
    with opened() as wb, stoppable(out) as should_stop, out.progress("Embed") as show:
        report = wb.workspaces.embed(folder, path, show, should_stop)
    for failure in report.failures:
        out.message(f"{failure.path}: {failure.error}")
    sentence = f"{report.embedded:,} embedded, {report.skipped:,} unchanged, {report.removed:,} removed."
    out.show(report, lambda console: console.print(sentence))
    return 1 if report.failures and not (report.embedded or report.skipped) else 0


def _search(arguments: argparse.Namespace, out: Out) -> int:
    with opened() as wb:
        hits = wb.workspaces.search(
            _folder(arguments),
            arguments.query,
            limit=arguments.limit,
            conversation_type=arguments.type,
            date_range=arguments.date,
        )
    for note in hits.degraded:
        out.remark(note)
    return _print(out, hits, hits.evidence)


def _similar(arguments: argparse.Namespace, out: Out) -> int:
    with opened() as wb:
        hits = wb.workspaces.similar(_folder(arguments), arguments.path, arguments.limit)
    return _print(out, hits)


def _status(arguments: argparse.Namespace, out: Out) -> int:
    with opened() as wb:
        folder = _folder(arguments)
        status, pending = wb.workspaces.status(folder), wb.workspaces.pending(folder)
    changes = {"new": pending.new, "changed": pending.changed, "vanished": pending.vanished}
    row = {
        "conversations": status.num_documents,
        "passages": status.total_chunks,
        "database": status.db_path,
        "last": [f"{path} ({at[:16]})" for path, at in status.recent[:3]],
        "on disk": ", ".join(f"{count} {what}" for what, count in changes.items()) if pending.any else "unchanged",
    }
    out.show({**status.to_dict(), "pending": changes}, lambda console: print_fields(console, row))
    if pending.any:
        out.message("Files on disk have changed; run 'workbench workspace embed' to update.")
    return 0


def _print(out: Out, hits: Sequence[ConversationHit], evidence: Evidence | None = None) -> int:
    """Print conversations, and the evidence of a search."""
    rows = [(hit.conversation, hit.score, hit.title, hit.date or "") for hit in hits]
    empty = "No results; add conversations with 'workbench workspace embed'."
    value: dict[str, object] = {"results": list(hits), "total": len(hits)}
    if evidence is not None:
        value["evidence"] = evidence
        out.remark(far_sentence(hits, evidence))
    out.show(value, lambda console: print_table(console, ("Conversation", "Score", "Title", "Date"), rows, empty))
    return 0
