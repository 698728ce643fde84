"""Ingestion speed compared with the bare embedding session on the same texts."""

from __future__ import annotations

import time

from benchmarks.synthetic_corpus import SyntheticCorpus
from workbench.ingestion.incoming import IngestItem, text_item
from workbench.models.minilm import MINILM, MiniLMEncoder
from workbench.storage.passages import NewPassage
from workbench.workbench import Workbench

DOCUMENTS_PER_HALF = 60  # of two halves
PASSAGES_PER_DOCUMENT = 5
PASSAGES_COMPARED, COMPARISON_ROUNDS = 100, 2  # passages embedded per precision, and repetitions


def measure_ingestion(wb: Workbench, synthetic: SyntheticCorpus) -> dict[str, float]:
    """Return passages per second of ingestion and of embedding alone, and their ratio.

    Ingestion is timed in two halves, before and after the embedding, so that changes in machine speed affect
    both equally.
    """
    texts = [piece.text for piece in synthetic.passages(2 * DOCUMENTS_PER_HALF * PASSAGES_PER_DOCUMENT)]
    half = len(texts) // 2
    encoder = wb.corpus.encoder()
    for earlier in wb.corpus.sources.list(source_type="api"):
        if earlier.title.startswith("ingestion "):  # left by an interrupted run: its texts would not be embedded again
            wb.sources.delete(earlier.id)
    source = wb.corpus.sources.create(f"ingestion {time.time_ns()}", source_type="api")
    encoder.encode(texts[:16])  # warm up: the first use in a process loads modules
    wb.documents.ingest_items(source.id, [text_item("warm", "One document.", title="Warm")])
    first = wb.documents.ingest_items(source.id, _make_items(texts[:half], "a"))
    stored = [
        NewPassage("", "", passage.text, f"Document {place}", 0, 0, 0, "english").text_to_embed
        for place, document_id in enumerate(first.document_ids)
        for passage in wb.documents.passages(document_id)
    ]
    began = time.perf_counter()
    for _ in range(2):
        encoder.encode(stored)
    alone = 2 * len(stored) / (time.perf_counter() - began)
    second = wb.documents.ingest_items(source.id, _make_items(texts[half:], "b"))
    wb.sources.delete(source.id)
    whole = (first.passages + second.passages) / (first.seconds + second.seconds)
    return {
        "passages_per_s": round(whole, 2),
        "embedding_only_passages_per_s": round(alone, 2),
        "ratio": round(whole / alone, 3),
    } | compare_precision(wb, stored[:PASSAGES_COMPARED])


def compare_precision(wb: Workbench, texts: list[str]) -> dict[str, float]:
    """Return passages per CPU second in this machine's preferred precision and in full precision, and their ratio.

    Measured in CPU time, alternating, so that other load does not matter. Empty for a model without a
    choice of precision.
    """
    model, settings = wb.corpus.encoder(), wb.settings
    if model.name != MINILM.name:
        return {}
    encoders = (model, MiniLMEncoder(settings.models_dir, settings.embedding_threads, passages="float"))
    spent = [0.0, 0.0]
    for encoder in encoders:
        encoder.encode(texts[:16])  # warm
    for _ in range(COMPARISON_ROUNDS):
        for place, encoder in enumerate(encoders):
            began = time.process_time()
            encoder.encode(texts)
            spent[place] += time.process_time() - began
    chosen, full = (COMPARISON_ROUNDS * len(texts) / seconds for seconds in spent)
    return {
        "passages_per_cpu_s": round(chosen, 2),
        "full_precision_passages_per_cpu_s": round(full, 2),
        "times_full_precision": round(chosen / full, 2),
    }


def _make_items(texts: list[str], prefix: str) -> list[IngestItem]:
    documents = [texts[place : place + PASSAGES_PER_DOCUMENT] for place in range(0, len(texts), PASSAGES_PER_DOCUMENT)]
    return [
        text_item(f"{prefix}{number}", "\n\n".join(_make_sentences(text) for text in own), title=f"Document {number}")
        for number, own in enumerate(documents)
    ]


def _make_sentences(text: str) -> str:
    words = text.split()
    return " ".join(" ".join(words[start : start + 13]).capitalize() + "." for start in range(0, len(words), 13))
