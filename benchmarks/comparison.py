"""``python -m benchmarks.comparison FOLDER``: reproduces Chroma's MiniLM results and measures ours."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.measure import (
    PASSAGES_RETRIEVED,
    ChunkingScores,
    mean_scores,
    read_chunking_evaluation,
    reproduce_published,
)
from evals.gateway import index_corpus
from evals.test_set import TestSet
from workbench.errors import WorkbenchError
from workbench.retrieval.options import Ask
from workbench.retrieval.strategies import COMPARED_STRATEGIES
from workbench.types import Index, Passage
from workbench.workbench import Workbench

# Chroma's technical report (Smith and Troynikov, July 2024), table 2, all-MiniLM-L6-v2, no overlap:
# (chunker, size) -> recall, precision, precision omega, IoU, in percent.
PUBLISHED_SCORES = {
    ("recursive", 200): (75.7, 6.5, 31.2, 6.5),
    ("token", 200): (76.6, 4.1, 19.1, 4.1),
    ("recursive", 250): (78.5, 5.4, 26.7, 5.4),
    ("token", 250): (77.1, 3.3, 16.4, 3.3),
}


def reproduce(wb: Workbench, test_set: TestSet, say: Callable[[str], None]) -> list[ChunkingScores]:
    """Reproduce the published rows."""
    scores = []
    for chunker, size in PUBLISHED_SCORES:
        scores.append(reproduce_published(test_set, wb.corpus.encoder("minilm"), chunker, size))
        say(format_row(scores[-1]))
    return scores


def measure_strategies(
    wb: Workbench,
    test_set: TestSet,
    index: str | None,
    strategies: Sequence[str],
    say: Callable[[str], None],
    cutoffs: Sequence[tuple[int, float]] = ((PASSAGES_RETRIEVED, 0.0),),
) -> list[ChunkingScores]:
    """Measure strategies over the corpora, with the chunker and model of an index (None for the default one).

    ``cutoffs`` are pairs of (maximum passages, cutoff): passages that score below cutoff times the best score are
    omitted, as with the parameter ``cutoff``. Each strategy runs once.
    """
    corpus = index_corpus(wb, test_set, index)
    passages = [
        (key, *passage.span)
        for document_id, key in corpus.keys.items()
        for passage in wb.documents.passages(document_id, index=corpus.index.name)
    ]
    measured: list[ChunkingScores] = []
    most = max(limit for limit, _ in cutoffs)
    for strategy in strategies:
        results = {
            question.id: wb.search_service.search(question.text, Ask(strategy, most, corpus.scope, corpus.index.name))
            for question in test_set.questions
        }
        for limit, cutoff in cutoffs:
            answers = {
                question_id: [
                    (corpus.key(hit.document_id), hit.start, hit.end) for hit in apply_cutoff(result, limit, cutoff)
                ]
                for question_id, result in results.items()
            }
            rule = f", first {limit}" * (limit != PASSAGES_RETRIEVED) + f", cutoff {cutoff:g}" * bool(cutoff)
            measured.append(mean_scores(f"{strategy}, {index_label(corpus.index)}{rule}", test_set, answers, passages))
            say(format_row(measured[-1]))
    return measured


def apply_cutoff(result: Sequence[Passage], limit: int, cutoff: float) -> list[Passage]:
    """Return the first ``limit`` passages without those scoring below ``cutoff`` times the best."""
    floor = cutoff * result[0].score if result else 0.0
    return [passage for passage in result[:limit] if passage.score >= floor]


def index_label(index: Index) -> str:
    """Return a label for the chunker of an index."""
    return f"{index.chunker} {index.chunker_options.get('size', '')}".strip()


def format_row(scores: ChunkingScores) -> str:
    """Return one row of the Markdown table."""
    values = (scores.recall, scores.precision, scores.omega, scores.iou)
    return f"| {scores.name} | {scores.passages:,} | " + " | ".join(f"{value:.1f}" for value in values) + " |"


def main() -> int:
    """Print rows to stderr as they are measured, and all of them as JSON to stdout."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.comparison", description=__doc__)
    parser.add_argument("folder", type=Path, help="corpora/*.md and questions_df.csv")
    parser.add_argument("--own", action="store_true", help="only measure the workbench's own settings")
    parser.add_argument("--index", action="append", metavar="NAME", help="additional indexes (chunker and model)")
    parser.add_argument(
        "--limits", default=str(PASSAGES_RETRIEVED), metavar="A,B", help="maximum passages (default: 5)"
    )
    parser.add_argument("--cutoffs", default="0", metavar="A,B", help="minimum share of the best score (default: 0)")
    parser.add_argument("--strategies", default=",".join(COMPARED_STRATEGIES), metavar="A,B,C")
    arguments = parser.parse_args()

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    cutoffs = [(int(a), float(b)) for a in arguments.limits.split(",") for b in arguments.cutoffs.split(",")]
    try:
        test_set = read_chunking_evaluation(arguments.folder)
        with Workbench.open() as wb:
            rows = [] if arguments.own else reproduce(wb, test_set, say)
            for index in (None, *(arguments.index or ())):
                rows += measure_strategies(wb, test_set, index, arguments.strategies.split(","), say, cutoffs)
    except WorkbenchError as error:
        say(str(error))
        return 1
    print(json.dumps([scores.to_dict() for scores in rows], indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
