"""Content that readers would miss is read after all, or counted in the document's notes."""

from __future__ import annotations

import base64
import io
import json
import os
import random
import time
import zipfile
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from docx import Document
from docx.enum.style import WD_STYLE_TYPE
from docx.oxml import OxmlElement
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from openpyxl.comments import Comment
from openpyxl.styles import Font
from openpyxl.worksheet.datavalidation import DataValidation
from pptx import Presentation

from tests.ingestion.files import epub
from workbench.errors import UnreadableDocument
from workbench.ingestion.incoming import list_files
from workbench.ingestion.metadata import document_date, has_unread_date, page_notes, parse_written_date
from workbench.ingestion.raw import RawDocument
from workbench.ingestion.readers.formats import read_bytes, read_draft
from workbench.ingestion.readers.isolation import ReadingOptions
from workbench.ingestion.text import guess_encoding
from workbench.types import DocumentNotes, sum_notes

# Decoding


def read(text: str | bytes, name: str) -> RawDocument:
    return read_bytes(text.encode() if isinstance(text, str) else text, name)


def test_a_broken_byte_in_utf_8_is_replaced_and_counted() -> None:
    document = read("Die Brücke über den Fluß ist schön. ".encode() * 10 + b"Ende \xff.", "bridge.txt")
    assert document.text.endswith("schön. Ende \ufffd.") and document.text.count("Brücke") == 10
    assert page_notes("bridge.txt", document.metadata) == (
        "bridge.txt: not fully read: bytes that are not valid UTF-8 (1).",
    )


def test_lines_of_another_encoding_in_utf_8_are_read_as_windows_1252() -> None:
    document = read("Grüße an alle; übrigens.\n".encode() * 3 + "Größe\n".encode("cp1252"), "mixed.log")
    assert document.text.split("\n")[-1] == "Größe"
    assert document.metadata["left_out"] == {"bytes that are not valid UTF-8, read as windows-1252": 2}


@pytest.mark.parametrize("codec", ["cp1250", "iso8859_2"])
def test_short_hungarian_is_not_read_as_portuguese(codec: str) -> None:
    for text in ("Az erdő szélén áll az őrház.", "Nő a vízszint, a hídőr értesítve."):
        assert read(text.encode(codec), "a.txt").text == text
    portuguese = "Não há portões à direita; as estações são três."
    assert read(portuguese.encode("cp1252"), "a.txt").text == portuguese
    estonian = "Võti on sadamas."
    assert read(estonian.encode("cp1252"), "a.txt").text == estonian


@pytest.mark.parametrize(
    ("declared", "text", "codec"),
    [
        ("iso-8859-1", "Ключ хранится у сторожа порта.", "cp1251"),
        ("iso-8859-1", "Το κλειδί βρίσκεται στον φύλακα.", "cp1253"),
        ("iso-8859-1", "鍵は港の管理人が持っています。", "cp932"),
        ("gb2312", "你好", "utf-8"),
        ("shift_jis", "鍵は港", "utf-8"),
        ("gb2312", "联通", "gbk"),
        ("windows-1251", "Ключ хранится у сторожа порта.", "cp1251"),
        ("iso-8859-1", "Español, Français, Íslenska, Ð þ ð", "cp1252"),
    ],
)  # fmt: skip
def test_a_declared_encoding_that_the_bytes_contradict_is_not_used(declared: str, text: str, codec: str) -> None:
    page = f'<html><head><meta charset="{declared}"></head><body><p>{text}</p></body></html>'
    assert read(page.encode(codec), "a.html").text == text


def test_japanese_titles_without_kana_are_read_in_shift_jis() -> None:
    for text in ("平成三十年度 事業報告書", "価格表 2030年", "株式会社 日本"):
        assert read(text.encode("cp932"), "a.txt").text == text
        assert read(f"Report of the harbour\n\n{text}\n".encode("cp932"), "a.txt").text.endswith(text)
    for text, codec in (
        ("ЗАКРЫТ СКЛАД", "cp866"),
        ("FÜR MÄNNER GEÖFFNET", "cp850"),
        ("المفتاح عند حارس الميناء", "cp1256"),
    ):
        assert read(text.encode(codec), "a.txt").text == text


def test_a_year_of_two_digits_after_the_name_of_a_month_is_not_understood() -> None:
    assert has_unread_date({"date": "5-Mar-30"}) and not has_unread_date({"date": "5-Mar-2030"})


@pytest.mark.parametrize("key", ["Datum", "fecha", "effective_date", "timestamp"])
def test_keys_of_dates_in_other_languages_are_known(key: str) -> None:
    assert str(document_date({key: "05.03.2030"})) == "2030-03-05"


def test_a_feed_has_the_date_of_its_newest_entry() -> None:
    entries = "".join(f"<item><pubDate>Tue, {day} Mar 2030 10:00:00 GMT</pubDate></item>" for day in ("12", "05"))
    assert str(document_date(read(f"<rss>{entries}</rss>", "news.xml").metadata)) == "2030-03-12"
    assert document_date(read("<parts><updated>soon</updated></parts>", "parts.xml").metadata) is None


def test_a_page_that_declares_utf_8_is_read_so_despite_broken_bytes() -> None:
    document = read(b'<meta charset="utf-8"><p>Na\xc3\xafve bad: \xff\xfe\x80 end</p>', "bad.html")
    assert document.text.startswith("Naïve bad:") and document.metadata["encoding"] == "utf-8"
    assert document.metadata["left_out"] == {"bytes that are not valid UTF-8, read as windows-1252": 3}
    page = '<meta charset="utf-8"><p>Grüße aus dem Büro für schöne Bäume</p>'.encode("cp1252")
    assert read(page, "wrong.html").text == "Grüße aus dem Büro für schöne Bäume"


ENCODED = [
    ("It’s a “fair” price: £40 – or €45.", "cp1252"),
    ("Où êtes-vous ? À la forêt, près du château.", "mac_roman"),
    ("El niño comió la piña mañana.", "mac_roman"),
    ("Prix : 45 €, réservé", "iso8859_15"),
    ("L'œuvre et le cœur", "iso8859_15"),
    ("你好", "gb18030"),
    ("北京", "gb18030"),
    ("价格100元", "gb18030"),
    ("Straße, Größe und Übermut für alle Bäcker.", "cp850"),
    ("┌───────┐\n│ Größe │ 12\n└───────┘\nDie Länge der Röhre für den Ofen.", "cp850"),
    ("Proszę wziąć klucz; wisi nad drzwiami łazienki.", "cp1250"),
    ("Příliš žluťoučký kůň úpěl ďábelské ódy.", "iso8859_2"),
    ("A kulcs az ajtó fölött lóg, kérjük vigye el később, az ősz előtt.", "cp1250"),
    ("Deponun anahtarı mutfak kapısının üstünde asılıdır, çığ düştü.", "cp1254"),
    ("Насос подаёт воду в бак у северных ворот.", "cp1251"),
    ("Насос подаёт воду в бак у северных ворот.", "koi8_r"),
    ("Насос подаёт воду в бак у северных ворот.", "cp866"),
    ("НАСОС ПОДАЕТ ВОДУ В БАК", "koi8_r"),
    ("Η αντλία γεμίζει τη δεξαμενή.", "cp1253"),
    ("המשאבה ממלאת את המיכל", "cp1255"),
    ("المضخة تملأ الخزان", "cp1256"),
    ("图书馆明天九点开门，请带好你的借书证。", "gb18030"),
    ("図書館は明日九時に開きます。", "cp932"),
    ("図書館は明日九時に開きます。", "euc_jp"),
    ("図書館は明日九時に開きます。", "iso2022_jp"),
    ("도서관은 내일 아홉 시에 엽니다.", "cp949"),
    ("안녕하세요 항구는 동쪽에 있습니다.", "cp949"),
    ("船は朝に港に着き、荷物は北の倉庫に運ばれた。", "euc_jp"),
    ("会議は三時から始まる", "euc_jp"),
    ("我們的倉庫在河邊", "big5"),
    ("เรือมาถึงท่าเรือในตอนเช้าและสินค้าถูกขนไปที่โกดังทางเหนือ", "cp874"),
    ("הספינה הגיעה לנמל בבוקר והמטען נפרק אל המחסן הצפוני.", "cp1255"),
    ("أُغلقت البوابة أيضًا، ثم فُتحت مجدّدًا.", "iso8859_6"),
    ("İstanbul ağaç şöğüş ığdır.", "cp1254"),
    ("İstanbul ağaç şöğüş ığdır.", "cp857"),
    ("המשאבה ממלאת את המיכל", "cp862"),
    ("Příliš žluťoučký kůň úpěl ďábelské ódy.", "mac_latin2"),
]


@pytest.mark.parametrize(("text", "codec"), ENCODED, ids=[f"{codec}-{n}" for n, (_, codec) in enumerate(ENCODED)])
def test_an_encoding_is_guessed_by_the_words_around_its_letters_however_late(text: str, codec: str) -> None:
    long = "All quiet tonight.\n" * 4_000
    for before in ("", long):
        document = read(before.encode() + text.encode(codec), "old.txt")
        assert document.text == before + text
        assert document.metadata["encoding"]


def test_two_words_of_different_western_languages_are_not_thai() -> None:
    document = read("Die Straße zum „Kai“, und ein Café".encode("cp1252"), "notes.txt")
    assert document.text == "Die Straße zum „Kai“, und ein Café"
    assert document.metadata["encoding"] == "windows-1252"


def test_names_that_mean_the_same_in_windows_1252_are_not_taken_for_another_alphabet() -> None:
    for text in ("café", "25 °C", "Zürich, São Paulo, Ærø, jalapeño", "© 2030 Kelp", "naïve — résumé"):
        assert guess_encoding(text.encode("cp1252"))[0] == "cp1252"


def test_the_encoding_of_a_source_is_used_for_its_texts() -> None:
    options = ReadingOptions(encoding="koi8-r")
    draft = read_draft("ок".encode("koi8_r"), "ok.txt", options=options)
    assert (draft.text, draft.metadata["encoding"]) == ("ок", "koi8-r")


def test_utf_8_is_recognised_under_a_wrong_label() -> None:
    page = "<meta charset=iso-8859-1><p>café €4</p>"
    assert read(page, "wrong.html").text == "café €4"
    assert (
        read('<?xml version="1.0" encoding="utf-16"?><html><body><p>Plain.</p></body></html>', "p.html").text
        == "Plain."
    )


def test_a_nul_in_a_log_is_counted_and_a_binary_file_is_refused() -> None:
    document = read(b"pump started\0 at noon, all is well", "pump.log")
    assert document.text == "pump started at noon, all is well"
    assert document.metadata["left_out"] == {"NUL characters": 1}
    with pytest.raises(UnreadableDocument, match="binary"):
        read(bytes(range(256)) * 4, "blob.txt")


def test_the_colours_of_a_log_are_removed() -> None:
    assert read("\x1b[1;31mERROR\x1b[0m pump 7\x1b[K stopped [7m]", "pump.log").text == "ERROR pump 7 stopped [7m]"


def test_addresses_and_letters_that_a_terminal_does_not_show_are_removed() -> None:
    log = "\x1b]8;;http://x.example\x07Pump 7\x1b]8;;\x07 stopped; N\bNA\bAM\bME\bE, _\bo_\bi_\bl"
    assert read(log, "pump.log").text == "Pump 7 stopped; NAME, oil"


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(
    "line",
    [
        "Ключи у сторожа порта.",
        "창고 열쇠는 항구에 있습니다.",
        "仓库的钥匙由港口看守人保管。",
        "กุญแจคลังสินค้าอยู่กับยาม",
        "The keys.",
    ],
)
def test_utf_16_without_a_mark_is_read_in_any_script(line: str, codec: str) -> None:
    document = read(f"{line}\n{line}\r\n{line}".encode(codec), "keys.txt")
    assert document.text.split("\n") == [line] * 3 and document.metadata == {"encoding": codec}
    with pytest.raises(UnreadableDocument, match="binary"):
        read(b"ab\0cd\0ef\0gh\0" * 30, "blob.txt")


def test_emoji_in_halves_are_read_and_letters_that_were_lost_before_are_counted() -> None:
    assert read(b"Pump 7 \xed\xa0\xbd\xed\xb8\x80 runs", "java.log").text == "Pump 7 😀 runs"
    document = read("Der SchlÃ¼ssel hÃ¤ngt; itâ€™s late.", "old.txt")
    assert document.metadata["left_out"] == {"letters that an earlier program decoded wrongly (Ã¼ for ü), kept": 3}


def test_an_encoding_that_explains_little_is_noted() -> None:
    document = read("Größe der Tür für alle Bäcker".encode("hp_roman8"), "a.txt")
    assert list(document.metadata["left_out"]) == ["bytes whose encoding is uncertain"]


@pytest.mark.parametrize(("text", "codec"), [("鍵", "euc_jp"), ("議事録", "euc_jp"), ("東京", "cp932")])
def test_a_few_bytes_that_several_scripts_explain_are_noted(text: str, codec: str) -> None:
    document = read(f"ID: 4500\n{text}\n".encode(codec), "a.txt")
    assert document.metadata["left_out"] == {"bytes whose encoding is uncertain": 2 * len(text)}
    assert "left_out" not in read("A café for €4 – “open”".encode("cp1252"), "b.txt").metadata


@pytest.mark.parametrize("text", ["在庫報告書 2030年3月", "Title: 鍵管理台帳", "仓库管理报告", "库存报告 2030年3月"])
def test_titles_in_chinese_characters_are_read_in_the_encoding_of_their_language(text: str) -> None:
    assert read(text.encode("gb2312" if text.startswith(("仓", "库")) else "euc_jp"), "a.txt").text == text


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_a_line_of_japanese_in_utf_16_and_lines_that_another_program_added_in_ascii_are_read(codec: str) -> None:
    line = "倉庫のカギは守衛室にあります"
    assert read(line.encode(codec), "a.txt").text == line
    added = "The night guard signs the book before the gates close."
    for mark in ("", "\ufeff"):
        lines = (mark + 20 * "Größe: 4 m\r\n").encode(codec)
        appended = f"{added}\r\n".encode()
        document = read(lines + appended + lines.removeprefix(mark.encode(codec)) + appended, "log.txt")
        assert document.text == (2 * (20 * "Größe: 4 m\n" + f"{added}\n")).rstrip()
        assert document.metadata["left_out"] == {"parts of a UTF-16 text that are ASCII, read as such": 2}


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(
    "text",
    [
        f"第一章 概论{20 * '…'}1",
        f"{40 * '═'}\nReport",
        "いつかきっといえにかえってきてください",
        "അതുകൊണ്ടുതന്നെയാണെന്നുള്ളതുകൊണ്ടാണ്",
    ],
    ids=["leaders", "lines", "hiragana", "malayalam"],
)
def test_signs_in_utf_16_whose_bytes_are_letters_of_ascii_stay_as_they_are(codec: str, text: str) -> None:
    document = read(f"\ufeff{text}".encode(codec), "a.txt")
    assert document.text == text and "left_out" not in document.metadata


def test_a_word_that_a_soft_hyphen_divides_is_joined() -> None:
    assert read("Leucht\u00ad\r\n  turm und Dampf\u00adschiff", "s.txt").text == "Leuchtturm und Dampfschiff"


# Sheets


def edited(book: openpyxl.Workbook, **parts: tuple[str, str]) -> bytes:
    """Return a workbook with (text, replacement) applied to the parts whose name ends with a suffix."""
    book.save(stream := io.BytesIO())
    with zipfile.ZipFile(stream) as read_from, zipfile.ZipFile(target := io.BytesIO(), "w") as written:
        for name in read_from.namelist():
            text = read_from.read(name).decode()
            for part, (old, new) in parts.items():
                if name.endswith(f"{part}.xml"):
                    assert old in text
                    text = text.replace(old, new)
            written.writestr(name, text)
    return target.getvalue()


def make_book(*rows: tuple[object, ...]) -> openpyxl.Workbook:
    book = openpyxl.Workbook()
    for row in rows or (("Part", "Bay"), ("V-7", "C2"), ("V-8", "D4")):
        book.worksheets[0].append(row)
    return book


TABLE = "## Sheet\n\n| Part | Bay |\n| --- | --- |\n| V-7 | C2 |\n| V-8 | D4 |"


@pytest.mark.parametrize(
    "parts",
    [
        {"sheet1": ('<dimension ref="A1:B3"', '<dimension ref="A1"')},
        {"styles": ('<family val="2"', '<family val="99"')},
        {"core": ("</cp:coreProperties>", "<dc:created>not a date</dc:created></cp:coreProperties>")},
        {"sheet1": ("<pageMargins", '<autoFilter ref="A1:Z0"><filterColumn colId="x"/></autoFilter><pageMargins')},
        {"styles": ('numFmtId="0"', 'numFmtId="odd"')},
        {"sheet1": (' r="A2"', "")},
        {"workbook.xml": ('Target="/xl/worksheets', 'Target="\\xl\\worksheets')},
        {"sheet1": ("http://schemas.openxmlformats.org/spreadsheetml/2006/main", "http://purl.oclc.org/ooxml/spreadsheetml/main")},
    ],
    ids=["extent", "family", "date", "filter", "style", "unnamed", "slashes", "strict"],
)  # fmt: skip
def test_an_odd_part_of_a_workbook_costs_no_cell(parts: dict[str, tuple[str, str]]) -> None:
    names = {name: value for name, value in parts.items() if name != "workbook.xml"}
    data = edited(make_book(), **names)
    if "workbook.xml" in parts:
        with zipfile.ZipFile(io.BytesIO(data)) as package, zipfile.ZipFile(target := io.BytesIO(), "w") as written:
            for name in package.namelist():
                text = package.read(name).decode()
                old, new = parts["workbook.xml"]
                written.writestr(name, text.replace(old, new) if name.endswith("workbook.xml.rels") else text)
        data = target.getvalue()
    assert read(data, "parts.xlsx").text == TABLE


def test_the_name_of_a_column_without_values_is_read() -> None:
    names = [f"name {number}" for number in range(9)]
    table = ",".join(names) + "\n" + ",".join(f"V{number}" if number % 4 else "" for number in range(9)) + "\n"
    text = read(table, "wide.csv").text
    assert text.split("\n\n")[-1] == "Columns without values: name 0, name 4, name 8"
    assert "name 7: V7" in text and "name 8: " not in text


def test_a_cell_without_its_shared_text_is_counted() -> None:
    shared = ('t="inlineStr"><is><t>Part</t></is>', 't="s"><v>5</v>')
    document = read(edited(make_book(("Part", 7)), sheet1=shared), "t.xlsx")
    assert document.text == "## Sheet\n\n7"
    assert document.metadata["left_out"] == {"cells whose text is missing in the file": 1}


def test_a_stray_cell_at_the_end_of_a_sheet_is_read_at_once() -> None:
    book = make_book()
    book.worksheets[0].cell(1_048_576, 16_384, "stray")
    text = read(edited(book), "stray.xlsx").text
    assert "| V-8 | D4 |" in text and text.endswith("stray")


def test_headers_and_footers_of_sheets_are_read_once_without_page_numbers() -> None:
    book = openpyxl.Workbook()
    for title in ("One", "Two"):
        sheet = book.create_sheet(title)
        sheet["A1"] = f"Stock {title}"
        sheet.oddHeader.left.text, sheet.oddHeader.right.text = '&"Arial,Bold"&14Stock R&&D of the pier', "&D &T"
        sheet.oddFooter.center.text, sheet.oddFooter.right.text = "Page &P of &N", "Owner: Mia Holm"
    target = io.BytesIO()
    book.save(target)
    document = read_bytes(target.getvalue(), "a.xlsx")
    texts = ["## One", "Stock One", "Stock R&D of the pier", "Owner: Mia Holm", "## Two", "Stock Two"]
    assert document.text.split("\n\n") == texts and "left_out" not in document.metadata


def test_a_formula_without_a_stored_value_is_shown_and_counted() -> None:
    document = read(edited(make_book(("Crew", "Cost"), ("Day", 4), ("All", "=SUM(B2:B2)"))), "f.xlsx")
    assert "| All | =SUM(B2:B2) |" in document.text
    assert document.metadata["left_out"] == {"formulas without a stored value": 1}


def test_hidden_sheets_rows_and_columns_are_marked_or_left_out() -> None:
    book = make_book(("Part", "Bay", "Note"), ("V-7", "C2", "secret"), ("V-8", "D4", "quiet"))
    book.worksheets[0].row_dimensions[3].hidden = True
    book.worksheets[0].column_dimensions["C"].hidden = True
    other = book.create_sheet("Old")
    other.append(("Gone", "West"))
    other.sheet_state = "veryHidden"
    data = edited(book)
    document = read(data, "h.xlsx")
    assert "| Part | Bay | Note (hidden) |" in document.text and "| V-8 (hidden) | D4 | quiet |" in document.text
    assert "## Old (hidden sheet)" in document.text
    assert document.metadata["hidden_parts"] == {"rows": 1, "columns": 1, "sheets": 1}
    draft = read_draft(data, "h.xlsx", options=ReadingOptions(skip_hidden=True))
    assert draft.text == "## Sheet\n\n| Part | Bay |\n| --- | --- |\n| V-7 | C2 |"
    assert draft.metadata["left_out"] == {"hidden rows": 1, "hidden columns": 1, "hidden sheets": 1}


def make_hidden_slides() -> bytes:
    slides = Presentation()
    for title in ("Harvest", "Draft"):
        slide = slides.slides.add_slide(slides.slide_layouts[5])
        slide.shapes.title.text = title
        box = slide.shapes.add_textbox(0, 2_000_000, 3_000_000, 500_000)
        box.text_frame.text = f"Note of the {title.lower()}"
    slide.element.set("show", "0")
    slides.slides[0].shapes[1]._element.nvSpPr.cNvPr.set("hidden", "1")
    target = io.BytesIO()
    slides.save(target)
    return target.getvalue()


def make_hidden_words() -> bytes:
    document = Document()
    paragraph = document.add_paragraph("The gate opens at nine")
    paragraph.add_run(", and the code is 4711").font.hidden = True
    paragraph.add_run(".")
    style = document.styles.add_style("Secret", WD_STYLE_TYPE.PARAGRAPH)
    style.font.hidden = True
    document.add_paragraph("Only for the caretaker", style="Secret")
    table = document.add_table(2, 1)
    for row, text in zip(table.rows, ("Visible row", "Quiet row"), strict=True):
        row.cells[0].text = text
    table.rows[1]._tr.get_or_add_trPr().append(OxmlElement("w:hidden"))
    target = io.BytesIO()
    document.save(target)
    return target.getvalue()


HIDDEN_PAGE = b"""<html><body><h1>Gate</h1><p>Opens at nine.</p><p hidden>Code 4711</p>
<div style="display:none"><p>For the caretaker</p><p>Ring twice</p></div></body></html>"""


@pytest.mark.parametrize(
    ("name", "make", "texts", "hidden"),
    [
        (
            "h.pptx",
            make_hidden_slides,
            ("## Draft (hidden slide)", "Note of the harvest (hidden)"),
            ("slides", "shapes"),
        ),
        (
            "h.docx",
            make_hidden_words,
            ("and the code is 4711 (hidden).", "Only for the caretaker (hidden)", "Quiet row (hidden)"),
            ("parts of the text", "rows"),
        ),
        ("h.html", lambda: HIDDEN_PAGE, ("(hidden) Code 4711", "(hidden) For the caretaker"), ("parts of the page",)),
    ],
    ids=["slides", "word", "html"],
)
def test_hidden_content_is_marked_or_left_out_in_every_format(name, make, texts, hidden) -> None:
    document = read(make(), name)
    for text in texts:
        assert text in document.text
    assert set(document.metadata["hidden_parts"]) == set(hidden)
    draft = read_draft(make(), name, options=ReadingOptions(skip_hidden=True))
    text = draft.text or "\n".join(text for _, text in draft.pages)
    assert not any(word in text for word in ("hidden", "4711", "caretaker", "Quiet", "Draft", "Ring", "Note of"))
    assert set(draft.metadata["left_out"]) >= {f"hidden {what}" for what in hidden}


def test_comments_durations_and_dates_of_a_sheet_are_read() -> None:
    book = make_book(("Task", "Time", "Day"), ("Dive", timedelta(hours=26, minutes=5), datetime(2030, 3, 5)))
    book.worksheets[0]["A2"].comment = Comment("Check the valve", "Ada")
    text = read(edited(book), "t.xlsx").text
    assert "| Dive | 26:05:00 | 2030-03-05 |" in text and "- A2: Check the valve" in text


# CSV and JSON Lines


@pytest.mark.parametrize(
    ("content", "columns", "count"),
    [
        ("Town,2031,2032\nVisby,5,6\n", ["Town", "2031", "2032"], 1),
        ("Town;2032;2031\nVisby;5;6\n", ["Town", "2032", "2031"], 1),
        ("Visby,2031\nRonne,2032\n", ["column 1", "column 2"], 2),
        ('"sep=|"\r\nPart|Bay\r\nV-7|C2\r\n', ["Part", "Bay"], 1),
        ("# made by hand\nPart,Bay\nV-7,C2\n", ["Part", "Bay"], 1),
        ('Part,Size\nV-7,"5 inch\nV-8,"6 inch\nV-9,1/2"\n', ["Part", "Size"], 3),
        ('Part,Size,Note\nV-7,"5" pipe",ok\nV-8,"a, b",ok\n', ["Part", "Size", "Note"], 2),
        ('Part,Note\nV-7,"two\nlines"\n', ["Part", "Note"], 1),
        ('Part,Note\nV-7,"two\nlines, one comma"\nV-8,"a ""big"" one"\n', ["Part", "Note"], 2),
    ],
)  # fmt: skip
def test_the_columns_and_rows_of_odd_tables(content: str, columns: list[str], count: int) -> None:
    document = read(content, "t.csv")
    assert (document.metadata["columns"], document.metadata["rows"]) == (columns, count)


def test_the_outputs_of_a_notebook_are_read_in_their_most_readable_form() -> None:
    outputs: list[dict[str, object]] = [
        {"output_type": "execute_result", "data": {"text/html": "<table><tr><th>Part</th></tr><tr><td>PN-7</td></tr>"}},
        {"output_type": "display_data", "data": {"text/latex": ["$E=mc^2$"], "text/plain": "<Math>"}},
        {"output_type": "display_data", "data": {"application/json": {"depth": 9}}},
        {"output_type": "error", "ename": "KeyError", "evalue": "buoy", "traceback": ["1", "2"]},
        {"output_type": "pyout", "text": ["31"]},
    ]
    cells = [{"cell_type": "code", "source": "", "outputs": [output]} for output in outputs]
    document = read(json.dumps({"cells": cells, "metadata": {}}), "a.ipynb")
    texts = ["| Part |\n| --- |\n| PN-7 |", "$E=mc^2$", '{"depth": 9}', "KeyError: buoy", "31"]
    assert document.text == "\n\n".join(f"```text\n{text}\n```" for text in texts)
    assert document.metadata["left_out"] == {"tracebacks": 1}


def test_folded_cells_of_a_notebook_are_marked_and_what_has_no_text_is_counted() -> None:
    script = {"output_type": "display_data", "data": {"application/javascript": "draw()"}}
    folded = {"tags": ["hide-output"], "jupyter": {"source_hidden": True}}
    picture = {"cell_type": "markdown", "source": "# Tide", "attachments": {"a.png": {"image/png": "AAAA"}}}
    stream = {"output_type": "stream", "text": "7 m"}
    cells = [picture, {"cell_type": "code", "source": "x = 7", "outputs": [stream, script], "metadata": folded}]
    data = json.dumps({"cells": cells}).encode()
    document = read(data, "a.ipynb")
    assert document.text == "# Tide\n\n```python (hidden)\nx = 7\n```\n\n```text (hidden)\n7 m\n```"
    assert document.metadata["left_out"] == {"images": 1, "outputs without text": 1}
    assert document.metadata["hidden_parts"] == {"cells": 1, "outputs": 2}
    short = read_draft(data, "a.ipynb", options=ReadingOptions(skip_hidden=True))
    assert (short.text, short.metadata["left_out"]) == (
        "# Tide", {"images": 1, "hidden cells": 1, "hidden outputs": 2}
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.adoc", "= Tide tables\n\nText."), ("a.rst", "===========\nTide tables\n===========\n\nText."),
        ("a.tex", "\\documentclass{article}\n\\title{Tide tables}\nText."), ("a.qmd", "# Tide tables\n\nText."),
        ("a.md", '<h1 align="center">\n  <img src="a.png"><br>\n  Tide tables\n</h1>\n\n# More'),
    ],
)  # fmt: skip
def test_a_marked_text_has_the_title_that_it_names(name: str, text: str) -> None:
    assert read(text, name).title == "Tide tables" and read(text, "a.txt").title == "a"


def test_the_encoding_that_code_and_xml_declare_is_used() -> None:
    for name, start in (("a.xml", '<?xml version="1.0" encoding="koi8-r"?>'), ("a.php", '<meta charset="koi8-r">')):
        document = read(f"{start}<a>ок</a>".encode("koi8_r"), name)
        assert document.text.endswith("<a>ок</a>") and document.metadata["encoding"] == "koi8-r"
    assert "café für" in read("page = '<meta charset=\"shift_jis\">'  # café für".encode(), "a.py").text


def test_a_book_without_a_container_is_read_and_pages_and_renditions_it_does_not_show_are_counted() -> None:
    package, target = zipfile.ZipFile(io.BytesIO(epub(["<p>Story.</p>"]))), io.BytesIO()
    with zipfile.ZipFile(target, "w") as changed:
        for name in package.namelist():
            if name != "META-INF/container.xml":
                changed.writestr(name, package.read(name))
        changed.writestr("stray.xhtml", "<p>Stray.</p>")
    document = read(target.getvalue(), "b.epub")
    assert document.text == "Story." and document.metadata["left_out"] == {"pages that the book does not list": 1}
    with zipfile.ZipFile(target, "a") as changed:
        listed = package.read("META-INF/container.xml").decode().replace("/>", '/><rootfile full-path="b.opf"/>', 1)
        changed.writestr("META-INF/container.xml", listed)
    assert read(target.getvalue(), "b.epub").metadata["left_out"]["other renditions of the book"] == 1


def test_a_book_has_its_description_subjects_and_contributors() -> None:
    package, target = zipfile.ZipFile(io.BytesIO(epub(["<p>Story.</p>"]))), io.BytesIO()
    added = (
        "<dc:description>&lt;p&gt;On &lt;b&gt;oars&lt;/b&gt;.&lt;/p&gt;</dc:description><dc:subject>Rowing</dc:subject>"
    )
    added += "<dc:subject>Wood</dc:subject><dc:contributor>Bo Lind</dc:contributor></metadata>"
    with zipfile.ZipFile(target, "w") as changed:
        for name in package.namelist():
            content = package.read(name)
            changed.writestr(
                name, content.replace(b"</metadata>", added.encode()) if name.endswith(".opf") else content
            )
    found = read(target.getvalue(), "b.epub").metadata
    assert (found["description"], found["subject"], found["contributor"]) == ("On **oars**.", "Rowing, Wood", "Bo Lind")


def test_text_that_a_style_sheet_inserts_for_print_only_is_not_read() -> None:
    style = '<style media="print">p::after{content:" Printed at the pier"}</style>'
    assert read(f"{style}<p>Tides.</p>", "a.html").text == "Tides."


def test_the_chapters_of_a_book_outside_its_reading_order_come_last() -> None:
    package, target = zipfile.ZipFile(io.BytesIO(epub(["<p>Notes.</p>", "<p>Story.</p>"]))), io.BytesIO()
    with zipfile.ZipFile(target, "w") as changed:
        for name in package.namelist():
            data = package.read(name).replace(b'<itemref idref="c0"/>', b"")
            changed.writestr(name, data.replace(b'id="c0"', b'id="c0" media-type="application/xhtml+xml"'))
    assert read(target.getvalue(), "b.epub").text == "Story.\n\nNotes."


def test_json_values_over_several_lines_and_line_separators_in_strings_are_records() -> None:
    assert read('{"a": 1,\n"b": 2}\n{"a": 3,\n"b": 4}\n', "two.json").text == "a: 1\nb: 2\n\na: 3\nb: 4"
    assert read('{"a": "x\u2028y"}\n{"a": "z\x85"}\n', "r.jsonl").metadata == {"records": 2}


def test_records_of_joined_files_and_text_sequences_are_read() -> None:
    for sign in ("\ufeff", "\x1e"):
        document = read("".join(f'{sign}{{"key": "K{number} in the grey cabinet"}}\n' for number in (1, 2)), "a.jsonl")
        assert document.text == "key: K1 in the grey cabinet\n\nkey: K2 in the grey cabinet"
        assert document.metadata == {"records": 2}


def test_half_of_a_character_in_json_is_counted() -> None:
    document = read('{"note": "cut \\ud83d off"}', "n.json")
    assert document.text == "note: cut  off"
    assert document.metadata["left_out"] == {"halves of characters (unpaired surrogates)": 1}


def test_a_table_whose_columns_are_all_named_by_years_keeps_them_as_names() -> None:
    assert read("2019;2020\n10;20\n", "y.csv").metadata["columns"] == ["2019", "2020"]
    assert read("2019;2020\n2018;2021\n", "y.csv").metadata["columns"] == ["column 1", "column 2"]


# Markdown, HTML and books


@pytest.mark.parametrize(
    ("front", "title"),
    [
        ("---\ntitle: Knots: a primer\ndate: 2031-02-03\n---\n", "Knots: a primer"),
        ("---\ntitle: \"It's\": x\ndate: 2031-02-03\nauthor: @ada\n---\n", "It's\": x"),
        ("+++\ntitle = \"Knots\"\ndate = 2031-02-03\n+++\n", "Knots"),
        ('{\n "title": "Knots",\n "date": "2031-02-03"\n}\n\n', "Knots"),
        ("---\nTitle: Knots\nDate: 03.02.2031\n---\n", "Knots"),
    ],
    ids=["colon", "quotes", "toml", "json", "capitals"],
)  # fmt: skip
def test_front_matter_in_any_form_gives_title_and_date(front: str, title: str) -> None:
    document = read(f"{front}The rope is dry.\n", "k.md")
    assert (document.title, str(document_date(document.metadata))) == (title, "2031-02-03")
    assert document.text == "The rope is dry."


def test_invalid_lines_of_front_matter_stay_in_the_text_and_are_counted() -> None:
    document = read("---\ntitle:\tKnots\nthis is bad\ntags: [a, b\nauthor: [Ada] Lee\n---\nThe rope is dry.\n", "k.md")
    assert document.title == "Knots" and document.metadata["author"] == "[Ada] Lee"
    assert document.text == "this is bad\ntags: [a, b\nThe rope is dry."
    assert document.metadata["left_out"] == {"lines of front matter that are not valid, kept as text": 2}


def test_a_slide_between_two_rules_is_not_lost_as_front_matter() -> None:
    document = read("---\n\n# Rowing\n\n---\n\n# Sailing\n", "slides.md")
    assert document.title == "Rowing" and document.text.count("# ") == 2
    assert read("---\n\n---\n# Rowing\n", "empty.md").text == "# Rowing"


def test_the_lines_of_a_cell_stay_apart_next_to_a_stray_quote() -> None:
    table = 'oar,note\n"O-1","left\nright"\n=HYPERLINK("http://x","y"),red\n'
    assert "| O-1 | left right |" in read(table, "oars.csv").text


def test_prose_between_two_rules_is_not_lost_as_front_matter() -> None:
    prose = read("---\n\nThis is no front matter: only a rule\n\n---\n\nBody.", "a.md")
    assert "only a rule" in prose.text and prose.metadata == {}
    doubtful = read("---\nNote: the pump was replaced in May\nOwner: Smith\n---\nBody.", "b.md")
    assert doubtful.text.startswith("Note: the pump was replaced in May") and doubtful.metadata["Owner"] == "Smith"
    assert read("---\nsidebar_position: 2\nowner: Ann Smith\n---\nBody.", "c.md").text == "Body."
    assert read("---\ntitle: Pumps\nnote: the pump was replaced in May\n---\nBody.", "d.md").text == "Body."


def test_style_sheets_of_a_file_raise_and_insert_text() -> None:
    styles = """.up{position:relative; top:-0.5em} .v{vertical-align:top; font-size:smaller}
    .icon::before{content:"\\f101"}
    li.must::before{content:"Required: "} .kg::after{content:"\\a0kg"} .off::after{content:"no"; display:none}
    ul > p::after{content:"lost"}"""
    page = read(
        f"<style>{styles}</style><p>10<span class=up>6</span> and 10<span class=v>7</span></p>"
        "<ul><li class=must>name<li class=kg>about <b>15</b><li class='icon off'>plain</ul>",
        "s.html",
    )
    assert page.text == "10⁶ and 10⁷\n\n- Required: name\n- about **15** kg\n- plain"
    assert page.metadata["left_out"] == {"texts that style sheets insert": 1}


def test_the_time_of_a_web_table_grows_with_its_rows() -> None:
    def seconds(rows: int) -> float:
        page = "<table><tr><th>Id</th></tr>" + "<tr><td>7</td></tr>" * rows + "</table>"
        started = time.process_time()
        read(page, "t.html")
        return time.process_time() - started

    seconds(10)  # loads the parsers
    assert seconds(4_000) < 40 * seconds(400)  # 150 times if each row reads all others


def test_struck_text_is_marked_in_sheets_slides_and_rich_text() -> None:
    book, target = openpyxl.Workbook(), io.BytesIO()
    book.active.append(["Item", "Price"])
    book.active.append([CellRichText("rope ", TextBlock(InlineFont(strike=True), "old")), 90])
    book.active["B2"].font = Font(strike=True)
    book.save(target)
    assert "| rope ~~old~~ | ~~90~~ |" in read(target.getvalue(), "p.xlsx").text
    show, target = Presentation(), io.BytesIO()
    run = show.slides.add_slide(show.slide_layouts[5]).shapes.title.text_frame.paragraphs[0].add_run()
    run.text = "Cancelled"
    run.font._element.set("strike", "sngStrike")
    show.save(target)
    assert "~~Cancelled~~" in read(target.getvalue(), "s.pptx").text
    assert read(r"{\rtf1\ansi Price {\strike 100} now 80\par}", "r.rtf").text == "Price ~~100~~ now 80"


def test_encoded_images_are_left_out_with_their_size() -> None:
    data = base64.b64encode(random.Random(7).randbytes(3_000)).decode()
    texts = {
        "a.md": f"![chart](data:image/png;base64,{data})\n\nDepth is nine.",
        "b.md": f"![chart][c]\n\nDepth is nine.\n\n[c]: data:image/png;base64,{data}\n",
        "c.txt": "\n".join(data[at : at + 76] for at in range(0, 4_000, 76)) + "\n\nDepth is nine.",
        "d.json": f'{{"pic": "data:image/png;base64,{data}", "note": "Depth is nine."}}',
    }
    for name, text in texts.items():
        document = read(text, name)
        assert "Depth is nine." in document.text and data[500:560] not in document.text
        ((what, size),) = document.metadata["left_out"].items()  # pyright: ignore[reportAttributeAccessIssue, reportOptionalMemberAccess]
        assert what.startswith("bytes of") and size >= 3_990
    assert "ACGT" * 200 in read("ACGT" * 200, "genes.txt").text


def test_superscripts_stay_apart_from_what_they_follow() -> None:
    page = "<p>10<sup>6</sup> t, 10<sup>-3</sup> m, 5 km<sup>2</sup>, 31<sup>st</sup>, "
    page += "word<sup>4</sup>, x<sup>a+1</sup></p>"
    assert read(page, "s.html").text == "10⁶ t, 10⁻³ m, 5 km², 31st, word[4], x^(a+1)"
    assert read('<p>Seen<a href="#n"><sup>2</sup></a> here.</p>', "n.html").text == "Seen[2] here."
    styled = (
        '<style>.up {vertical-align: super}</style><p>10<span class="up">6</span> t, 5 km<span class="sup">2</span></p>'
    )
    assert read(styled, "c.html").text == "10⁶ t, 5 km²"
    assert read("<p><!-- a -->10<!-- b --><sup>6</sup></p><!-- c -->", "c.html").text == "10⁶"


def test_readings_do_not_divide_words_and_formulas_are_text() -> None:
    document = read("<p><ruby>東<rp>(</rp><rt>とう</rt><rp>)</rp>京<rt>きょう</rt></ruby>駅</p>", "r.html")
    assert document.text == "東京駅" and document.metadata["left_out"] == {"ruby readings": 2}
    formula = "<p><math><mfrac><mi>a</mi><mi>b</mi></mfrac><mo>=</mo><msup><mi>x</mi><mn>2</mn></msup></math></p>"
    assert read(formula, "f.html").text == "a/b = x^2"


def test_figures_of_json_are_kept_as_written() -> None:
    text = '{"price": 1.50, "rate": 1e-7, "id": 12345678901234567123, "gap": NaN}'
    expected = ["price: 1.50", "rate: 1e-7", "id: 12345678901234567123", "gap: NaN"]
    assert read(text, "a.json").text.split("\n") == expected
    assert read(text + "\n" + text, "a.jsonl").text.split("\n\n")[0].split("\n") == expected


def test_a_repeated_key_of_an_object_keeps_each_value() -> None:
    text = '{"berth": 4, "crew": ["Ada"], "berth": 9, "crew": "Bo"}'
    assert read(text, "a.json").text == "berth: 4, 9\ncrew.1: Ada\ncrew.2: Bo"


def test_marks_of_notes_and_formulas_of_books_stay_apart() -> None:
    page = '<p>The tide<a epub:type="noteref" href="#n">1</a> and <math alttext="E=mc^2"><mi>E</mi></math>.</p>'
    document = read(f"<html><body>{page}<noscript><p>Enable scripts.</p></noscript></body></html>", "a.html")
    assert document.text == "The tide[1] and $E=mc^2$."
    assert document.metadata["left_out"] == {"parts for browsers without scripts": 1}


def test_a_file_keeps_its_header_aside_footer_and_answers() -> None:
    page = """<html><body><header><p>Abstract: mussels grew by a fifth.</p></header><p>Body.</p>
      <div class="faq"><div>Who sells rope?</div><div class="text" style="display:none">The chandler.</div></div>
      <aside><p>Measured at the old pier.</p></aside><nav><a href="/x">Home</a></nav>
      <img src="a.png"><img src="b.png" alt="Harbour"></body></html>"""
    document = read(page, "f.html")
    for words in ("mussels grew", "Body.", "The chandler.", "old pier", "Harbour"):
        assert words in document.text
    assert document.metadata["left_out"] == {"images without alternative text": 1, "lists of links": 1}


@pytest.mark.parametrize("element", ["wbr", "embed src=a.swf", "source src=a", "track src=a"])
def test_elements_without_an_end_do_not_swallow_the_text_after_them(element: str) -> None:
    document = read(f"<p>The harbour<{element}>master <b>keeps</b> the key.</p><p>He sleeps.</p>", "key.html")
    assert "".join(document.text.split()) == "Theharbourmaster**keeps**thekey.Hesleeps."


def test_empty_elements_of_xhtml_do_not_swallow_the_page() -> None:
    page = '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title/><script src="x"/></head>'
    assert read(page + "<body><p>Still here.</p></body></html>", "x.xhtml").text == "Still here."


# Dates and sums


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("05.03.2030", "2030-03-05"), ("2030/03/05", "2030-03-05"), ("20300305", "2030-03-05"),
        ("D:20300305120000Z", "2030-03-05"), ("Tue, 05 Mar 2030 10:00:00 +0000", "2030-03-05"),
        ("March 5th, 2030", "2030-03-05"), ("5. März 2030", "2030-03-05"), ("25/03/2030", "2030-03-25"),
        ("03/25/2030", "2030-03-25"), ("05/03/2030", "None"), ("31.02.2030", "None"), ("v1.2.2030", "None"),
        ("2030年3月5日", "2030-03-05"), ("2030-W10-2", "2030-03-05"), ("March 2030", "2030-03-01"),
        ("2030-03", "2030-03-01"), ("2030", "2030-01-01"), ("1234", "None"), ("Meeting 2030", "None"),
        ("5. maaliskuuta 2030", "2030-03-05"), ("5. marraskuuta 2030", "2030-11-05"), ("5. června 2030", "2030-06-05"),
        ("5. července 2030", "2030-07-05"), ("5 Ağustos 2030", "2030-08-05"), ("2030. március 5.", "2030-03-05"),
        ("2030. 03. 05.", "2030-03-05"), ("5 Μαΐου 2030", "2030-05-05"), ("5 Ιουλίου 2030", "2030-07-05"),
        ("5 noiembrie 2030", "2030-11-05"), ("KW 10 2030", "2030-03-04"), ("2030-W10", "2030-03-04"),
        ("Week 54, 2030", "None"),
        ("5 maart 2030", "2030-03-05"), ("1 mei 2030", "2030-05-01"), ("5 giugno 2030", "2030-06-05"),
        ("5 de setembro de 2030", "2030-09-05"), ("5 desember 2030", "2030-12-05"), ("5 grudnia 2030", "2030-12-05"),
        ("5 марта 2030 г.", "2030-03-05"), ("2030년 3월 5일", "2030-03-05"), ("2030:03:05 10:00:00", "2030-03-05"),
        ("Tue Mar  5 10:00:00 2030 +0100", "2030-03-05"), ("03/2030", "2030-03-01"), ("2030-W60", "None"),
        ("03.04.30", "None"), ("Mar-05-2030", "2030-03-05"),
        ("令和12年3月5日", "2030-03-05"), ("民國119年3月5日", "2030-03-05"), ("平成元年1月8日", "1989-01-08"),
        ("13/2030", "None"), ("5/2030/3", "None"),
    ],
)  # fmt: skip
def test_written_dates(written: str, expected: str) -> None:
    assert str(parse_written_date(written)) == expected


def test_dates_are_taken_by_trust() -> None:
    assert str(document_date({"created": "2029-01-01", "pubDate": "05.03.2030"})) == "2030-03-05"
    assert str(document_date({"citation_publication_date": "2030/03/05", "og:site": "Quay"})) == "2030-03-05"
    assert str(document_date({"og:updated_time": "2031-01-02", "DC.date.issued": "2030-03-05"})) == "2031-01-02"
    assert str(document_date({"DCTERMS.date.issued": "2030-03-05"})) == "2030-03-05"
    assert str(document_date({"pubDate": "2030-03-05", "updated": "2031/01/02"})) == "2031-01-02"
    assert str(document_date({"updated": "2031-01-02", "Date": "2028-08-08"})) == "2028-08-08"
    assert str(document_date({"revision_date": "2030-03-05", "created_on": "2029-01-01"})) == "2030-03-05"
    assert str(document_date({"date": "5/3/2030", "last_modified_at": "2030-06-07"})) == "2030-06-07"
    assert str(document_date({"last_update": {"date": "2030-03-05", "author": "Bo"}})) == "2030-03-05"
    assert str(document_date({"date": {"created": "2030-03-05", "updated": "2031-01-01"}})) == "2031-01-01"
    assert str(document_date({"date": 1900000000})) == str(document_date({"date": "1900000000000"})) == "2030-03-17"
    assert str(document_date({"release": "2.0"}, "minutes-2030-03-05.md")) == "2030-03-05"
    assert str(document_date({}, "05.03.2030 Protokoll.md")) == str(document_date({}, "2030_03_05.md")) == "2030-03-05"
    assert str(document_date({"created": "2029-01-01"}, "20300305_minutes.md")) == "2029-01-01"
    assert document_date({}, "part-12030030512.md") is None and document_date({}, "20301399.md") is None


@pytest.mark.parametrize(
    ("name", "head", "title"),
    [
        ("a.rst", "====\nKeys\n====\n\n:Author: Ada\n:Date: 2030-03-05\n", "Keys"),
        ("a.rst", ":orphan:\n:date: March 5, 2030\n\nKeys\n####\n", "Keys"),
        ("a.rst", "PEP: 47\nTitle: Keys\nCreated: 05-Mar-2030\n\nAbstract\n========\n", "Keys"),
        ("a.rst", ".. post:: 2030-03-05\n   :tags: a\n\nKeys\n====\n", "Keys"),
        ("a.adoc", "= Keys\nAda Berg <ada@port.example>\nv1.3.2, 2030-03-05\n", "Keys"),
        ("a.adoc", "= Keys\n:author: Ada\n:revdate: 2030-03-05\n", "Keys"),
        ("a.tex", "\\documentclass{article}\n\\title{Keys of {the} port}\n\\date{March 5, 2030}\n", "Keys of the port"),
        ("a.org", "#+TITLE: Keys\n#+DATE: <2030-03-05 Tue>\n\n* Gate\n", "Keys"),
        ("a.md", "Title: Keys\nDate: 2030-03-05 10:12\nTags: a\n", "Keys"),
        ("a.md", "% Keys\n% Ada; Bo\n% March 5, 2030\n", "Keys"),
        ("a.md", "# Keys\n\n**Date:** 5 March 2030  \n**Title:** Minutes\n\nDate: 2031-01-01\n", "Keys"),
        ("a.rst", "Published: by the office of the port\n:Date: $Date: 2030-03-05 00:36:49 +0100 (Tue) $\n", "a"),
        ("a.txt", "MEMO\n\nTO: All\nDATE: March 5, 2030\nSUBJECT: Keys\n", "a"),
        ("a.txt", "Content-Type: text/x-zim-wiki\nCreation-Date: 2030-03-05T10:12:00+01:00\n", "a"),
    ],
)
def test_lines_at_the_start_of_a_text_give_its_title_and_date(name: str, head: str, title: str) -> None:
    document = read(f"{head}\nThe office keeps the keys.\n", name)
    assert str(document_date(document.metadata)) == "2030-03-05" and document.title == title
    assert document.text.startswith(head.split("\n")[0])


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Dear Bo,\n\nshe will attend.\n\nTitle: Director\n", "letter"),
        ("Name: Ada Berg\nTitle: Director\n", "letter"),
        ("Write this above a page.\n\n```yaml\ntitle: Keys\ndate: 2030-03-05\n```\n", "letter"),
        ("The office keeps the keys.\n****\n\n# Keys\n", "Keys"),
        ("********\n* Keys *\n********\n", "letter"),
    ],
)
def test_lines_in_the_text_of_a_page_give_no_title_or_date(text: str, title: str) -> None:
    document = read(text, "letter.md")
    assert document.title == title and document_date(document.metadata) is None


def test_decimals_are_no_dates() -> None:
    assert [parse_written_date(text) for text in ("3.14159", "12.53051", "12/12030")] == [None, None, None]


def test_dates_of_pages_and_records_are_read() -> None:
    page = "<html><head>{}</head><body><p>Kelp grows on the pier.</p>{}</body></html>"
    linked = '<script type="application/ld+json">{"datePublished": "2030-03-05", "dateModified": "2030-05-06"}</script>'
    header = '<meta http-equiv="Last-Modified" content="Tue, 05 Mar 2030 10:00:00 GMT">'
    time = '<time datetime="2030-03-05">5 March</time>'
    pages = [
        page.format(linked, ""),
        page.format(header, ""),
        page.format("", time),
        page.format("", time + "<time>1</time>"),
    ]
    dates = [str(document_date(read(text, "a.html").metadata)) for text in pages]
    assert dates == ["2030-05-06", "2030-03-05", "2030-03-05", "2030-03-05"]
    assert document_date(read(page.format("", time + time.replace("05", "06")), "a.html").metadata) is None
    assert (
        str(document_date(read('{"text": "Kelp", "updated": "2030-03-05T10:00:00Z"}', "a.json").metadata))
        == "2030-03-05"
    )
    assert read("---\ntitle: Z\ndate: 0000-00-00\npublished: 2030-03-05\n---\nBody", "z.md").text == "Body"


def test_dates_of_pages_are_those_of_the_page() -> None:
    def page_date(head: str, body: str = "") -> str:
        page = f"<html><head>{head}</head><body><p>Kelp grows on the pier.</p>{body}</body></html>"
        return str(document_date(read(page, "a.html").metadata))

    comments = '"comment": [{"@type": "Comment", "datePublished": "2035-01-01"}]'
    linked = f'{{"@graph": [{{{comments}, "datePublished": "2030\\/03\\/05"}}]}}'
    assert page_date(f'<script type="application/ld+json">{linked}</script>') == "2030-03-05"
    assert page_date('<meta name="DC.Date.Issued" content="05.03.2030">') == "2030-03-05"
    assert page_date('<meta name="dc.date" content="2030-03-05">') == "2030-03-05"
    updated = '<meta property="og:updated_time" content="2030-03-05T10:00:00Z">'
    assert page_date(f'<meta property="article:published_time" content="2029-01-01">{updated}') == "2030-03-05"
    assert page_date('<meta name="publisher" content="2031"><meta name="msvalidate.01" content="2031">') == "None"
    other = '<aside><time datetime="2031-01-01">Fair</time></aside>'
    assert (
        page_date("", f'<time class="entry-date published" datetime="2030-03-05">5 March</time>{other}') == "2030-03-05"
    )
    assert page_date("", f'<time pubdate datetime="2030-03-05">5 March</time>{other}') == "2030-03-05"
    assert page_date('<meta name="last-modified-by" content="Jo"><meta name="last-modified" content="2030-03-05">') == (
        "2030-03-05"
    )
    assert page_date('<meta name="unpublished" content="2031-01-01">') == "None"
    for around in ('class="comment-body"', 'itemprop="review"', 'itemprop="comment"'):
        time = f'<div {around}><time class="posted" itemprop="dateCreated" datetime="203{{}}-01-01">x</time></div>'
        assert page_date("", time.format(1) + time.format(2)) == "None", around
    review = '<b itemprop="author">Troll</b>'
    assert "author" not in read(f"<html><body><p>Kelp grows.</p>{review}</body></html>", "a.html").metadata
    assert page_date("", "<time>5 March 2030</time>") == page_date("", '<b itemprop="dateModified">5.3.2030</b>')
    assert page_date("", '<time>5 March 2030</time> from <time datetime="10:00">ten</time>') == "2030-03-05"


def test_dates_in_other_signs_are_read_and_placeholders_are_not() -> None:
    for written in (
        "2030\u201103\u201105",
        "２０３０－０３－０５",
        "5/Mar/2030",
        "2030年3月5日(火) 10:00",
        "2030–03–05",
    ):
        assert str(document_date({"date": written})) == "2030-03-05", written
    assert document_date({"date": "0001-01-01T00:00:00Z"}) is None
    feed = "<rss><channel><item><pubDate><![CDATA[ Tue, 05 Mar 2030 10:00:00 GMT ]]></pubDate></item></channel></rss>"
    assert str(document_date(read(feed, "a.rss").metadata)) == "2030-03-05"
    atom = '<feed><entry><updated xml:lang="en">2030-03-05</updated></entry></feed>'
    assert str(document_date(read(atom, "a.atom").metadata)) == "2030-03-05"
    book = "<book><published>Kelp and Sons of the harbour, 2030-03-05 to 2031</published></book>"
    assert "updated" not in read(book, "a.xml").metadata


def test_a_file_without_a_time_of_change_has_no_date(tmp_path: Path) -> None:
    path = tmp_path / "kelp.md"
    path.write_text("Kelp", encoding="utf-8")
    os.utime(path, (0, 0))
    assert list_files([path]).items[0].file_date is None
    os.utime(path, (1_900_000_000, 1_900_000_000))
    assert str(list_files([path]).items[0].file_date) == "2030-03-17"


def test_the_report_adds_up_what_was_left_out_of_several_documents() -> None:
    notes = [DocumentNotes(("a: x.",), {"comments": 2}), DocumentNotes(("b: y.",), {"comments": 1, "charts": 1})]
    assert sum_notes(notes) == ("Not fully read in 2 documents: comments (3), charts (1).", "a: x.", "b: y.")
    assert sum_notes(notes[:1]) == ("a: x.",)


def test_parts_that_are_nested_deeper_than_parsers_read_are_not_lost() -> None:
    page = f"<html><body><p>top</p>{'<div>' * 2_500}<p>deep</p>{'</div>' * 2_500}<p>after</p></body></html>"
    assert read(page, "a.html").text.split() == ["top", "deep", "after"]
    document = Document()
    cell = document.add_table(1, 1).cell(0, 0)
    for _ in range(200):
        cell = cell.add_table(1, 1).cell(0, 0)
    target = io.BytesIO()
    document.save(target)
    with pytest.raises(UnreadableDocument, match="has parts that are nested too deeply"):
        read_bytes(target.getvalue(), "a.docx")


# Links, charts and controls of sheets and slides

SCHEMAS = "http://schemas.openxmlformats.org"
CHART = (
    f'<c:chartSpace xmlns:c="{SCHEMAS}/drawingml/2006/chart" xmlns:a="{SCHEMAS}/drawingml/2006/main"><c:chart><c:title>'
    "<c:tx><c:rich><a:p><a:r><a:t>Passengers</a:t></a:r></a:p></c:rich></c:tx></c:title><c:plotArea><c:barChart>{}"
    "</c:barChart></c:plotArea></c:chart></c:chartSpace>"
)
SERIES = (
    "<c:ser><c:tx><c:strRef><c:strCache><c:pt idx='0'><c:v>2030</c:v></c:pt></c:strCache></c:strRef></c:tx>"
    "<c:cat><c:strRef><c:strCache><c:pt idx='0'><c:v>Visby</c:v></c:pt></c:strCache></c:strRef></c:cat>"
    "<c:val><c:numRef><c:numCache><c:pt idx='0'><c:v>41</c:v></c:pt></c:numCache></c:numRef></c:val></c:ser>"
)
CHART_FRAME = f'<c:chart xmlns:c="{SCHEMAS}/c" xmlns:r="{SCHEMAS}/officeDocument/2006/relationships" r:id="xchart"/>'
CONTROLS = """<xml xmlns:v="urn:schemas-microsoft-com:vml" xmlns:x="urn:schemas-microsoft-com:office:excel">
<v:shape><v:textbox><div><font>Fenced</font></div></v:textbox>
<x:ClientData ObjectType="Checkbox"><x:Checked>1</x:Checked></x:ClientData></v:shape>
<v:shape><v:textbox><div>Roofed</div></v:textbox><x:ClientData ObjectType="Checkbox"/></v:shape>
<v:oval alt="Plan of the quay"/><v:shape><x:ClientData ObjectType="Drop"/></v:shape>
<v:shape><v:textbox><div>Ada</div></v:textbox><x:ClientData ObjectType="Note"/></v:shape></xml>"""


def add_parts(book: openpyxl.Workbook, **parts: tuple[str, str]) -> bytes:
    """Return a workbook with parts of a kind (their XML, and that of the chart they refer to) on its first sheet."""
    relation = '<Relationship Id="x{0}" Target="{1}" Type="http://x/{0}"/>'
    frame = f'<Relationships xmlns="{SCHEMAS}/package/2006/relationships">{{}}</Relationships>'
    book.save(stream := io.BytesIO())
    with zipfile.ZipFile(stream, "a") as package:
        links = "".join(relation.format(kind, f"{kind}.xml") for kind in parts)
        package.writestr("xl/worksheets/_rels/sheet1.xml.rels", frame.format(links))
        for kind, (xml, chart) in parts.items():
            package.writestr(f"xl/worksheets/{kind}.xml", xml)
            package.writestr(f"xl/worksheets/_rels/{kind}.xml.rels", frame.format(relation.format("chart", "c.xml")))
            if chart:
                package.writestr("xl/worksheets/c.xml", chart)
    return stream.getvalue()


def test_the_addresses_of_linked_cells_are_read() -> None:
    book = make_book(("Part", "Maker"), ("V-7", "Kelp Ltd"), ("V-8", "mail ada@kelp.test"), ("V-9", "See V-7"))
    for cell, address in (("B2", "https://kelp.test/v7"), ("B3", "mailto:ada@kelp.test")):
        book.worksheets[0][cell].hyperlink = address
    book.worksheets[0]["B4"].hyperlink = "#Sheet!A2"
    book.worksheets[0]["A4"] = '=HYPERLINK("https://kelp.test/v9","V-9")'
    text = read(edited(book, sheet1=('"V-9")</f><v></v>', '"V-9")</f><v>V-9</v>')), "a.xlsx").text
    rows = ("| V-7 | [Kelp Ltd](https://kelp.test/v7) |", "| V-8 | mail ada@kelp.test |")
    assert text.split("\n")[4:] == [*rows, "| [V-9](https://kelp.test/v9) | See V-7 |"]


def test_the_address_of_linked_words_on_a_slide_is_read_and_that_of_a_shape_counted() -> None:
    slides = Presentation()
    slide = slides.slides.add_slide(slides.slide_layouts[5])
    run = slide.shapes.title.text_frame.paragraphs[0].add_run()
    run.text, run.hyperlink.address = "Tide tables", "https://tide.test/2030"
    slide.shapes.add_textbox(0, 0, 9, 9).click_action.hyperlink.address = "https://tide.test"
    slides.save(target := io.BytesIO())
    document = read(target.getvalue(), "a.pptx")
    assert (document.title, document.text) == ("Tide tables", "## [Tide tables](https://tide.test/2030)")
    assert document.metadata["left_out"] == {"addresses of linked shapes": 1}


def test_cells_of_other_programs_are_read_whatever_their_kind_and_scenarios_are_counted() -> None:
    text = "<is><t>Rope</t></is>"
    low = '<is><r><t>1010</t></r><r><rPr><vertAlign val="subscript"/></rPr><t>2</t></r></is>'
    cells = f'<c t="inlineStr"><v>Twine</v></c><c>{text}</c><c t="inlineStr"><v>0</v>{text}</c><c>{low}</c>'
    cells += "<c><v>NaN</v></c>"
    rows = f'<row r="4">{cells}</row></sheetData><scenarios><scenario name="Ebb"/></scenarios>'
    document = read(edited(make_book(), sheet1=("</sheetData>", rows)), "t.xlsx")
    assert document.text.split("\n")[-1] == "| Twine | Rope | Rope | 1010_2 | nan |"
    assert document.metadata["left_out"] == {"scenarios": 1}


def test_the_charts_and_controls_of_a_sheet_are_read() -> None:
    chart = (f"<x>{CHART_FRAME}</x>", CHART.format(SERIES))
    document = read(add_parts(make_book(), drawing=chart, vmlDrawing=(CONTROLS, "")), "a.xlsx")
    chart_text = "Passengers\n\n|  | 2030 |\n| --- | --- |\n| Visby | 41 |"
    assert document.text == f"{TABLE}\n\n☒ Fenced\n☐ Roofed\n[Image: Plan of the quay]\n\n{chart_text}"
    assert document.metadata["left_out"] == {"form fields": 1}
    document = read(add_parts(make_book(), drawing=(chart[0], CHART.format(""))), "a.xlsx")
    assert document.text == f"{TABLE}\n\nPassengers" and document.metadata["left_out"] == {"charts": 1}


def test_a_hidden_box_of_a_sheet_is_marked_or_left_out() -> None:
    box = "<x:sp><x:nvSpPr><x:cNvPr {}/></x:nvSpPr><x:txBody><a:p><a:r><a:t>{}</a:t></a:r></a:p></x:txBody></x:sp>"
    boxes = box.format("hidden='1'", "Old quay") + box.format("", "New quay") + box.format("hidden='1'", "Fenced")
    drawing = f'<x:wsDr xmlns:x="urn:x" xmlns:a="{SCHEMAS}/drawingml/2006/main">{boxes}</x:wsDr>'
    data = add_parts(make_book(), drawing=(drawing, ""), vmlDrawing=(CONTROLS, ""))
    document = read(data, "a.xlsx")  # the hidden box of a control is its copy
    assert document.text.endswith("\n\nOld quay (hidden)\n\nNew quay")
    assert document.metadata["hidden_parts"] == {"shapes": 1}
    draft = read_draft(data, "a.xlsx", options=ReadingOptions(skip_hidden=True))
    assert "Old quay" not in draft.text and draft.metadata["left_out"] == {"form fields": 1, "hidden shapes": 1}


def test_a_second_row_of_a_number_does_not_replace_the_first() -> None:
    rows = "".join(
        f"<row{number}><c t='str'><v>{text}</v></c></row>"
        for number, text in ((" r='9'", "ninth"), (" r='8'", "eighth"), ("", "without"), (" r='8'", "again"))
    )
    document = read(edited(make_book(), sheet1=("</sheetData>", f"{rows}</sheetData>")), "t.xlsx")
    assert document.text.endswith("eighth\n\nninth\n\nwithout\n\nagain")


def test_times_in_iso_format_are_read_as_durations_times_and_days() -> None:
    times = ("PT36H", "2030-03-05T00:00:00Z", "2030-03-05T13:30:00", "T13:30")
    cells = "".join(f'<c t="d"><v>{value}</v></c>' for value in times)
    document = read(edited(make_book(), sheet1=("</sheetData>", f'<row r="4">{cells}</row></sheetData>')), "t.xlsx")
    assert "PT36H | 2030-03-05 | 2030-03-05 13:30:00 | 13:30" in document.text


def test_allowed_values_and_hints_are_read_and_pivot_tables_without_their_data_counted() -> None:
    book = make_book()
    for cell, formula in (("A2", '"V-7,V-8,V-9"'), ("B2", "$B$2:$B$3")):
        allowed = DataValidation("list", formula1=formula, error="Only bays of quay 9" if cell == "B2" else None)
        allowed.add(cell)
        book.worksheets[0].add_data_validation(allowed)
    cache = '<x><cacheSource type="worksheet"><worksheetSource ref="A1:B3" {}/></cacheSource></x>'
    extension = '<extLst><x14:dataValidation xmlns:x14="urn:x" xmlns:xm="urn:y" prompt="From the list of bays">'
    extension += "<xm:sqref>B3</xm:sqref></x14:dataValidation></extLst></worksheet>"
    with zipfile.ZipFile(stream := io.BytesIO(edited(book, sheet1=("</worksheet>", extension))), "a") as package:
        for number, source in enumerate(('sheet="Sheet"', 'sheet="Gone"', 'xmlns:r="{0}" r:id="rId1"')):
            source = source.format(f"{SCHEMAS}/officeDocument/2006/relationships")
            package.writestr(f"xl/pivotCache/pivotCacheDefinition{number}.xml", cache.format(source))
        package.writestr("xl/model/item.data", "")
    document = read(stream.getvalue(), "a.xlsx")
    assert document.text == f"{TABLE}\n\nA2: V-7,V-8,V-9\n\nB2: Only bays of quay 9\n\nB3: From the list of bays"
    left_out = {"data models": 1, "pivot tables with data from another file or a removed sheet": 2}
    assert document.metadata["left_out"] == left_out


def test_figures_below_a_name_show_that_repeated_names_are_columns_and_two_rows_of_names_become_one() -> None:
    document = read("id,name,name\n1,Ann,Lee\n2,Bob,Ray\n", "a.csv")
    assert document.metadata["columns"] == ["id", "name", "name"]
    document = read(",2031,,2032,\nTown,Min,Max,Min,Max\nVisby,1,2,3,4\nRonne,5,6,7,8\n", "a.csv")
    assert document.metadata["columns"] == ["Town", "2031 Min", "2031 Max", "2032 Min", "2032 Max"]
    assert document.text.endswith("| Visby | 1 | 2 | 3 | 4 |\n| Ronne | 5 | 6 | 7 | 8 |")


def test_signs_of_symbol_fonts_and_parts_of_seconds_are_read_as_a_sheet_shows_them() -> None:
    book = make_book(("Part", "Tested", "Time", "Lap"), ("V-7", "ü", 75.25 / 86_400, 0.5 + 8.5 / 86_400))
    book.worksheets[0]["B2"].font = Font(name="Wingdings")
    book.worksheets[0]["C2"].number_format, book.worksheets[0]["D2"].number_format = "[mm]:ss.00", "h:mm:ss.0"
    assert "| V-7 | ✓ | 0:01:15.25 | 12:00:08.5 |" in read(edited(book), "t.xlsx").text


def test_a_long_number_keeps_its_digits_and_a_row_without_height_is_hidden() -> None:
    book = make_book(("Card", "Bay"), (1234567890123456, "C2"), (9876543210987654, "D4"))
    document = read(edited(book, sheet1=('<row r="3"', '<row r="3" ht="0"')), "t.xlsx")
    assert "| 1234567890123456 | C2 |\n| 9876543210987654 | D4 |" in document.text
    assert document.metadata["hidden_parts"] == {"rows": 1}


def test_a_sheet_has_the_alternative_texts_of_charts_groups_and_shapes() -> None:
    shapes = "".join(
        f'<x:{tag}><x:cNvPr descr="{alt}"/></x:{tag}>' for tag, alt in (("sp", "Yard"), ("graphicFrame", "Rise"))
    )
    drawing = f'<x:wsDr xmlns:x="{SCHEMAS}/x"><x:grpSp><x:cNvPr descr="Plan"/>{shapes}</x:grpSp><x:pic/>{{}}</x:wsDr>'
    document = read(add_parts(make_book(), drawing=(drawing.format(CHART_FRAME), CHART.format(SERIES))), "a.xlsx")
    assert "[Image: Plan]\n\n[Image: Yard]\n\n[Image: Rise]\n\nPassengers" in document.text
    assert document.metadata["left_out"] == {"images without alternative text": 1}


@pytest.mark.parametrize("make", [lambda: make_book(), Document, Presentation], ids=["xlsx", "docx", "pptx"])
def test_the_own_properties_of_an_office_file_are_metadata(make: Callable[[], Any]) -> None:
    book = make()
    if hasattr(book, "add_paragraph"):
        book.add_paragraph("Quay")
    if hasattr(book, "slide_layouts"):
        book.slides.add_slide(book.slide_layouts[5]).shapes.title.text = "Quay"
    book.save(stream := io.BytesIO())
    entries = "".join(f'<property name="{name}"><v>HK-7</v></property>' for name in ("Contract", "_dlc_DocId", "ICV"))
    with zipfile.ZipFile(stream, "a") as package:
        package.writestr("docProps/custom.xml", f'<Properties xmlns="{SCHEMAS}/p">{entries}</Properties>')
    suffix = "docx" if hasattr(book, "add_paragraph") else "pptx" if hasattr(book, "slides") else "xlsx"
    metadata = read(stream.getvalue(), f"a.{suffix}").metadata
    assert metadata["Contract"] == "HK-7" and {"_dlc_DocId", "ICV"}.isdisjoint(metadata)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_file_that_declares_entities_is_refused_as_an_xml_bomb(encoding: str) -> None:
    entities = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10 if n else "ha"}">' for n in range(9))
    bomb = f'<?xml version="1.0" encoding="{encoding}"?><!DOCTYPE x [{entities}]><x>&a8;</x>'
    for name, part in (("a.docx", "word/document.xml"), ("a.xlsx", "xl/worksheets/sheet1.xml")):
        with zipfile.ZipFile(target := io.BytesIO(), "w") as package:
            package.writestr(part, bomb.encode(encoding))
        with pytest.raises(UnreadableDocument, match=f"'{name}' declares XML entities"):
            read(target.getvalue(), name)


def test_formulas_of_text_without_a_stored_value_are_counted_and_the_words_of_links_are_read() -> None:
    book = make_book(("Part", "Note"), ("V-7", "=CONCAT(A2)"), ("V-8", "=CONCAT(A3)"))
    book.worksheets[0]["B4"] = '=HYPERLINK("https://kelp.test/v9","Nine")'
    parts = {
        "sheet1": ('"B2"><f>CONCAT(A2)</f><v></v>', '"B2" t="str"><f>CONCAT(A2)</f>'),
        "s/sheet1": ('"B3"><f>CONCAT(A3)</f>', '"B3" t="str"><f>CONCAT(A3)</f>'),  # its value is an empty text
    }
    document = read(edited(book, **parts), "a.xlsx")
    rows = ["| V-7 | =CONCAT(A2) |", "| V-8 |  |", "|  | [Nine](https://kelp.test/v9) |"]
    assert document.text.split("\n")[4:] == rows
    assert document.metadata["left_out"] == {"formulas without a stored value": 1}


def test_cells_merged_downwards_have_their_value_in_each_row() -> None:
    rows = ("Island", "Catch 2030", None), (None, "Herring", "Cod"), ("Gotland", 71, 82), (None, 73, 84), ("Faro", 7, 8)
    book = make_book(*rows)
    for span in ("A1:A2", "B1:C1", "A3:A4"):
        book.worksheets[0].merge_cells(span)
    book.save(target := io.BytesIO())
    lines = ["| Island | Catch 2030 Herring | Catch 2030 Cod |", "| --- | --- | --- |"]
    lines += ["| Gotland | 71 | 82 |", "| Gotland | 73 | 84 |", "| Faro | 7 | 8 |"]
    assert read(target.getvalue(), "a.xlsx").text.split("\n")[2:] == lines


def test_constants_with_a_name_and_hints_for_the_input_are_read() -> None:
    names = '<definedNames><definedName name="Toll">0.19</definedName><definedName name="Port">"Kelp"</definedName>'
    names += '<definedName name="solver_eng" hidden="1">1</definedName><definedName name="All">S!$A$1</definedName>'
    hint = '<dataValidations><dataValidation sqref="A2" promptTitle="Part" prompt="as on the lid"/></dataValidations>'
    data = edited(
        make_book(),
        workbook=("</sheets>", f"</sheets>{names}</definedNames>"),
        sheet1=("</sheetData>", f"</sheetData>{hint}"),
    )
    assert read(data, "a.xltx").text == f"{TABLE}\n\nA2: Part as on the lid\n\nNames:\n\n- Toll: 0.19\n- Port: Kelp"


@pytest.mark.parametrize(
    ("table", "row"),
    [
        ('part, note\n"A, 1", "B, 2"\nx, y\n', "| A, 1 | B, 2 |"),
        ('part,note\n"say \\"hi\\", Ada",K7\nx,y\n', '| say "hi", Ada | K7 |'),
    ],
)
def test_quotes_after_a_space_and_quotes_after_a_backslash_do_not_shift_columns(table: str, row: str) -> None:
    lines = read(table, "a.csv").text.split("\n")
    assert lines[0] == "| part | note |" and lines[2] == row


def test_line_breaks_inside_json_strings_are_read() -> None:
    assert read('{"note": "two\nlines"}', "a.json").text == "note:\ntwo\nlines"


def test_names_of_a_map_and_words_for_browsers_without_frames_are_read_and_the_rest_is_counted() -> None:
    areas = "<img src=m.png alt=Harbour><map><area href=a alt='North gate'><area href=b></map>"
    style = "<style>h2::before{content: counter(part) '. '} a::after{content: ' (' attr(href) ')'}</style>"
    document = read(f"{style}<h2>Gates</h2>{areas}", "plan.shtml")
    assert document.text == "## Gates\n\nHarbour North gate"
    assert document.metadata["left_out"] == {"texts that style sheets insert": 2}
    frames = "<frame src=a.html><frame src=b.html><noframes><body><p>See the <b>plan</b>.</p></body></noframes>"
    document = read(f"<html><frameset cols='*,*'>{frames}</frameset></html>", "index.html")
    plain = "<html><frameset cols='*'><noframes>See the plan.</noframes></frameset></html>"
    assert read(plain, "a.html").text == "See the plan."
    assert document.text == "See the **plan**." and document.metadata["left_out"] == {"embedded media and drawings": 2}


def test_a_damaged_sheet_is_read_as_far_as_possible_and_counted() -> None:
    document = read(edited(make_book(), sheet1=("</sheetData>", "<row r='9'>")), "a.xlsx")
    assert document.text == TABLE and document.metadata["left_out"] == {"damaged parts of the file": 1}


def test_comments_of_sheets_follow_the_option_for_those_of_documents_and_are_not_called_hidden() -> None:
    book = openpyxl.Workbook()
    book.worksheets[0]["A1"] = "Rope"
    book.worksheets[0]["A1"].comment = Comment("Twelve metres.", "Ana")
    stream = io.BytesIO()
    book.save(stream)
    document = read_bytes(stream.getvalue(), "stock.xlsx")
    assert "Twelve metres." in document.text
    assert page_notes("stock.xlsx", document.metadata) == (
        "stock.xlsx: comments or hidden parts that were read: comments (1).",
    )
    without = read_bytes(stream.getvalue(), "stock.xlsx", options=ReadingOptions(skip_hidden=True))
    assert "metres" not in without.text and without.metadata["left_out"] == {"comments": 1}
