"""``python -m evals.chunking_table FOLDER``: the report's MiniLM rows again, and the workbench's own settings below."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from evals.chunking import RETRIEVED, ChunkingScores, published, read_chunking_evaluation, score
from evals.corpus import index_corpus
from evals.dataset import Dataset
from workbench.errors import WorkbenchError
from workbench.types import Index
from workbench.workbench import Workbench

# Chroma's technical report (Smith and Troynikov, July 2024), table 2, all-MiniLM-L6-v2, no overlap:
# (chunker, size) -> recall, precision, precision omega, IoU, in percent.
PUBLISHED = {
    ("recursive", 200): (75.7, 6.5, 31.2, 6.5),
    ("token", 200): (76.6, 4.1, 19.1, 4.1),
    ("recursive", 250): (78.5, 5.4, 26.7, 5.4),
    ("token", 250): (77.1, 3.3, 16.4, 3.3),
}
STRATEGIES = ("vector", "keyword", "hybrid", "rerank")


def reproduce(wb: Workbench, dataset: Dataset, say: Callable[[str], None]) -> list[ChunkingScores]:
    """Measure the published rows."""
    found = []
    for chunker, size in PUBLISHED:
        found.append(published(dataset, wb.corpus.encoder("minilm"), chunker, size))
        say(row(found[-1]))
    return found


def own_settings(
    wb: Workbench, dataset: Dataset, index: str | None, strategies: Sequence[str], say: Callable[[str], None]
) -> list[ChunkingScores]:
    """Measure strategies over the corpora, cut and embedded like an index of the workbench (None: the default one)."""
    corpus = index_corpus(wb, dataset, index)
    passages = [
        (key, int(passage.metadata["start"]), int(passage.metadata["end"]))
        for document_id, key in corpus.keys.items()
        for passage in wb.knowledge.passages(document_id, index=corpus.index.name)
    ]
    found = []
    for strategy in strategies:
        answers = {}
        for question in dataset.questions:
            hits = wb.search_service.search(question.text, strategy=strategy, limit=RETRIEVED, index=corpus.index.name)
            answers[question.id] = [(corpus.key(hit.document_id), hit.start, hit.end) for hit in hits]
        found.append(score(f"{strategy}, {described(corpus.index)}", dataset, answers, passages))
        say(row(found[-1]))
    return found


def described(index: Index) -> str:
    """Say how an index cuts."""
    return f"{index.chunker} {index.chunker_options.get('size', '')}".strip()


def row(scores: ChunkingScores) -> str:
    """Return one row of the table in Markdown."""
    values = (scores.recall, scores.precision, scores.omega, scores.iou)
    return f"| {scores.name} | {scores.passages:,} | " + " | ".join(f"{value:.1f}" for value in values) + " |"


def main() -> int:
    """Print the rows as they come on stderr, and all of them as JSON on stdout."""
    parser = argparse.ArgumentParser(prog="python -m evals.chunking_table", description=__doc__)
    parser.add_argument("folder", type=Path, help="corpora/*.md and questions_df.csv")
    parser.add_argument("--own", action="store_true", help="only the workbench's own settings")
    parser.add_argument("--index", action="append", metavar="NAME", help="further indexes to cut and embed like")
    parser.add_argument("--strategies", default=",".join(STRATEGIES), metavar="A,B,C")
    arguments = parser.parse_args()

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    try:
        dataset = read_chunking_evaluation(arguments.folder)
        with Workbench.open() as wb:
            found = [] if arguments.own else reproduce(wb, dataset, say)
            for index in (None, *(arguments.index or ())):
                found += own_settings(wb, dataset, index, arguments.strategies.split(","), say)
    except WorkbenchError as error:
        say(str(error))
        return 1
    print(json.dumps([scores.to_dict() for scores in found], indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
