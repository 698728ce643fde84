"""The reasons for a passage's rank, and the step at which an expected document was dropped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import cloned_database
from workbench import Scope, Workbench
from workbench.errors import InvalidInput, NotFound
from workbench.retrieval import explain as outcome
from workbench.retrieval.explain import Explanation
from workbench.settings import Settings

COUNT = 70  # more than a leg brings


@pytest.fixture(scope="module")
def herd(
    server_url: str, template_database: str, test_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Workbench]:
    """Seventy flocks, each with one more sheep than the last, a document on goats, and a long one on llamas."""
    files = {  # the numbers keep them from being copies
        f"n{number:02}.md": f"flock {number} {'sheep ' * (number + 1)}graze {'hill ' * 20}" for number in range(COUNT)
    }
    files |= {"goat.md": "A goat climbs.", "long.md": "# One\n\n" + "A llama hums. " * 150}
    root = tmp_path_factory.mktemp("herd")
    for name, text in files.items():
        (root / name).write_text(text)
    with cloned_database(server_url, template_database) as url:
        settings = Settings(home=test_home, database_url=url, embedding_model="hash", _env_file=None)  # pyright: ignore
        with Workbench.open(settings=settings) as workbench:
            workbench.ingest(root, source="Herd")
            yield workbench


def document(wb: Workbench, title: str) -> str:
    """Return the id of a document by its title."""
    return next(item.id for item in wb.documents.list() if item.title == title)


def test_a_hit_is_taken_apart_into_legs_terms_and_words(herd: Workbench) -> None:
    hit = herd.search("goat climbs", limit=1)[0]
    why = herd.explain("goat climbs", hit.passage_id, limit=1)
    assert (why.outcome, why.rank, why.score) == (outcome.IS_FOUND, 1, pytest.approx(hit.score))
    assert why.legs["vector"].rank == why.legs["keyword"].rank == 1
    assert sum(leg.contribution or 0 for leg in why.legs.values()) == pytest.approx(hit.score)
    assert {term.term for term in why.terms} == {"goat", "climb"}
    assert sum(term.share for term in why.terms) == pytest.approx(1)
    assert sum(term.score for term in why.terms) == pytest.approx(hit.attribution["keyword"].score)
    assert why.elsewhere["keyword"] == why.elsewhere["hybrid"] == 1


def test_each_word_of_the_question_points_at_its_like_in_the_passage(herd: Workbench) -> None:
    hit = herd.search("goat climbs", limit=1)[0]
    why = herd.explain("goat climbs", hit.passage_id, limit=1)
    assert [(word.query_token, word.passage_token.lower()) for word in why.alignment] == [
        ("goat", "goat"),
        ("climbs", "climbs"),
    ]
    text = herd.documents.get(hit.document_id).text or ""
    climbs = why.alignment[1]
    assert climbs.similarity == pytest.approx(1) and text[climbs.start : climbs.end] == "climbs"
    assert sum(word.weight for word in why.alignment) == pytest.approx(1)


def test_terms_the_passage_lacks_are_named(herd: Workbench) -> None:
    why = herd.explain("goat yodels", document_id=document(herd, "goat"), elsewhere=False)
    assert why.missing_terms == ("yodel",)


def test_a_document_outside_the_scope_is_reported_as_outside(herd: Workbench) -> None:
    scope = Scope(documents=(document(herd, "n01"),))
    why = herd.explain("goat", document_id=document(herd, "goat"), scope=scope, elsewhere=False)
    assert why.outcome == outcome.NOT_IN_SCOPE and why.rank is None


def test_a_document_beyond_the_legs_first_n_has_its_true_ranks(herd: Workbench) -> None:
    why = herd.explain("sheep", document_id=document(herd, "goat"), limit=5, elsewhere=False)
    assert why.outcome == outcome.NOT_RETRIEVED
    rank = why.legs["vector"].rank or 0
    assert rank > COUNT and "keyword" not in why.legs
    assert f"ank {rank} by similarity" in why.reason and "top 50" in why.reason
    short = herd.explain("sheep", document_id=document(herd, "goat"), strategy="vector", limit=5, elsewhere=False)
    assert short.outcome == outcome.NOT_RETRIEVED and "vector returns the top 5" in short.reason


def test_only_a_strategy_of_one_leg_reports_how_many_it_returns(herd: Workbench) -> None:
    """Feedback has a leg with its own name, but returns more than that leg's first passages."""
    far = document(herd, "goat")
    said = {
        name: herd.explain("sheep", document_id=far, strategy=name, limit=5, elsewhere=False).reason
        for name in ("vector", "feedback", "mmr", "window")
    }
    assert [name for name, reason in said.items() if f"{name} returns the top" in reason] == ["vector"]


def test_a_document_that_the_legs_brought_but_fusion_did_not_keep_is_reported_so(herd: Workbench) -> None:
    ranking = herd.search("sheep", "hybrid", 40)
    lost = ranking[30].document_id
    why = herd.explain("sheep", document_id=lost, strategy="hybrid", limit=5, elsewhere=False)
    assert why.outcome == outcome.LOST_IN_FUSION and "Rank 31" in why.reason


def test_a_document_that_rerank_did_not_lift_is_reported_so(herd: Workbench) -> None:
    ranking = herd.search("sheep", "rerank", 40)
    why = herd.explain("sheep", document_id=ranking[30].document_id, limit=5, elsewhere=False)
    assert why.outcome == outcome.LOST_IN_RERANK and "after rerank" in why.reason


def test_a_passage_shown_within_another_is_reported_as_such(herd: Workbench) -> None:
    best = herd.search("llama", "window", 1)[0]
    inner = next(p.node_id for p in herd.documents.passages(best.document_id) if p.node_id != best.passage_id)
    why = herd.explain("llama", inner, strategy="window", limit=1, parameters={"neighbours": 10}, elsewhere=False)
    assert why.outcome == outcome.IS_SHOWN_WITHIN and "within rank 1" in why.reason


def find_drop(why: Explanation) -> str | None:
    """Return the step at which the passage was dropped."""
    return next((step.name for step in why.steps if not step.kept), None)


def test_the_trace_names_the_step_where_a_document_was_dropped(herd: Workbench) -> None:
    ranking = herd.search("sheep", "rerank", 40)
    lost, first = ranking[30].document_id, ranking[0].document_id
    goat, n01 = document(herd, "goat"), document(herd, "n01")
    only = Scope(documents=(n01,))
    assert find_drop(herd.explain("sheep", document_id=first, limit=5, elsewhere=False)) is None
    assert find_drop(herd.explain("sheep", document_id=lost, limit=5, elsewhere=False)) == "cluster"
    assert find_drop(herd.explain("sheep", document_id=goat, limit=5, elsewhere=False)) == "legs"
    assert find_drop(herd.explain("goat", document_id=goat, scope=only, elsewhere=False)) == "scope"
    hybrid = herd.search("sheep", "hybrid", 40)[30].document_id
    assert find_drop(herd.explain("sheep", document_id=hybrid, strategy="hybrid", limit=5, elsewhere=False)) == "fused"


def test_the_trace_counts_the_passages_and_the_rank_after_each_step(herd: Workbench) -> None:
    lost = herd.search("sheep", "rerank", 40)[30].document_id
    why = herd.explain("sheep", document_id=lost, limit=5, elsewhere=False)
    steps = {step.name: step for step in why.steps}
    assert list(steps) == ["index", "scope", "legs", "fused", "late", "cluster", "Pages", "shown"]
    assert steps["index"].count == steps["scope"].count == sum(item.passages_count for item in herd.documents.list())
    assert (steps["shown"].count, steps["shown"].rank, steps["cluster"].rank) == (5, None, 31)
    assert "ank " in steps["legs"].detail
    found = herd.explain("sheep", document_id=lost, limit=40, elsewhere=False)
    assert found.steps[-1].rank == found.rank == 31 and found.steps[-2].rank == 31


def test_words_of_the_question_are_held_against_the_words_of_the_passage(herd: Workbench) -> None:
    hit = herd.search("goat climbs", limit=1)[0]
    compared = herd.explaining.word_by_word("a goat climbs", hit.passage_id)
    words = {compared.question[word.start : word.end]: word for word in compared.words}
    assert sum(word.weight for word in words.values()) == pytest.approx(1)
    best = words["climbs"].likes[0]
    assert compared.text[best.start : best.end] == "climbs" and best.similarity == pytest.approx(1)
    assert compared.text.startswith(compared.context) and compared.text.endswith(hit.text)
    with pytest.raises(NotFound, match="Passage not found"):
        herd.explaining.word_by_word("goat", "psg_x")


def test_a_document_that_an_index_does_not_hold_is_reported_as_not_there(herd: Workbench) -> None:
    herd.indexes.create("empty", chunker="sentence")
    why = herd.explain("goat", document_id=document(herd, "goat"), index="empty")
    assert (why.outcome, why.passage_id) == (outcome.NOT_INDEXED, None) and "build the index" in why.reason


def test_a_document_outside_the_scope_is_not_named_even_if_the_index_lacks_it(herd: Workbench) -> None:
    herd.indexes.create("lacking", chunker="sentence")
    other = herd.sources.create("Other")
    why = herd.explain("goat", document_id=document(herd, "goat"), index="lacking", scope=Scope(sources=(other.id,)))
    assert (why.outcome, why.document_title) == (outcome.NOT_IN_SCOPE, "")
    passage = herd.documents.passages(document(herd, "goat"))[0].node_id
    why = herd.explain("goat", passage, scope=Scope(sources=(other.id,)))
    assert (why.outcome, why.document_id, why.document_title) == (outcome.NOT_IN_SCOPE, "", "")


def test_what_cannot_be_explained_is_refused_with_a_sentence(herd: Workbench) -> None:
    with pytest.raises(InvalidInput, match="either a passage_id or a document_id"):
        herd.explain("goat")
    with pytest.raises(NotFound, match="Passage not found: psg_x"):
        herd.explain("goat", "psg_x")
    with pytest.raises(NotFound, match="Document not found"):
        herd.explain("goat", document_id="doc_x'\x00")


def test_an_explanation_is_plain_json(herd: Workbench) -> None:
    import json

    why = herd.explain("goat climbs", document_id=document(herd, "goat"))
    assert json.loads(json.dumps(why.to_dict()))["legs"]["vector"]["rank"] == 1


def test_the_rank_elsewhere_is_exact_far_down(herd: Workbench) -> None:
    ranking = [hit.passage_id for hit in herd.search("sheep", strategy="vector", limit=200)]
    assert len(ranking) > 60
    for place in (21, 59):
        why = herd.explain("sheep", ranking[place], strategy="keyword", limit=1)
        assert why.elsewhere["vector"] == place + 1
