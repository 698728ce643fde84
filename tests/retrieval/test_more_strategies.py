"""The strategies besides hybrid and rerank, on real documents in a real database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.ingestion import files
from workbench import Workbench
from workbench.errors import ConfigurationError, InvalidInput
from workbench.retrieval.hits import Hit
from workbench.retrieval.retrievers.rewriting import average_hits
from workbench.retrieval.stages.model_rerank import parse_grades
from workbench.retrieval.stages.similarity import choose_by_mmr
from workbench.types import Leg, SearchResult

SECTIONS = {
    "guide.md": "# Guide\n\n"
    + "\n\n".join(
        f"## Part {part}\n\n"
        + " ".join(f"Sentence {part}{n} tells of {topic} and its {word}." for n, word in enumerate(words))
        for part, (topic, words) in enumerate(
            [
                ("whales", ["songs", "calves", "journeys", "oceans", "breath", "flukes"]),
                ("violins", ["strings", "bows", "varnish", "scrolls", "bridges", "tones"]),
            ]
        )
    ),
    "other.md": "# Other\n\nNothing here but turnips and a violin case.",
}


def whole_and_true(wb: Workbench, result: SearchResult) -> None:
    """Check the invariants of every strategy on a result."""
    scores = [round(hit.score, 4) for hit in result]
    assert scores == sorted(scores, reverse=True) and all(0 <= score <= 1 for score in scores)
    for hit in result:
        assert wb.documents.get(hit.document_id).text[hit.start : hit.end] == hit.text
        assert sum(leg.contribution for leg in hit.attribution.values()) == pytest.approx(hit.score, abs=1e-6)


@pytest.fixture
def sectioned(wb: Workbench, folder: Callable[..., Path]) -> Workbench:
    """The guide in the default index and in an index of the chunker 'hierarchical'."""
    wb.ingest(folder(SECTIONS), source="Guide")
    wb.indexes.create("small", chunker="hierarchical", options={"size": 16, "parent": 64})
    wb.indexes.build("small")
    wb.indexes.create("sentences", chunker="window", options={"neighbours": 1})
    wb.indexes.build("sentences")
    return wb


def test_auto_merge_returns_the_section_of_the_small_passage_that_was_found(sectioned: Workbench) -> None:
    small = sectioned.search("varnish of violins", "rerank", 1, index="small")[0]
    merged = sectioned.search("varnish of violins", "auto-merge", 3, index="small")
    assert len(small.text) < len(merged[0].text)
    assert merged[0].start <= small.start and small.end <= merged[0].end
    assert list(merged[0].metadata["parent"]) == [merged[0].start, merged[0].end]
    assert merged[0].metadata["matched"] == [small.start, small.end]
    assert len({(hit.document_id, hit.start, hit.end) for hit in merged}) == len(merged)
    whole_and_true(sectioned, merged)


def test_auto_merge_leaves_passages_small_if_too_little_of_the_section_was_found(sectioned: Workbench) -> None:
    whole = sectioned.search("varnish of violins", "auto-merge", 10, index="small")
    strict = sectioned.search("varnish of violins", "auto-merge", 10, index="small", parameters={"share": 1.0})
    assert len(strict) > len(whole)
    assert max(len(hit.text) for hit in strict) < max(len(hit.text) for hit in whole)
    whole_and_true(sectioned, strict)


def test_auto_merge_on_another_index_returns_the_section_under_the_heading(sectioned: Workbench) -> None:
    result = sectioned.search("varnish of violins", "auto-merge", 5, index="sentences")
    assert not result.degraded
    assert result[0].text.count("violins") == 6 and "whales" not in result[0].text
    assert len(result[0].metadata["merged"]) > 1 and result[0].passage_id == result[0].metadata["merged"][0]
    assert len({(hit.document_id, hit.start, hit.end) for hit in result}) == len(result)
    whole_and_true(sectioned, result)


def test_auto_merge_without_headings_joins_passages_in_a_row_and_reports_it(
    wb: Workbench, folder: Callable[..., Path]
) -> None:
    plain = " ".join(f"Sentence {n} tells of violins and their {n}th string." for n in range(9))
    wb.ingest(folder({"plain.txt": plain}), source="Plain")
    wb.indexes.create("sentences", chunker="window")
    wb.indexes.build("sentences")
    result = wb.search("Sentence tells of violins", "auto-merge", 5, index="sentences")
    assert "neither headings nor pages" in result.degraded[0]
    assert len(result[0].metadata["merged"]) > 1
    whole_and_true(wb, result)


def test_auto_merge_returns_pages_if_requested(wb: Workbench, folder: Callable[..., Path]) -> None:
    topics = ("forests", "harbours", "mountains")
    pages = [(topic, *(f"Line {n} of this page tells of {topic} and boats." for n in range(24))) for topic in topics]
    place = folder({"other.md": "# Other\n\nNothing."})
    (place / "report.pdf").write_bytes(files.pdf(pages))
    wb.ingest([place / "report.pdf"], source="Report")
    wb.indexes.create("small", chunker="token", options={"size": 32, "overlap": 0})
    wb.indexes.build("small")
    result = wb.search("harbours", "auto-merge", 3, index="small", parameters={"unit": "page"})
    _, start, end = wb.corpus.documents.record(result[0].document_id).pages[1]
    assert (result[0].start, result[0].end) == (start, end)
    assert result[0].text.count("tells of harbours") == 24
    assert len({(hit.document_id, hit.start, hit.end) for hit in result}) == len(result)
    whole_and_true(wb, result)
    with pytest.raises(InvalidInput, match="'section'"):
        wb.search("harbours", "auto-merge", parameters={"unit": "chapter"})


@pytest.mark.parametrize("neighbours", [0, 1, 2])
def test_window_shows_as_many_neighbours_as_asked(sectioned: Workbench, neighbours: int) -> None:
    own = sectioned.search("varnish", "keyword", 1, index="small")[0]
    shown = sectioned.search(
        "varnish", "window", 3, index="small", parameters={"neighbours": neighbours, "vector_weight": 0.0}
    )
    passages = sectioned.documents.passages(own.document_id, index="small")
    at = [passage.node_id for passage in passages].index(own.passage_id)
    around = passages[max(0, at - neighbours) : at + neighbours + 1]
    assert shown[0].start == around[0].metadata["start"] and shown[0].end == around[-1].metadata["end"]
    whole_and_true(sectioned, shown)


def test_window_shows_at_least_the_sentences_the_chunker_noted(sectioned: Workbench) -> None:
    shown = sectioned.search("varnish", "window", 1, index="sentences", parameters={"neighbours": 0})[0]
    assert [shown.start, shown.end] == list(shown.metadata["window"])
    assert shown.text.count("Sentence") == 3


def test_mmr_takes_the_new_before_the_nearly_equal() -> None:
    vectors = np.array([[1, 0], [0.999, 0.04], [0, 1]], dtype=np.float32)
    assert [place for place, _ in choose_by_mmr([0.9, 0.89, 0.5], vectors, 1.0, 3)] == [0, 1, 2]
    chosen = choose_by_mmr([0.9, 0.89, 0.5], vectors, 0.5, 3)
    assert [place for place, _ in chosen] == [0, 2, 1]
    assert chosen[0][1] == 1.0 and chosen[1][1] == pytest.approx(1.0) and chosen[2][1] == pytest.approx(0.0, abs=1e-2)


def test_mmr_with_lambda_1_is_the_order_of_rerank(sectioned: Workbench) -> None:
    plain = sectioned.search("violins and whales", "rerank", 4, index="small")
    same = sectioned.search("violins and whales", "mmr", 4, index="small", parameters={"lambda": 1.0})
    varied = sectioned.search("violins and whales", "mmr", 4, index="small", parameters={"lambda": 0.2})
    assert [hit.passage_id for hit in same] == [hit.passage_id for hit in plain]
    assert [hit.passage_id for hit in varied] != [hit.passage_id for hit in plain]
    whole_and_true(sectioned, varied)


def test_feedback_finds_what_shares_words_with_the_first_passages_only(
    wb: Workbench, folder: Callable[..., Path]
) -> None:
    texts = {
        "a.md": "Zebras graze with antelopes on the savannah near acacias.",
        "b.md": "Antelopes graze on the savannah below acacias.",
        **{f"{n}.md": f"Number {n} is about something else altogether, {n} times." for n in range(8)},
    }
    wb.ingest(folder(texts), source="Plains")
    strong = {"weight": 2.0, "passages": 1}
    result = wb.search("zebras", "feedback", 2, parameters=strong)
    assert [hit.document_title for hit in result] == ["a", "b"]
    assert "feedback" in result[1].attribution and result[1].attribution["vector"].contribution == 0
    whole_and_true(wb, result)


def test_a_rephrasing_counts_as_its_share_of_the_mean() -> None:
    hits = [Hit(1, 0.8, {"vector": Leg(0.8, 1, 0.8)})]
    other = [Hit(2, 1.0, {"vector": Leg(1.0, 1, 1.0)}), Hit(1, 0.4, {"keyword": Leg(3.0, 1, 0.4)})]
    first, second = average_hits([hits, other])
    assert (first.id, first.score) == (1, pytest.approx((0.8 + 0.4) / 2))
    assert (second.id, second.score) == (2, pytest.approx(1.0 / 2))
    assert first.legs["query 2"] == Leg(0.4, 2, 0.2)


def test_grades_are_read_from_any_shape_and_nonsense_is_left_out() -> None:
    assert parse_grades({"1": 7, "2": "3.5", "9": 1, "x": 2, "3": None}, 3) == {1: 7.0, 2: 3.5}
    assert parse_grades([11, -2, float("nan")], 3) == {1: 10.0, 2: 0.0}
    assert parse_grades("seven", 3) == {}


ANIMALS = {
    "cats.md": "# Cats\n\nCats have odd habits: they purr and sleep all day.",
    "dogs.md": "# Dogs\n\nDogs bark and have habits of their own.",
    "cars.md": "# Cars\n\nA car has four wheels and an engine.",
}


@pytest.fixture
def with_llm(
    make_settings: Callable[..., object], folder: Callable[..., Path], llm_url: str
) -> Iterator[Callable[..., Workbench]]:
    """Workbenches over the animals, with an LLM served by tests/llm_server.py."""
    opened = []

    def make(model: str = "plain") -> Workbench:
        settings = make_settings(llm_base_url=llm_url, llm_model=model, llm_timeout=0.5)
        opened.append(Workbench.open(settings=settings))  # pyright: ignore[reportArgumentType]
        opened[-1].ingest(folder(ANIMALS), source="Animals")
        return opened[-1]

    yield make
    for workbench in opened:
        workbench.close()


@pytest.mark.parametrize(("strategy", "leg"), [("hyde", "hyde"), ("multi-query", "query 2"), ("llm-rerank", "llm")])
def test_an_llm_helps_to_find_what_the_question_does_not_name(
    with_llm: Callable[..., Workbench], strategy: str, leg: str
) -> None:
    wb = with_llm()
    result = wb.search("what is odd about a feline and its habits", strategy, 3)
    assert result[0].document_title == "Cats"
    assert leg in result[0].attribution and result.degraded == ()
    whole_and_true(wb, result)


@pytest.mark.parametrize(
    ("strategy", "model"), [("hyde", "slow"), ("multi-query", "garbled"), ("llm-rerank", "chatty"), ("hyde", "down-9")]
)
def test_if_the_llm_fails_the_search_continues_and_reports_it(
    with_llm: Callable[..., Workbench], strategy: str, model: str
) -> None:
    wb = with_llm(model)
    result = wb.search("habits of dogs", strategy, 3)
    assert [hit.document_title for hit in result] == [
        hit.document_title for hit in wb.search("habits of dogs", limit=3)
    ]
    assert result.degraded[0].startswith(f"{strategy}: The LLM '{model}'")


def test_strategies_that_need_a_model_are_listed_and_name_which(wb: Workbench) -> None:
    lacks = wb.requests.usable()
    assert lacks["rerank"] == lacks["mmr"] == ""
    assert "WORKBENCH_LLM_BASE_URL" in lacks["hyde"] and "WORKBENCH_RERANKER" in lacks["cross-encoder"]
    for name in ("hyde", "multi-query", "llm-rerank", "cross-encoder"):
        with pytest.raises(ConfigurationError, match=r"is not configured\. It needs"):
            wb.search("anything", name)


def test_parameters_are_checked_against_the_table(wb: Workbench) -> None:
    with pytest.raises(InvalidInput, match="from 0 to 1"):
        wb.search("anything", "mmr", parameters={"lambda": 2})
    with pytest.raises(InvalidInput, match="has no parameter 'lambda'"):
        wb.search("anything", "rerank", parameters={"lambda": 0.5})
