"""Recall of vector search on corpora that are hard for a graph: ``python -m benchmarks.recall``.

Two corpora are ingested with the default model: one with thousands of near-duplicate tickets among the
articles of the sample, and one of real texts (the sample, and ``corpus.jsonl`` of each given folder). A sample of
passages is searched for by their own vectors, and titles are asked as questions; exact search is the ground truth.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from workbench.sample import articles_dir
from workbench.storage.graph import EXACT_UP_TO
from workbench.storage.passages import parse_sent_vector
from workbench.storage.ranking import nearest
from workbench.types import Index, JsonObject, ResolvedScope
from workbench.workbench import Workbench

TICKETS = 12_000  # enough for an index with a graph
ASKED_PASSAGES = 1_000  # passages searched by their own vectors, evenly spaced in the index
QUESTIONS = 200
LIMIT = 10
SITES, FAULTS = (
    ("north gate", "pier 4", "boiler room", "ticket hall"),
    ("no power", "water leak", "door stuck", "alarm"),
)


def near_equal_texts(count: int) -> Iterator[tuple[str, str]]:
    """Yield titles and texts of tickets that differ in a number, a place and a fault."""
    for number in range(count):
        site, fault = SITES[number % len(SITES)], FAULTS[number // len(SITES) % len(FAULTS)]
        yield f"Ticket {number}", f"Ticket {number}. Reported at the {site}: {fault}. Status open, priority normal."


def real_texts(folders: Sequence[Path]) -> Iterator[tuple[str, str]]:
    """Yield the title and text of each document of test sets in BEIR format."""
    for folder in folders:
        with (folder / "corpus.jsonl").open(encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                yield str(row.get("title") or row.get("_id") or row["id"]), str(row["text"])


def measure(home: Path, texts: Iterator[tuple[str, str]]) -> JsonObject:
    """Ingest texts and the sample's articles into a new workbench, and return the recall of its vector search."""
    folder = home / "texts"
    folder.mkdir(parents=True)
    for number, (title, text) in enumerate(texts):
        (folder / f"{number:06}.md").write_text(f"# {title}\n\n{text}\n", encoding="utf-8")
    with Workbench.open(home=home / "data") as wb:
        wb.ingest([folder, articles_dir()], source="Mixture")
        index = wb.corpus.index()
        sentence = next(row["vector_search"] for row in wb.health.status()["indexes"] if row["name"] == index.name)
        return {
            "passages": wb.corpus.indexes.with_counts(index.name).passages_count,
            "vector_search": sentence,
            **_measure_found(wb, index),
        }


def _measure_found(wb: Workbench, index: Index) -> JsonObject:
    """Return the recall of the passages themselves and of the true top ten."""
    encoder = wb.corpus.encoder()
    titles = [document.title for document in wb.documents.list()]
    questions = [encoder.encode_query(title) for title in titles[:: max(1, len(titles) // QUESTIONS)][:QUESTIONS]]
    size = EXACT_UP_TO + 1 if index.has_graph else 0
    with wb.corpus.store(index).reading() as connection:
        step = max(1, wb.corpus.indexes.with_counts(index.name).passages_count // ASKED_PASSAGES)
        query = f"SELECT id, halfvec_send(embedding) AS sent FROM data_{index.name} WHERE id % {step} = 0"
        rows = connection.execute(query.encode()).fetchall()  # pyright: ignore[reportArgumentType]

        def first(vector: NDArray[np.float32], size: int) -> dict[int, float]:
            return nearest(connection, index.name, vector, ResolvedScope(), LIMIT, size).scores

        own = [(row["id"], first(parse_sent_vector(row["sent"]), size)) for row in rows]
        shares = []
        for question in questions:
            truth, found = first(question.vector, 0), first(question.vector, size)
            worst = min(truth.values(), default=0.0)  # ties are interchangeable
            shares.append(sum(score >= worst - 1e-6 for score in found.values()) / max(1, len(truth)))
    lost = sum(key not in found and min(found.values(), default=0.0) < 0.9999 for key, found in own)
    return {"asked": len(own), "lost": lost, "recall@10": round(float(np.mean(shares)), 4)}


def main() -> int:
    """Measure both corpora and print them as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recall", description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, metavar="BEIR_FOLDER", help="folders with a corpus.jsonl")
    parser.add_argument("--tickets", type=int, default=TICKETS, help=f"near-equal documents ({TICKETS})")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        Path(home).chmod(0o755)  # if root runs this, the database server is another user
        result = {
            "near-equal": measure(Path(home) / "near", near_equal_texts(arguments.tickets)),
            "real": measure(Path(home) / "real", real_texts(arguments.folders)),
        }
    print(json.dumps(result, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
