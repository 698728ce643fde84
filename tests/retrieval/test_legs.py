"""The table of legs has every leg of every strategy, and a leg's vote has the stated effect."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from workbench import Scope, Workbench
from workbench.retrieval.hits import Hit, add_leg, hit_from_legs
from workbench.retrieval.legs import LEGS, RERANKERS, leg_confidences, leg_kind
from workbench.retrieval.nodes import match_type
from workbench.retrieval.options import Ask
from workbench.retrieval.retrievers.hybrid import fuse, leg_weights
from workbench.retrieval.stages.late_interaction import prose_share
from workbench.retrieval.strategies import STRATEGIES
from workbench.types import Leg

CONVEX = {"vector_weight": 0.5, "fusion": "convex"}


def test_every_leg_that_a_strategy_declares_has_a_row() -> None:
    missing = {name: [leg for leg in row.legs if leg not in LEGS] for name, row in STRATEGIES.items()}
    without = {name: legs for name, legs in missing.items() if legs}
    assert not without, f"add rows to LEGS in workbench/retrieval/legs.py for the legs of these strategies: {without}"


def test_a_strategy_shows_no_leg_that_its_row_does_not_declare(wb: Workbench, folder: Callable[..., Path]) -> None:
    texts = {
        f"{name}.md": f"# {name}\n\nThe {name} sleeps by the river at night." for name in ("otter", "heron", "vole")
    }
    wb.ingest(folder(texts), source="River")
    for name, lacks in wb.requests.usable().items():
        if lacks:
            continue
        for passage in wb.search("where does the otter sleep?", name, scope=Scope(sources=("River",))):
            kinds = {leg_kind(leg).name for leg in passage.attribution}
            assert kinds <= set(STRATEGIES[name].legs), f"declare {kinds} in the row of {name!r} in strategies.py"


def test_numbered_legs_share_a_row_and_an_unknown_one_is_shown_by_its_name() -> None:
    assert leg_kind("query 3") is LEGS["query"]
    assert leg_kind("new").title == "new"
    assert {"late", "cluster", "cross-encoder", "llm", "learned"} == RERANKERS


@pytest.mark.parametrize(
    ("ranked", "expected"),
    [("vector", "vector"), ("hyde", "vector"), ("keyword", "keyword"), ("vector keyword", "hybrid"),
     ("late", "hybrid"), ("feedback late", "vector")],
)  # fmt: skip
def test_how_a_passage_was_found_follows_from_its_legs(ranked: str, expected: str) -> None:
    legs = {name: Leg(0.5, 1) for name in ranked.split()} | {"novelty": Leg(0.5)}
    assert match_type(legs) == expected


def test_what_one_leg_is_not_trusted_with_goes_to_the_other() -> None:
    assert leg_weights(0.4, {}) == {"vector": 0.4, "keyword": 0.6}
    assert leg_weights(0.4, {"vector": 0.5}) == pytest.approx({"vector": 0.2, "keyword": 0.8})
    assert leg_weights(0.4, {"vector": 0.0}) == {"vector": 0.0, "keyword": 1.0}
    assert leg_weights(0.4, {"keyword": 0.0}) == {"vector": 1.0, "keyword": 0.0}


def test_a_leg_that_is_set_aside_moves_nothing() -> None:
    near, worded = {1: 0.9, 2: 0.1}, {1: 1.0, 2: 5.0}
    both = fuse(near, worded, CONVEX)
    assert both[1]["vector"] == 0.5
    words_alone = fuse(near, worded, CONVEX, {"vector": 0.0})
    assert words_alone == {1: {"vector": 0.0, "keyword": 0.2}, 2: {"vector": 0.0, "keyword": 1.0}}


def test_a_judge_is_mixed_in_by_its_share_and_changes_nothing_it_is_given() -> None:
    hits = [Hit(1, 0.8, {"vector": Leg(0.8, 1, 0.8)}), Hit(2, 0.6, {"vector": Leg(0.6, 2, 0.6)})]
    first, second = add_leg(hits, "late", {1: 0.1, 2: 0.3}, 0.25)
    assert (first.id, first.score) == (2, 0.75 * 0.6 + 0.25 * 1)
    assert (second.id, second.score) == (1, 0.75 * 0.8 + 0.25 * 0)
    assert second.legs["late"] == Leg(0.1, 2, 0.0)
    assert hits[0] == Hit(1, 0.8, {"vector": Leg(0.8, 1, 0.8)})


def test_meaning_votes_less_for_misspelled_words_if_a_strategy_tolerates_typos(
    wb: Workbench, folder: Callable[..., Path]
) -> None:
    wb.ingest(folder({"a.md": "# A\n\nThe aardvark sleeps at noon."}), source="Animals")
    counted: dict[str, float] = {}
    for strategy in ("fuzzy", "rerank"):
        counted[strategy] = leg_confidences(wb.requests.make(Ask(strategy)).question("aardvrak sleeps"))["vector"]
    assert counted == {"fuzzy": 0.5, "rerank": 1.0}
    why = wb.explaining.explain("aardvrak sleeps", Ask("fuzzy"), document_id=wb.documents.list()[0].id)
    assert (why.legs["vector"].vote, why.legs["keyword"].vote) == (0.5, 1.0)


def test_a_passage_that_a_judge_cannot_read_keeps_what_the_legs_before_stated() -> None:
    hits = [Hit(1, 0.6, {"vector": Leg(0.6, 1, 0.6)}), Hit(2, 0.5, {"vector": Leg(0.5, 2, 0.5)})]
    by_id = {hit.id: hit for hit in add_leg(hits, "late", {1: 0.1, 2: 0.3}, 0.5, trust={1: 0.0})}
    assert by_id[1].score == pytest.approx(0.6)
    assert by_id[2].score == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("Net sales of the whole house rose by a tenth in 2019.", 1.0),
        ("", 1.0),
        ("1,204 873 22", 0.0),
        ("Sales of skis 12 34", 0.3 / 0.2 - 4 / 15 / 0.2),
        ("٣٤ ab", 1.0),
    ],
)
def test_the_more_figures_a_passage_has_the_less_a_judge_of_words_reads_of_it(text: str, share: float) -> None:
    assert prose_share(text) == pytest.approx(share)


def test_a_leg_of_which_the_judge_knows_nothing_keeps_its_share() -> None:
    hits = [
        hit_from_legs(1, {"vector": Leg(0.5, 1, 0.4), "document": Leg(1.0, None, 0.15)}),
        hit_from_legs(2, {"vector": Leg(0.5, 2, 0.4)}),
    ]
    by_id = {hit.id: hit for hit in add_leg(hits, "late", {1: 0.1, 2: 0.3}, 0.5, untouched=("document", 0.15))}
    assert by_id[1].legs["document"].contribution == 0.15
    assert by_id[1].score == pytest.approx(0.4 * 0.35 / 0.85 + 0.15)
    assert by_id[2].score == pytest.approx(0.4 * 0.35 / 0.85 + 0.5)
    alone = {hit.id: hit for hit in add_leg(hits, "late", {1: 0.1, 2: 0.3}, 1.0, untouched=("document", 0.15))}
    assert (alone[1].score, alone[2].score) == (pytest.approx(0.15), pytest.approx(0.85))
