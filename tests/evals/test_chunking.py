"""The chunking_evaluation driver: spans in the corpora, sizes in cl100k tokens, figures that can be checked."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.comparison import measure_strategies
from benchmarks.measure import mean_scores, read_chunking_evaluation, reproduce_published, tokenize_cl100k
from workbench import Workbench
from workbench.errors import InvalidInput
from workbench.models.hashing import HashEncoder

OWLS = "Owls hunt at night.\r\n\r\nTheir ears sit at different heights.\u00a0They hear mice under snow."
BEES = "Bees dance to show the way. A scout that found flowers dances in the dark hive."


@pytest.fixture
def report_folder(folder: Callable[..., Path]) -> Path:
    def row(question: str, corpus: str, text: str, quote: str) -> list[str]:
        start = text.index(quote)
        reference = {"content": quote, "start_index": start, "end_index": start + len(quote)}
        return [question, json.dumps([reference]), corpus]

    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerow(["question", "references", "corpus_id"])
    writer.writerow(row("Where do the ears sit?", "owls", OWLS, "Their ears sit at different heights."))
    writer.writerow(row("Why do bees dance?", "bees", BEES, "Bees dance to show the way."))
    return folder({"corpora/owls.md": OWLS, "corpora/bees.md": BEES, "questions_df.csv": stream.getvalue()}, "report")


def test_quotes_are_found_where_reading_has_moved_them(report_folder: Path) -> None:
    test_set = read_chunking_evaluation(report_folder)
    texts = {item.key: item.load().decode() for item in test_set.corpus.documents}
    for judgment in test_set.judgments:
        assert texts[judgment.document][judgment.start : judgment.end] == judgment.quote


def test_whole_corpora_as_passages_bring_everything_and_much_else(report_folder: Path) -> None:
    scores = reproduce_published(read_chunking_evaluation(report_folder), HashEncoder(), "token", 200)
    assert (scores.passages, scores.recall) == (2, 100.0)
    assert scores.precision == scores.iou < scores.omega < 100


def test_a_perfect_search_reaches_the_omega(report_folder: Path) -> None:
    test_set = read_chunking_evaluation(report_folder)
    passages = [("owls", 0, 60), ("owls", 60, 90), ("bees", 0, 27), ("bees", 27, 80)]
    answers = {"q001": [("owls", 0, 60)], "q002": [("bees", 0, 27)]}
    scores = mean_scores("perfect", test_set, answers, passages)
    assert scores.iou == pytest.approx(scores.omega)
    assert scores.recall == 100.0


def test_the_workbenchs_own_settings_are_measured_alike(wb: Workbench, report_folder: Path) -> None:
    lines: list[str] = []
    (scores,) = measure_strategies(wb, read_chunking_evaluation(report_folder), None, ["keyword"], lines.append)
    assert scores.recall == 100.0 and scores.name == "keyword, structure 200"
    assert lines == [
        f"| keyword, structure 200 | 2 | 100.0 | {scores.precision:.1f} | {scores.omega:.1f} | {scores.iou:.1f} |"
    ]


def test_tokens_cover_the_text_without_a_gap() -> None:
    for text in ("plain words here", "héllo 🦊 日本語", "", "  spaces\n\nand lines "):
        spans = tokenize_cl100k(text)
        assert "".join(text[start:end] for start, end in spans) == text


@pytest.mark.parametrize("files", [{"corpora/a.md": "x"}, {"questions_df.csv": "question"}, {}])
def test_another_folder_is_refused(folder: Callable[..., Path], files: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match="needs corpora"):
        read_chunking_evaluation(folder({"x": "", **files}, "other"))
