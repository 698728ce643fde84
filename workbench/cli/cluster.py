"""``workbench cluster``: the servers that indexes lie on."""

from __future__ import annotations

import argparse

from workbench.cli.lifetime import opened
from workbench.cli.output import Out, print_table
from workbench.cli.parser import Verbs, run_verb
from workbench.sizes import size_text

run = run_verb


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verbs."""
    verbs = Verbs(parser)
    verbs.add("list", "List the shards, and whether they answer.", _list)
    add = verbs.add("add", "Make an empty Postgres database a shard; indexes made from then on lie on shards.", _add)
    add.add_argument("url", metavar="URL", help="postgresql://USER:PASSWORD@HOST:PORT/DATABASE")
    verbs.add("rebalance", "Spread the buckets of every index evenly over all shards, searches going on.", _rebalance)
    remove = verbs.add("remove", "Move what a shard holds to the others, and let go of it.", _remove)
    remove.add_argument("shard", metavar="SHARD", help="its number ('workbench cluster list'), or its URL")
    remove.add_argument("--lost", action="store_true", help="it is gone for good: what it held is to be indexed again")
    verbs.add("check", "Clear what a writing or a move that broke off between two shards left.", _check)


def _list(arguments: argparse.Namespace, out: Out) -> int:
    with opened() as workbench:
        shards = workbench.shards.list()
    columns = ("Shard", "Place", "Up", "Buckets", "On disk")
    rows = [
        (
            shard.number,
            shard.place,
            "yes" if shard.is_reachable else "no",
            shard.buckets,
            "" if shard.bytes is None else size_text(shard.bytes),
        )
        for shard in shards
    ]
    empty = "No shards: every index lies in this database."
    out.show({"shards": shards}, lambda console: print_table(console, columns, rows, empty))
    return 0


def _add(arguments: argparse.Namespace, out: Out) -> int:
    with opened() as workbench:
        shard = workbench.shards.add(arguments.url)
        count = len(workbench.shards.list())
    said = f"{shard.place} is shard {shard.number}. Indexes made from now on lie on {count} shard{'s' * (count > 1)}."
    out.show({"shard": {"number": shard.number, "place": shard.place}}, lambda console: console.print(said))
    return 0


def _rebalance(arguments: argparse.Namespace, out: Out) -> int:
    with opened() as workbench, out.progress("Rebalancing") as show:
        moved = workbench.shards.rebalance(show)
    said = f"{moved} bucket{'' if moved == 1 else 's'} moved; every shard holds as many of each index as the others."
    out.show({"moved": moved}, lambda console: console.print(said))
    return 0


def _remove(arguments: argparse.Namespace, out: Out) -> int:
    with opened() as workbench, out.progress("Emptying") as show:
        shard = workbench.shards.remove(arguments.shard, show, lost=arguments.lost)
    emptied = f"{shard.place} is no shard any more and holds nothing; it can be switched off."
    said = shard.sentence if arguments.lost else emptied
    out.show({"shard": shard}, lambda console: console.print(said))
    return 0


def _check(arguments: argparse.Namespace, out: Out) -> int:
    with opened() as workbench:
        deleted, moves = workbench.shards.check()
    said = f"Passages without a document: {deleted}, deleted. Moves of buckets that broke off: {moves}, cleared."
    out.show({"deleted": deleted, "moves": moves}, lambda console: console.print(said))
    return 0
