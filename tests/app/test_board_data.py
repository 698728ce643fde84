"""The data that the board gets from a comparison."""

from dataclasses import replace

import pytest

from workbench.app.compare.board import build_board_data, find_sources_of_twins
from workbench.types import Comparison, Evidence, Leg, Passage, ResolvedScope, SearchResult


def passage(rank, key, title="Doc", text="The tide rises.", **metadata):
    return Passage(
        rank, 1 / rank, key, f"doc_{key}", title, "src", f"{key}.md", None, text, 10, 25, "vector",
        {"vector": Leg(0.5, rank, 0.5)}, metadata,
    )  # fmt: skip


def result(strategy, *keys, **timings):
    found = tuple(passage(rank, key) for rank, key in enumerate(keys, start=1))
    return SearchResult("tide", strategy, ResolvedScope(), False, (), timings or {"total": 3.0}, found)


def compared(**results):
    agreement = {"jaccard": {"vector|keyword": 0.5}, "rbo": {"vector|keyword": 0.25}}
    return Comparison("tide", results, agreement)


def test_each_hit_reports_how_the_others_rank_it():
    data = build_board_data(compared(vector=result("vector", "a", "b", "c"), keyword=result("keyword", "c", "a")))
    moves = {hit["id"]: (hit["others"][0]["rank"], hit["others"][0]["moved"]) for hit in data["columns"][0]["hits"]}
    assert moves == {"a": (2, 1 - 2), "b": (None, None), "c": (1, 3 - 1)}


def test_the_stages_add_up_to_the_total_in_the_order_they_happen():
    data = build_board_data(compared(vector=result("vector", "a", fetch=1.0, embed=2.0, total=4.5)))
    stages = data["columns"][0]["stages"]
    assert [stage["name"] for stage in stages] == ["embed", "fetch", "other"]
    assert sum(stage["ms"] for stage in stages) == pytest.approx(4.5)


def test_a_column_that_ranks_by_keywords_alone_is_not_charged_for_the_embedding():
    results = {
        "keyword": result("keyword", "a", embed=20.0, keyword=3.0, total=24.0),
        "hybrid": result("hybrid", "a", embed=20.0, keyword=3.0, vector=2.0, total=25.0),
    }
    keyword, hybrid = build_board_data(compared(**results))["columns"]
    assert (keyword["total"], hybrid["total"]) == (4.0, 25.0)
    assert keyword["stages"] == [{"name": "keyword", "ms": 3.0}, {"name": "other", "ms": 1.0}]


def test_a_note_that_all_columns_have_is_one_note_with_the_reason_of_each():
    def far(strategy, reason, *degraded):
        evidence = Evidence(False, f"Nothing close was found: {reason}.")
        return replace(result(strategy, "a"), evidence=evidence, degraded=("3 documents are left out.", *degraded))

    data = build_board_data(compared(vector=far("vector", "0.1"), keyword=far("keyword", "0.2", "A word is unknown.")))
    reasons = ["Vector: 0.1.", "Keyword: 0.2."]
    assert data["notes"] == [["Nothing close was found", *reasons], ["3 documents are left out."]]
    assert [column["notes"] for column in data["columns"]] == [[], [["A word is unknown."]]]
    same = build_board_data(compared(vector=far("vector", "0.1"), keyword=far("keyword", "0.1")))
    assert same["notes"][0] == ["Nothing close was found", "0.1."]
    alone = build_board_data(compared(vector=far("vector", "0.1")))
    assert (alone["notes"], len(alone["columns"][0]["notes"])) == ([], 2)


def test_scores_have_three_decimals_and_words_are_marked():
    hit = build_board_data(compared(vector=result("vector", "a", "b", "c")))["columns"][0]["hits"][2]
    assert hit["score"] == "0.333"
    [line] = hit["text"]
    assert [segments for matched, segments in line["in"] if matched] == [[("tide", 0)]]


def test_the_place_is_heading_path_and_page_else_the_path():
    seen = SearchResult(
        "tide", "vector", ResolvedScope(), False, (), {"total": 1.0},
        (passage(1, "a", heading_path=["Doc", "Setup"], page=3), passage(2, "b")),
    )  # fmt: skip
    hits = build_board_data(Comparison("tide", {"vector": seen}, {"jaccard": {}, "rbo": {}}))["columns"][0]["hits"]
    assert [hit["place"] for hit in hits] == ["Setup › p. 3", "b.md"]


def test_judging_is_off_until_a_page_turns_it_on_and_goes_by_the_place_in_the_document():
    data = build_board_data(compared(vector=result("vector", "a")))
    assert data["judging"] is None
    assert data["columns"][0]["hits"][0]["key"] == "doc_a:10-25"


def test_hits_of_two_indexes_are_joined_if_half_of_their_text_is_the_same():
    whole = SearchResult(
        "tide",
        "vector",
        ResolvedScope(),
        False,
        (),
        {"total": 1.0},
        (spanned("w", 0, 100), spanned("v", 100, 200)),
        "a",
    )
    pieces = SearchResult(
        "tide",
        "vector",
        ResolvedScope(),
        False,
        (),
        {"total": 1.0},
        (spanned("p", 120, 160), spanned("q", 90, 120)),
        "b",
    )
    data = build_board_data(Comparison("tide", {"vector@a": whole, "vector@b": pieces}, {"jaccard": {}, "rbo": {}}))
    first, second = ([hit["id"] for hit in column["hits"]] for column in data["columns"])
    assert first == ["w", "v"]
    assert second == ["v", "v"]  # 40 of 40 characters, and 20 of 30
    assert [hit["others"][0]["rank"] for hit in data["columns"][0]["hits"]] == [None, 1]
    assert [(column["title"], column["letter"]) for column in data["columns"]] == [
        ("Vector on a", "A"),
        ("Vector on b", "B"),
    ]


def spanned(key, start, end):
    return replace(passage(1, key), document_id="doc", start=start, end=end)


def test_a_text_is_labelled_by_what_no_other_text_shares_of_section_title_words_and_file():
    seen = SearchResult(
        "tide", "vector", ResolvedScope(), False, (), {"total": 1.0},
        (
            passage(1, "a", "Tides", heading_path=["Tides", "Setup"]),
            passage(2, "b", "Tides", heading_path=["Tides", "Use"]),
            passage(3, "c", "Wells", heading_path=["Wells", "Use"]),
            passage(4, "d", "Tides", "Row one.", heading_path=["Tides", "Table"]),
            passage(5, "e", "Tides", "Row two.", heading_path=["Tides", "Table"]),
        ),
    )  # fmt: skip
    hits = build_board_data(Comparison("tide", {"vector": seen}, {"jaccard": {}, "rbo": {}}))["columns"][0]["hits"]
    assert [hit["label"] for hit in hits] == ["Setup", "b.md", "Wells", "Row one.", "Row two."]


def test_documents_of_one_title_in_two_sources_show_their_source(wb):
    for source in ("Club", "Archive"):
        wb.documents.create(text="The shed is let in winter.", title="House rules", source=wb.sources.create(source).id)
    wb.documents.create(text="The shed has a lamp.", title="Lamps", source=wb.sources.create("Shed").id)
    comparison = wb.compare("Who lets the shed?", ["keyword"])
    sources = find_sources_of_twins(wb, comparison)
    hits = build_board_data(comparison, sources=sources)["columns"][0]["hits"]
    assert sorted((hit["title"], hit["place"]) for hit in hits if hit["title"] == "House rules") == [
        ("House rules", "Archive"),
        ("House rules", "Club"),
    ]
    assert len(sources) == 2
