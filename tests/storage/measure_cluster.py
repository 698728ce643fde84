"""Hold an index on shards against one server: ``python -m tests.storage.measure_cluster`` [--exact] [--move] [--kill].

Synthetic passages lie on three real servers, and on one. It prints, for each strategy, the questions whose first fifty
passages and scores are the same, the passages that one side alone has among them, and the median milliseconds of both,
asked one after the other. Graphs are walked as far as they can be on both sides (ef_search 1,000), and how many of the
true nearest both find is printed, as what one server's graph misses says nothing of the cluster. With ``--exact`` the
one server has no graph and computes every distance: what differs then is the cluster's fault. With ``--move`` a fourth
shard is added and takes its share of the buckets while searches go on. With ``--kill`` a shard is killed with SIGKILL
in the middle of 1,000 searches and started again ten seconds later.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
from psycopg import sql

from tests.shared_home import fresh_home
from tests.storage.shards import Server, servers
from workbench.errors import WorkbenchError
from workbench.storage import database

database.SESSION_OPTIONS["hnsw.ef_search"] = "1000"  # before what follows writes them into its own settings

from evals.bench.latency import Bench, vector_literal  # noqa: E402
from evals.bench.loading import fill  # noqa: E402
from evals.bench.pairs import timed  # noqa: E402
from evals.bench.synthetic_corpus import SyntheticCorpus  # noqa: E402
from workbench import Workbench  # noqa: E402
from workbench.settings import Settings  # noqa: E402
from workbench.types import SearchResult  # noqa: E402

FIRST = 50
BUFFERS = "256MB"  # of each server: for 300,000 passages the graphs of a shard take 120 MB
SEARCHES = 1_000
PAUSE = 0.02  # seconds between two of them, so that they outlast the outage
AWAY = 10.0  # seconds for which the killed shard is not started
LEFT_OUT = "llamaindex-hybrid"
SCOPED = "scoped"  # asked within the source that holds a passage in a hundred


def opened(home: Path, url: str | None) -> Workbench:
    """Open a workbench on a server by URL, or on the embedded one of its home."""
    home.mkdir(mode=0o755, exist_ok=True)
    return Workbench.open(settings=Settings(home=home, database_url=url, _env_file=None))  # pyright: ignore


def ranking(result: SearchResult) -> list[tuple[str, float]]:
    """Return the texts of a result with their scores, to nine digits; equal ones in one order."""
    return sorted((hit.text, round(hit.score, 9)) for hit in result)


def compare(one: Bench, many: Bench, names: list[str]) -> None:
    """Print how many questions every strategy answers alike, and how long both take."""
    print("| strategy | alike | one server alone finds | shards alone find | one server, ms | three shards, ms |")
    print("|---|---:|---:|---:|---:|---:|")
    for name in names:
        here, there = (side.strategy(name, scoped=name == SCOPED, limit=FIRST) for side in (one, many))
        alike, own, spent = 0, (Counter[str](), Counter[str]()), ([], [])
        for question in one.questions:
            results = []
            for ask, times in zip((here, there), spent, strict=True):
                began = time.perf_counter()
                results.append(ask(question))
                times.append((time.perf_counter() - began) * 1000)
            alike += ranking(results[0]) == ranking(results[1])
            texts = [Counter(hit.text for hit in result) for result in results]
            own[0].update(texts[0] - texts[1])
            own[1].update(texts[1] - texts[0])
        medians = [f"{np.median(times):.1f}" for times in spent]
        alone = f"{own[0].total()} | {own[1].total()}"
        print(f"| {name} | {alike} of {len(one.questions)} | {alone} | {medians[0]} | {medians[1]} |", flush=True)


def hold_against_exact(one: Bench, many: Bench, whole: Workbench, table: str) -> None:
    """Print how many of the nearest fifty, whose distances one server computes for every passage, each side finds."""
    nearest = sql.SQL("SELECT text FROM {} ORDER BY embedding <=> %s::halfvec LIMIT %s").format(sql.Identifier(table))
    sides, found = [side.strategy("vector", limit=FIRST) for side in (one, many)], [0, 0]
    for question in one.questions:
        with whole.corpus.database.transaction() as connection:
            connection.execute("SET LOCAL enable_indexscan = off")
            rows = connection.execute(nearest, (vector_literal(question[1]), FIRST)).fetchall()
        texts = Counter(row["text"] for row in rows)
        for place, ask in enumerate(sides):
            found[place] += (texts & Counter(hit.text for hit in ask(question))).total()
    total = FIRST * len(one.questions)
    print(f"of the {total} nearest, one server finds {found[0]} and three shards {found[1]}", flush=True)


def kill_in_between(workbench: Workbench, index: str, questions: list[str], shard: Server) -> None:
    """Print what 1,000 searches answer while a shard is killed and comes back."""

    def ask(question: str) -> SearchResult:
        return workbench.search(question, "hybrid", limit=FIRST, index=index)

    whole = {question: ranking(ask(question)) for question in questions}
    outcomes, started, whole_again = Counter[str](), list[float](), 0.0
    killer = threading.Thread(target=_kill_and_start, args=(shard, started))
    killer.start()
    for number in range(SEARCHES):
        question = questions[number % len(questions)]
        try:
            result = ask(question)
        except WorkbenchError as error:
            outcome = f"refused: {error}"
        else:
            noted = any("shard" in note for note in result.degraded)
            outcome = "marked" if noted else "whole" if ranking(result) == whole[question] else "wrong and not marked"
        outcomes[outcome] += 1
        if outcome == "whole" and started and not whole_again:
            whole_again = time.monotonic() - started[0]
        time.sleep(PAUSE)
    killer.join()
    print(f"{SEARCHES} searches: {dict(outcomes)}; whole again {whole_again:.1f} s after the shard's start")


def move_in_between(workbench: Workbench, index: str, questions: list[str], newcomer: Server) -> None:
    """Print what searches answer while a new shard takes its share, and how long that takes."""

    def ask(question: str) -> list[tuple[str, float]]:
        return ranking(workbench.search(question, "hybrid", limit=FIRST, index=index))

    whole = {question: ask(question) for question in questions}
    outcomes, spent, moved = Counter[str](), list[float](), list[int]()
    workbench.shards.add(newcomer.url)
    began = time.monotonic()
    mover = threading.Thread(target=lambda: moved.append(workbench.shards.rebalance()))
    mover.start()
    while mover.is_alive():
        question = questions[outcomes.total() % len(questions)]
        asked = time.monotonic()
        outcomes["whole" if ask(question) == whole[question] else "wrong"] += 1
        spent.append(time.monotonic() - asked)
    seconds = time.monotonic() - began
    mover.join()
    print(f"{moved[0]} buckets moved in {seconds:.0f} s; {outcomes.total()} searches beside it: {dict(outcomes)}")
    print(f"median {1000 * np.median(spent):.0f} ms, longest {1000 * max(spent):.0f} ms")
    print([(shard.number, shard.buckets) for shard in workbench.shards.list()])


def _kill_and_start(shard: Server, started: list[float]) -> None:
    time.sleep(AWAY / 2)
    shard.sigkill()
    time.sleep(AWAY)
    while not started:
        try:
            shard.start()
        except AssertionError:  # the last of its processes still hold its memory
            time.sleep(0.2)
        else:
            started.append(time.monotonic())


def main() -> None:
    """Fill both, compare them, and kill a shard where that is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--passages", type=int, default=5_000)
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--move", action="store_true")
    parser.add_argument("--kill", action="store_true")
    given = parser.parse_args()
    with (
        fresh_home() as home,
        servers(5, BUFFERS) as made,
        opened(home, None) as one,
        opened(home / "cluster", made[0].url) as many,
    ):
        for server in made[1:4]:
            many.shards.add(server.url)
        synthetic = SyntheticCorpus()
        benches = list[Bench]()
        for place, workbench in (("one server", one), ("three shards", many)):
            corpus = fill(workbench, given.passages, synthetic, print)
            print(f"{place}: {corpus.load_seconds:.0f} s to load, {corpus.graph_seconds:.0f} s for the graph")
            benches.append(Bench(corpus, synthetic, given.questions))
        if given.exact:
            with one.corpus.database.transaction() as connection:
                graph = sql.Identifier(f"data_{corpus.index.name}_embedding_idx")
                connection.execute(sql.SQL("DROP INDEX {}").format(graph))
        compare(*benches, [name for name in timed() if name != LEFT_OUT])
        hold_against_exact(*benches, one, f"data_{corpus.index.name}")
        questions = [text for text, _ in benches[0].questions]
        if given.move:
            move_in_between(many, corpus.index.name, questions, made[4])
        if given.kill:
            kill_in_between(many, corpus.index.name, questions, made[2])


if __name__ == "__main__":
    main()
