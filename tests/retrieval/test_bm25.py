"""BM25: weights that a reader can check by hand, and the postings in SQL compared with the formula."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from workbench import Workbench
from workbench.retrieval.bm25 import idf, max_score, term_idf, weigh_terms
from workbench.storage.passages import QueryTerm, ScopeTotals

TEXTS = {
    "a.txt": "apple apple banana",
    "b.txt": "banana cherry",
    "c.txt": "cherry cherry cherry damson elderberry fig",
}


def test_idf_is_the_logarithm_of_how_rare_a_term_is() -> None:
    assert idf(1, 3) == pytest.approx(math.log(1 + 2.5 / 1.5))
    assert idf(3, 3) == pytest.approx(math.log(1 + 0.5 / 3.5))


def test_idf_of_a_term_that_other_languages_share_is_never_negative() -> None:
    assert idf(10, 3) == pytest.approx(math.log(1 + 0.5 / 10.5))


def test_a_term_in_all_passages_of_its_language_is_as_common_as_can_be() -> None:
    assert term_idf(QueryTerm("the", 1, 2, 1, 2), 1000) == pytest.approx(idf(1000, 1000))
    assert term_idf(QueryTerm("rare", 1, 1, 1, 1000), 1000) == pytest.approx(idf(1, 1000))


def test_unknown_terms_carry_no_weight() -> None:
    terms = [QueryTerm("apple", 1, 1, 1, 3), QueryTerm("zebra", None, 0, 2, 3)]
    weights = weigh_terms(terms, ScopeTotals(3, 4.0, ("english",)))
    assert weights.ids == (1,)
    assert weights.weights == pytest.approx((idf(1, 3) * 2.5,))
    assert (weights.a, weights.c) == pytest.approx((1.5 * 0.25, 1.5 * 0.75 / 4.0))
    assert max_score(weights) == pytest.approx(idf(1, 3) * 2.5)


def test_the_postings_score_as_the_formula_does(wb: Workbench, folder: Callable[..., Path]) -> None:
    wb.ingest(folder(TEXTS), source="Fruit")
    passages = {name: Counter((name[0] + " " + text).split()) for name, text in TEXTS.items()}  # the title counts too
    average = sum(sum(words.values()) for words in passages.values()) / 3
    for hit in wb.search("apple cherry", strategy="keyword"):
        words = passages[hit.path]
        length = sum(words.values()) - (hit.path == "a.txt")  # "a" is a stop word
        expected = 0.0
        for term, df in (("apple", 1), ("cherry", 2)):
            tf = words[term]
            expected += idf(df, 3) * tf * 2.5 / (tf + 1.5 * (0.25 + 0.75 * length / ((average * 3 - 1) / 3)))
        assert hit.attribution["keyword"].score == pytest.approx(expected, rel=1e-6)


def test_a_few_documents_in_another_language_do_not_make_stop_words_rare(
    wb: Workbench, folder: Callable[..., Path]
) -> None:
    english = {
        f"e{i}.txt": f"The history of the railway in the county, part {i}, told by the people." for i in range(3)
    }
    english |= {
        f"o{i}.txt": f"The recipes of the kitchen in the valley, part {i}, kept by the cooks." for i in range(9)
    }
    odd = {"x.txt": "Żółć gęślą jaźń the of in by 東京都 — Łódź; Ðe of the in."}
    wb.ingest(folder(english | odd), source="Mixed")
    hits = wb.search("what is the history of the railway in the county", strategy="keyword", limit=3)
    assert {hit.path[0] for hit in hits} == {"e"}
