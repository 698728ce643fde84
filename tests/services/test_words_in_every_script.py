"""Keyword search in scripts without spaces between words, and with or without optional points."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from workbench import Workbench
from workbench.text import fold_word, iter_spaced_words, split_grams

TEXTS = {
    "thai-river.md": "# แม่น้ำ\n\nแม่น้ำเจ้าพระยาไหลผ่านกรุงเทพมหานครและเป็นเส้นทางขนส่งสินค้าที่สำคัญ",
    "thai-food.md": "# อาหาร\n\nต้มยำกุ้งเป็นอาหารที่มีรสเผ็ดและเปรี้ยว นิยมรับประทานกับข้าวสวย",
    "lao.md": "# ນະຄອນ\n\nນະຄອນຫຼວງວຽງຈັນເປັນເມືອງຫຼວງຂອງປະເທດລາວ",
    "khmer.md": "# ប្រាសាទ\n\nប្រាសាទអង្គរវត្តជាប្រាសាទហិណ្ឌូធំបំផុត",
    "burmese.md": "# မြို့\n\nရန်ကုန်မြို့သည် မြန်မာနိုင်ငံ၏ အကြီးဆုံးမြို့ဖြစ်သည်",
    "japanese.md": "# 検索\n\n検索エンジンは文書の索引を作り、質問に答える。",
    "hindi.md": "# खोज\n\nहिन्दी में खोज इंजन शब्दों को ढूँढता है।",
    "arabic.md": "# المكتبة\n\nفي المكتبة كُتُبٌ كثيرة عن تاريخ المدينة.",
    "hebrew.md": "# ספרייה\n\nבספרייה יש סְפָרִים רבים על תולדות העיר.",
}
ASKED = {
    "กรุงเทพ": "แม่น้ำ", "ข้าวสวย": "อาหาร", "ວຽງຈັນ": "ນະຄອນ", "អង្គរវត្ត": "ប្រាសាទ", "မြန်မာ": "မြို့",
    "検索エンジン": "検索", "खोज इंजन": "खोज", "كتب": "المكتبة", "ספרים": "ספרייה",
}  # fmt: skip


@pytest.fixture
def many_scripts(wb: Workbench, folder: Callable[..., Path]) -> Workbench:
    """Nine scripts in one source."""
    wb.ingest(folder(TEXTS), source="Scripts")
    return wb


def test_a_word_within_a_run_finds_its_document(many_scripts: Workbench) -> None:
    first = {question: many_scripts.search(question, "keyword", limit=3)[0].document_title for question in ASKED}
    assert first == ASKED


def test_the_database_and_the_marks_cut_words_alike(many_scripts: Workbench) -> None:
    with psycopg.connect(many_scripts.corpus.database.url) as connection:
        for text in TEXTS.values():
            cut = connection.execute("SELECT tsvector_to_array(workbench_terms('simple', %s))", (text,)).fetchone()
            assert cut is not None
            plain = fold_word(text)
            assert set(cut[0]) == split_grams(plain) | {word.group() for word in iter_spaced_words(plain)}


def test_words_with_invisible_signs_are_found_by_the_plain_word_and_the_reverse(wb: Workbench) -> None:
    signs = {"mark": "\u200e", "joiner": "\u200d", "isolate": "\u2069", "grapheme": "\u034f", "space": "\u200b"}
    words = dict(zip(signs, ("harbour", "lantern", "anchor", "capstan", "bollard"), strict=True))
    for name, word in words.items():
        wb.documents.create(text=f"The {word[:3]}{signs[name]}{word[3:]} is old.", title=name)
    asked = list(words.items())
    asked += [(name, f"{word[:3]}{signs[name]}{word[3:]}") for name, word in words.items()]
    assert [wb.search(word, "keyword", limit=1)[0].document_title for _, word in asked] == [name for name, _ in asked]
    wb.documents.create(text="من می\u200cخواهم 👩\u200d✈️", title="kept")
    kept = wb.documents.get(wb.search("می\u200cخواهم", "keyword", limit=1)[0].document_id)
    assert kept.text == "من می\u200cخواهم 👩\u200d✈️"
