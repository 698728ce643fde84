"""Long answers are split into parts: totals are correct, no part is empty, and the note names the next call."""

from __future__ import annotations

import json
import re

import pytest

from mcp_app.paging import (
    TOKEN_BUDGET,
    Items,
    TextPart,
    count_skipped,
    cut_to_budget,
    format_next_call,
    slice_text,
    tokens,
)
from mcp_app.tool import dump_json
from workbench.types import JsonObject, JsonValue

WORDS = "word " * 200
HAN = "检索增强生成" * 200


def results(count: int, text: str, title: str = "T", **more: JsonValue) -> JsonObject:
    items: list[JsonObject] = [{"id": f"psg_{number:018x}", "title": title, "text": text} for number in range(count)]
    return {"success": True, "results": items, "count": count, **more}


def shown(answer: JsonObject, parts: Items | TextPart, **given: JsonValue) -> tuple[JsonObject, str]:
    _, text = cut_to_budget(answer, parts, dump_json, "search", dict(given), dict(given))
    return json.loads(text), text


def test_a_short_answer_is_left_as_it_is() -> None:
    answer = results(3, "short")
    assert shown(answer, Items())[0] == answer


@pytest.mark.parametrize(("text", "title"), [(WORDS, "T"), (HAN, "题" * 200)])
def test_a_long_list_gives_its_first_items_whole_and_the_exact_next_call(text: str, title: str) -> None:
    read, written = shown(results(50, text, title), Items(), query="q", match_count=50)
    kept = read["results"]
    assert tokens(written) <= TOKEN_BUDGET
    assert isinstance(kept, list)
    assert 0 < len(kept) == read["count"] < 50
    assert kept[-1] == {"id": f"psg_{len(kept) - 1:018x}", "title": title, "text": text}
    assert read["note"] == (
        f'Items 1 to {len(kept)}, and more match. Next: search(query="q", match_count=50, offset={len(kept)})'
    )


def test_a_count_that_is_the_total_by_specification_stays_the_total() -> None:
    read, _ = shown(results(50, WORDS), Items(count="", total="count"))
    assert (read["count"], "of 50. Next: search(offset=" in str(read["note"])) == (50, True)


def test_further_items_are_announced_even_if_nothing_was_cut() -> None:
    assert "note" not in shown(results(5, "x", more=False), Items(), query="q")[0]
    read, _ = shown(results(5, "x", more=True), Items(), query="q", offset=5)
    assert read["note"] == 'Items 6 to 10, and more match. Next: search(query="q", offset=10)'
    read, _ = shown(results(10, "x", total_count=45), Items(total="total_count"), page=2, per_page=10)
    assert read["note"] == "Items 11 to 20 of 45. Next: search(per_page=10, offset=20)"


def test_every_item_is_reached_once_by_following_the_notes() -> None:
    items = [{"id": number, "text": WORDS} for number in range(60)]
    reached: list[int] = []
    offset = 0
    while offset is not None:
        read, _ = shown({"items": items[offset:], "total": 60}, Items("items", total="total"), offset=offset)
        assert isinstance(read["items"], list)
        reached += [item["id"] for item in read["items"]]
        following = re.search(r"offset=(\d+)\)", str(read.get("note", "")))
        offset = int(following.group(1)) if following else None
    assert reached == list(range(60))


def test_a_bare_array_stays_an_array_of_its_items_and_the_last_one_carries_the_note() -> None:
    items = [{"slug": f"a{number}", "text": WORDS} for number in range(50)]
    value, text = cut_to_budget(
        {"items": items, "total": 50}, Items("items", total="total", bare=True), dump_json, "list", {}, {}
    )
    read = json.loads(text)
    assert value == read
    assert tokens(text) <= TOKEN_BUDGET
    assert [item["slug"] for item in read] == [f"a{number}" for number in range(len(read))]
    assert ["note" in item for item in read] == [False] * (len(read) - 1) + [True]


def test_a_long_text_comes_in_parts_that_make_the_whole() -> None:
    whole = "".join(f"Line {number}.\n" for number in range(20_000))
    parts: list[str] = []
    offset = 0
    while offset < len(whole):
        read, text = shown({"id": "d", **slice_text(whole, offset, 24_000)}, TextPart(), document="d", offset=offset)
        assert tokens(text) <= TOKEN_BUDGET
        assert (read["offset"], read["total_chars"], read["length"]) == (offset, len(whole), len(str(read["content"])))
        parts.append(str(read["content"]))
        offset += len(parts[-1])
        assert ("note" in read) == (offset < len(whole))
        assert offset == len(whole) or str(read["note"]).endswith(f'Next: search(document="d", offset={offset})')
    assert "".join(parts) == whole


def test_the_next_call_of_a_route_is_its_address() -> None:
    assert (
        format_next_call("GET /api/rag/sources", {"scope": "global"}, offset=20)
        == "GET /api/rag/sources?scope=global&offset=20"
    )
    path = "GET /api/projects/{project_id}/folders"
    assert format_next_call(path, {"project_id": "p"}, offset=2) == "GET /api/projects/p/folders?offset=2"
    assert (
        format_next_call("POST /api/rag/query", {"query": "q"}, offset=5)
        == 'POST /api/rag/query {"query": "q", "offset": 5}'
    )


def test_an_offset_outranks_the_page() -> None:
    assert count_skipped({"page": 3, "per_page": 10, "offset": None}) == 20
    assert count_skipped({"page": 3, "per_page": 1000, "offset": None}) == 40  # at most 20 a page
    assert count_skipped({"page": 3, "per_page": 10, "offset": 7}) == 7
    assert count_skipped({}) == 0


def test_the_last_item_of_an_array_keeps_its_own_note_next_to_the_arrays() -> None:
    items = [{"slug": "a"}, {"slug": "b", "note": 'The content continues. Next: get_article(slug="b", offset=9)'}]
    parts = Items("articles", total="total", bare=True)
    shown, _ = cut_to_budget({"articles": items, "total": 3}, parts, json.dumps, "search_articles", {"offset": 0}, {})
    assert isinstance(shown, list) and isinstance(shown[1], dict)
    assert shown[1]["note"] == f"{items[1]['note']}. Items 1 to 2 of 3. Next: search_articles(offset=2)"
