"""The data of the why panel: the texts in pieces, the score in parts, the trace of an expected document."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from workbench import Workbench
from workbench.app.compare.why import build_expected_data, build_panel_data, split_question, split_text
from workbench.app.shell.finder import ROUTES
from workbench.app.state.shared import OPENING

DOCS = {
    "cats.md": "# Cats\n\nCats purr when content.",
    "x.md": "# <b>Dogs</b>\n\nDogs bark at <script>strangers</script>. 🐕 Dogs run.",
    "tales/2018_cats.md": "# Old tales\n\nOnce upon a time.",
}


@pytest.fixture
def animals(wb: Workbench, folder: Callable[..., Path]) -> Workbench:
    """Three documents on animals."""
    wb.ingest(folder(DOCS), source="Animals")
    return wb


def drawn(wb: Workbench, question: str, strategy: str = "rerank") -> dict:
    """Return the panel's data for the first hit."""
    result = wb.search(question, strategy)
    why = wb.explain(question, result[0].passage_id, strategy=strategy)
    compared = wb.explaining.word_by_word(question, result[0].passage_id)
    return json.loads(json.dumps(build_panel_data(why, compared, strategy, result)))


def test_a_hit_is_taken_apart_into_parts_words_and_ranks(animals: Workbench) -> None:
    data = drawn(animals, "when do cats purr loudly")
    assert (data["title"], data["rank"], data["found"], data["reason"]) == ("Cats", 1, True, "")
    own = next(bar for bar in data["bars"] if bar["own"])
    assert sum(part["adds"] for part in own["parts"]) == pytest.approx(float(own["score"]), abs=0.001)
    assert own["score"] == data["score"] and len(data["bars"]) == len(animals.search("when do cats purr loudly"))
    assert {term["word"] for term in data["terms"]} == {"cats", "purr"}
    assert data["missing"] == ["loudly"]
    assert data["elsewhere"][0] == {
        "name": "rerank", "title": "Rerank", "hue": "violet", "shape": "diamond", "rank": 1, "own": True,
    }  # fmt: skip


def test_the_pieces_of_a_text_joined_are_the_text_and_hold_its_marks(animals: Workbench) -> None:
    hit = animals.search("bark strangers run", limit=1)[0]
    compared = animals.explaining.word_by_word("do dogs run from strangers?", hit.passage_id)
    context, text = split_text(compared)
    assert "".join(piece[0] for piece in text) == hit.text and "".join(piece[0] for piece in context).endswith(
        "<b>Dogs</b>"
    )
    question = split_question(compared)
    assert "".join(piece for piece, _ in question) == compared.question
    places = {piece: str(place) for piece, place in question if place is not None}
    assert set(places) == {"dogs", "run", "strangers"}
    after_emoji = next(piece for piece in text if piece[0] == "run")
    assert after_emoji[1] and after_emoji[2] == 3 and after_emoji[3] == {places["run"]: 1.0}


def test_what_a_passage_holds_stays_as_it_is(animals: Workbench) -> None:
    data = drawn(animals, "<script>strangers")
    assert data["title"] == "<b>Dogs</b>" and "<script>" in "".join(piece[0] for piece in data["text"])


def test_an_expected_document_comes_with_its_steps(animals: Workbench) -> None:
    dogs = animals.search("bark", limit=1)[0].document_id
    why = animals.explain("purr", document_id=dogs, strategy="keyword", elsewhere=False)
    data = build_expected_data(why, "x.md")
    assert [(step["name"], step["kept"]) for step in data["steps"]] == [
        ("index", True),
        ("scope", True),
        ("legs", False),
        ("shown", False),
    ]
    assert "no match by BM25" in data["reason"]


def test_documents_are_searched_by_words_of_title_path_and_address(animals: Workbench) -> None:
    titles = [item.title for item in animals.documents.list(named="CATS 2018")]
    assert titles == ["Old tales"] and animals.documents.count(named="cats") == 2
    assert animals.documents.count(named=" ") == 3 and animals.documents.count(named="a\x00b") == 0
    OPENING.use(animals)
    client = TestClient(Starlette(routes=ROUTES))
    answer = client.get("/find/documents", params={"q": "2018  cats"}).json()
    assert [(row["title"], row["where"].endswith("2018_cats.md")) for row in answer] == [("Old tales", True)]
    assert client.get("/find/documents", params={"q": " "}).json() == []


def test_rows_of_a_table_that_starts_before_are_below_the_names_of_its_columns(
    wb: Workbench, folder: Callable[..., Path]
) -> None:
    rows = "\n".join(f"| station {number} | {number * 7} m | gauge-{number} | read daily |" for number in range(120))
    table = f"| Station | Height | Gauge | Habit |\n|---|---|---|---|\n{rows}\n"
    wb.ingest(folder({"gauges.md": f"# Gauges\n\n{table}"}), source="Gauges")
    result = wb.search("gauge-117", "keyword")
    hit = result[0]
    assert hit.text.startswith("| station") and "Height" not in hit.text
    why = wb.explain("gauge-117", hit.passage_id, strategy="keyword")
    compared = wb.explaining.word_by_word("gauge-117", hit.passage_id)
    header = wb.answers.table_headers([hit], result.index)[hit.passage_id]
    named = json.dumps(build_panel_data(why, compared, "keyword", result, "markdown", header)["blocks"])
    assert '"table"' in named and "Height" in named
    assert "117" in named
    assert "|" not in named
    unnamed = json.dumps(build_panel_data(why, compared, "keyword", result, "markdown")["blocks"])
    assert '"table"' in unnamed and "Height" not in unnamed and "| " not in unnamed
