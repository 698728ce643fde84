"""The text of a card: plain words, the telling part, matched words marked."""

from workbench.app.excerpt import excerpt, marked, plain, stems_of


def words(segments):
    return [text for text, matched in segments if matched]


def test_words_match_by_their_stem():
    segments = marked("Ranked lists: the ranking of rankings, not ranch.", stems_of("How are rankings made?"))
    assert words(segments) == ["Ranked", "ranking", "rankings"]


def test_function_words_are_not_marked_unless_there_is_nothing_else():
    assert words(marked("What is the time?", stems_of("what is the meaning of time"))) == ["time"]
    assert words(marked("To be or not to be", stems_of("to be"))) == ["To be", "to be"]


def test_neighbouring_matches_are_one_mark():
    assert words(marked("late interaction", stems_of("late interaction"))) == ["late interaction"]


def test_the_stretches_are_the_text_again():
    text = "A <script>alert('x')</script> & 💥 ranking\u0000s"
    assert "".join(part for part, _ in marked(text, stems_of("ranking script"))) == text


def test_codes_match_whole():
    assert words(marked("SQLSTATE 40001 is not 4000.", stems_of("40001"))) == ["40001"]


def test_markdown_becomes_running_text():
    source = "## Setup\n\n- **Bold** and `code`\n- a [link](to.md)\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    assert plain(source) == "Setup — · Bold and code · a link a · b 1 · 2"


def test_headings_shown_elsewhere_are_left_out():
    assert plain("# nDCG\n\n## By hand\n\nText.", ["nDCG", "By hand"]) == "Text."


def test_names_with_underscores_stay_whole():
    assert plain("set ef_search and *this*") == "set ef_search and this"


def test_the_excerpt_shows_where_the_matches_are():
    text = "Nothing here. " * 40 + "The tide gauge measures the tide. " + "Nothing there. " * 40
    shown = excerpt(text, stems_of("tide gauge"))
    assert shown[0] == ("… ", False)
    assert "".join(part for part, _ in shown)[2:].startswith("The tide gauge")


def test_other_languages_use_their_own_stemmer():
    assert words(marked("Die Häuser der Stadt", stems_of("Haus Häuser", "german"), "german")) == ["Häuser"]
