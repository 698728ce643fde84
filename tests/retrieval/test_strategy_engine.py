"""A strategy's engine is LlamaIndex's: it emits its spans and events, and returns the same nodes either way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from llama_index.core.callbacks import CallbackManager, LlamaDebugHandler
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.span_handlers import SimpleSpanHandler
from llama_index.core.schema import QueryBundle
from llama_index_instrumentation import get_dispatcher
from pydantic import Field

from workbench import Workbench
from workbench.retrieval.strategies import STRATEGIES

USABLE = [name for name, strategy in STRATEGIES.items() if not (strategy.needs_scope or strategy.needs)]
DOCS = {f"d{n}.md": f"# Topic {n}\n\nA pear is number {n}.\n\n## Plums\n\nA plum is number {n} too." for n in range(4)}


class Listener(BaseEventHandler):
    """A listener that keeps the names of the events it receives."""

    heard: list[str] = Field(default_factory=list)

    def handle(self, event: BaseEvent, **kwargs: object) -> None:
        """Record an event."""
        self.heard.append(event.class_name())


@pytest.fixture
def filled(wb: Workbench, folder: Callable[..., Path]) -> Workbench:
    """Four documents with two sections each."""
    wb.ingest(folder(DOCS), source="Topics")
    return wb


@pytest.fixture
def listener() -> Iterator[Listener]:
    """A listener to LlamaIndex's events."""
    handler = Listener()
    get_dispatcher().add_event_handler(handler)
    yield handler
    get_dispatcher().event_handlers.remove(handler)


@pytest.fixture
def tracer() -> Iterator[SimpleSpanHandler]:
    """A tracer of LlamaIndex's spans."""
    handler = SimpleSpanHandler()
    get_dispatcher().add_span_handler(handler)
    yield handler
    get_dispatcher().span_handlers.remove(handler)


@pytest.mark.parametrize("strategy", USABLE)
def test_a_listener_changes_nothing_in_what_is_found(
    filled: Workbench, strategy: str, request: pytest.FixtureRequest
) -> None:
    alone = filled.query_engine(strategy, limit=3).retrieve(QueryBundle("the number of plums"))
    listener = request.getfixturevalue("listener")
    heard = filled.query_engine(strategy, limit=3).retrieve(QueryBundle("the number of plums"))
    assert [(node.node_id, node.score) for node in alone] == [(node.node_id, node.score) for node in heard]
    assert len(alone) == 3
    assert [name for name in listener.heard if name.startswith("Retrieval")] == [
        "RetrievalStartEvent",
        "RetrievalEndEvent",
    ]


def test_a_search_is_traced_from_the_source_to_the_last_stage(filled: Workbench, tracer: SimpleSpanHandler) -> None:
    assert filled.search("plums", "rerank")
    names = [span.id_.rpartition(".")[0] for span in tracer.completed_spans]
    assert {"HybridRetriever", "LateInteractionRerank", "FinalOrder"} <= set(names)


def test_the_older_callbacks_are_reported_too(filled: Workbench) -> None:
    engine = filled.query_engine("vector")
    told = LlamaDebugHandler(print_trace_on_end=False)
    engine.retriever.callback_manager = CallbackManager([told])
    assert engine.retrieve("plums")
    assert [pair[0].event_type for pair in told.get_event_pairs()] == ["retrieve"]


def test_without_a_listener_no_event_is_made(filled: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []
    monkeypatch.setattr(
        "llama_index.core.base.base_retriever.RetrievalStartEvent", lambda **fields: names.append("event")
    )
    assert filled.search("plums", "vector")
    assert names == []
