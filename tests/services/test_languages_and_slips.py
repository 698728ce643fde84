"""Words: stemmed in each document's language, corrected if misspelled, with notes on failures."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from psycopg import sql

from workbench import Workbench
from workbench.errors import ModelError
from workbench.retrieval.options import Ask

GERMAN = {
    "haus.md": "# Häuser\n\nDie alten Häuser der Stadt wurden im Winter von den Handwerkern sorgfältig saniert.",
    "wald.md": "# Der Wald\n\nIm Wald wachsen viele Bäume, und die Vögel singen dort am frühen Morgen ihre Lieder.",
}
JAPANESE = {
    "tokyo.md": "# 東京\n\n東京は日本の首都であり、世界最大級の都市圏を形成している。",
    "sushi.md": "# 寿司\n\n寿司は酢飯と魚介類を組み合わせた日本料理である。",
}
ENGLISH = {"harbour.md": "# Harbours\n\nThe harbour master keeps the lighthouse burning through the night."}


@pytest.fixture
def polyglot(wb: Workbench, folder: Callable[..., Path]) -> Workbench:
    """Three languages in one source."""
    wb.ingest(folder(GERMAN | JAPANESE | ENGLISH), source="Polyglot")
    return wb


@pytest.mark.parametrize(
    ("query", "title"),
    [
        ("Haus sanieren", "Häuser"),  # another form of both words
        ("singende Vögel im Wald", "Der Wald"),
        ("日本の首都", "東京"),
        ("寿司", "寿司"),
        ("酢飯", "寿司"),
        ("burns at night", "Harbours"),
    ],
)
def test_each_language_is_searched_by_its_own_words(polyglot: Workbench, query: str, title: str) -> None:
    result = polyglot.search(query, "keyword", 2)
    assert result[0].document_title == title
    assert result[0].attribution["keyword"].rank == 1


def test_documents_are_stored_with_their_language(polyglot: Workbench) -> None:
    languages = {
        polyglot.corpus.documents.record(document.id).title: polyglot.corpus.documents.record(document.id).language
        for document in polyglot.documents.list()
    }
    assert (languages["Häuser"], languages["東京"], languages["Harbours"]) == ("german", "cjk", "english")


@pytest.mark.parametrize("strategy", ["keyword", "hybrid", "rerank", "mmr"])
def test_a_misspelled_word_is_tried_as_the_known_one_and_marked(polyglot: Workbench, strategy: str) -> None:
    result = polyglot.search("lighthuose", strategy, 1)
    assert result[0].document_title == "Harbours"
    assert result[0].attribution["keyword"].score > 0
    assert result.corrections == {"lighthuose": ("lighthouse",)}  # a word, not the stem that the index knows


def test_known_words_and_words_like_none_are_left_alone(polyglot: Workbench) -> None:
    assert polyglot.search("lighthouse").corrections == {}
    assert polyglot.search("xqzvw").corrections == {}
    assert polyglot.search("lighthuose", "vector").corrections == {}


@pytest.fixture
def without_model(polyglot: Workbench) -> Workbench:
    """The same corpus with an index built with a model that is not installed here."""
    polyglot.corpus.database.rows(sql.SQL("UPDATE indexes SET embedding_model = 'nowhere:gone'"))
    return polyglot


def test_if_the_model_is_missing_keywords_are_used_alone_and_it_is_reported(without_model: Workbench) -> None:
    result = without_model.search("lighthouse at night", "rerank", 2)
    assert result[0].document_title == "Harbours"
    assert "only keyword search was used" in " ".join(result.degraded)
    assert " ".join(result.degraded).count("was built with the model 'nowhere:gone'") == 1
    nothing = without_model.search("xqzvw", "hybrid", 2)  # no passage has the word
    assert "was built with the model 'nowhere:gone'" in " ".join(nothing.degraded)
    assert "vector" not in result[0].attribution
    assert without_model.search("lighthouse", "keyword", 1)[0].document_title == "Harbours"
    assert without_model.ask("What keeps the lighthouse burning?").kind == "extracts"
    checks = {check.name: check for check in without_model.health.doctor()}
    assert not checks["embedding model"].ok and "'nowhere:gone'" in checks["embedding model"].detail


def test_an_index_of_an_earlier_form_of_its_model_serves_words_and_reports_how_to_build_a_new_one(
    polyglot: Workbench,
) -> None:
    polyglot.corpus.database.rows(sql.SQL("UPDATE indexes SET dimensions = 7"))
    told = r"has 7 dimensions, from an earlier version of the model 'hash', .* create NEW --model hash --build"
    with Workbench.open(settings=polyglot.settings) as later:
        result = later.search("lighthouse at night", "rerank", 2)
        assert result[0].document_title == "Harbours"
        assert re.search(told, " ".join(result.degraded))
        with pytest.raises(ModelError, match=told):
            later.search("lighthouse", "vector")
        with pytest.raises(ModelError, match=told):
            later.documents.create(text="A buoy.", title="Buoy", source=result[0].source_id)
        later.indexes.create("new", chunker="structure")
        later.indexes.build("new")  # with vectors of its own
        assert later.indexes.count_missing("new") == 0


def test_a_strategy_that_is_meaning_alone_reports_which_model_is_missing(without_model: Workbench) -> None:
    with pytest.raises(ModelError, match=r"index 'main' was built with the model 'nowhere:gone', which is unavailable"):
        without_model.search("lighthouse", "vector")
    with pytest.raises(ModelError, match="nowhere:gone"):
        without_model.search_service.search("lighthouse", Ask("keyword", min_similarity=0.5))
