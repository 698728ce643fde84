"""A document named in a question is preferred, by the words of its title or file name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from workbench import Workbench
from workbench.retrieval.hits import fuse_convex
from workbench.retrieval.name_matching import name_confidence
from workbench.retrieval.names import normalize_for_names
from workbench.retrieval.retrievers.hybrid import add_document_leg

SALES = {"NORTHWIND_2019": 41, "NORTHWIND_2020": 52, "ALPINESKI_2019": 17, "HARBOUR_2019": 88}
REPORTS = {
    f"{name}_annual.md": f"Net sales were {sales} million. Net sales rose by a tenth against the year before."
    for name, sales in SALES.items()
}
OTHERS = {
    f"{name}.md": f"The {name} sleeps by the river, and its young leave the nest in June."
    for name in ("otter", "heron", "vole", "dipper")
}
NAMED = [
    ("what were Northwind's net sales in FY2020?", "NORTHWIND_2020_annual.md"),
    ("net sales of Alpine Ski in its annual report for FY19", "ALPINESKI_2019_annual.md"),
    ("annual net sales, Harbour 2019", "HARBOUR_2019_annual.md"),
]


@pytest.fixture
def reports(wb: Workbench, folder: Callable[..., Path]) -> Workbench:
    wb.ingest(folder(REPORTS | OTHERS), source="Reports")
    return wb


@pytest.mark.parametrize("strategy", ["hybrid", "rerank"])
@pytest.mark.parametrize(("question", "file"), NAMED)
def test_of_reports_that_are_alike_the_one_that_is_named_comes_first(
    reports: Workbench, strategy: str, question: str, file: str
) -> None:
    result = reports.search(question, strategy)
    assert Path(result.results[0].path or "").name == file
    leg = result.results[0].attribution["document"]
    assert 0.5 < leg.score <= 1
    assert leg.contribution > 0
    for passage in result:
        assert passage.score == pytest.approx(sum(leg.contribution for leg in passage.attribution.values()))


def test_without_its_weight_the_leg_is_not_there(reports: Workbench) -> None:
    result = reports.search(NAMED[0][0], "hybrid", parameters={"document_weight": 0.0})
    assert all("document" not in passage.attribution for passage in result)


def test_a_new_title_counts_in_the_next_search(reports: Workbench) -> None:
    question = "net sales of the Zanzibar ferry"
    before = reports.search(question, "hybrid")
    assert all("document" not in passage.attribution for passage in before)
    renamed = before.results[-1].document_id
    reports.documents.update(renamed, title="Zanzibar Ferry")
    named = [passage for passage in reports.search(question, "hybrid") if "document" in passage.attribution]
    assert [passage.document_id for passage in named] == [renamed]
    assert named[0].attribution["document"].score == pytest.approx(1.0)


def test_why_shows_the_matched_share_of_its_name(reports: Workbench) -> None:
    [first, *_] = reports.search(NAMED[0][0], "rerank").results
    explained = reports.explain(NAMED[0][0], passage_id=first.passage_id, strategy="rerank")
    assert explained.legs["document"].score == pytest.approx(first.attribution["document"].score)
    assert explained.legs["document"].contribution == pytest.approx(first.attribution["document"].contribution)


def test_candidates_that_are_named_alike_keep_their_scores() -> None:
    parts = fuse_convex({"vector": {1: 0.9, 2: 0.4}, "keyword": {1: 0.2}}, {"vector": 0.5, "keyword": 0.5})
    assert add_document_leg(parts, {1: 0.8, 2: 0.8}, 0.15) == parts
    assert add_document_leg(parts, {}, 0.15) == parts
    preferred = add_document_leg(parts, {2: 1.0}, 0.15)
    assert preferred[2]["document"] == pytest.approx(0.15)
    assert preferred[1]["document"] == 0.0
    assert preferred[1]["vector"] == pytest.approx(0.85 * parts[1]["vector"])


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("General Mills's FY2019", "General Mills 2019 GeneralMills Mills2019"),
        ("FY19 of 3M", "2019 of 3M 2019of of3M"),
        ("", ""),
        ("日本語 \x00 'quoted'", "日本語 quoted 日本語quoted"),
    ],
)
def test_neighbours_are_also_read_as_one_word_and_fiscal_years_as_years(question: str, words: str) -> None:
    assert normalize_for_names(question) == words


@pytest.mark.parametrize(("share", "sure"), [(0.2, 0.0), (0.5, 0.0), (0.75, 0.5), (1.0, 1.0)])
def test_a_document_is_surer_to_be_meant_the_more_of_its_name_is_given(share: float, sure: float) -> None:
    assert name_confidence(share) == pytest.approx(sure)
