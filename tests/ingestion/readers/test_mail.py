"""Mail messages and mailboxes: what is read of them, and what is counted."""

from __future__ import annotations

from base64 import b64encode
from email.message import EmailMessage

import pytest

from workbench.errors import UnreadableDocument
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
    assert lines[4:] == ["Grüße vom Pegel.", "# Float", "From: b@example.org", "The float sticks."]


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


def test_encrypted_bodies_and_calendar_entries_are_counted() -> None:
    message = EmailMessage()
    message["Subject"] = "Regatta"
    message.set_content(b"sealed", maintype="application", subtype="pkcs7-mime", disposition="inline")
    assert read(bytes(message)).metadata["left_out"] == {"bodies that are encrypted or no text": 1}
    message.set_content("On Sunday.")
    message.add_alternative("BEGIN:VCALENDAR\nSUMMARY:Regatta\nEND:VCALENDAR", subtype="calendar")
    document = read(bytes(message))
    assert "On Sunday." in document.text and document.metadata["left_out"] == {"calendar entries": 1}
