"""A result reports that nothing close was found, with the reason; an unreadable question hides no word matches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from workbench import Workbench
from workbench.display import result_html, result_text
from workbench.models.registry import find_thresholds
from workbench.retrieval.evidence import FULL_COVERAGE, MIN_COVERAGE, is_evidence
from workbench.retrieval.options import Ask
from workbench.retrieval.strategies import STRATEGIES

TEXTS = {
    "otters.md": "# Otters\n\nOtters sleep on their backs and hold hands so that they do not drift apart.",
    "bridges.md": "# Bridges\n\nA suspension bridge hangs its deck from cables that run over two towers.",
    "search.md": "# 検索\n\n検索エンジンは文書を探すための道具です。",
}
USUAL = ("vector", "hybrid", "rerank", "keyword", "fuzzy")


@pytest.fixture
def corpus(minilm_wb: Workbench, folder: Callable[..., Path]) -> Workbench:
    """Three documents read by the real model, one in Japanese."""
    minilm_wb.ingest(folder(TEXTS), source="Mixed")
    return minilm_wb


def test_evidence_is_nearness_or_most_of_the_words() -> None:
    minilm = find_thresholds("minilm")
    assert is_evidence(0.41, 0.0, minilm) and not is_evidence(0.39, 0.0, minilm)
    assert is_evidence(0.21, MIN_COVERAGE, minilm) and not is_evidence(0.19, MIN_COVERAGE, minilm)
    assert is_evidence(0.99, MIN_COVERAGE, None) and not is_evidence(0.99, 0.5, None)
    assert is_evidence(None, MIN_COVERAGE, minilm) and not is_evidence(None, 0.5, minilm)
    assert is_evidence(0.05, FULL_COVERAGE, minilm) and is_evidence(0.05, MIN_COVERAGE, minilm, has_code=True)


def test_a_passage_that_holds_a_code_or_a_rare_name_is_not_reported_as_far(
    corpus: Workbench, folder: Callable[..., Path]
) -> None:
    corpus.ingest(folder({"codes.md": "# Faults\n\nE4017 stops the lift between two floors. Ring Kowalczyk."}, "codes"))
    for question in ("what is E4017?", "Kowalczyk"):
        result = corpus.search(question, "rerank")
        assert result[0].path == "codes.md" and result.evidence.close, question
    assert not corpus.search("what is E5555?", "rerank").evidence.close


def test_an_answer_reads_the_sentences_of_a_passage_that_is_far_as_a_whole(
    corpus: Workbench, folder: Callable[..., Path]
) -> None:
    filler = " ".join(f"The committee of the county met in room {n} and adjourned at noon." for n in range(20))
    fact = "Emperor penguins can hold their breath under water for half an hour."
    corpus.ingest(folder({"minutes.md": f"# Minutes\n\n{filler} {fact} {filler}"}, "minutes"), source="Minutes")
    question = "How long do large seabirds stay submerged?"
    assert not corpus.search(question, "rerank").evidence.close
    assert corpus.ask(question, "rerank").text.startswith(fact)


def test_gibberish_is_marked_by_every_strategy_and_a_real_question_by_none(corpus: Workbench) -> None:
    for strategy in USUAL:
        real = corpus.search("why do otters hold hands while they sleep?", strategy)
        assert real.evidence.close and real.evidence.reason == "" and real[0].document_title == "Otters"
    for strategy in ("vector", "hybrid", "rerank"):
        noise = corpus.search("qwzx vbnk plorf", strategy)
        assert len(noise) and not noise.evidence.close
        assert noise.evidence.reason.startswith("Nothing close was found: top similarity 0.")
        assert noise.to_dict()["evidence"] == {"close": False, "reason": noise.evidence.reason}
        assert noise.evidence.reason in result_text(noise)
        assert noise.evidence.reason.partition(":")[0] in result_html(noise)


def test_a_result_agrees_with_an_answer_about_the_same_passages(corpus: Workbench) -> None:
    for question in ("what holds up the deck of a suspension bridge?", "qwzx vbnk plorf", "price of crude oil in 1986"):
        result, answer = corpus.search(question, "rerank", limit=6), corpus.ask(question, "rerank")
        assert answer.refused != result.evidence.close, question


def test_a_question_that_the_model_cannot_read_reports_it_and_is_judged_by_its_words(corpus: Workbench) -> None:
    found = corpus.search("検索エンジン", "hybrid")
    assert found.evidence.close and found[0].document_title == "検索"
    assert any("cannot read this question" in note for note in found.degraded)
    lost = corpus.search("погода в Москве завтра", "hybrid")
    assert not lost.evidence.close and "cannot read the question" in lost.evidence.reason
    assert not corpus.search("who holds hands?", "hybrid").degraded


ARABIC = {
    "tower.md": "يقع البرج القديم في وسط المدينة، ويبلغ ارتفاعه ثلاثمئة متر، وقد بناه المهندسون قبل مئة عام.",
    "bread.md": "يخبز الخباز الخبز في الفرن كل صباح، ويبيعه لأهل الحي بسعر زهيد.",
    "sea.md": "تبحر السفن من الميناء إلى الجزر البعيدة محملة بالقمح والزيت.",
}


def test_a_right_passage_in_a_language_that_the_model_cannot_read_is_not_reported_as_far(
    corpus: Workbench, folder: Callable[..., Path]
) -> None:
    corpus.ingest(folder(ARABIC, "arabic"), source="Arabic")
    right = corpus.search("كم يبلغ ارتفاع البرج الذي بناه هؤلاء المهندسون؟", "rerank")
    assert right[0].path == "tower.md" and right.evidence.close
    wrong = corpus.search("من اخترع الهاتف المحمول في اليابان؟", "rerank")
    assert not wrong.evidence.close and "25%" in wrong.evidence.reason


def test_what_a_model_cannot_read_means_for_the_passages_is_reported_by_strategy(corpus: Workbench) -> None:
    by_meaning, *by_words = (corpus.search("検索エンジン", name).degraded for name in ("vector", "keyword", "hybrid"))
    for notes in by_words:
        assert "(trained on English) cannot read this question" in notes[0]
        assert "passages are found by the question's words" in notes[0]
    assert "this order means little; keyword, hybrid and rerank use" in by_meaning[0]


def test_a_question_in_a_language_that_the_model_was_not_trained_for_reports_it(corpus: Workbench) -> None:
    german = corpus.search("Wie hoch sind die Steuern für den Handel mit Holz?", "rerank").evidence
    assert german.reason.endswith("The question seems to be in German, but the model was trained on English.")
    for english in ("what are the taxes on the trade with wood?", "qwzx vbnk plorf", "price of crude oil in 1986"):
        assert "seems to be in" not in corpus.search(english, "rerank").evidence.reason


@pytest.mark.parametrize("strategy", ["keyword", "hybrid", "rerank", "fuzzy"])
def test_a_similarity_that_the_model_cannot_judge_hides_no_word_match(corpus: Workbench, strategy: str) -> None:
    strict = corpus.search_service.search("検索エンジン", Ask(strategy, min_similarity=0.9))
    assert [hit.document_title for hit in strict] == ["検索"]
    english = corpus.search_service.search("otters", Ask(strategy, min_similarity=0.99))
    assert len(english) == 0


def test_words_that_are_too_common_are_not_reported_as_missing(wb: Workbench, folder: Callable[..., Path]) -> None:
    def notes(query: str) -> str:
        return " ".join(wb.search(query, "keyword").degraded)

    wb.ingest(folder({"a.md": "# A\n\nThe end of the road and the way to the sea."}), source="English")
    assert "only stop words" in notes("the of and to")
    assert "no words to look up" in notes("?!")
    german = "Der Weg führt am Fluss entlang, und wir gehen ihn jeden Abend, weil die Luft dort kühl und frisch ist."
    wb.ingest(folder({"b.md": f"# B\n\n{german}"}, "more"), source="German")
    assert "only stop words" in notes("the of and to")
    assert "none of the question's words occur" in notes("zeppelin")


@pytest.mark.parametrize("query", ["the of and to", "?!"])
def test_words_that_mean_nothing_are_not_reported_as_held_to_no_share(corpus: Workbench, query: str) -> None:
    evidence = corpus.search(query, "vector").evidence
    assert not evidence.close
    assert "only very common words" in evidence.reason and "%" not in evidence.reason


def test_every_strategy_of_the_table_marks_its_results(wb: Workbench, folder: Callable[..., Path]) -> None:
    wb.ingest(folder(TEXTS), source="Mixed")
    for name, lacks in wb.requests.usable().items():
        if not lacks and not STRATEGIES[name].needs_scope:
            assert not wb.search("zyxwv qponm lkjih", name).evidence.close, name
