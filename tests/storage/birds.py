"""A small corpus of birds, written in every way that a corpus is written, and its answers."""

from __future__ import annotations

from workbench import Workbench
from workbench.retrieval.strategies import STRATEGIES
from workbench.types import Scope

NAMES = [name for name, strategy in STRATEGIES.items() if not strategy.needs and name != "llamaindex-hybrid"]
QUESTIONS = ("herons in the reeds", "who reads a book of birds", "bok of brids", "1,204 storks", "Störche im Schilf")
SAID = "heron stork reed book bird nest river tree night water Vogel Schilf 1,204 9.7"
WORDS = SAID.split()

Answer = list[tuple[str, str, float]]


def fill(wb: Workbench) -> None:
    """Take documents in, replace some and delete some."""
    source = wb.sources.create("Birds").id
    for number in range(45):  # fewer than are asked for, so that ties are cut nowhere
        said = " ".join(WORDS[(number * step + step) % len(WORDS)] for step in range(1, 60))
        wb.documents.create(text=f"Herons and storks, part {number}. {said}.", title=f"Birds {number}", source=source)
    documents = wb.documents.list(source_id=source)
    for document in documents[:5]:
        wb.documents.update(document.id, text=f"The heron named {document.title} reads a book by night.")
    for document in documents[5:9]:
        wb.documents.delete(document.id)


def answers(wb: Workbench, strategy: str, question: str) -> Answer:
    """Return title, text and score of the first fifty passages."""
    scope = Scope(sources=tuple(source.id for source in wb.sources.list()))
    result = wb.search(question, strategy, limit=50, scope=scope if STRATEGIES[strategy].needs_scope else None)
    assert not any("shard" in note for note in result.degraded)
    return [(hit.document_title, hit.text, round(hit.score, 9)) for hit in result]


def every_answer(wb: Workbench) -> dict[tuple[str, str], Answer]:
    """Return the answers of all strategies to all questions, equal scores in one order."""
    return {
        (name, question): sorted(answers(wb, name, question), key=lambda answer: (-answer[2], answer))
        for name in NAMES
        for question in QUESTIONS
    }
