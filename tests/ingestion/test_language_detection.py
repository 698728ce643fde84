"""The detected text search configuration of a text."""

from __future__ import annotations

import pytest

from workbench.ingestion.text import detect_language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Retrieval finds the passages of a document that answer a question someone asked.", "english"),
        ("Die Suche findet die Abschnitte eines Dokuments, die eine gestellte Frage beantworten.", "german"),
        ("La recherche trouve les passages d'un document qui répondent à la question posée.", "french"),
        ("Поиск находит отрывки документа, которые отвечают на заданный вопрос пользователя.", "russian"),
        ("Wyszukiwanie znajduje fragmenty dokumentu, które odpowiadają na zadane pytanie.", "simple"),
        ("検索は文書の中から質問に答える文章を見つけます。", "cjk"),
        ("검색은 질문에 답하는 구절을 찾습니다.", "cjk"),
        ("short note", "english"),
        ("id: 17\nid: 18\nid: 19", "english"),
        ("123 456", "simple"),
        ("", "simple"),
    ],
)
def test_the_language_is_reported_and_thin_evidence_is_english_or_simple(text: str, language: str) -> None:
    assert detect_language(text) == language


def test_code_and_addresses_do_not_count_as_language() -> None:
    german = "Die Funktion gibt die Anzahl der Treffer zurück, die eine Frage beantworten. "
    code = "```python\nfor item in the_list_of_all_things: print(item and the other)\n```\n" * 20
    assert detect_language(code + german * 3) == "german"
