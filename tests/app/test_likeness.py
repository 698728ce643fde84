"""The underlined words of hits: those that late interaction found similar to the question's."""

from dataclasses import replace

from workbench.app.compare.matches import find_similar_words, find_underlines
from workbench.retrieval.explain import Alignment


def test_the_hits_of_rerank_have_their_words_underlined_where_they_are(wb, folder):
    text = "# Tides\n\nThe gauge stands in a stilling well.\n\n# Bread\n\nKnead the dough."
    wb.ingest(folder({"a.md": text}), source="Tides")
    comparison = wb.compare("stilling gauge", strategies=["vector", "rerank"])
    found = find_similar_words(wb, comparison)
    assert len(found) == len(comparison.strategies["rerank"])
    first = comparison.strategies["rerank"][0]
    spans = found[f"{first.document_id}:{first.start}-{first.end}"]
    assert {first.text[start:end]: strength for (start, end), strength in spans.items()} == {"stilling": 3, "gauge": 3}
    assert find_similar_words(wb, wb.compare("stilling gauge", strategies=["vector", "keyword"])) == {}


def test_chance_function_words_signs_and_words_of_the_heading_are_not_underlined(wb, folder):
    wb.ingest(folder({"a.md": "The tide keeps the level."}), source="Tides")
    hit = replace(wb.search("tide")[0], start=100)
    kept = Alignment("store", "keeps", 0.35, 0.5, 109, 114)
    others = [
        replace(kept, similarity=0.2),
        replace(kept, passage_token="in", start=101, end=103),
        replace(kept, passage_token=".", start=120, end=121),
        replace(kept, weight=0.0, start=104, end=108),
        replace(kept, start=None, end=None),
        replace(kept, similarity=0.5),
    ]
    assert find_underlines(hit, [kept, *others]) == {(9, 14): 2}
