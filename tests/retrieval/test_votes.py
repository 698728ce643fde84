"""The weight of a leg's vote for a question, depending on what the model can read of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from workbench import Scope, Workbench
from workbench.retrieval.legs import compute_reading_confidence, compute_spread, is_foreign
from workbench.retrieval.options import Ask

ENGLISH = frozenset({"en"})


@pytest.mark.parametrize(("share", "vote"), [(1.0, 1.0), (0.8, 1.0), (0.65, 0.5), (0.5, 0.0), (0.0, 0.0)])
def test_the_vote_falls_with_what_the_model_cannot_read(share: float, vote: float) -> None:
    assert compute_reading_confidence(share, 3.0, is_foreign=False) == pytest.approx(vote)


@pytest.mark.parametrize(("stands_out", "vote"), [(2.5, 0.7), (2.0, 0.35), (1.5, 0.0), (None, 1.0)])
def test_in_a_foreign_language_similarities_that_do_not_stand_out_count_less(
    stands_out: float | None, vote: float
) -> None:
    assert compute_reading_confidence(1.0, stands_out, is_foreign=True) == pytest.approx(vote)


def test_the_spread_is_how_far_the_nearest_stand_out() -> None:
    assert compute_spread([1.0] * 3 + [0.0] * 9) == pytest.approx(0.75 / 0.1875**0.5)
    assert compute_spread([0.5] * 20) is None
    assert compute_spread([0.9, 0.1]) is None


@pytest.mark.parametrize(
    ("question", "indexed", "trained", "foreign"),
    [
        ("Wie hoch ist der Turm?", ("german",), ENGLISH, True),
        ("How high is the tower?", ("english",), ENGLISH, False),
        ("How high is the café?", ("english",), ENGLISH, False),
        ("How high is the tower?", ("english", "german"), ENGLISH, False),
        ("Wie groß ist der Turm?", ("english", "german"), ENGLISH, True),
        ("Wie hoch ist der Turm?", ("german",), frozenset({"de", "en"}), False),
        ("Wie hoch ist der Turm?", ("german",), None, False),
    ],
)
def test_a_question_is_foreign_in_a_language_outside_the_models_training(
    question: str, indexed: tuple[str, ...], trained: frozenset[str] | None, foreign: bool
) -> None:
    assert is_foreign(question, indexed, trained) is foreign


ARABIC = {
    "river.md": "# النهر\n\nيبلغ طول النهر ستة آلاف كيلومتر ويجري نحو الشمال عبر الصحراء.",
    "tower.md": "# البرج\n\nيبلغ ارتفاع البرج ثلاثمئة متر ويقع في وسط المدينة القديمة.",
    "market.md": "# السوق\n\nيفتح السوق أبوابه في الصباح الباكر ويبيع التمر والقهوة.",
    "school.md": "# المدرسة\n\nتضم المدرسة مكتبة كبيرة وثلاثين معلما من أنحاء البلاد.",
    "garden.md": "# الحديقة\n\nفي الحديقة أشجار النخيل وبرك الماء ومقاعد من الحجر.",
}


def test_the_real_model_does_not_outvote_words_that_it_cannot_read(
    minilm_wb: Workbench, folder: Callable[..., Path]
) -> None:
    minilm_wb.ingest(folder(ARABIC), source="Arabic")
    question = "كم يبلغ ارتفاع البرج؟"
    scope = Scope(sources=("Arabic",))
    by_words = [passage.passage_id for passage in minilm_wb.search(question, "keyword", scope=scope)]
    for strategy in ("hybrid", "rerank"):
        passage_ids = [passage.passage_id for passage in minilm_wb.search(question, strategy, scope=scope)]
        assert passage_ids[: len(by_words)] == by_words
    why = minilm_wb.explaining.explain(question, Ask("rerank", scope=scope), passage_id=by_words[0])
    assert (why.legs["vector"].vote, why.legs["late"].vote, why.legs["keyword"].vote) == (0.0, 0.0, 1.0)


def test_the_real_model_keeps_its_vote_in_english(minilm_wb: Workbench, folder: Callable[..., Path]) -> None:
    texts = {
        f"{n}.md": f"# Article {n}\n\nThe {n} lives in the forest and eats leaves." for n in ("deer", "hare", "elk")
    }
    minilm_wb.ingest(folder(texts), source="Forest")
    passage = minilm_wb.search("what does the elk eat?", "rerank")[0]
    why = minilm_wb.explaining.explain("what does the elk eat?", Ask("rerank"), passage_id=passage.passage_id)
    assert {"vector", "keyword", "late"} <= set(why.legs)
    assert {leg.vote for leg in why.legs.values()} == {1.0}


def test_a_question_without_a_known_word_is_still_searched_by_meaning(
    minilm_wb: Workbench, folder: Callable[..., Path]
) -> None:
    minilm_wb.ingest(folder(ARABIC), source="Arabic")
    assert minilm_wb.search("東京の塔", "rerank", scope=Scope(sources=("Arabic",))).results


ENGLISH_TEXTS = {
    "river.md": "# River\n\nThe river is six thousand kilometres long and flows north through the desert.",
    "tower.md": "# Tower\n\nThe tower is 300 metres high and stands in the middle of the old town.",
    "market.md": "# Market\n\nThe market opens early in the morning and sells dates and coffee. In was die so.",
    "school.md": "# School\n\nThe school has a large library and thirty teachers from all over the country.",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "question",
    ["كم يبلغ ارتفاع البرج 6000؟", "这座塔有多高？", "Wann öffnet der Markt, um Kaffee zu kaufen, die 6000?"],
)
def test_words_of_a_language_that_the_index_lacks_do_not_outvote_a_model_that_reads_both(
    multilingual_wb: Workbench, folder: Callable[..., Path], question: str
) -> None:
    multilingual_wb.ingest(folder(ENGLISH_TEXTS), source="English")
    result = multilingual_wb.search(question, "hybrid")
    assert any("a language that the index does not have" in note for note in result.degraded)
    first = multilingual_wb.search(question, "vector")[0]
    why = multilingual_wb.explaining.explain(question, Ask("rerank"), passage_id=first.passage_id)
    assert why.legs["vector"].vote == 1.0
    assert 0.6 <= why.legs["late"].vote < 0.9
    assert result[0].path == first.path


@pytest.mark.slow
def test_words_keep_their_vote_in_a_language_of_the_index(
    multilingual_wb: Workbench, folder: Callable[..., Path]
) -> None:
    multilingual_wb.ingest(folder(ENGLISH_TEXTS), source="English")
    for question in ("How high does the tower xyzzy stand?", "xyzzy", "Who sells the coffee and the frobnicators?"):
        passage = multilingual_wb.search(question, "rerank")[0]
        why = multilingual_wb.explaining.explain(question, Ask("rerank"), passage_id=passage.passage_id)
        assert {leg.vote for leg in why.legs.values()} == {1.0}
