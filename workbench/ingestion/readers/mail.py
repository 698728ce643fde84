"""Mail messages (.eml) and mailboxes (.mbox): subject, people, date and body; attachments are counted."""

from __future__ import annotations

import quopri
import re
from base64 import b64decode
from collections.abc import Iterator
from email import message_from_bytes, policy
from email.message import EmailMessage, MIMEPart
from email.utils import parsedate_to_datetime
from itertools import groupby
from typing import cast

from workbench.errors import UnreadableDocument
from workbench.ingestion.raw import Draft
from workbench.ingestion.readers.html import convert_fragment, find_charset
from workbench.ingestion.text import decode_text, leave_out, open_reading

SHOWN_HEADERS = ("From", "To", "Cc")  # as lines above the body; the date is metadata as well
BODY_KINDS = ("plain", "html")  # the first that a message has is read
MAILBOX_LINE = re.compile(rb"(?:\A|(?<=\n\n)|(?<=\r\n\r\n))From [^\n]*\d\d:\d\d[^\n]*\n")  # before each message
# A word of a header in another charset (RFC 2047), and the white space before the next one
ENCODED_WORD = re.compile(r"=\?([^?*\s]+)(?:\*[^?\s]*)?\?([BbQq])\?([^?]*)\?=(?:\s+(?==\?[^?\s]+\?[BbQq]\?))?")
QUOTED_LINE = re.compile(rb"^>(>*From )", re.MULTILINE)


def _parse_header(name: str, value: str) -> str:
    """Parse a header; one on which the standard library's parser fails counts as empty."""
    try:
        return policy.default.header_factory(name, value)
    except Exception:  # noqa: BLE001 - it raises IndexError, AttributeError, ValueError and others
        return policy.default.header_factory(name, "")


MAIL_POLICY = policy.default.clone(header_factory=_parse_header)


def read_mail(data: bytes, name: str) -> Draft:
    """Return a message as headers and body, and forwarded messages below it. The title is the subject.

    Raises:
        UnreadableDocument: The file has no mail headers.
    """
    message = message_from_bytes(data.lstrip(), policy=MAIL_POLICY)
    if not any(_read_header(message, header) for header in ("From", "To", "Date", "Subject")):
        raise UnreadableDocument(f"'{name}' is not a mail message: it has no From, To, Date or Subject.")
    metadata = {"author": _read_header(message, "From"), "date": _read_date(message)}
    text = "\n\n".join(_read_message(message, name))
    return Draft(text, _read_header(message, "Subject"), {key: value for key, value in metadata.items() if value})


def read_mailbox(data: bytes, name: str) -> Draft:
    """Return the messages of a mailbox in order, each as ``read_mail`` returns it. The title is the file's name.

    Raises:
        UnreadableDocument: The file does not start with the line that precedes a message.
    """
    data = data.lstrip()
    if not MAILBOX_LINE.match(data):
        raise UnreadableDocument(f"'{name}' is not a mailbox in mbox format: its first line is not 'From ... TIME'.")
    texts = (QUOTED_LINE.sub(rb"\1", text) for text in MAILBOX_LINE.split(data) if text.strip())
    messages = [message_from_bytes(text, policy=MAIL_POLICY) for text in texts]
    parts = [part for message in messages for part in _read_message(message, name)]
    return Draft("\n\n".join(parts), metadata={"messages": len(messages)})


def _read_message(message: EmailMessage, name: str) -> Iterator[str]:
    """Yield the headers and the body of a message, then those of the messages attached to it."""
    headers = {header: _read_header(message, header) for header in (*SHOWN_HEADERS, "Date")}
    yield f"# {_read_header(message, 'Subject') or 'No subject'}"
    yield "\n".join(f"{header}: {value}  " for header, value in headers.items() if value)
    body = message.get_body(BODY_KINDS)
    if body is not None:
        yield _read_body(body, name)
    elif not message.is_multipart():
        leave_out("bodies that are encrypted or no text")
    kinds = [part.get_content_type() for part in message.walk() if not part.is_attachment()]
    leave_out("calendar entries", kinds.count("text/calendar"))
    for part in message.iter_attachments() if message.is_multipart() else ():
        if part.get_content_type() == "message/rfc822":
            yield from _read_message(cast("EmailMessage", part.get_payload(0)), name)
        else:
            leave_out("attachments")


def _read_body(part: MIMEPart, name: str) -> str:
    content = part.get_payload(decode=True)
    data = content if isinstance(content, bytes) else b""
    charset = part.get_content_charset()
    if part.get_content_subtype() == "html":
        return convert_fragment(decode_text(data, name, charset or find_charset(data)))
    return decode_text(data, name, charset)


def _read_header(message: EmailMessage, header: str) -> str:
    """Return a header as one line. Its charsets mean what they mean in browsers, unlike in the standard library."""
    raw = next((value for name, value in message.raw_items() if name.lower() == header.lower()), "")
    pieces: list[tuple[str, bytes]] = []  # charset, bytes; a character may be split over two encoded words
    end = 0
    for match in ENCODED_WORD.finditer(raw):
        charset, encoding, text = match.groups()
        pieces.append(("", raw[end : match.start()].encode("utf-8", "surrogateescape")))
        data = text.encode("ascii", "ignore")
        try:
            data = b64decode(data + b"==") if encoding in "Bb" else quopri.decodestring(data, header=True)
        except ValueError:  # damaged base64 is shown as it is
            charset, data = "", match.group().encode("utf-8", "surrogateescape")
        pieces.append((charset.lower(), data))
        end = match.end()
    pieces.append(("", raw[end:].encode("utf-8", "surrogateescape")))
    groups = groupby((piece for piece in pieces if piece[1]), key=lambda piece: piece[0])
    return " ".join("".join(_decode_header(charset, b"".join(d for _, d in some)) for charset, some in groups).split())


def _decode_header(charset: str, data: bytes) -> str:
    try:
        with open_reading():  # the notes of the file are about its body
            return decode_text(data, "a header", charset)
    except UnreadableDocument:
        return ""


def _read_date(message: EmailMessage) -> str:
    try:
        return parsedate_to_datetime(_read_header(message, "Date")).date().isoformat()
    except (ValueError, OverflowError):
        return ""
