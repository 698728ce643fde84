"""Rankers are stored, exported, imported and validated; the strategy ``learned`` ranks and explains by them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from evals.experiments.runs import make_run_row
from evals.gateway import RunTables, index_corpus
from evals.test_sets.folders import load_test_set
from workbench import Workbench
from workbench.errors import Conflict, InvalidInput, NotFound
from workbench.retrieval.options import Ask
from workbench.retrieval.pipeline import run_search
from workbench.retrieval.ranker import NAMES
from workbench.retrieval.strategies import check_parameters
from workbench.storage.passages import fetch_internal_ids
from workbench.types import Ranker

MINE = Ranker("mine", {"before": 1.0, "length": -2.5}, "Asked here", 3, "main", 40, {"learned": 0.8, "p": 0.01})
QUESTION = "where does the otter sleep?"


@pytest.fixture
def river(wb: Workbench, folder: Callable[..., Path]) -> Workbench:
    """Five documents on otters, the longest of which has most of the words, and a ranker that prefers short ones."""
    files = {f"o{n}.md": f"# Otter {n}\n\nThe otter {'swims ' * n}in the river." for n in range(1, 5)}
    files["den.md"] = (
        "# Den\n\nWhere does the otter sleep? The otter does sleep in its den. " + "It is dry there. " * 30
    )
    wb.ingest(folder(files), source="River")
    wb.rankers.save(MINE)
    return wb


def test_a_ranker_orders_the_candidates_and_every_score_is_the_sum_of_its_legs(river: Workbench) -> None:
    first = river.search(QUESTION, "rerank")
    by_default = river.search(QUESTION, "learned")
    by_mine = river.search(QUESTION, "learned", parameters={"ranker": "mine"})
    assert first[0].document_title == by_default[0].document_title == "Den"
    assert by_mine[0].document_title != "Den" and by_mine[-1].document_title == "Den"
    assert {hit.passage_id for hit in by_mine} == {hit.passage_id for hit in first}
    for result in (by_default, by_mine):
        scores = [hit.score for hit in result]
        assert scores == sorted(scores, reverse=True) and scores[0] == pytest.approx(first[0].score)
        for hit in result:
            assert sum(leg.contribution for leg in hit.attribution.values()) == pytest.approx(hit.score)
            assert min(leg.contribution for leg in hit.attribution.values()) >= 0


def test_an_explanation_shows_the_features_that_the_search_weighed(river: Workbench) -> None:
    ask = Ask("learned", parameters={"ranker": "mine"})
    request = river.requests.make(ask)
    query = request.question(QUESTION)
    hit = run_search(query)[0]
    assert query.sheet is not None
    why = river.explain(QUESTION, hit.passage_id, strategy="learned", parameters={"ranker": "mine"})
    with request.store.reading() as connection:
        row = query.sheet.ids.index(
            fetch_internal_ids(connection, request.index.name, [hit.passage_id])[hit.passage_id]
        )
    shown = {view.name: view for view in why.features}
    assert set(shown) == set(NAMES) and sum(view.share for view in why.features) == pytest.approx(1)
    for column, name in enumerate(NAMES):
        assert shown[name].value == query.sheet.raw[row, column]
        assert shown[name].scaled == query.sheet.scaled[row, column]
    assert (shown["length"].weight, shown["before"].weight, shown["title"].share) == (-2.5, 1.0, 0.0)
    assert why.features[0].name == "length"  # the short ones win by it
    assert not river.explain(QUESTION, hit.passage_id, strategy="rerank").features


def test_the_real_model_reports_each_word_of_a_passage_and_what_fits_worst(
    minilm_wb: Workbench, folder: Callable[..., Path]
) -> None:
    files = {"den.md": "# Den\n\nAn otter sleeps in its den.", "tax.md": "# Tax\n\nThe tax is due in spring."}
    minilm_wb.ingest(folder(files), source="Two")
    result = minilm_wb.search(QUESTION, "learned")
    assert result[0].document_title == "Den" and "late" in result[0].attribution
    views = {}
    for hit in result:
        why = minilm_wb.explain(QUESTION, hit.passage_id, strategy="learned")
        views[hit.document_title] = {view.name: view for view in why.features}
    for name in ("late", "least", "meaning", "coverage"):
        assert views["Den"][name].value > views["Tax"][name].value
        assert (views["Den"][name].scaled, views["Tax"][name].scaled) == (1.0, 0.0)
    assert views["Den"]["least"].value < views["Den"]["late"].value + 1  # a mean of the worse half, no sum


def test_a_ranker_comes_back_from_its_file_as_it_was(river: Workbench) -> None:
    text = river.rankers.export("mine")
    river.rankers.delete("mine")
    assert [ranker.name for ranker in river.rankers.list()] == ["default"]
    back = river.rankers.restore(text)
    assert (back.weights, back.trained_on, back.version, back.questions) == (MINE.weights, "Asked here", 3, 40)
    assert river.rankers.restore(text, name="again").weights == MINE.weights
    assert [ranker.name for ranker in river.rankers.list()] == ["default", "again", "mine"]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (None, "The file is not JSON"),
        ({"form": "other"}, "The file is not a ranker"),
        ({"name": " "}, "Invalid ranker name ' '"),
        ({"name": 7}, "Invalid ranker name 7"),
        ({"weights": {"beauty": 1}}, "Unknown feature 'beauty'; the features are 'before'"),
        ({"weights": {"before": "much"}}, "'weights' of the ranker: 'much'"),
        ({"weights": {"before": True}}, "'weights' of the ranker: True"),
        ({"weights": {"before": float("nan")}}, "'weights' of the ranker: nan"),
        ({"weights": {"before": 1e300}}, "use numbers from -1e"),
        ({"weights": {"before": 0}}, "All 'weights' of the ranker are 0"),
        ({"weights": [1]}, "'weights' of the ranker must be an object"),
        ({"figures": {"learned": None}}, "'figures' of the ranker: None"),
        ({"questions": 1.5}, "'questions' of the ranker: 1.5; use a whole number"),
        ({"version": -1}, "'version' of the ranker: -1"),
        ({"note": "x" * 2001}, "'note' of the ranker must be a text of at most 2,000"),
        ({"name": "default"}, "There is already a ranker 'default'"),
        ({}, "There is already a ranker 'mine'; choose another name"),
    ],
)
def test_a_broken_file_is_refused_and_nothing_is_kept(
    river: Workbench, change: dict[str, object] | None, sentence: str
) -> None:
    text = "{broken" if change is None else json.dumps(json.loads(river.rankers.export("mine")) | change)
    before = river.rankers.list()
    with pytest.raises((InvalidInput, Conflict)) as error:
        river.rankers.restore(text)
    assert sentence in str(error.value) and river.rankers.list() == before


def test_a_ranker_that_is_not_there_is_named(river: Workbench) -> None:
    with pytest.raises(NotFound, match=r"Ranker not found: lost\. List the rankers with 'workbench rankers list'\."):
        river.search(QUESTION, "learned", parameters={"ranker": "lost"})
    with pytest.raises(NotFound, match="lost"):
        river.promotions.promote("learned", parameters={"ranker": "lost"})
    with pytest.raises(InvalidInput, match="Invalid ranker ''; use a name of 1 to 60 characters"):
        river.search(QUESTION, "learned", parameters={"ranker": ""})


def test_what_is_promoted_serves_with_its_ranker_which_cannot_be_deleted_in_the_meantime(river: Workbench) -> None:
    river.promotions.promote("learned", parameters={"ranker": "mine"})
    served = river.search(QUESTION)
    assert (served.strategy, served[-1].document_title) == ("learned", "Den")
    with pytest.raises(Conflict, match=r"The ranker 'mine' is in use \(everywhere\); promote something else"):
        river.rankers.delete("mine")
    river.promotions.undo()
    river.rankers.delete("mine")
    with pytest.raises(Conflict, match="is built in; only trained rankers can be deleted"):
        river.rankers.delete("default")


def test_what_a_deleted_ranker_found_is_no_answer_for_the_next_of_its_name(river: Workbench) -> None:
    sample = load_test_set("sample").spread(2)
    corpus, tables = index_corpus(river, sample), RunTables(river.corpus.database)
    values = make_run_row(sample, corpus, "learned", check_parameters("learned", {"ranker": "mine"}), 10)
    began = tables.begin(values)
    assert tables.begin(values)["id"] == began["id"]
    river.rankers.delete("mine")
    assert tables.begin(values)["id"] != began["id"]
    assert tables.get(began["id"])["strategy"] == "learned"  # experiments continue to show it


def test_the_ranker_that_comes_along_names_known_features_and_its_questions(wb: Workbench) -> None:
    ranker = wb.rankers.get("default")
    assert set(ranker.weights) == set(NAMES) and ranker.weights["before"] > 0
    assert ranker.questions > 1000 and {"learned", "rerank", "hybrid"} <= set(ranker.figures)


def test_no_undo_comes_back_to_a_ranker_that_was_deleted(river: Workbench) -> None:
    river.promotions.promote("hybrid")
    river.promotions.promote("learned", parameters={"ranker": "mine"})
    river.promotions.promote("rerank")
    river.rankers.delete("mine")
    river.promotions.undo()
    assert river.search(QUESTION).strategy == "hybrid"


def test_a_name_is_looked_at_before_a_long_training(river: Workbench) -> None:
    assert river.rankers.check_new(" the\u00a0new  one ") == "the new one"
    for name in ("mine", "default", " mine "):
        with pytest.raises(Conflict, match="There is already a ranker"):
            river.rankers.check_new(name)
    with pytest.raises(InvalidInput, match="printable characters"):
        river.rankers.check_new("bell\a")


def test_a_file_nested_too_deeply_is_no_json(river: Workbench) -> None:
    with pytest.raises(InvalidInput, match="The file is not JSON"):
        river.rankers.restore("[" * 100_000)
