"""The text of a card: rendered lines, the most relevant part, and marks on question words and similar words."""

from hypothesis import given
from hypothesis import strategies as st

from workbench.app.compare.board import render_card


def pieces(nodes):
    for node in nodes:
        if isinstance(node, tuple):
            yield node
        else:
            yield from pieces(node.get("in", []))


def shown(nodes):
    return "".join(text for _, segments in pieces(nodes) for text, _ in segments)


def words(query, text, language="english", **more):
    made = render_card(query, text, (), language, **more)
    return ["".join(text for text, _ in segments) for matched, segments in pieces(made) if matched]


def form(nodes):
    return [(line.get("class", ""), shown([line])) for line in nodes]


def test_words_match_by_their_stem_and_function_words_do_not():
    text = "Ranked lists: the ranking of rankings, not ranch."
    assert words("How are rankings made?", text) == ["Ranked", "ranking", "rankings"]


def test_neighbouring_matches_are_one_mark():
    assert words("late interaction", "The late interaction") == ["late interaction"]


def test_other_languages_use_their_own_stemmer_and_chinese_its_pairs():
    assert words("Haus Häuser", "Die Häuser der Stadt", "german") == ["Häuser"]
    assert words("東京タワー", "きのう東京タワーへ行った") == ["東京タワー"]


STORABLE = st.characters(exclude_characters="\0", exclude_categories=["Cs"])  # what Postgres takes


@given(st.text(), st.text(STORABLE, max_size=300), st.sampled_from(["markdown", "text", "code"]))
def test_any_text_has_a_card_and_its_marks_are_words_of_the_text(query, text, kind):
    made = render_card(query, text, (), document_type=kind)
    assert all(line["tag"] == "p" for line in made)
    for matched, segments in pieces(made):
        joined = "".join(piece for piece, _ in segments)
        assert not matched or joined in text


def test_each_heading_item_row_and_line_of_code_is_a_line_of_its_own_without_signs():
    source = (
        "## Setup\n\n- **Bold** and `code`\n- a [link](to.md)\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n"
        "> Quoted.\n\n```python\nx = 1\n\n    y = 2\n```\n\n***\n\nWith $a^2$."
    )
    made = render_card("", source)
    assert form(made) == [
        ("heading", "Setup"), ("item", "Bold and code"), ("item", "a link"), ("rows", "a b 1 2"),
        ("", "Quoted."), ("code", "x = 1"), ("code", "    y = 2"), ("", "With a2."),
    ]  # fmt: skip
    bold, _, code = made[1]["in"][0]["in"]
    assert (bold["tag"], code["tag"]) == ("strong", "code")
    assert form(made[3]["in"][::2]) == [("row heading", "a b"), ("row", "1 2")]
    assert [cell["class"] for row in made[3]["in"][::2] for cell in row["in"][::2]] == ["cell"] * 4
    assert made[2]["in"][0]["in"][-1] == {
        "tag": "span",
        "class": "link",
        "title": "to.md",
        "in": [(False, [("link", 0)])],
    }


def test_headings_shown_elsewhere_are_left_out_and_signs_within_words_stay():
    assert form(render_card("", "# nDCG\n\n## By hand\n\nText.", ["nDCG", "By hand"])) == [("", "Text.")]
    assert form(render_card("", "set ef_search and *this*")) == [("", "set ef_search and this")]


def test_html_in_a_passage_is_shown_as_it_was_written():
    source = "a <img src=x onerror=alert(1)> b"
    assert form(render_card("", source)) == [("", source)]


def test_code_keeps_its_signs_and_a_plain_text_has_no_code_for_its_indents():
    assert form(render_card("", "# a comment\n\ndef f(*x):\n    pass", document_type="code")) == [
        ("code", "# a comment"), ("code", "def f(*x):"), ("code", "    pass"),
    ]  # fmt: skip
    assert form(render_card("", "    Set in from the side.", document_type="text")) == [("", "Set in from the side.")]


def test_the_cut_shows_where_the_matches_are():
    text = "Nothing here. " * 40 + "The tide gauge measures the tide. " + "Nothing there. " * 40
    made = shown(render_card("tide gauge", text))
    assert made.startswith("… The tide gauge")
    assert made.endswith("Nothing …")
    rows = "| a | b |\n|---|---|\n" + "| x | nothing |\n" * 60 + "| y | tide gauge |\n" + "| x | nothing |\n" * 60
    assert form(render_card("tide gauge", rows)) == [("rows", "a b y tide gauge x nothing")]


SALES = """# Review

The table shows sales by region.

| Region | Head | Note | 2024 Q3 | 2024 Q4 | 2025 Q1 |
| --- | --- | --- | --- | --- | --- |
| North | Ann | a | 1,204 | 1,310 | 1,198 |
| South | Bea | b | 980 | 1,012 | 1,104 |
| East | Cem | c | 411 | (38) | 402 |

East had a loss.
"""


def test_a_table_shows_the_row_and_the_column_in_question_below_its_column_names():
    table = render_card("East region sales in Q4", SALES, ["Review"])[0]
    assert form([table]) == [("rows", "Region 2024 Q3 2024 Q4 South 980 1,012 East 411 (38)")]
    names, *rows = table["in"][::2]
    assert names["class"] == "row heading"
    assert [row["in"][-1].get("align") for row in rows] == ["right", "right"]
    assert words("East region sales in Q4", SALES) == ["Region", "Q4", "East"]


CONTINUED = "| Technology and content | 28,837 | 35,931 |\n| Marketing | 13,814 | 18,878 |\n\nCosts of marketing."


def test_a_table_that_starts_before_the_passage_is_a_table_below_its_header():
    header = "|  | Year 2018 | Year 2019 |\n| --- | --- | --- |"
    made = render_card("technology and content 2018", CONTINUED, table_header=header)
    assert form(made) == [("rows", " Year 2018 Year 2019 Technology and content 28,837 35,931 Marketing 13,814 18,878")]
    assert words("technology 2018", CONTINUED, table_header=header) == ["Technology"]  # the header is not the passage's


def test_words_that_names_of_neighbouring_columns_start_with_are_left_out():
    text = "| | Year ended 31, 2018 | Year ended 31, 2019 | Year to date |\n|-|-|-|-|\n| Sales | 1 | 2 | 3 |\n"
    assert form(render_card("sales", text)) == [("rows", " … 2018 … 2019 Year to date Sales 1 2 3")]
    assert words("sales of 2019", text) == ["2019", "Sales"]


def test_rows_whose_header_is_unknown_are_still_a_table():
    for header in ("", "| other | table |\n| --- | --- |"):
        made = render_card("technology and content", CONTINUED, table_header=header)
        assert form(made) == [("rows", "Technology and content 28,837 35,931 Marketing 13,814 18,878")]


def test_prose_that_matches_more_than_any_row_is_shown_as_it_was():
    text = "# Review\n\nWhy East had a loss: the depot was closed.\n\n" + SALES.partition("region.\n\n")[2]
    assert shown(render_card("why was the depot in East closed", text)).startswith("Review" + "Why East had a loss")


def test_a_sheets_records_are_rows_of_a_table_on_its_card():
    text = "".join(f"Vessel: {name}\nLength (m): {size}\n\n" for name, size in (("Heron", 46), ("Ibis", 50)))
    assert form(render_card("length of Ibis", text, document_type="xlsx")) == [
        ("rows", "Vessel Length (m) Heron 46 Ibis 50")
    ]
    assert form(render_card("length of Ibis", text, document_type="markdown"))[0] == (
        "",
        "Vessel: Heron\nLength (m): 46",
    )


def test_an_underline_follows_its_word_through_the_markdown_and_may_be_within_a_mark():
    text = "## Keep\n\n[Keep](keep.md) the **token** vectors and keep them."
    last, token = text.rindex("keep"), text.index("token")
    likes = {(last, last + 4): 3, (token, token + 3): 1}  # a piece of a word marks the word
    made = render_card("token vectors", text, likes=likes)
    assert [(matched, segment) for matched, segments in pieces(made) for segment in segments if segment[1]] == [
        (True, ("token", 1)),
        (False, ("keep", 3)),
    ]


OPTIONS = """| Option | Default | Description | Remarks |
|---|---|---|---|
| `max_connections` | 100 | The greatest number of clients that are connected at the same time | Needs a restart |
| `statement_timeout` | 0 | A statement that takes longer than this is cancelled, and rolled back | Zero: none |
"""


def test_a_row_whose_cells_are_too_long_for_columns_is_a_line_of_cells_behind_their_columns_names():
    made = render_card("when is a statement cancelled", OPTIONS)
    told = (
        "statement_timeout · Description: A statement that takes longer than this is cancelled, and rolled back · "
        "Default: 0 · Remarks: Zero: none"
    )
    assert form(made) == [("record", told)]
    assert words("when is a statement cancelled", OPTIONS) == ["statement", "statement", "cancelled"]
    every = form(render_card("nothing of it", OPTIONS))
    assert [kind for kind, _ in every] == ["record", "record"] and every[0][1].startswith(
        "max_connections · Default: 100"
    )


def test_the_excerpt_starts_at_the_sentence_with_the_most_different_words_of_the_question():
    filler = "Nothing of interest happens in this part of the text, which only makes it longer than a card can be. " * 3
    one_word = "A gauge is a gauge, and another gauge is like the first gauge, says the gauge maker. "
    answer = "The tide gauge records the level of the sea. "
    card = shown(render_card("How does the gauge record the sea level?", filler + one_word + filler + answer + filler))
    assert card.startswith("… The tide gauge records")


def test_a_row_with_a_word_that_the_sentence_with_most_words_lacks_is_shown_before_it():
    rows = "".join(f"| E{number} | Fault {number} | Do {number} |\n" for number in range(1, 13))
    lead = "The display of the pump shows the code of an alarm until a key is pressed."
    made = render_card(
        "Which alarm does the pump's display show with E9?",
        f"{lead}\n\n| Code | Meaning | Remedy |\n|---|---|---|\n{rows}",
    )
    assert form(made) == [("record", "E9 · Meaning: Fault 9 · Remedy: Do 9"), ("", lead)]
    assert shown(render_card("the pump's display", f"{lead}\n\n| Code | Do |\n|---|---|\n{rows}")).startswith(lead)


def test_short_lines_count_as_lines_so_that_the_fourth_is_not_taken_for_visible():
    text = "Seals\n\nChange them.\n\nOil it.\n\nRinse it.\n\nAlarm codes are on the plate."
    assert shown(render_card("alarm", text, document_type="text")).startswith("… Alarm codes")
    assert shown(render_card("rinse", text.replace("Oil it.\n\n", ""), document_type="text")).startswith("Seals")
