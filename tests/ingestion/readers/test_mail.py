"""Mail messages and mailboxes: what is read of them, and what is counted."""

from __future__ import annotations

from base64 import b64encode
from email.message import EmailMessage

import pytest

from workbench.errors import UnreadableDocument
from workbench.ingestion.metadata import document_date
from workbench.ingestion.raw import RawDocument
from workbench.ingestion.readers.formats import read_bytes


def read(data: bytes) -> RawDocument:
    return read_bytes(data, "letter.eml")


def test_a_message_is_its_headers_and_body_with_forwarded_ones_below() -> None:
    forwarded = EmailMessage()
    forwarded["Subject"], forwarded["From"] = "Float", "b@example.org"
    forwarded.set_content("The float sticks.")
    message = EmailMessage()
    message["Subject"], message["From"], message["To"] = "Prüfung des Pegels", "Jörg <j@example.org>", "a@example.org"
    message["Date"] = "Tue, 05 Mar 2030 23:30:00 +0100"
    message.set_content("Grüße vom Pegel.", charset="iso-8859-1")
    message.add_alternative("<p>Not this form.</p>", subtype="html")
    message.add_attachment(b"x", maintype="application", subtype="pdf", filename="a.pdf")
    message.add_attachment(forwarded)
    document = read(bytes(message))
    assert (document.title, document.document_type) == ("Prüfung des Pegels", "mail")
    assert document.metadata["date"] == "2030-03-05" and document.metadata["author"] == "Jörg <j@example.org>"
    assert document.metadata["left_out"] == {"attachments": 1}
    lines = [line.strip() for line in document.text.splitlines() if line.strip()]
    date = "Date: Tue, 05 Mar 2030 23:30:00 +0100"
    assert lines[:4] == ["# Prüfung des Pegels", "From: Jörg <j@example.org>", "To: a@example.org", date]
    body = ["Grüße vom Pegel.", "Attachment not read: a.pdf"]
    assert lines[4:] == [*body, "# Float", "From: b@example.org", "The float sticks."]


@pytest.mark.parametrize("hint", ["Your program does not show HTML mail.", "", "See the web version."])
def test_the_page_of_a_message_is_read_if_its_text_is_only_a_hint(hint: str) -> None:
    message = EmailMessage()
    message["Subject"], message["From"] = "Pier", "a@example.org"
    message.set_content(hint)
    message.add_alternative("<p>The pier opens at nine, and the berth costs 450 crowns a week.</p>", subtype="html")
    text = read(bytes(message)).text
    assert "The pier opens at nine, and the berth costs 450 crowns a week." in text and hint in text


def test_attached_texts_are_read_under_their_names() -> None:
    message = EmailMessage()
    message["Subject"], message["From"] = "Levels", "a@example.org"
    message.set_content("See below.")
    message.add_attachment("The float is at nine.", filename="float.txt")
    message.add_attachment("<p>Gate <b>four</b></p>", subtype="html", filename="gate.html")
    message.add_attachment(b"\1\2\3" * 20, maintype="text", subtype="plain", filename="broken.txt")
    document = read(bytes(message))
    parts = ["See below.", "## float.txt", "The float is at nine.", "## gate.html", "Gate **four**"]
    assert [line for line in document.text.splitlines() if line][2:] == [*parts, "Attachment not read: broken.txt"]
    assert document.metadata["left_out"] == {"attachments": 1}


@pytest.mark.parametrize(
    ("label", "codec"),
    [("cp1251", "windows-1251"), ("x-cp1251", "windows-1251"), ("koi8", "koi8-r"), ("cyrillic", "iso-8859-5")],
)
def test_charsets_have_the_labels_of_the_web(label: str, codec: str) -> None:
    word = f"=?{label}?B?{b64encode('Привет'.encode(codec)).decode()}?="
    head = f"From: {word} <x@example.org>\nSubject: {word}\nContent-Type: text/html; charset={label}\n\n"
    document = read((head + "<p>Привет, мир</p>").encode(codec))
    assert document.title == "Привет" and "Привет, мир" in document.text
    assert document.metadata["author"] == "Привет <x@example.org>"


@pytest.mark.parametrize(
    ("written", "title"),
    [
        (b"=?latin1?Q?caf=E9_=93noir=94_5_=80?=", "café “noir” 5 €"),
        (b"=?utf-8?b?5pel5pys6Kq?=\n =?utf-8?b?ng==?= (2)", "日本語 (2)"),  # a character in two words
        (b"=?utf-8?b?w?= x", "=?utf-8?b?w?= x"),
        (b"caf\xe9 noir", "café noir"),
        (b"=?\xff?q?x?=", "x"),
    ],
)
def test_words_of_headers_are_decoded(written: bytes, title: str) -> None:
    assert read(b"From: x@example.org\nSubject: " + written + b"\n\nText.").title == title


def test_malformed_messages_are_read_as_far_as_possible() -> None:
    head = "From: x@example.org\nSubject: Gauge\nDate: last week\nContent-Type: multipart/mixed; boundary=q\n\n"
    document = read(f"{head}--q\nContent-Type: text/plain; charset=x-unknown\n\nThe gauge.\n--q\n\n".encode())
    assert "The gauge." in document.text and "date" not in document.metadata
    for head in ("Content-Type: text/html;big5*", "Date: Mon, 1 Jan 2024 00:00:00 +99999999999999999999"):
        assert "The gauge." in read(f"Subject: Gauge\n{head}\n\nThe gauge.".encode()).text
    assert read(b"Subject: Gauge\nContent-Type: text/html\n\n<!-- nothing -->").title == "Gauge"
    with pytest.raises(UnreadableDocument, match="is not a mail message: it has no From, To, Date or Subject"):
        read(b"Just some text.")


def test_a_mailbox_is_its_messages_in_order() -> None:
    message = EmailMessage()
    message["Subject"], message["From"] = "Buoy 7", "b@example.org"
    message.set_content("The buoy drifts.\n\nFrom the quay it is not seen.")
    first = (
        b"From a@example.org Tue Mar  5 23:30:00 2030\nSubject: Gauge\nFrom: a@example.org\n\n>From now on: 5 m.\n\n"
    )
    for newline in (b"\n", b"\r\n"):
        data = first + b"From b@example.org Wed Mar  6 01:00:00 2030\n" + bytes(message)
        document = read_bytes(data.replace(b"\n", newline), "post.mbox")
        assert (document.title, document.document_type, document.metadata["messages"]) == ("post", "mail", 2)
        lines = [line.strip() for line in document.text.splitlines() if line.strip()]
        assert lines[:3] == ["# Gauge", "From: a@example.org", "From now on: 5 m."]
        assert lines[3:] == ["# Buoy 7", "From: b@example.org", "The buoy drifts.", "From the quay it is not seen."]
    with pytest.raises(UnreadableDocument, match="is not a mailbox in mbox format"):
        read_bytes(b"Just some text.", "post.mbox")


def write_parts(kind: str, *parts: str) -> str:
    inner = "".join(f"--{kind}\n{part}\n" for part in parts)
    return f"Content-Type: multipart/{kind}; boundary={kind}\n\n{inner}--{kind}--\n"


PLAIN, PAGE = (
    "Content-Type: text/plain\n\nThe tide turns.\n",
    "Content-Type: text/html\n\n<p>The tide <b>turns</b></p>\n",
)
FOOTER = "Content-Type: text/plain\n\nTo leave the list, write to it.\n"
PLAN = 'Content-Type: application/pdf; name="plan.pdf"\nContent-Disposition: inline\n\nx\n'
NOTES = 'Content-Type: application/octet-stream; name="notes.txt"\n\nBring ropes.\n'


@pytest.mark.parametrize(
    ("parts", "lines"),
    [
        (write_parts("alternative", PLAIN, write_parts("mixed", PAGE, PLAN)),
         ["The tide turns.", "Attachment not read: plan.pdf"]),
        (write_parts("mixed", write_parts("related", PAGE, PLAN), write_parts("alternative", FOOTER)),
         ["The tide **turns**", "Attachment not read: plan.pdf", "To leave the list, write to it."]),
        (write_parts("mixed", write_parts("related", PLAIN, NOTES), FOOTER),
         ["The tide turns.", "## notes.txt", "Bring ropes.", "To leave the list, write to it."]),
        ("Content-Type: message/rfc822\n\nSubject: Ebb\n\nThe ebb starts.\n", ["# Ebb", "The ebb starts."]),
    ],
)  # fmt: skip
def test_every_part_is_read_or_named_wherever_it_is(parts: str, lines: list[str]) -> None:
    document = read(f"\ufeffSubject: Tide\nBcc: x@example.org\n{parts}".encode())
    assert [line.strip() for line in document.text.splitlines() if line.strip()] == [
        "# Tide", "Bcc: x@example.org", *lines
    ]  # fmt: skip
    attachments = sum(line.startswith("Attachment") for line in lines)
    assert document.metadata.get("left_out", {}) == ({"attachments": attachments} if attachments else {})


def test_a_page_saved_with_its_images_is_read() -> None:
    image = "Content-Type: image/png\nContent-Transfer-Encoding: base64\nContent-ID: <1>\n\nAAAA\n"
    page = "Content-Type: text/html\n\n<p>Pier <img src='cid:1' alt='seen from the sea'></p>\n"
    for name in ("pier.mhtml", "pier.mht"):
        document = read_bytes(("Subject: Pier guide\n" + write_parts("related", page, image)).encode(), name)
        assert (document.title, document.document_type) == ("Pier guide", "html")
        assert document.text == "Pier seen from the sea" and "left_out" not in document.metadata


def test_a_saved_page_has_its_own_date_or_that_of_saving_and_no_lists_of_links() -> None:
    page = (
        "<html><head>{}</head><body><nav><a href='x'>Tides</a></nav><h1>Pier</h1><p>The pier is east.</p></body></html>"
    )
    head = "Subject: Pier\nDate: Tue, 5 Mar 2030 10:12:00 -0000\n"
    for meta, day in (
        ("", "2030-03-05"),
        ("<meta property='article:modified_time' content='2030-02-01'>", "2030-02-01"),
    ):
        part = f"Content-Type: text/html\n\n{page.format(meta)}\n"
        document = read_bytes((head + write_parts("related", part)).encode(), "pier.mhtml")
        assert str(document_date(document.metadata)) == day
        assert document.text.split() == ["#", "Pier", "The", "pier", "is", "east."]
        assert document.metadata["left_out"] == {"lists of links": 1}


@pytest.mark.parametrize(("form", "lines"), [("", "boat \nhouse"), ("; delsp=yes", "boat  \nho \nuse")])
def test_lines_of_flowed_text_are_joined(form: str, lines: str) -> None:
    text = f"{lines} east.\n\n> Where \n> is it?\n-- \nAda\n"
    document = read(f"From: Ada\nContent-Type: text/plain; format=flowed{form}\n\n{text}".encode())
    assert document.text.endswith("boat house east.\n\n> Where\n> is it?\n--\nAda")


def test_an_answer_below_a_flowed_quotation_stays_apart() -> None:
    document = read(b"From: Ada\nContent-Type: text/plain; format=flowed\n\n> Where is it? \nIn the \nboat house.\n")
    assert document.text.endswith("> Where is it?\nIn the boat house.")


def test_a_saved_page_is_read_if_one_of_its_frames_is_no_text() -> None:
    page = "Content-Type: text/html\n\n<html><body>East.</body></html>\n"
    frame = "Content-Type: text/html\nContent-Transfer-Encoding: base64\n\n" + 20 * "AAECAwQFBgcICQoLDA0O" + "\n"
    document = read_bytes(write_parts("related", page, frame).encode(), "a.mht")
    assert document.text == "East." and document.metadata["left_out"] == {"frames that are not text": 1}


def test_times_of_subtitles_may_have_one_digit_and_a_saved_page_is_titled_by_its_page() -> None:
    assert read_bytes(b"1\n0:0:1,0 --> 0:0:2,0\nRing twice.\n", "a.srt").text == "Ring twice."
    page = "Content-Type: text/html\n\n<html><head><title>Pier guide</title></head><body>East.</body></html>\n"
    assert read_bytes(write_parts("related", page).encode(), "a.mht").title == "Pier guide"


def test_encrypted_bodies_are_counted() -> None:
    message = EmailMessage()
    message["Subject"] = "Regatta"
    message.set_content(b"sealed", maintype="application", subtype="pkcs7-mime", disposition="inline")
    assert read(bytes(message)).metadata["left_out"] == {"bodies that are encrypted or no text": 1}


CALENDAR = """BEGIN:VCALENDAR
X-WR-CALNAME:Pier plan
BEGIN:VTIMEZONE
BEGIN:STANDARD
DTSTART:19701025T030000
END:STANDARD
END:VTIMEZONE
BEGIN:VEVENT
SUMMARY:Crane test\\, north
DTSTART;TZID=Europe/Oslo:20310305T140000
ORGANIZER;CN="Holm, Mia":mailto:mia@quay.example
DESCRIPTION:Bring the long
  chain.\\nWear gloves.
BEGIN:VALARM
DESCRIPTION:Alarm
END:VALARM
ATTACH:https://x.example/a.pdf
END:VEVENT
BEGIN:VTODO
SUMMARY:Paint
DUE:20310401
END:VTODO
END:VCALENDAR
""".replace("\\\\", "\\")


def test_the_entries_of_a_calendar_are_sections() -> None:
    document = read_bytes(CALENDAR.encode(), "plan.ics")
    assert document.title == "Pier plan"
    assert [line.strip() for line in document.text.splitlines() if line.strip()] == [
        "# Crane test, north", "Start: 2031-03-05 14:00 (Europe/Oslo)", "Organizer: Holm, Mia (mia@quay.example)",
        "Bring the long chain.", "Wear gloves.", "# Paint", "Due: 2031-04-01",
    ]  # fmt: skip
    assert document.metadata["left_out"] == {"reminders": 1, "attachments": 1}
    with pytest.raises(UnreadableDocument, match="has no event, task or contact"):
        read_bytes(b"BEGIN:VCALENDAR\nEND:VCALENDAR\n", "empty.ics")


def test_an_invitation_by_mail_is_read() -> None:
    message = EmailMessage()
    message["Subject"], message["From"] = "Crane", "b@example.org"
    message.set_content("Please come.")
    message.add_alternative(CALENDAR, subtype="calendar")
    document = read(bytes(message))
    assert "Please come." in document.text and "Start: 2031-03-05 14:00 (Europe/Oslo)" in document.text
    assert document.metadata["left_out"] == {"reminders": 1, "attachments": 1}


def test_contacts_are_sections_in_old_and_new_versions() -> None:
    old = "BEGIN:VCARD\nVERSION:2.1\nFN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:J=C3=BCrgen K=\n=C3=B6nig\n"
    old += "ADR;HOME:;;Pier 9;Bergen;;5003;Norway\nPHOTO;ENCODING=BASE64:AAAA\nNOTE:Knows the\\; crane\nEND:VCARD\n"
    new = "BEGIN:VCARD\nVERSION:4.0\nitem1.FN:Bo Dahl\nORG:Quay AS;Cranes\nTEL;VALUE=uri:tel:+47-55\nEND:VCARD\n"
    document = read_bytes((old + new).encode(), "people.vcf")
    assert [line.strip() for line in document.text.splitlines() if line.strip()] == [
        "# Jürgen König", "Address: Pier 9, Bergen, 5003, Norway", "Knows the; crane",
        "# Bo Dahl", "Organisation: Quay AS, Cranes", "Phone: +47-55",
    ]  # fmt: skip
    assert document.metadata["left_out"] == {"images": 1}


def test_numbers_of_a_contact_have_their_kinds_and_labels() -> None:
    fields = "TEL;TYPE=CELL,VOICE:1\nTEL;type=WORK;type=pref:2\nEMAIL;TYPE=INTERNET:a@p.example\nitem1.TEL:3\n"
    card = f"BEGIN:VCARD\nFN:Ada\n{fields}item1.X-ABLabel:_$!<Assistant>!$_\nEND:VCARD\n"
    assert [line.strip() for line in read_bytes(card.encode(), "a.vcf").text.split("\n")[2:]] == [
        "Phone (cell,voice): 1", "Phone (work): 2", "E-mail: a@p.example", "Phone: 3", "Label: Assistant",
    ]  # fmt: skip


def test_who_sent_a_message_for_another_one_and_its_keywords_are_read() -> None:
    document = read(b"From: Ada\nSender: Bo\nSubject: Pier\nKeywords: rope, oars\nComments: Urgent\n\nBody.\n")
    assert [line.strip() for line in document.text.split("\n\n")[1].split("\n")] == [
        "From: Ada", "Sender: Bo", "Keywords: rope, oars", "Comments: Urgent",
    ]  # fmt: skip


def test_a_contact_is_named_by_its_parts_and_fields_without_a_label_are_kept() -> None:
    card = "BEGIN:VCARD\nVERSION:2.1\nN:Berg;Ada;;Dr.;\nANNIVERSARY:20300305\nREV:1\nEND:VCARD\n"
    assert read_bytes(card.encode(), "a.vcf").text == "# Dr. Ada Berg\n\nAnniversary: 2030-03-05"


def test_a_video_has_its_title_and_chapters() -> None:
    vtt = "WEBVTT - Harbour talk\n\nChapter 1: The pier\n00:01.000 --> 00:04.000\n<v Ada>Boats wait.\n"
    document = read_bytes(vtt.encode(), "talk.vtt")
    assert (document.title, document.text) == ("Harbour talk", "Chapter 1: The pier\n\nAda: Boats wait.")


def test_subtitles_are_what_is_said_without_times() -> None:
    srt = "1\n00:00:01,000 --> 00:00:03,500\n<i>The kelp</i> farm\nopens in May.\n\n2\n00:00:03,600 --> 00:00:05,000\n"
    srt += "{\\an8}It sells &amp; ships.\n\n3\n00:00:09,000 --> 00:00:12,000\nBye 3 < 4.\n"
    document = read_bytes(srt.encode(), "talk.srt")
    assert document.text == "The kelp farm\nopens in May.\nIt sells & ships.\n\nBye 3 < 4."
    assert document.metadata["seconds"] == 12
    vtt = "WEBVTT\n\nNOTE by hand\n\nSTYLE\n::cue {color:red}\n\n"
    vtt += "intro\n00:01.000 --> 00:04.000 align:start\n<v Ada>Boats wait.\n\n"
    vtt += "00:04.000 --> 00:06.000\n<v Ada>Boats wait.\nThey leave <c.x>at</c> <00:05.5>noon.\n\n"
    vtt += "01:00:07.000 --> 01:00:09.000\n<v Bo>Good.</v>\n"
    document = read_bytes(vtt.encode(), "talk.vtt")
    assert document.text == "Ada: Boats wait.\nThey leave at noon.\n\nBo: Good."
    assert document.metadata["left_out"] == {"comments": 1}
    with pytest.raises(UnreadableDocument, match="is not a subtitle file"):
        read_bytes(b"Some text.", "talk.srt")


def test_cues_that_are_not_separated_or_hold_a_blank_line_are_read_whole() -> None:
    srt = "1\n00:00:01,000 --> 00:00:02,000\nBoats wait.\n2\n00:00:02,100 --> 00:00:03,000\nThey leave\n\nat noon.\n\n"
    assert read_bytes(f"{srt}3\n00:00:03,100 --> 00:00:04,000\nBye.\n".encode(), "talk.srt").text == (
        "Boats wait.\nThey leave\nat noon.\nBye."
    )


def test_fields_of_contacts_that_programs_add_are_read_unless_they_are_technical() -> None:
    card = "BEGIN:VCARD\nFN:Ada\nX-SKYPE:ada.l\nX-ABUID:77\nitem1.X-ABRELATEDNAMES:Bo\nX-WR-ALARMID:8\nEND:VCARD\n"
    lines = [line.strip() for line in read_bytes(card.encode(), "a.vcf").text.splitlines() if line.strip()]
    assert lines == ["# Ada", "Skype: ada.l", "Relatednames: Bo"]


def test_messages_of_a_mailbox_need_no_blank_line_and_a_sentence_is_no_message() -> None:
    text = "Off we go.\n\nFrom the pier at 10:30 we sail.\nNote: bring ropes.\nFrom b@x.org Mon Feb  3 11:00:00 2031\n"
    data = f"From a@x.org Mon Feb  3 10:00:00 2031\nSubject: One\n\n{text}Subject: Two\n\nSecond.\n"
    document = read_bytes(data.encode(), "post.mbox")
    assert document.metadata["messages"] == 2
    assert [line.strip() for line in document.text.splitlines() if line.strip()] == [
        "# One", "Off we go.", "From the pier at 10:30 we sail.", "Note: bring ropes.", "# Two", "Second.",
    ]  # fmt: skip


def test_the_reason_of_a_failed_delivery_is_read() -> None:
    status = "Content-Type: message/delivery-status\n\nFinal-Recipient: rfc822; ann@x.org\nStatus: 5.1.1\n"
    document = read(f"Subject: Returned\n{write_parts('report', PLAIN, status)}".encode())
    assert "Status: 5.1.1" in document.text and "left_out" not in document.metadata


def test_letters_next_to_a_decoded_word_of_a_header_are_kept() -> None:
    assert read("Subject: Grüße =?utf-8?Q?k=C3=BC?= ü\n\nText.".encode()).title == "Grüße kü ü"


@pytest.mark.parametrize(
    ("header", "title"),
    [
        ("=?utf-8?q?J=C3=BCrgen?=\n <j@x.de>", "Jürgen <j@x.de>"),
        ("plain words\n =?utf-8?q?Gr=C3=BC=C3=9Fe?=\n aus Berlin", "plain words Grüße aus Berlin"),
        ("=?utf-8?q?Gr=C3=BC?=\r\n =?utf-8?q?=C3=9Fe?=", "Grüße"),
    ],
)
def test_words_of_a_folded_header_stay_apart(header: str, title: str) -> None:
    assert read(f"Subject: {header}\n\nText.".encode()).title == title


def test_a_sentence_with_times_in_a_mailbox_is_no_message_and_a_quoted_line_starts_one() -> None:
    first = "From a@x.org Mon Feb  3 10:00:00 2031\nSubject: One\n\nThe room is open:\n"
    plan = "From Monday 10:00 until Friday in 2030 it is free.\nRoom: 5\n"
    second = "From b@x.org Tue, 4 Feb 2031 11:00:00 +0100\n>From an old program\nSubject: Two\n\nSecond.\n"
    document = read_bytes(f"{first}{plan}{second}".encode(), "post.mbox")
    assert document.metadata["messages"] == 2
    assert "From Monday 10:00 until Friday in 2030 it is free." in document.text and "Room: 5" in document.text


@pytest.mark.parametrize(
    "line", ["From Mon Jan 5 10:00 to Fri Jan 9 18:00 in 2030 the gate is shut", "From Mon 5 Jan, at 10:00, until 2030"]
)
def test_a_sentence_with_days_and_times_does_not_split_a_mailbox(line: str) -> None:
    message = "From ann@example.org Mon Jan  1 10:00:00 +0100 2030\nSubject: Gate\n\nHello\n{}\n"
    document = read_bytes(message.format(f"{line}\nNote: bring keys").encode(), "box.mbox")
    assert document.metadata["messages"] == 1
    assert line in document.text
    assert read_bytes((message.format("") * 2).encode(), "box.mbox").metadata["messages"] == 2
