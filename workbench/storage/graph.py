"""The HNSW graph of an index too large for exact search: it is built, measured, and rebuilt if it loses passages."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from workbench.errors import Cancelled, StorageError
from workbench.storage.database import Connection, Database, bind_json, fetch_one, statement
from workbench.types import Value, mark_slow_step

# Passages up to which every distance is computed, in an index or a scope. A graph is faster from about 1,000 passages
# on (at 10,000 it takes 1.3 ms and exact search 8.1, see docs/decisions/034), but it loses passages.
EXACT_UP_TO = 10_000
MIN_RECALL = 0.995
# Below this recall, a graph with at least this m is not rebuilt with more links, and searches are exact. Of vectors
# that are nearly equal (mean cosine .9995), m 16, 32 and 64 found 94%, 99% and 99.7% of 4,000 passages, after 2, 5 and
# 40 s. Of 20,000, m 16 found 76% after a build of 41 s on a busy core, and m 32 was not built after 200 s more.
MIN_PROMISING_RECALL, MIN_PROMISING_M = 0.9, 16
SAMPLE_SIZE = 2_000  # passages whose own vectors are searched for, which takes 1 or 2 s on a quiet core
WATCH_INTERVAL_S = 2.0  # seconds between reports of a build
MIN_GROWTH = 0.1  # relative change of an index after which its graph is measured again

# parameters of the statement graph_serves
SERVING_PARAMETERS = {"exact_up_to": EXACT_UP_TO, "least_recall": MIN_RECALL}

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class GraphShape(Value):
    """Parameters for building and searching a graph."""

    m: int  # links of a passage in each layer, twice as many in the lowest
    ef_construction: int  # candidates for these links
    ef_search: int  # candidates that a search keeps


# Measured on 30,744 passages: 20,144 of annual reports, research abstracts and documentation, and 10,600 tickets and
# log lines that are nearly equal. Of 1,500 searched by their own vectors the first shape lost 29 (25 real texts; 19 if
# searched four times as widely), the second 6. Builds took 13 and 69 seconds on a busy core. Questions are further from
# passages than passages from each other: with 100 candidates they lose three times as much as with 200.
GRAPH_SHAPES = (GraphShape(16, 64, 200), GraphShape(32, 200, 200), GraphShape(64, 400, 400))


@dataclass(frozen=True, slots=True)
class GraphState(Value):
    """A graph's shape and measured recall."""

    m: int
    ef_construction: int
    ef_search: int
    recall: float  # share of sampled passages that a search by their own vector returned
    asked: int  # size of the sample
    passages: int  # of the index when it was measured
    measured_at: str

    @property
    def shape(self) -> GraphShape:
        """The parameters for building and searching it."""
        return GraphShape(self.m, self.ef_construction, self.ef_search)

    @property
    def is_sound(self) -> bool:
        """True if the graph finds enough of its passages."""
        return self.recall >= MIN_RECALL

    @property
    def is_final(self) -> bool:
        """True if it is sound, if no shape has more links, or if more links would not be enough."""
        is_promising = self.recall >= MIN_PROMISING_RECALL or self.m < MIN_PROMISING_M
        return self.is_sound or self.m >= GRAPH_SHAPES[-1].m or not is_promising

    @property
    def sentence(self) -> str:
        """The state as a sentence without a full stop."""
        return (
            f"a graph (m {self.m}, ef_construction {self.ef_construction}, ef_search {self.ef_search}) that finds "
            f"{self.recall:.2%} of {self.asked:,} passages by their own vectors"
        )


def parse_graph_state(graph: Mapping[str, object] | None) -> GraphState | None:
    """Return the state that the column ``graph`` of an index holds."""
    return None if graph is None else GraphState(**graph)  # pyright: ignore[reportArgumentType] - as it was written


def maintain_graph(database: Database, index: str, say: Say | None = None) -> GraphState | None:
    """Build, measure or rebuild an index's graph as its size requires; return its state, or None if it has no graph.

    This is cheap if there is nothing to do, and does nothing if another process is doing it. Searches continue; they
    are exact until a graph has been measured and finds its passages. Writers wait during a build. Work that a killed
    process left unfinished is continued. The callback may raise Cancelled, which also ends a build.
    """
    with database.transaction() as turn:
        if not fetch_one(turn.execute(statement("graph_turn"), {"index": index}))["is_ours"]:
            return None
        row = turn.execute(statement("graph_state"), {"index": index}).fetchone()
        if row is None:
            return None
        if row["has_new"]:
            database.rows(statement("graph_drop_new"), {"index": index})
        state, passages = parse_graph_state(row["graph"]), int(row["passages"])
        if passages <= SERVING_PARAMETERS["exact_up_to"]:
            return None
        grown = state is None or abs(passages - state.passages) >= MIN_GROWTH * state.passages
        if row["is_built"] and state and state.is_final and not grown:
            return state
        state = state if row["is_built"] else None
        return _ensure_recall(database, index, state, passages, say or (lambda _: None))


def _ensure_recall(database: Database, index: str, state: GraphState | None, passages: int, say: Say) -> GraphState:
    """Measure a graph and rebuild it with more links until it finds its passages, or no shape is left that might.

    The shape of a graph that was sound before it grew is tried again.
    """
    shapes: Sequence[GraphShape] = GRAPH_SHAPES
    if state is not None:
        shapes = [shape for shape in GRAPH_SHAPES if shape.m > state.m or (shape.m == state.m and state.is_sound)]
        state = _measure(database, index, state.shape, passages, say)
    for shape in shapes:
        if state is not None and (state.is_sound or (state.is_final and state.m < shape.m)):
            break
        _build(database, index, shape, passages, say)
        state = _measure(database, index, shape, passages, say)
    assert state is not None, shapes
    return state


def _build(database: Database, index: str, shape: GraphShape, passages: int, say: Say) -> None:
    text = f"building the graph of {passages:,} passages (m {shape.m}, ef_construction {shape.ef_construction})"
    say(text)
    with mark_slow_step(), database.transaction() as connection, _watch_build(database, connection, text, say):
        values = {"index": index, "passages": passages, "m": shape.m, "ef_construction": shape.ef_construction}
        connection.execute(statement("graph_memory"), values)
        connection.execute(statement("graph_build"), values)
    database.rows(statement("graph_replace"), {"index": index})


@contextmanager
def _watch_build(database: Database, connection: Connection, text: str, say: Say) -> Generator[None]:
    """Report the progress of a build, and end it if the callback raises Cancelled."""
    ended, values = threading.Event(), {"pid": connection.info.backend_pid}
    cancelled: list[Cancelled] = []

    def watch() -> None:
        reached = 0  # processes that share the build report their blocks out of order
        while not ended.wait(WATCH_INTERVAL_S):
            try:
                row = database.row(statement("graph_progress"), values)
                if row is not None and not ended.is_set():
                    reached = max(reached, int(row["percent"]))
                    say(f"{text}: {reached}%")
            except Cancelled as error:
                cancelled.append(error)
                connection.cancel_safe()
                return
            except StorageError:  # the next report may succeed
                continue

    watcher = threading.Thread(target=watch, name="graph-progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
        if cancelled:
            raise cancelled[0]


def _measure(database: Database, index: str, shape: GraphShape, passages: int, say: Say) -> GraphState:
    """Search for a sample of the passages by their own vectors and store the recall."""
    say(f"measuring the graph of {passages:,} passages")
    with mark_slow_step(), database.transaction() as connection:
        found, asked = measure_recall(connection, index, shape.ef_search, passages)
        state = GraphState(
            shape.m,
            shape.ef_construction,
            shape.ef_search,
            recall=round(found / max(1, asked), 5),
            asked=asked,
            passages=passages,
            measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        connection.execute(statement("graph_note"), {"index": index, "graph": bind_json(state.to_dict())})
    return state


def measure_recall(connection: Connection, index: str, ef_search: int, passages: int) -> tuple[int, int]:
    """Return how many sampled passages are found when searching by their own vector, and the sample's size."""
    connection.execute(statement("graph_settings"), {"ef_search": str(ef_search)})
    values = {"passages": passages, "half": SAMPLE_SIZE // 2}
    row = fetch_one(connection.execute(statement("graph_self_recall", index), values, prepare=False))
    return int(row["found"]), int(row["asked"])
