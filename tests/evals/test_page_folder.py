"""Questions with judged pages: read from a folder of files, asked, measured, stored and read again."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from reportlab.lib.pagesizes import A5
from reportlab.pdfgen.canvas import Canvas

from evals.command import add_arguments, evaluate
from evals.experiments.catalogue import Experiments, make_cells
from evals.measures.metrics import find_pages, measure_page_hit
from evals.test_sets.folders import load_test_set
from workbench import Workbench
from workbench.errors import InvalidInput

PAGES = {
    "otters.pdf": ("Otters hold hands while they sleep.", "Otters crack mussels open with stones."),
    "herons.pdf": ("Herons stand still in shallow water.", "Herons build nests of sticks in tall trees."),
}
ASKED = [
    {"id": "q1", "text": "What do otters crack open?", "document": "otters.pdf", "pages": [2], "answer": "Mussels"},
    {"id": "q2", "text": "Where do herons build nests?", "document": "herons.pdf", "pages": [2], "kind": "easy"},
    {"id": "q3", "text": "Who cracks mussels with stones?", "document": "herons.pdf", "pages": [1]},
]


@pytest.fixture
def reports(tmp_path: Path) -> Callable[..., Path]:
    """Write a folder of PDFs with questions: ``reports()``, or with other questions."""

    def write(asked: list[dict[str, Any]] = ASKED) -> Path:
        folder = tmp_path / "reports"
        (folder / "pdfs").mkdir(parents=True, exist_ok=True)
        for name, texts in PAGES.items():
            stream = BytesIO()
            canvas = Canvas(stream, pagesize=A5)
            for text in texts:
                canvas.drawString(40, 560, text)
                for line in range(24):
                    canvas.drawString(
                        40, 540 - 18 * line, f"Line {line} tells of {text.split()[0].lower()}, rivers and weather."
                    )
                canvas.showPage()
            canvas.save()
            (folder / "pdfs" / name).write_bytes(stream.getvalue())
        (folder / "questions.jsonl").write_text("\n".join(json.dumps(row) for row in asked), encoding="utf-8")
        return folder

    return write


def test_a_hit_is_a_passage_of_an_evidence_page_among_the_first_k() -> None:
    passages = [[("a", 3)], [("b", 7)], [("a", 6), ("a", 7)]]
    assert [measure_page_hit(passages, {("a", 7)}, cutoff) for cutoff in (1, 2, 3, 10)] == [0, 0, 1, 1]
    assert measure_page_hit([[]], {("a", 7)}, 1) == 0  # a document without pages
    assert find_pages([(1, 0, 10), (2, 12, 20), (4, 22, 30)], 9, 13) == (1, 2)
    assert find_pages([(1, 0, 10), (2, 12, 20)], 10, 12) == ()  # between two pages


def test_a_folder_of_pdfs_is_read_with_its_pages_and_measured_by_the_command(
    wb: Workbench, reports: Callable[..., Path]
) -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    lines: list[str] = []
    words = [str(reports()), "--strategies", "keyword,hybrid", "--ragas", "none"]
    payload, code = evaluate(wb, parser.parse_args(words), say=lines.append)
    assert (code, payload["queries"], payload["corpus"]) == (0, 3, 2)
    found = payload["strategies"]["keyword"]
    # q1 and q2 find their page first; q3's words are in the other document
    assert (found["page-hit@1"], found["hit@1"]) == pytest.approx((2 / 3, 2 / 3), abs=1e-6)
    assert found["page-hit-within@5"] >= found["page-hit@1"]
    assert payload["significance"][0]["metric"] == "page-hit@5"
    assert any("page-hit@5" in text and "page-hit-within@5" in text for text in lines)


def test_judged_pages_of_a_document_without_pages_are_named(wb: Workbench, tmp_path: Path) -> None:
    (tmp_path / "otters.md").write_text("Otters swim.")
    asked = {"id": "1", "text": "Who swims?", "document": "otters.md", "pages": [1]}
    (tmp_path / "questions.jsonl").write_text(json.dumps(asked))
    notes = wb.evaluate(str(tmp_path), ["keyword"]).notes
    expected = "Pages are judged of documents without pages, so these judgments are never met: 'otters.md'."
    assert expected in notes


def test_pages_stay_with_a_stored_test_set_and_its_experiments(wb: Workbench, reports: Callable[..., Path]) -> None:
    experiments = Experiments(wb)
    stored = experiments.test_sets.add(load_test_set(reports()))
    assert experiments.test_sets.load(stored.id).pages == load_test_set(reports()).pages
    made = experiments.create("Pages", stored.id, make_cells(["keyword"]))
    experiments.run(made.id)
    (result,) = experiments.results(made.id)
    assert result.run is not None and result.run.means["page-hit@1"] == pytest.approx(2 / 3)
    first = result.run.answers["q1"]
    assert first.within[0].document == "otters.pdf" and 2 in first.within[0].pages
    assert {hit.document for hit in first.within} == {"otters.pdf"}


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ({"id": "q", "text": "Why?", "document": "otters.pdf", "pages": [0]}, "pages as a list of numbers from 1"),
        ({"id": "q", "text": "Why?", "document": "otters.pdf"}, "pages as a list of numbers from 1"),
        ({"id": "q", "text": "Why?", "document": "owls.pdf", "pages": [1]}, "no document 'owls.pdf'"),
    ],
)
def test_a_line_without_truth_is_left_out_and_named(
    reports: Callable[..., Path], row: dict[str, Any], sentence: str
) -> None:
    test_set = load_test_set(reports([ASKED[0], row]))
    assert [question.id for question in test_set.questions] == ["q1"]
    (problem,) = test_set.problems
    assert problem.startswith("questions.jsonl, line 2: ") and sentence in problem
    with pytest.raises(InvalidInput, match=r"questions\.jsonl, line 1: .*" + sentence):
        load_test_set(reports([row]))


def test_files_of_the_same_name_in_two_folders_are_two_documents_with_their_paths(reports: Callable[..., Path]) -> None:
    asked = [
        {"id": "q1", "text": "Otters?", "document": "pdfs/otters.pdf", "pages": [1]},
        {"id": "q2", "text": "Others?", "document": "more/otters.pdf", "pages": [2]},
        {"id": "q3", "text": "Which?", "document": "otters.pdf", "pages": [1]},
        {"id": "q4", "text": "Herons?", "document": "pdfs/herons.pdf", "pages": [1]},
    ]
    folder = reports(asked)
    (folder / "more").mkdir()
    (folder / "more" / "otters.pdf").write_bytes((folder / "pdfs" / "herons.pdf").read_bytes())
    test_set = load_test_set(folder)
    assert {item.key for item in test_set.corpus.documents} == {"pdfs/otters.pdf", "more/otters.pdf", "herons.pdf"}
    judged = {judgment.question_id: judgment.document for judgment in test_set.judgments}
    assert judged == {"q1": "pdfs/otters.pdf", "q2": "more/otters.pdf", "q4": "herons.pdf"}
    (problem,) = test_set.problems
    assert "line 3: 'otters.pdf' is in several folders; write its path" in problem
