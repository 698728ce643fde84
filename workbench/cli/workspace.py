"""``workbench workspace``: embed and search conversations on disk."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.cli.options import SubcommandFunction, Subcommands, run_subcommand
from workbench.cli.output import Output
from workbench.cli.session import cancel_on_sigint, open_workbench
from workbench.errors import InvalidInput
from workbench.types import weak_match_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workbench.services.workspaces import ConversationHit
    from workbench.types import Evidence

run = run_subcommand


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommands."""
    verbs = Subcommands(parser)
    embed = _add_command(
        verbs, "embed", "Embed new and changed conversations of a workspace or of one path in it.", _run_embed
    )
    embed.add_argument(
        "path", nargs="?", metavar="PATH", help="conversation, a file in it, or a folder of conversations"
    )
    search = _add_command(verbs, "search", "Find conversations.", _run_search)
    search.add_argument("query", metavar="QUERY")
    search.add_argument("--limit", type=int, default=10, metavar="N")
    search.add_argument("--type", default="", metavar="TYPE", help="only this type, such as plan")
    search.add_argument("--date", default="", metavar="YYYY-MM[-DD]", help="only this month or day")
    similar = _add_command(verbs, "similar", "Find conversations similar to one.", _run_similar)
    similar.add_argument("path", metavar="PATH")
    similar.add_argument("--limit", type=int, default=10, metavar="N")
    _add_command(verbs, "status", "Show which conversations are embedded.", _run_status)


def _add_command(verbs: Subcommands, name: str, purpose: str, serve: SubcommandFunction) -> argparse.ArgumentParser:
    verb = verbs.add(name, purpose, serve)
    verb.add_argument(
        "--workspace", default=".", metavar="FOLDER", help="workspace folder (default: the current directory)"
    )
    return verb


def _read_folder(arguments: argparse.Namespace) -> Path:
    folder = Path(arguments.workspace).expanduser().resolve()
    if not folder.is_dir():
        raise InvalidInput(f"No such folder {arguments.workspace!r}; use a folder of conversations.")
    return folder


def _run_embed(arguments: argparse.Namespace, out: Output) -> int:
    folder = _read_folder(arguments)
    path = (folder / arguments.path).resolve() if arguments.path else None
    if path is not None and not path.is_relative_to(folder):
        raise InvalidInput(f"{arguments.path!r} is outside the workspace; set its workspace with --workspace.")
    with open_workbench() as wb, cancel_on_sigint(out) as should_stop, out.progress("Embed") as show:
        report = wb.workspaces.embed(folder, path, show, should_stop)
    for failure in report.failures:
        out.message(f"{failure.path}: {failure.error}")
    counts = f"{report.embedded:,} embedded, {report.skipped:,} unchanged, {report.removed:,} removed."
    out.sentence(report, report.all_failed or counts)
    return 1 if report.all_failed else 0


def _run_search(arguments: argparse.Namespace, out: Output) -> int:
    with open_workbench() as wb:
        hits = wb.workspaces.search(
            _read_folder(arguments),
            arguments.query,
            limit=arguments.limit,
            conversation_type=arguments.type,
            date_range=arguments.date,
        )
    for note in hits.degraded:
        out.remark(note)
    return _print_hits(out, hits, hits.evidence)


def _run_similar(arguments: argparse.Namespace, out: Output) -> int:
    with open_workbench() as wb:
        hits = wb.workspaces.similar(_read_folder(arguments), arguments.path, arguments.limit)
    return _print_hits(out, hits)


def _run_status(arguments: argparse.Namespace, out: Output) -> int:
    with open_workbench() as wb:
        folder = _read_folder(arguments)
        status, pending = wb.workspaces.status(folder), wb.workspaces.find_changes(folder)
    changes = {"new": pending.new, "changed": pending.changed, "vanished": pending.vanished}
    row = {
        "conversations": status.num_documents,
        "passages": status.total_chunks,
        "database": status.db_path,
        "last": [f"{path} ({at[:16]})" for path, at in status.recent[:3]],
        "on disk": ", ".join(f"{count} {what}" for what, count in changes.items()) if pending.any else "unchanged",
    }
    out.fields({**status.to_dict(), "pending": changes}, row)
    if pending.any:
        out.message("Files on disk have changed; run 'workbench workspace embed' to update.")
    return 0


def _print_hits(out: Output, hits: Sequence[ConversationHit], evidence: Evidence | None = None) -> int:
    """Print conversations, and the evidence of a search."""
    rows = [(hit.conversation, hit.score, hit.title, hit.date or "") for hit in hits]
    empty = "No results; add conversations with 'workbench workspace embed'."
    value: dict[str, object] = {"results": list(hits), "total": len(hits)}
    if evidence is not None:
        value["evidence"] = evidence
        out.remark(weak_match_text(hits, evidence))
    return out.table(value, ("Conversation", "Score", "Title", "Date"), rows, empty)
