"""A member of a JSON file is set and taken out, and every other letter stays: comments, order, trailing commas."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.app.connect.connections import member, setting, with_member, with_raw, without_member
from workbench.errors import InvalidInput

AT = ("servers", "mine")
COMMENTED = """// settings of the editor
{
  "theme": "dark", // not light
  /* those of others */
  "servers": {
    "theirs": { "command": "x", "args": ["a", "b",], },
  },
  "size": 12
}
"""
names = st.text(st.characters(codec="utf-8"), max_size=6)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)


def test_comments_and_trailing_commas_stay_where_they_are() -> None:
    written = with_member(COMMENTED, AT, {"command": "y"})
    assert member(written, AT) == {"command": "y"}
    assert member(written, ("servers", "theirs")) == {"command": "x", "args": ["a", "b"]}
    assert [line for line in COMMENTED.splitlines() if line not in written.splitlines()] == []
    assert member(without_member(written, AT), AT) is None
    assert "// not light" in without_member(written, AT) and '"theirs"' in without_member(written, AT)


@pytest.mark.parametrize("text", ["", "{}", "{ }\n", '{"a": 1}', '{\n  "a": [1, {}],\n}\n', '{"servers": {}}'])
def test_a_file_of_any_shape_takes_the_member_and_gives_it_back(text: str) -> None:
    written = with_member(text, AT, {"command": "y", "args": []})
    assert member(written, AT) == {"command": "y", "args": []}
    if "," not in text.rstrip("}\n "):
        assert json.loads(written)["servers"]["mine"]["command"] == "y"
    assert member(without_member(written, AT), AT) is None


ODD = [
    COMMENTED,
    COMMENTED.replace("\n", "\r\n"),
    COMMENTED.replace("  ", "\t"),
    "\ufeff" + COMMENTED,
    '{"size": 12 // px, of letters\n}\n',
    "{ /* none yet */ }",
    '{"servers":{"theirs":{"command":"x"}},"size":12}',
    '{\n    "servers": {\n        "theirs": {} // theirs\n    }\n}\n',
    " \n",
    "",
]


@pytest.mark.parametrize("text", ODD)
def test_what_is_written_is_one_piece_and_its_reverse_gives_the_text_back(text: str) -> None:
    piece = setting(text, AT, {"command": "y", "args": ["z"]})
    written = piece.applied(text)
    assert member(written, AT) == {"command": "y", "args": ["z"]}
    assert written.count(piece.written) == 1
    assert written.replace(piece.written, piece.removed) == text


@pytest.mark.parametrize("text", [text for text in ODD if "theirs" in text])
def test_taking_a_member_out_again_leaves_no_trace(text: str) -> None:
    assert without_member(with_member(text, AT, {"command": "y"}), AT) == text


def test_a_file_keeps_its_ends_of_lines_and_its_indents() -> None:
    written = with_member(ODD[1], AT, {"command": "y"})
    assert written.count("\n") == written.count("\r\n")
    assert '\n\t\t"mine": {\n\t\t\t"command"' in with_member(ODD[2], AT, {"command": "y"})
    assert '\n        "mine": {\n            "command"' in with_member(ODD[7], AT, {"command": "y"})


def test_letters_of_a_value_come_back_as_they_were() -> None:
    raw = '{ "command" : "old", /* mine */ }'
    text = with_raw(COMMENTED, AT, raw)
    assert raw in text and member(text, AT) == {"command": "old"}
    assert with_raw(with_member(text, AT, {"command": "y"}), AT, raw) == text


@given(st.dictionaries(names, values, max_size=4), values, st.sampled_from([None, 1, 2]))
def test_nothing_else_of_any_json_changes(around: dict[str, object], value: object, indent: int | None) -> None:
    if not isinstance(around.get("servers", {}), dict):
        around.pop("servers")
    text = json.dumps(around, indent=indent, ensure_ascii=False)
    written = with_member(text, AT, value)  # pyright: ignore[reportArgumentType]
    servers = around.get("servers", {})
    assert isinstance(servers, dict)
    assert json.loads(written) == around | {"servers": servers | {"mine": value}}
    assert json.loads(without_member(written, AT)).get("servers", {}) == {
        name: kept for name, kept in servers.items() if name != "mine"
    }


@pytest.mark.parametrize("text", ["[]", "{", '{"servers": [}', '{"a" 1}', "{} x", '{"servers": 3}', "no", '{"a": tru}'])
def test_a_text_that_is_no_json_object_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        with_member(text, AT, {})
