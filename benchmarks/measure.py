"""chunking_evaluation: questions with quoted spans that score chunkers.

A folder holds corpora/*.md and questions_df.csv (question, references: a JSON list of content, start_index,
end_index; corpus_id). ``reproduce_published`` chunks and searches as in the technical report: sizes in cl100k tokens,
passages embedded without context, and the nearest five by cosine over all corpora.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from evals.measures.metrics import Range, measure_spans
from evals.test_set import FolderCorpus, Judgment, Question, TestSet
from evals.test_sets.exchange import locate_quote
from evals.test_sets.folders import EMPTY_TITLE
from workbench.errors import InvalidInput
from workbench.ingestion.chunking import ChunkInput, cut_spans
from workbench.ingestion.incoming import IngestItem
from workbench.ingestion.text import normalise
from workbench.models.encoder import Encoder, OnBatch
from workbench.types import Value

if TYPE_CHECKING:
    import tiktoken

PASSAGES_RETRIEVED = 5  # per question, the report's n
QUESTIONS_FILE = "questions_df.csv"
UNLIMITED_TOKENS = 1_000_000  # the report does not limit passages to the model's input


@dataclass(frozen=True, slots=True)
class ChunkingScores(Value):
    """Means over the questions, in percent as in the report; ``characters`` is the mean passage length."""

    name: str
    passages: int
    characters: float
    recall: float
    precision: float
    omega: float
    iou: float


def read_chunking_evaluation(folder: Path) -> TestSet:
    """Return the questions with their spans in the corpora as read by the workbench.

    Raises:
        InvalidInput: The folder has another format, or a quote is not in its corpus.
    """
    texts = {path.stem: normalise(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("corpora/*.md"))}
    if not texts or not (folder / QUESTIONS_FILE).is_file():
        raise InvalidInput(
            f"{folder.name!r} is not a chunking_evaluation folder; it needs corpora/*.md and {QUESTIONS_FILE}."
        )
    questions, judgments = [], []
    with (folder / QUESTIONS_FILE).open(encoding="utf-8", newline="") as stream:
        for number, row in enumerate(csv.DictReader(stream), start=1):
            key = f"q{number:03}"
            questions.append(Question(key, row["question"], metadata={"corpus": row["corpus_id"]}))
            judgments += [
                _make_judgment(key, row["corpus_id"], texts[row["corpus_id"]], reference)
                for reference in json.loads(row["references"])
            ]
    corpus = FolderCorpus(lambda: _make_documents(texts))
    return TestSet(folder.resolve().name, tuple(questions), tuple(judgments), corpus)


def reproduce_published(
    test_set: TestSet, encoder: Encoder, chunker: str, size: int, overlap: int = 0, on_batch: OnBatch | None = None
) -> ChunkingScores:
    """Chunk (``size`` and ``overlap`` in tokens), embed and search as in the report. Raises InvalidInput."""
    texts = load_corpus_texts(test_set)
    passages: list[Range] = []
    for key, text in texts.items():
        options = {"size": size, "overlap": overlap, "limit": UNLIMITED_TOKENS}
        spans = cut_spans(chunker, ChunkInput("", text, "text"), tokenize_cl100k, options)
        passages += [(key, span.start, span.end) for span in spans]
    vectors = encoder.encode([texts[key][start:end] for key, start, end in passages], on_batch=on_batch).vectors
    question_vectors = np.stack([encoder.encode_query(question.text).vector for question in test_set.questions])
    nearest = np.argsort(-(question_vectors @ vectors.T), axis=1, kind="stable")[:, :PASSAGES_RETRIEVED]
    answers = {
        question.id: [passages[place] for place in places]
        for question, places in zip(test_set.questions, nearest, strict=True)
    }
    return mean_scores(f"{chunker} {size}/{overlap}", test_set, answers, passages)


def load_corpus_texts(test_set: TestSet) -> dict[str, str]:
    """Return the texts of the corpora by key. Raises InvalidInput if they are not available."""
    if not isinstance(test_set.corpus, FolderCorpus):
        raise InvalidInput(f"The test set {test_set.name!r} has no corpora; read it from its folder.")
    return {item.key: item.load().decode() for item in test_set.corpus.documents}


def precision_omega(relevant: Sequence[Range], passages: Iterable[Range]) -> float:
    """Return the IoU of all passages that touch a relevant span."""
    touching = [
        (document, start, end)
        for document, start, end in passages
        if any(document == other and start < last and first < end for other, first, last in relevant)
    ]
    return measure_spans(relevant, touching)["span-iou"]


def mean_scores(
    name: str, test_set: TestSet, answers: Mapping[str, Sequence[Range]], passages: Sequence[Range]
) -> ChunkingScores:
    """Return the means over all questions; ``passages`` are all passages."""
    values = []
    omegas = []
    for question in test_set.questions:
        relevant = find_relevant_ranges(test_set, question.id)
        values.append(measure_spans(relevant, answers.get(question.id, [])))
        omegas.append(precision_omega(relevant, passages))
    return ChunkingScores(
        name=name,
        passages=len(passages),
        characters=fmean(end - start for _, start, end in passages),
        recall=100 * fmean(value["span-recall"] for value in values),
        precision=100 * fmean(value["span-precision"] for value in values),
        omega=100 * fmean(omegas),
        iou=100 * fmean(value["span-iou"] for value in values),
    )


def find_relevant_ranges(test_set: TestSet, question_id: str) -> list[Range]:
    """Return the spans that answer a question as (document, start, end)."""
    return [(span.document, span.start or 0, span.end or 0) for span in test_set.spans.get(question_id, ())]


def tokenize_cl100k(text: str) -> list[tuple[int, int]]:
    """Return the character span of every cl100k token; a shared character belongs to the first token."""
    if not text:
        return []
    encoding = _load_cl100k()
    starts = encoding.decode_with_offsets(encoding.encode_ordinary(text))[1]
    return [(start, end) for start, end in zip(starts, [*starts[1:], len(text)], strict=True) if end > start]


@cache
def _load_cl100k() -> tiktoken.Encoding:
    """Load the encoding from the copy in llama_index, without network access."""
    import llama_index.core
    import tiktoken

    shipped = Path(llama_index.core.__file__).parent / "_static" / "tiktoken_cache"
    if shipped.is_dir():
        os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(shipped))
    return tiktoken.get_encoding("cl100k_base")


def _make_documents(texts: Mapping[str, str]) -> list[IngestItem]:
    def loader(text: str) -> Callable[[], bytes]:
        return lambda: text.encode()

    return [IngestItem(key, "text.txt", loader(text), path=key, title=EMPTY_TITLE) for key, text in texts.items()]


def _make_judgment(question_id: str, corpus: str, text: str, reference: Mapping[str, Any]) -> Judgment:
    place = locate_quote(text, reference["content"], near=int(reference["start_index"]))
    if place is None:
        raise InvalidInput(f"The quote {reference['content'][:60]!r} is not in {corpus}; correct it.")
    return Judgment(question_id, corpus, 2, *place, quote=reference["content"])
