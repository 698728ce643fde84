"""Ingestion beside the bare embedding session: the same texts, once through the model alone, once all the way in."""

from __future__ import annotations

import time

from evals.bench.synthetic import SyntheticCorpus
from workbench.ingestion.incoming import text_item
from workbench.storage.rows import NewPassage
from workbench.workbench import Workbench

DOCUMENTS = 120
PASSAGES_A_DOCUMENT = 5


def ingestion(workbench: Workbench, synthetic: SyntheticCorpus) -> dict[str, float]:
    """Return passages a second of the whole way and of the embedding alone, and their ratio.

    The model alone gets exactly the passages that the whole way stored, in two halves around it, so that a machine
    that changes its speed meanwhile is fair to both.
    """
    texts = [piece.text for piece in synthetic.passages(DOCUMENTS * PASSAGES_A_DOCUMENT)]
    items = []
    for number in range(DOCUMENTS):
        own = texts[number * PASSAGES_A_DOCUMENT : (number + 1) * PASSAGES_A_DOCUMENT]
        items.append(text_item(f"d{number}", "\n\n".join(_sentences(text) for text in own), title=f"Document {number}"))
    source = workbench.corpus.sources.create(f"ingestion {time.time_ns()}", source_type="api")
    encoder = workbench.corpus.encoder()
    encoder.encode(texts[:16])
    report = workbench.knowledge.ingest_items(source.id, items)
    passages = [
        passage.text for document_id in report.document_ids for passage in workbench.knowledge.passages(document_id)
    ]
    stored = [
        NewPassage("", "", text, f"Document {place}", 0, 0, 0, "english").embedded_text
        for place, text in enumerate(passages)
    ]
    began = time.perf_counter()
    encoder.encode(stored)
    alone = time.perf_counter() - began
    workbench.knowledge.delete_source(source.id)
    whole_rate, alone_rate = report.passages / report.seconds, len(stored) / alone
    return {
        "passages_per_s": round(whole_rate, 2),
        "embedding_only_passages_per_s": round(alone_rate, 2),
        "ratio": round(whole_rate / alone_rate, 3),
    }


def _sentences(text: str) -> str:
    words = text.split()
    return " ".join(" ".join(words[start : start + 13]).capitalize() + "." for start in range(0, len(words), 13))
