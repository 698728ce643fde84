"""The text of a card: plain words, the telling part, the words marked that the question has or that are like them."""

from hypothesis import given
from hypothesis import strategies as st

from workbench.app.card_text import card_text, carried, plain


def words(query, text, language="english", **more):
    return [piece for piece, matched, _ in card_text(query, text, (), language, **more) if matched]


def test_words_match_by_their_stem_and_function_words_do_not():
    text = "Ranked lists: the ranking of rankings, not ranch."
    assert words("How are rankings made?", text) == ["Ranked", "ranking", "rankings"]


def test_neighbouring_matches_are_one_mark():
    assert words("late interaction", "The late interaction") == ["late interaction"]


def test_other_languages_use_their_own_stemmer_and_chinese_its_pairs():
    assert words("Haus Häuser", "Die Häuser der Stadt", "german") == ["Häuser"]
    assert words("東京タワー", "きのう東京タワーへ行った") == ["東京タワー"]


@given(st.text(), st.text(max_size=300))
def test_the_stretches_joined_are_the_running_text(query, text):
    assert "".join(piece for piece, _, _ in card_text(query, text)) == plain(text)


def test_markdown_becomes_running_text_and_headings_shown_elsewhere_are_left_out():
    source = "## Setup\n\n- **Bold** and `code`\n- a [link](to.md)\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    assert plain(source) == "Setup — · Bold and code · a link a · b 1 · 2"
    assert plain("| | a |\n|---|---|\n| b | |") == "a b"
    assert plain("# nDCG\n\n## By hand\n\nText.", ["nDCG", "By hand"]) == "Text."
    assert plain("set ef_search and *this*") == "set ef_search and this"


def test_the_cut_shows_where_the_matches_are():
    text = "Nothing here. " * 40 + "The tide gauge measures the tide. " + "Nothing there. " * 40
    shown = card_text("tide gauge", text)
    assert shown[0] == ("… ", False, 0)
    assert "".join(piece for piece, _, _ in shown)[2:].startswith("The tide gauge")
    assert shown[-1] == (" …", False, 0)


def test_an_underline_follows_its_word_through_the_markdown_and_may_stand_within_a_mark():
    text = "## Keep\n\n[Keep](keep.md) the **token** vectors and keep them."
    last, token = text.rindex("keep"), text.index("token")
    likes = {(last, last + 4): 3, (token, token + 3): 1}  # a piece of a word marks the word
    shown = card_text("token vectors", text, likes=likes)
    assert [segment for segment in shown if segment[2]] == [("token", True, 1), ("keep", False, 3)]
    assert carried(text, plain(text), likes) == {(plain(text).rindex("keep"), plain(text).rindex("keep") + 4): 3} | {
        (plain(text).index("token"), plain(text).index("token") + 5): 1
    }
