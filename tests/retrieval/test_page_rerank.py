"""The stage that ranks pages by their two best passages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ingestion import files
from workbench import Workbench
from workbench.retrieval.stages.similarity import compute_page_factors


def paragraph(first: int, subject: str = "The harbour tolls of the year were paid at the gate.") -> str:
    """Return a paragraph that fills a passage, with the crews from ``first``."""
    return f"{subject} " + " ".join(
        f"Crew {crew} painted its boat in colour {crew + 7} and mended its nets." for crew in range(first, first + 10)
    )


PAGES = (
    ("Ships", paragraph(10), paragraph(20)),
    ("Tolls", paragraph(30)),
    *((f"Boats {number}", paragraph(10 * number, "Oars are of ash.")) for number in range(4, 10)),
)


def test_the_best_passage_of_a_page_gains_by_the_next_one_and_others_make_way() -> None:
    first, second = ("report", 1), ("report", 2)
    factors = compute_page_factors([0.9, 0.8, 0.6, 0.5, 0.45], [first, second, second, None, first])
    mean = (0.5 + 0.75) / 2  # .45 / .9 and .6 / .8
    assert factors == pytest.approx([0.8 + 0.2 * 0.5, 0.8 + 0.2 * 0.75, 0.8, 0.8 + 0.2 * mean, 0.8])


def test_pages_of_two_documents_with_one_number_are_two_pages() -> None:
    assert compute_page_factors([0.8, 0.4], [("one", 3), ("other", 3)]) == pytest.approx([0.8, 0.8])


def test_a_score_of_zero_supports_no_page() -> None:
    assert compute_page_factors([0.0, 0.0], [("one", 1), ("one", 1)]) == pytest.approx([0.8, 0.8])


@pytest.fixture
def report(wb: Workbench, tmp_path: Path) -> Workbench:
    """A report with two passages on harbour tolls on page 1, and a slightly better one, under its title, on page 2."""
    path = tmp_path / "harbour.pdf"
    path.write_bytes(files.pdf(PAGES))
    wb.ingest(path, source="Reports")
    return wb


def test_a_page_with_two_good_passages_comes_before_one_with_a_slightly_better_one(report: Workbench) -> None:
    hits = report.search("harbour tolls", "rerank", 4)

    assert [hit.metadata["page"] for hit in hits][:3] == [1, 2, 1]
    for hit in hits:
        assert sum(leg.contribution for leg in hit.attribution.values()) == pytest.approx(hit.score, abs=1e-6)
