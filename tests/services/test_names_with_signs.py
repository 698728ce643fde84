"""Tokens with signs in their name are found before others with the same parts, in every spelling."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import psycopg
import pytest

from workbench import Scope, Workbench
from workbench.marking import split_matches
from workbench.text import find_joined, find_names, is_code, normalise

TEXTS = {
    "old.md": "Release 2.3.1 of the pump software, with 1 new valve, 3 fixes. Version 3.2.1 follows 2.3.1.",
    "new.md": "Release 1.3.2 of the pump software mends the valve.",
    "plus.md": "The driver of the winch is written in C++ and compiled on board.",
    "sharp.md": "The driver of the lamp is written in C# and needs .NET to run.",
    "plain.md": "The driver of the horn is written in C and uses the net of the harbour.",
    "joined.md": "Filter PPR9087 fits the bilge pump.",
    "dashed.md": "Filter PPR-9088 fits the fire pump, as do PPR 9085 and filter 9087 of the series K.",
    "host.md": "The gauge answers at 10.0.0.12 on the inner network; the lamp has 12 of 10.",
    "emoji.md": "The crew marks a good catch with 🐟 in the log.",
    "ligature.md": "The \ufb01sh o\ufb03ce opens at nine.",
    "wide.md": "Pier ＡＢＣ１２３ is closed.",
    "wide2.md": "Valve ＸＹＺ－７７１ has release ４．１．７ of Ｆ＃.",
    "hyphen.md": "Valve STU\u2011771 is dry.",
    "net.md": "The quay's net is 10.8.0.0/24.",
    "net2.md": "The quay's net is 10.8.0.0/16, with 24 hosts.",
    "path.md": "Edit /etc/quay/hosts.allow.",
    "path2.md": "Allow hosts of quay etc; edit hosts, etc.",
    "mail.md": "Write to mia.holm@quay.example.",
    "mail2.md": "Write to holm.mia@quay.example, holm mia.",
    "uuid.md": "Ticket 3f2b8c1e-77aa-4d1b-9e0f-5c6d7e8f9a0b.",
    "uuid2.md": "Ticket 5c6d7e8f9a0b-77aa-4d1b-9e0f-3f2b8c1e.",
    "mac.md": "Scanner 00:1B:44:11:3A:B7.",
    "mac2.md": "Scanner 11:3A:B7:00:1B:44.",
    "part.md": "Take part AB/2210/7.",
    "part2.md": "Take part 7/2210/AB.",
    "node.md": "A daemon in node.js.",
    "node2.md": "The js node: node daemon, js.",
    "chip.md": "Builds for x86-64.",
    "chip2.md": "Builds for 64 x86.",
    "learn.md": "Fits with scikit-learn.",
    "learn2.md": "Learn; scikit fits.",
    "phone.md": "A bill of AT&T.",
    "issue.md": "Mends #4711.",
    "issue2.md": "4711 pumps, 4711.",
    "section.md": "Rule 4.12 of the quay.",
    "section2.md": "Rule 12.4 of the quay.",
    "flag.md": "Ships of 🇸🇪 berth here.",
    "flag2.md": "Ships of 🇸🇳 berth there, 🇪🇪 too.",
    "code.md": "Valve KLM2231 fits the sea cock.",
    "blank.md": "Valve QRS 2233 fits the deck hose.",
}
ASKED = {
    "1.3.2": "new.md", "release 2.3.1": "old.md", "C++": "plus.md", "C#": "sharp.md", ".NET": "sharp.md",
    "PPR-9087": "joined.md", "PPR9088": "dashed.md", "10.0.0.12": "host.md", "🐟": "emoji.md",
    "10.8.0.0/24": "net.md", "10.8.0.0": "net.md", "/etc/quay/hosts.allow": "path.md", "hosts.allow": "path.md",
    "mia.holm@quay.example": "mail.md",
    "3f2b8c1e-77aa-4d1b-9e0f-5c6d7e8f9a0b": "uuid.md", "00:1b:44:11:3a:b7": "mac.md",
    "AB/2210/7": "part.md", "node.js": "node.md", "x86_64": "chip.md", "scikit-learn": "learn.md", "AT&T": "phone.md",
    "#4711": "issue.md", "4.12": "section.md", "🇸🇪": "flag.md",
    "KLM 2231": "code.md", "klm-2231": "code.md", "qrs-2233": "blank.md",
    "Ｃ＋＋": "plus.md", "ＰＰＲ－９０８８": "dashed.md", "１．３．２": "new.md", "XYZ-771": "wide2.md",
    "4.1.7": "wide2.md", "F#": "wide2.md", "PPR\u20139087": "joined.md", "PPR\u20119087": "joined.md",
    "STU-771": "hyphen.md",
    "fish office": "ligature.md", "ABC123": "wide.md", "ﬁsh": "ligature.md", "bil\u00adge": "joined.md",
}  # fmt: skip


@pytest.fixture
def named(wb: Workbench, folder: Callable[..., Path]) -> Workbench:
    """Documents with versions, languages, codes, addresses and emoji."""
    wb.ingest(folder(TEXTS), source="Names")
    return wb


@pytest.mark.parametrize("strategy", ["keyword", "hybrid"])
def test_a_name_finds_its_document_first(named: Workbench, strategy: str) -> None:
    assert {question: named.search(question, strategy, limit=3)[0].path for question in ASKED} == ASKED


@pytest.mark.parametrize("strategy", ["hybrid", "rerank"])
def test_a_question_that_is_only_a_code_counts_words_before_similarity(named: Workbench, strategy: str) -> None:
    """The vectors are as near to other versions, as those of models that read digits one by one."""
    hits = named.search("1.3.2", strategy, limit=3)
    assert hits[0].path == "new.md"
    assert hits[0].score > 2 * hits[1].score
    assert [is_code(text) for text in ("1.3.2", "PPR-9087?", "release 2.3.1", "state-of-the-art", "2030")] == [
        True, True, False, False, False,
    ]  # fmt: skip


SPELLINGS = [  # one in the document, the other in the question
    ("bolts of 5 mm", "5mm"), ("ISO 9001", "ISO9001"), ("python 3.11", "python3.11"), (".NET", "dotnet"),
    ("Filter PPR 9087", "PPR9087"), ("Filter QRS-9087", "QRS 9087"), ("sacks of 10kg", "10 kg"),
    ("USB-C", "USBC"), ("an e-mail", "email"), ("a Wi-Fi mast", "wifi"), ("node.js", "nodejs"),
    ("vitamin B 12", "B12"), ("a 16GB card", "16 GB"),
    ("a screw M8×40", "M8x40"), ("tiles of 30 × 60", "30x60"),
    ("eine Hochdruck-Pumpe", "Hochdruckpumpe"), ("die Straße am Kai", "Strasse"),
]  # fmt: skip


@pytest.mark.parametrize("is_swapped", [False, True])
def test_documents_are_found_in_other_spellings(wb: Workbench, folder: Callable[..., Path], is_swapped: bool) -> None:
    pairs = [pair[::-1] if is_swapped else pair for pair in SPELLINGS]
    files = [f"{chr(ord('a') + number)}.md" for number in range(len(pairs))]
    texts = {file: f"The clerk noted {written} today." for file, (written, _) in zip(files, pairs, strict=True)}
    others = {
        "old.md": "ISO 9002 is old.",
        "older.md": "ISO 9003.",
        "net.md": "It has 15 mm and 20 kg.",
        "b.txt": "B 14.",
        "size.txt": "M8 and 45, 30 and 50.",
    }
    wb.ingest(folder(texts | others), source="Spellings")
    asked = {question: wb.search(question, "keyword", limit=1) for _, question in pairs}
    firsts = {question: hits[0].path if hits else None for question, hits in asked.items()}
    assert firsts == {question: file for file, (_, question) in zip(files, pairs, strict=True)}


def test_a_code_is_found_before_one_with_its_signs_elsewhere(wb: Workbench, folder: Callable[..., Path]) -> None:
    texts = {"a.md": "The model A4-B/7 fits.", "b.md": "The model A4/B-7 fits.", "c.md": "The model A4 B 7 fits."}
    wb.ingest(folder(texts), source="Models")
    firsts = [wb.search(code, "keyword", limit=1)[0].path for code in ("A4/B-7", "A4-B/7")]
    assert firsts == ["b.md", "a.md"]


def test_signs_in_full_width_and_hyphens_are_folded_inside_names_only() -> None:
    written = "Ｃ＋＋ and C＃, ＴＣＰ／ＩＰ, １．３．２, PPR\u20119087; ＡＢＣ．次, 価格＋税, ＃１"
    folded = "C++ and C#, TCP/IP, 1.3.2, PPR-9087; ABC．次, 価格＋税, ＃1"
    assert normalise(written) == normalise(folded) == folded
    assert normalise("PPR\u20139087, 20\u201330") == "PPR-9087, 20\u201330"
    assert normalise("ＰＰＲ\u2013９０８７") == "PPR-9087"
    assert split_matches("c++ ppr-9087", "C++, PPR-9087") == [("C++", True), (", ", False), ("PPR-9087", True)]


def test_another_spelling_is_marked_and_its_parts_are_not_searched_alone(named: Workbench) -> None:
    assert ("M8 × 40", True) in split_matches("M8x40", "A screw M8 × 40.")
    assert split_matches("email of 5mm", "An e-mail, 5 mm.") == [
        ("An ", False), ("e-mail", True), (", ", False), ("5 mm", True), (".", False),
    ]  # fmt: skip
    assert split_matches("wi-fi 10 kg", "Wifi: 10kg") == [("Wifi", True), (": ", False), ("10kg", True)]
    assert not named.search("FY4711", "keyword")  # the documents have 4711, but no FY
    assert [joined for joined, _, _ in find_joined("1.3.2, 24/7, 20 30, 2030-03-05, NO93 8601 1117")] == [
        "no938601", "no9386011117",
    ]  # fmt: skip


def test_a_spelling_outside_the_scope_does_not_hide_the_words_inside(named: Workbench) -> None:
    for source, text in (("One", "Paper A4 is here."), ("Two", "The paper has a 4.")):
        two = named.sources.create(source).id
        named.documents.create(text=text, title=source, source=two)
    assert not named.search("A4", "keyword", scope=Scope(sources=(two,)))  # "a" is a stop word, and 4 is another number
    assert [hit.document_title for hit in named.search("paper A4", "keyword", scope=Scope(sources=(two,)))] == ["Two"]


def test_another_spelling_is_searched_in_a_scope_without_passages(named: Workbench) -> None:
    for scope in (Scope(since=date(2999, 1, 1)), Scope(documents=("absent",)), Scope(metadata=("colour=red",))):
        found = named.search("PPR-9087 and the e-mail of Mia", "keyword", scope=scope)
        assert not found and "keyword: the scope has no passages" in found.degraded


def test_a_name_outside_the_scope_changes_no_search(named: Workbench) -> None:
    """Only other sources have these names, so their parts are looked up, as if the source were the only one."""
    alone = named.sources.create("Alone").id
    texts = {"c": "The horn is driven by C.", "numbers": "It has 1 new valve, 3 fixes and 2 pumps.", "net": "The net."}
    for title, text in texts.items():
        named.documents.create(text=text, title=title, source=alone)
    scope = Scope(sources=(alone,))
    asked = {"C++": "c", "1.3.2": "numbers", ".NET": "net"}
    assert {name: named.search(name, "keyword", limit=1, scope=scope)[0].document_title for name in asked} == asked
    assert named.search("C++", "keyword", limit=1)[0].path == "plus.md"


def test_grouped_numbers_are_words_and_names_add_no_length(named: Workbench) -> None:
    text = "It has 1.204.331 parts. See end.Next and 3.14, or 2031-02-03; ACME™ made 10⁶ of them."
    query = "SELECT tsvector_to_array(t) AS terms, workbench_length(t) AS length FROM workbench_terms('simple', %s) t"
    with psycopg.connect(named.corpus.database.url) as connection:
        row = connection.execute(query, (text,)).fetchone()
    assert row is not None
    words = {"1204331", "acme", "tm", "10", "6", "next", "end", "3", "14", "2031", "02", "03"}
    assert words <= set(row[0])
    assert {term for term in row[0] if not term.isalnum()} == {"end.next", "3.14"}
    assert {"20310203"} == {term for term in row[0] if term.startswith("20310")}
    assert row[1] == 21


def test_both_languages_find_the_same_names(named: Workbench) -> None:
    texts = [*TEXTS.values(), *ASKED, "C#/F#, package-1.3.2.tar.gz, https://quay.example/a_b?c=1#d, 1.204, 9:30, A+"]
    with psycopg.connect(named.corpus.database.url) as connection:
        for text in map(normalise, texts):
            rows = connection.execute("SELECT name FROM workbench_names(%s)", (text,)).fetchall()
            assert {row[0] for row in rows} == {name for name, _, _ in find_names(text)}
