"""Fill a test set with made questions: by rules, or by an LLM where there is one; each is marked as what it is."""

from __future__ import annotations

import random

from evals.dataset import Dataset, StoredCorpus
from evals.endpoint import Endpoint
from evals.exchange import ImportReport
from evals.store import DatasetStore
from evals.synthetic import synthesise
from workbench.errors import InvalidInput
from workbench.types import Document
from workbench.workbench import Workbench

MOST_DOCUMENTS = 500  # read at once; of a larger corpus a random, repeatable choice
SHORTEST = 200  # characters of a passage that an LLM is asked to write a question for
SEED = 7


def add_synthetic(wb: Workbench, store: DatasetStore, key: str, count: int) -> ImportReport:
    """Add up to ``count`` questions made from headings, definitions and distinctive sentences.

    Raises:
        InvalidInput: a count below 1, or no documents to make questions from.
    """
    documents, keys = _documents(wb, store.load(key))
    questions, judgments = synthesise(documents, keys, count)
    added = store.add_questions(key, questions)
    if judgments:
        store.judge_all(key, judgments, judge="rule")
    return ImportReport(len(added), len(judgments))


def add_written(wb: Workbench, store: DatasetStore, key: str, count: int, endpoint: Endpoint) -> ImportReport:
    """Add up to ``count`` questions that an LLM writes, one for each of some passages; problems say what failed.

    Raises:
        InvalidInput: a count below 1, or no passage long enough.
    """
    from evals.judges.questions import PassageToAsk, write_questions

    if count < 1:
        raise InvalidInput(f"The number of questions cannot be {count}; use a whole number of at least 1.")
    dataset = store.load(key)
    index = _index_name(wb, dataset)
    documents, keys = _documents(wb, dataset)
    passages = [
        PassageToAsk(name, passage.text, int(passage.metadata["start"]), int(passage.metadata["end"]))
        for document, name in zip(documents, keys, strict=True)
        for passage in wb.knowledge.passages(document.id, index=index)
        if len(passage.text) >= SHORTEST
    ]
    if not passages:
        raise InvalidInput("No passage is long enough to ask about; bring documents in first.")
    chosen = random.Random(SEED).sample(passages, min(count, len(passages)))
    written = write_questions(endpoint, chosen)
    added = store.add_questions(key, written.questions) if written.questions else []
    if written.judgments:
        store.judge_all(key, written.judgments, judge="rule")
    problems = tuple(f"{times} passages got no question: {reason}" for reason, times in written.reasons.items())
    return ImportReport(len(added), len(written.judgments), problems)


def _documents(wb: Workbench, dataset: Dataset) -> tuple[list[Document], list[str]]:
    """Return documents with their texts, and what judgments call them. Raises InvalidInput where there are none."""
    own = dataset.corpus if isinstance(dataset.corpus, StoredCorpus) else None
    listed = wb.knowledge.documents(source_id=own.source_id if own else None)
    if not listed:
        raise InvalidInput("There are no documents to make questions from; bring some in first.")
    if len(listed) > MOST_DOCUMENTS:
        listed = random.Random(SEED).sample(listed, MOST_DOCUMENTS)
    documents = [wb.knowledge.document(document.id) for document in listed]
    return documents, [str(document.path) if own else document.id for document in documents]


def _index_name(wb: Workbench, dataset: Dataset) -> str:
    from evals.corpus import index_corpus

    return index_corpus(wb, dataset).index.name
