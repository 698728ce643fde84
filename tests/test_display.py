"""How results show in a notebook."""

from __future__ import annotations

from html.parser import HTMLParser

import altair
import pytest

from workbench.display import movement
from workbench.types import Comparison, IngestFailure, IngestReport, Leg, Passage, ResolvedScope, SearchResult

EVIL = "<script>alert('x')</script> & \"quotes\" cats"


def passage(name: str, rank: int, text: str = "Cats purr.", **metadata: object) -> Passage:
    """A found passage."""
    return Passage(
        rank=rank, score=1 / rank, passage_id=name, document_id=f"doc_{name}", document_title=f"Title {name}",
        source_id="src_1", path=None, url=None, text=text, start=0, end=len(text), match_type="hybrid",
        attribution={"vector": Leg(0.5, rank, 0.25), "keyword": Leg(2.0, None, 0.1)}, metadata=metadata,
    )  # fmt: skip


def result(strategy: str, *found: Passage, query: str = "cats") -> SearchResult:
    """A search's result."""
    return SearchResult(query, strategy, ResolvedScope(), False, (), {"total": 12.3}, tuple(found))


@pytest.fixture
def comparison() -> Comparison:
    """Two strategies: a and b change places, c is only in the second."""
    strategies = {
        "vector": result("vector", passage("a", 1), passage("b", 2)),
        "rerank": result("rerank", passage("b", 1), passage("a", 2), passage("c", 3)),
    }
    return Comparison("cats", strategies, {"jaccard": {"vector|rerank": 2 / 3}, "rbo": {"vector|rerank": 0.6}})


class Outline(HTMLParser):
    """Checks that tags close in order, and keeps the text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)
        if tag not in ("br", "col"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_result_is_a_frame_with_a_row_a_passage_and_a_column_a_leg() -> None:
    frame = result("hybrid", passage("a", 1, heading_path=["Title a", "Sounds"], page=3)).to_pandas()
    assert list(frame.columns)[:7] == ["rank", "score", "title", "heading", "text", "vector", "keyword"]
    assert frame.loc[0, "heading"] == "Sounds › page 3"
    assert frame.loc[0, "keyword"] == 2.0


def test_a_result_of_nothing_is_an_empty_frame_and_says_so() -> None:
    assert len(result("vector").to_pandas()) == 0
    assert "Nothing was found." in result("vector")._repr_html_()


def test_a_comparison_is_a_frame_with_a_rank_column_a_strategy(comparison: Comparison) -> None:
    frame = comparison.to_pandas()
    assert list(frame.index) == ["a", "b", "c"]
    assert frame[["vector", "rerank"]].astype(object).where(frame.notna(), None).to_numpy().tolist() == [
        [1, 2], [2, 1], [None, 3]
    ]  # fmt: skip


def test_a_comparison_shows_its_strategies_as_columns_with_movements(comparison: Comparison) -> None:
    outline = Outline(comparison._repr_html_())
    assert outline.open == []
    assert outline.tags.count("th") == 3  # place, vector, rerank
    assert outline.tags.count("tr") == 4  # heads, and three places
    assert all(sign in outline.text for sign in ("vector", "rerank", "↑1", "↓1", "new", "67%"))


@pytest.mark.parametrize("evil", [EVIL, "</div></table>", "{{7*7}}"])
def test_text_from_documents_and_questions_is_escaped(evil: str) -> None:
    hit = passage("a", 1, text=evil, heading_path=[evil])
    search = result("vector", hit, query=evil)
    for shown in (search, Comparison(evil, {evil: search}, {"jaccard": {}, "rbo": {}})):
        outline = Outline(shown._repr_html_())
        assert outline.open == []
        assert "script" not in outline.tags
        assert outline.text.count(evil) >= 2


def test_matched_words_are_marked() -> None:
    assert "<mark>Cats</mark> purr." in result("vector", passage("a", 1))._repr_html_()


def test_colours_suit_light_and_dark() -> None:
    html = result("vector", passage("a", 1))._repr_html_()
    assert "color:inherit" in html and "background:#fff" not in html


def test_an_ingest_report_lists_what_could_not_be_read() -> None:
    report = IngestReport("src_1", added=2, failures=(IngestFailure("a<b>.pdf", "It is encrypted."),), passages=7)
    outline = Outline(report._repr_html_())
    assert "2 added" in outline.text and "a<b>.pdf" in outline.text and "It is encrypted." in outline.text
    assert "b" not in outline.tags


def test_the_chart_joins_each_passage_across_the_strategies(comparison: Comparison) -> None:
    chart = comparison.plot().to_dict()
    rows = next(iter(chart["datasets"].values()))
    assert [(row["strategy"], row["rank"]) for row in rows if row["passage"] == "a"] == [("vector", 1), ("rerank", 2)]
    line = chart["layer"][0]
    assert line["mark"]["type"] == "line"
    assert line["encoding"]["detail"]["field"] == "passage"
    assert line["encoding"]["x"]["sort"] == ["vector", "rerank"]


def test_the_chart_of_nothing_is_a_chart() -> None:
    empty = Comparison("cats", {"vector": result("vector")}, {"jaccard": {}, "rbo": {}})
    assert isinstance(empty.plot(), altair.LayerChart)


@pytest.mark.parametrize(("before", "now", "shown"), [(None, 1, "new"), (2, 2, "="), (3, 1, "↑2"), (1, 4, "↓3")])
def test_movements_are_told_in_a_sign(before: int | None, now: int, shown: str) -> None:
    assert movement(before, now) == shown
