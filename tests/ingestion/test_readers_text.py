"""Markdown, text, HTML, CSV, JSON, notebooks and code: what becomes text, title and metadata."""

from __future__ import annotations

import io
import json
import zipfile

import pytest

from tests.ingestion import files
from workbench.errors import UnreadableDocument
from workbench.ingestion.incoming import list_files
from workbench.ingestion.readers.formats import MAX_BYTES, READERS_BY_SUFFIX, check_size, read_bytes
from workbench.ingestion.readers.html import find_charset
from workbench.ingestion.text import decode_text

GERMAN = "Die Größe der Bäume übertrifft alles, was wir für möglich hielten."


def test_front_matter_becomes_plain_metadata_and_leaves_the_text() -> None:
    front = "title: Caching\ndate: 2024-05-01\ntags: [a, b]\nnested: {when: 2024-05-01 10:00:00}"
    document = read_bytes(f"---\n{front}\n---\n\n# Other\n\nBody.\n".encode(), "c.md")
    assert document.title == "Caching"
    assert document.text == "# Other\n\nBody."
    assert document.metadata["date"] == "2024-05-01" and document.metadata["tags"] == ["a", "b"]
    assert json.loads(json.dumps(document.metadata))["nested"] == {"when": "2024-05-01T10:00:00"}


@pytest.mark.parametrize("front", ["title: [open", "a: &x [1]\nb: *x", "just words", "a: !!python/object:os.x"])
def test_broken_front_matter_stays_in_the_text(front: str) -> None:
    document = read_bytes(f"---\n{front}\n---\n# Real title\n\nBody.".encode(), "c.md")
    assert front.split("\n")[0] in document.text
    assert document.metadata == {} and document.title == "Real title"


def test_the_title_is_the_first_heading_outside_code_else_the_file_name() -> None:
    assert read_bytes(b"```\n# no\n```\n\n## The **real** `one` [here](x) ##\n", "f.md").title == "The real one here"
    assert read_bytes(b"No heading at all.", "field-notes.md").title == "field-notes"
    section = b"Minutes of Monday.\n\n## Open points\n\n- Pumps"
    assert read_bytes(section, "minutes-7.md").title == "minutes-7"  # other minutes have a section of this name too
    assert read_bytes(b"Draft\n\n# Pumps\n", "a.md").title == "Pumps"
    badges = b"<p align=center>\n[![build](b.svg)](b)\n![logo](l.png)\n</p>\n\n## Pump tools\n\nText."
    assert read_bytes(badges, "README.md").title == "Pump tools"


def test_a_page_that_is_all_front_matter_is_read_by_its_description() -> None:
    assert (
        read_bytes(b"---\ntitle: Guides\ndescription: How to start.\n---\n", "_index.md").text
        == "# Guides\n\nHow to start."
    )


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("\ufeffcafé\r\nzwei\rdrei".encode(), "café\nzwei\ndrei"),
        ("naïve Größe".encode("utf-16"), "naïve Größe"),
        ("plain words in two bytes each".encode("utf-16-le"), "plain words in two bytes each"),
        (GERMAN.encode("cp1252"), GERMAN),
        ("cafe\u0301 and\u00a0more\u200b".encode(), "café and more"),
        (b"bell\x07 and \x1b[31mcolour", "bell and colour"),
    ],
)  # fmt: skip
def test_any_encoding_and_any_line_end_gives_the_same_clean_text(data: bytes, text: str) -> None:
    assert read_bytes(data, "a.txt").text == text


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.csv", "a.json", "a.py", "a.html", "a.ipynb"])
def test_nul_filled_binary_empty_and_blank_files_are_refused_in_a_sentence(name: str) -> None:
    for data, reason in ((bytes(5000), "binary"), (bytes(range(256)) * 20, "binary"), (b"", "is empty")):
        with pytest.raises(UnreadableDocument, match=reason):
            read_bytes(data, name)
    with pytest.raises(UnreadableDocument, match=f"'{name}'"):
        read_bytes(b" \n\t\n ", name)


def test_too_large_unknown_and_missing_files_are_refused_in_a_sentence(tmp_path) -> None:
    check_size("big.txt", MAX_BYTES)
    with pytest.raises(UnreadableDocument, match=r"'big\.txt' is too large"):
        check_size("big.txt", MAX_BYTES + 1)
    with pytest.raises(UnreadableDocument, match=r"\.exe\)\. Supported: Markdown, text"):
        read_bytes(b"MZ", "setup.exe")
    (tmp_path / "gone.md").write_text("Gone soon.")
    (item,) = list_files([tmp_path]).items
    (tmp_path / "gone.md").unlink()
    with pytest.raises(UnreadableDocument, match=r"Failed to open 'gone\.md' \(No such file"):
        item.load()


def test_a_page_keeps_its_main_content_and_loses_what_no_one_reads() -> None:
    page = """<html><head><title>Dams &amp; lodges</title><meta name="description" content="About dams">
      <style>p{}</style></head><body><header>Site</header><nav>Menu</nav>
      <main><h1>Dams</h1><p>Built <b>fast</b>, see <a href="/mud">mud</a> and <a href="#x">below</a>.</p><!-- no -->
      <p hidden>Old plan</p><p style="display: none">Old map</p><script>gone()</script>
      <ul><li>wood</li><li>mud</li></ul><pre><code class="language-py">x = 1\n  y = 2</code></pre>
      <table><tr><th>A</th><th>B</th></tr><tr><td>1</td><td>2</td></tr></table></main>
      <aside>Ads</aside><footer>Legal</footer></body></html>"""
    document = read_bytes(page.encode(), "dams.html")
    counts = {"lists of links": 1, "hidden or repeated parts": 3}
    hidden = {"parts of the page": 2}
    assert (document.title, document.metadata["description"]) == ("Dams & lodges", "About dams")
    assert document.metadata["left_out"] == counts and document.metadata["hidden_parts"] == hidden
    assert document.text.startswith("# Dams\n\nBuilt **fast**, see [mud](/mud) and below.")
    assert "- wood\n- mud" in document.text and "```py\nx = 1\n  y = 2\n```" in document.text
    assert "| A | B |" in document.text
    assert "(hidden) Old plan\n\n(hidden) Old map" in document.text
    for word in ("gone", "Menu", "Site", "Ads", "Legal", "no -->", "p{}"):
        assert word not in document.text


def test_a_page_is_decoded_by_the_charset_it_declares() -> None:
    page = '<html><head><meta charset="iso-8859-2"></head><body><p>žluťoučký kůň</p></body></html>'
    assert read_bytes(page.encode("iso-8859-2"), "k.html").text == "žluťoučký kůň"


LABELS = [  # label, the encoding that browsers take it for, a text
    ("iso-8859-1", "cp1252", "The caretaker’s flat costs €450 – “heating included”."),
    ("us-ascii", "cp1252", "€19 – “half”"),
    ("latin-1", "cp1252", "It’s €5"),
    ("gb2312", "gb18030", "朱镕基总理视察了镕城"),
    ("shift_jis", "cp932", "①株式会社㈱髙島"),
    ("x-sjis", "cp932", "東京都の案内書"),
    ("windows-31j", "cp932", "大阪の案内書①"),
    ("euc-kr", "cp949", "똠방각하의 펲시콜라"),
    ("ks_c_5601-1987", "cp949", "서울 안내서"),
    ("iso-8859-9", "cp1254", "Ücret €30 – “çocuklar”"),
    ("tis-620", "cp874", "ราคา €20 – “เด็ก”"),
    ("unicode-1-1-utf-8", "utf-8", "Zürich naïve"),
    ("x-cp1251", "cp1251", "Инструкция по насосу"),
    ("utf-16", "utf-8", "Grüße aus Köln"),
    ("x-euc-jp", "euc_jp", "説明書の第一章"),
    ("big5", "big5hkscs", "香港啲街道"),
    ("utf-16le", "utf-16-le", "Grüße aus Köln, lang genug"),
    ("undefined", "utf-8", "Zürich"),
    ("\xe9t\xe9", "utf-8", "Zürich"),
    ("hex", "utf-8", "Zürich"),
    ("cp850", "cp850", "Größe über alles"),
]


@pytest.mark.parametrize(("label", "codec", "text"), LABELS, ids=[label for label, _, _ in LABELS])
def test_an_encoding_label_means_the_same_as_in_browsers(label: str, codec: str, text: str) -> None:
    assert decode_text(text.encode(codec), "page", label) == text


@pytest.mark.parametrize(
    ("label", "data", "text"),
    [
        ("gbk", b"\x80 12 \xd6\xd0\xb9\xfa", "€ 12 中国"),
        ("euc-jp", b"\xad\xa1\xc6\xfc\xcb\xdc\xf9\xa1", "①日本纊"),
        ("iso-2022-jp", b'A \x1b$B-!-"F|K\\\x1b(B B \x1b(I1\x1b(B.', "A ①②日本 B ｱ."),
        ("koi8-u", b"\xae \xc1", "ў а"),
        ("windows-1252", b"caf\xe9 \x81 \x80", "café \x81 €"),
    ],
)
def test_bytes_that_pythons_codecs_lack_are_what_browsers_read(label: str, data: bytes, text: str) -> None:
    assert decode_text(data, "page", label) == text


@pytest.mark.parametrize(
    ("head", "label"),
    [
        ("<!-- <meta charset=koi8-r> --><meta charset=windows-1251>", "windows-1251"),
        ("<meta name=description content='set charset=utf-16'><meta charset=utf-8>", "utf-8"),
        ("<META CONTENT='text/html;charset=gb2312' HTTP-EQUIV=Content-Type>", "gb2312"),
        ("<?xml version='1.0' encoding='Shift_JIS'?><meta charset=utf-8>", "Shift_JIS"),
        (f"<meta data-x='{'y' * 400}' charset='big5'>", "big5"),
        ("<meta name=viewport content=width>", None),
    ],
)
def test_a_charset_is_declared_where_browsers_look_for_it(head: str, label: str | None) -> None:
    assert find_charset(head.encode()) == label


@pytest.mark.parametrize("label", ["iso-8859-1", "shift_jis", "x-cp1251"])
def test_a_page_and_a_book_are_read_by_the_label_they_declare(label: str) -> None:
    text = {"iso-8859-1": "It’s €450 – “heated”.", "shift_jis": "①東京都", "x-cp1251": "Насос"}[label]
    codec = {"iso-8859-1": "cp1252", "shift_jis": "cp932", "x-cp1251": "cp1251"}[label]
    page = f"<html><head><meta charset='{label}'></head><body><p>{text}</p></body></html>".encode(codec)
    assert read_bytes(page, "p.html").text == text
    book = files.epub(["<p>CHAPTER</p>"])
    chapter = f"<?xml version='1.0' encoding='{label}'?><html><body><p>{text}</p></body></html>".encode(codec)
    with zipfile.ZipFile(io.BytesIO(book)) as read, zipfile.ZipFile(target := io.BytesIO(), "w") as written:
        for name in read.namelist():
            content = chapter if name.endswith("c0.xhtml") else read.read(name)
            if name.endswith(".opf"):
                described = content.decode().replace("The Raft", text)
                content = f"<?xml version='1.0' encoding='{label}'?>{described}".encode(codec)
            written.writestr(name, content)
    document = read_bytes(target.getvalue(), "b.epub")
    assert (document.text, document.title) == (text, text)


def test_one_broken_character_does_not_change_the_encoding_of_a_page() -> None:
    data = "Насос подаёт воду в бак. ".encode("cp1251") * 20 + b"\x98"
    assert decode_text(data, "page", "windows-1251").startswith("Насос подаёт воду")


def test_a_page_nested_two_hundred_deep_keeps_its_text() -> None:
    page = b"<body>" + b"<div>" * 220 + b"<p>the bottom" + b"</div>" * 220
    assert read_bytes(page, "deep.html").text == "the bottom"


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_rows_are_read_with_whatever_separator_they_use(separator: str) -> None:
    rows = [["name", "note"], ["kelp", '"cheap, fresh"'], ["clam", "rare"]]
    document = read_bytes("\n".join(separator.join(row) for row in rows).encode(), "p.csv")
    assert document.text.splitlines()[0] == "| name | note |"
    assert "| kelp | cheap, fresh |" in document.text
    assert document.metadata == {"columns": ["name", "note"], "rows": 2}


def test_a_long_table_becomes_records_that_repeat_the_column_names() -> None:
    lines = ["id,word", *(f"{number},word {number}" for number in range(900))]
    paragraphs = read_bytes("\n".join(lines).encode(), "long.csv").text.split("\n\n")
    assert len(paragraphs) == 900 and paragraphs[7] == "id: 7\nword: word 7"


def test_rows_without_a_header_get_numbered_columns() -> None:
    assert read_bytes(b"1,2\n3,4\n", "n.csv").text.splitlines()[0] == "| column 1 | column 2 |"


def test_json_is_flattened_to_lines_that_name_their_path() -> None:
    value = {
        "title": "Map",
        "size": {"w": 3, "tags": ["a", "b"]},
        "on": True,
        "none": None,
        "list": [{"x": 1}, {"x": 2}],
    }
    document = read_bytes(json.dumps(value).encode(), "m.json")
    assert document.title == "Map"
    assert document.text == "title: Map\nsize.w: 3\nsize.tags: a, b\non: true\nlist.1.x: 1\nlist.2.x: 2"


def test_json_lines_give_a_paragraph_each_and_a_broken_line_is_named() -> None:
    assert read_bytes(b'{"a": 1}\n\n{"a": 2}\n', "r.jsonl").text == "a: 1\n\na: 2"
    assert read_bytes(b'{"a": 1}\n{"a": 2}\n', "r.json").text == "a: 1\n\na: 2"
    broken = read_bytes(b'{"a": 1}\n{oops}\n{"a": 2}\n', "r.jsonl")
    assert broken.text == "a: 1\n\n{oops}\n\na: 2"
    assert broken.metadata["left_out"] == {"lines that are not JSON, kept as text, the first in line 2": 1}
    with pytest.raises(UnreadableDocument, match="line 1"):
        read_bytes(b"{oops}\n{oops}\n", "r.jsonl")
    settings = read_bytes(b'{\n  // strict\n  "strict": true,\n}', "tsconfig.json")
    assert settings.text == '{\n  // strict\n  "strict": true,\n}'
    kept = "files that are not valid JSON, kept as text, with the first error in line 2"
    assert settings.metadata["left_out"] == {kept: 1}
    with pytest.raises(UnreadableDocument, match=r"'r\.json'"):
        read_bytes(b"[" * 100_000, "r.json")


def test_a_notebook_keeps_prose_code_and_text_output() -> None:
    outputs = [
        {"output_type": "stream", "text": ["42\n"]},
        {"output_type": "display_data", "data": {"image/png": "aGk=", "text/html": "<b>", "text/plain": "<Figure>"}},
        {"output_type": "error", "traceback": ["boom"]},
    ]
    cells = [
        {"cell_type": "markdown", "source": ["# Study\n", "Words."]},
        {"cell_type": "code", "source": "print(42)", "outputs": outputs},
    ]
    document = read_bytes(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4}).encode(), "s.ipynb")
    assert document.text == "# Study\nWords.\n\n```python\nprint(42)\n```\n\n```text\n42\n```"
    assert document.title == "Study"
    with pytest.raises(UnreadableDocument, match=r"'odd\.ipynb' is not a valid notebook file"):
        read_bytes(b'{"cells": [1, 2]}', "odd.ipynb")


def test_source_code_is_kept_as_it_is_with_its_language_named() -> None:
    source = "# not a heading\ndef f():\n\treturn 1\n"
    document = read_bytes(source.encode(), "f.py")
    assert (document.text, document.title) == (source.rstrip(), "f.py")
    assert (document.document_type, document.metadata) == ("code", {"language_name": "python"})


def test_every_suffix_of_the_table_is_lower_case() -> None:
    assert all(suffix.startswith(".") and suffix == suffix.lower() for suffix in READERS_BY_SUFFIX)
    assert read_bytes(b"# Loud", "LOUD.MD").title == "Loud"


def test_a_line_of_two_megabytes_is_read() -> None:
    assert len(read_bytes(b"word " * 400_000, "line.txt").text) == 1_999_999
