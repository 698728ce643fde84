"""Mail messages (.eml), mailboxes (.mbox), saved pages (.mhtml), calendars (.ics) and contacts (.vcf)."""

from __future__ import annotations

import quopri
import re
from collections.abc import Iterator
from contextlib import suppress
from email import message_from_bytes
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import EmailMessage, MIMEPart
from email.policy import EmailPolicy
from email.utils import parsedate_to_datetime
from mimetypes import guess_type
from typing import cast

from workbench.errors import UnreadableDocument
from workbench.ingestion.raw import Draft
from workbench.ingestion.readers.html import convert_fragment, find_charset, read_html
from workbench.ingestion.text import decode_text, leave_out, open_reading

SHOWN_HEADERS = (
    "From",
    "Sender",
    "To",
    "Cc",
    "Bcc",
    "Reply-To",
    "Keywords",
    "Comments",
)  # as lines above the body; the date is metadata as well
TEXT_TYPE = re.compile(
    r"text/(?!rtf|richtext).*|multipart/.*|application/(?:json|(?:.*\+)?xml)"
)  # of parts that are read
ENTRY_TYPES = ("text/calendar", "text/vcard", "text/x-vcard")
# A line that ends with a day of the week, a day of a month, a time, a zone and a year; after the first, headers follow.
MAILBOX_LINE = re.compile(
    rb"(?:\A|(?<=\n)(?=[^\n]{0,400}\n(?:[\w-]+:|>From )))From [^\n]{0,200}?\b[A-Z][a-z]{2},? +"
    rb"(?:[A-Z][a-z]{2} +\d{1,2}|\d{1,2} +[A-Z][a-z]{2}),?(?: +\d{4})? +\d\d:\d\d(?::\d\d)?"
    rb"(?: +(?:[+-]?\d{4}|(?:[A-Z]{1,5})?[+-]\d\d:?\d\d|\(?[A-Z]{1,5}\)?|remote from \S{1,80}))*[ \t\r]*\n"
)
FLOWED_LINE = re.compile(r"^(?!>|-- \r?$)(.*) \r?\n(?=[^>\s])", re.MULTILINE)  # within a paragraph (RFC 3676)
FOLD = re.compile(r"\r?\n[ \t]+")
ESCAPED_BYTE = re.compile(rb"\\udc([89a-f][0-9a-f])")
QUOTED_LINE = re.compile(rb"^>(>*From )", re.MULTILINE)


class LenientPolicy(EmailPolicy):
    """The standard library's rules, except that a header on which its parser fails counts as empty."""

    def header_fetch_parse(self, name: str, value: str) -> str:
        """Return the parsed header."""
        try:
            return super().header_fetch_parse(name, value)
        except Exception:  # noqa: BLE001 - it raises IndexError, AttributeError, ValueError and others
            return super().header_fetch_parse(name, "")


def read_mail(data: bytes, name: str) -> Draft:
    """Return a message as headers and body, and forwarded messages below it. The title is the subject.

    Raises:
        UnreadableDocument: The file has no mail headers.
    """
    message = _parse_message(data.lstrip(b"\xef\xbb\xbf \t\r\n"))
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
    messages = [_parse_message(text) for text in texts]
    parts = [part for message in messages for part in _read_message(message, name)]
    return Draft("\n\n".join(parts), metadata={"messages": len(messages)})


def read_saved_page(data: bytes, name: str) -> Draft:
    """Return the text of a page, and of the pages in its frames. The title is the subject."""
    message = _parse_message(data.lstrip())
    parts = [part for part in _list_parts(message) if part.get_content_subtype() == "html"]
    pages = list[Draft]()
    for part in parts:
        with suppress(UnreadableDocument):
            pages.append(read_html(_read_bytes(part), name, part.get_content_charset()))
    leave_out("frames that are not text", len(parts) - len(pages))
    metadata = dict(pages[0].metadata) if pages else {}
    if day := _read_date(message):
        metadata.setdefault("time", day)
    titles = [_read_header(message, "Subject"), *(page.title for page in pages)]
    return Draft("\n\n".join(page.text for page in pages), next(filter(None, titles), ""), metadata)


def _parse_message(data: bytes) -> EmailMessage:
    return cast("EmailMessage", message_from_bytes(data, policy=LenientPolicy()))


def _read_message(message: EmailMessage, name: str) -> Iterator[str]:
    """Yield the headers of a message, then its parts."""
    headers = {header: _read_header(message, header) for header in (*SHOWN_HEADERS, "Date")}
    yield f"# {_read_header(message, 'Subject') or 'No subject'}"
    yield "\n".join(f"{header}: {value}  " for header, value in headers.items() if value)
    for part in _list_parts(message):
        kind, filename = part.get_content_type(), part.get_filename("")
        if kind == "application/octet-stream":
            kind = guess_type(filename)[0] or kind
        text = _read_body(part, filename or name) if TEXT_TYPE.fullmatch(kind) else None
        if kind == "message/rfc822" and part.is_multipart():
            yield from _read_message(cast("EmailMessage", part.get_payload(0)), name)
        elif kind in ENTRY_TYPES:
            yield from _read_entries(text or "")
        elif text is not None:
            yield f"## {filename}\n\n{text}" if filename and text.strip() else text
        elif kind == "message/delivery-status" and part.is_multipart():
            yield "\n".join(f"{field}: {value}  " for group in part.iter_parts() for field, value in group.items())
        elif part is message and not filename:
            leave_out("bodies that are encrypted or no text")
        elif part.get_content_maintype() == "image" and "Content-ID" in part:
            leave_out("images")
        else:
            leave_out("attachments")
            yield f"Attachment not read: {filename or kind}"


def _list_parts(part: MIMEPart) -> list[MIMEPart]:
    """Return the parts inside a part. Of alternatives, the page is left out unless the text is only a hint."""
    if part.get_content_maintype() != "multipart" or not part.is_multipart():
        return [part]
    parts = [inner for child in part.iter_parts() for inner in _list_parts(child)]
    texts = [each for each in parts if each.get_content_maintype() == "text" and not each.is_attachment()]
    plain, pages = ([each for each in texts if each.get_content_subtype() == kind] for kind in ("plain", "html"))
    if part.get_content_subtype() != "alternative" or not plain + pages:
        return parts
    with open_reading():  # the notes are about the parts that are read
        words = ["\n".join(_read_body(each, "") or "" for each in some) for some in (plain, pages)]
    bodies = plain + pages if _is_hint(*words) else plain or pages
    return [each for each in parts if each in bodies or each not in texts or each.get_content_type() in ENTRY_TYPES]


def _is_hint(text: str, html: str) -> bool:
    """Return whether the plain text of a message is only a hint to read its HTML, most of whose words it lacks."""
    own, words = (set(re.findall(r"\w+", one.casefold())) for one in (text, html))
    return 2 * len(words & own) < len(words) and ("html" in own or len(words) > 2 * len(own))


def _read_body(part: MIMEPart, name: str) -> str | None:
    """Return the text of a part, or None if its bytes are no text."""
    data, charset = _read_bytes(part), part.get_content_charset()
    is_page = part.get_content_subtype() == "html"
    with suppress(UnreadableDocument):
        text = decode_text(data, name, charset or (find_charset(data) if is_page else None))
        if part.get_param("format") == "flowed":
            text = FLOWED_LINE.sub(r"\1" if part.get_param("delsp") == "yes" else r"\1 ", text)
        return convert_fragment(text) if is_page else text


def _read_bytes(part: MIMEPart) -> bytes:
    content = part.get_payload(decode=True)
    return content if isinstance(content, bytes) else b""


def _read_header(message: EmailMessage, header: str) -> str:
    """Return a header as one line. Its charsets mean what they mean in browsers, unlike in the standard library."""
    raw = next((value for name, value in message.raw_items() if name.lower() == header.lower()), "")
    try:
        pieces = decode_header(FOLD.sub(" ", raw))  # which drops the blank that starts a line
    except HeaderParseError:  # damaged base64 is shown as it is
        pieces = [(raw, None)]
    return " ".join("".join(_decode_piece(*piece) for piece in pieces).split())


def _decode_piece(piece: bytes | str, charset: str | None) -> str:
    data = piece if isinstance(piece, bytes) else piece.encode("utf-8", "surrogateescape")
    if charset is None:  # next to words with a charset, the library writes bytes outside ASCII as escapes
        data = ESCAPED_BYTE.sub(lambda escape: bytes.fromhex(escape[1].decode()), data)
    with suppress(UnreadableDocument), open_reading():  # the notes of the file are about its body
        return decode_text(data, "a header", (charset or "").partition("*")[0])
    return ""


def _read_date(message: EmailMessage) -> str:
    with suppress(ValueError, OverflowError):
        return parsedate_to_datetime(_read_header(message, "Date")).date().isoformat()
    return ""


# --- Calendars (RFC 5545) and contacts (RFC 6350): a section for each entry ---

FOLDED_LINE = re.compile(r"\n[ \t]")
QUOTED_PRINTABLE = re.compile(r"^[^\n:]*QUOTED-PRINTABLE[^\n]*(?:(?<==)\n[^\n]*)+", re.IGNORECASE | re.MULTILINE)
CONTENT_LINE = re.compile(r"(?:[\w-]+\.)?(?P<name>[\w-]+)(?P<parameters>(?:;(?:[^:\";]|\"[^\"]*\")*)*):(?P<value>.*)")
ESCAPED_SIGN = re.compile(r"\\(.)")
UTC_OR_DAY = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)\d\d(Z?))?")
TITLE_FIELDS = ("SUMMARY", "FN")
LABELS = {  # of fields whose name is no word; "" for a paragraph
    "DTSTART": "Start", "DTEND": "End", "RRULE": "Repeats", "RDATE": "Repeats on", "EXDATE": "Except on", "URL": "URL",
    "LOCATION": "Place", "ORG": "Organisation", "TEL": "Phone", "EMAIL": "E-mail", "ADR": "Address", "BDAY": "Birthday",
    "DESCRIPTION": "", "COMMENT": "", "NOTE": "",
}  # fmt: skip
TECHNICAL_FIELD = re.compile(
    r"X-(?:AB(?!DATE|RELATED|LABEL)|ALT|APPLE|EVOLUTION|GOOGLE|LIC|MICROSOFT|MOZ|MS-OLK|WR).*|BEGIN|VERSION|PRODID|UID|DTSTAMP|CREATED|LAST-MODIFIED|SEQUENCE|TRANSP|CLASS|REV|KEY|KIND|PROFILE|MAILER"
)
ENTRY_KIND = re.compile(r";TYPE=\"?(?!pref|voice|internet)([\w,-]+)", re.IGNORECASE)  # of a number or an address
UNREAD_FIELDS = {"ATTACH": "attachments", "PHOTO": "images", "LOGO": "images", "SOUND": "audio and video"}


def read_entries(data: bytes, name: str) -> Draft:
    """Return the entries of a calendar or of a file of contacts. The title is that of the calendar, or the only one.

    Raises:
        UnreadableDocument: It has no entry.
    """
    text = decode_text(data, name)
    entries = list(_read_entries(text))
    if not entries:
        raise UnreadableDocument(f"'{name}' has no event, task or contact. Export it again.")
    title = re.search(r"^(?:X-WR-CALNAME|NAME)[^:\n]*:(.*)", text, re.MULTILINE)
    first = entries[0].partition("\n")[0].removeprefix("# ")
    heading = title[1].strip() if title else first if len(entries) == 1 else ""
    day = re.search(r"^Start: (\d{4}-\d\d-\d\d)", entries[0], re.MULTILINE) if len(entries) == 1 else None
    return Draft("\n\n".join(entries), heading, {"entries": len(entries)} | ({"date": day[1]} if day else {}))


def _read_entries(text: str) -> Iterator[str]:
    """Yield each event, task, note and contact as Markdown; alarms and time zones have no text of their own."""
    title, lines, blocks = "", list[str](), list[str]()
    text = FOLDED_LINE.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    text = QUOTED_PRINTABLE.sub(lambda field: field[0].replace("=\n", ""), text)
    for line in text.split("\n"):
        match = CONTENT_LINE.fullmatch(line)
        if match is None:
            continue
        field, value = match["name"].upper(), _read_value(match)
        if field == "BEGIN":
            blocks.append(value.upper())
        elif field == "END" and blocks:
            block = blocks.pop()
            if block in ("VEVENT", "VTODO", "VJOURNAL", "VCARD"):
                yield "\n".join([f"# {title or 'No title'}\n", *lines])
                title, lines = "", []
            leave_out("reminders", block == "VALARM")
        elif blocks and blocks[-1] not in ("VEVENT", "VTODO", "VJOURNAL", "VCARD"):
            continue
        elif field in UNREAD_FIELDS:
            leave_out(UNREAD_FIELDS[field])
        elif field in TITLE_FIELDS:
            title = value
        elif field == "N":
            title = title or value
        elif blocks and value and not TECHNICAL_FIELD.fullmatch(field):
            label = LABELS.get(field, field.removeprefix("X-").removeprefix("AB").replace("-", " ").capitalize())
            kinds = ", ".join(ENTRY_KIND.findall(match["parameters"])).lower()
            label += f" ({kinds})" if label and kinds else ""
            lines.append(f"{label}: {value}  " if label else f"\n{value}\n")


def _read_value(line: re.Match[str]) -> str:
    """Return a field's value as people read it: days and times in ISO 8601, people with names."""
    parameters = dict(part.split("=", 1) for part in line["parameters"].upper().split(";") if "=" in part)
    value = line["value"].strip().removeprefix("_$!<").removesuffix(">!$_")  # around the labels of Apple
    if "QUOTED-PRINTABLE" in line["parameters"].upper():
        value = decode_text(quopri.decodestring(value.encode()), "", parameters.get("CHARSET"))
    time = UTC_OR_DAY.fullmatch(value)
    if time is not None:
        clock = f" {time[4]}:{time[5]}{' UTC' if time[6] else ''}" if time[4] else ""
        zone = re.search(r"TZID=\"?([^;:\"]+)", line["parameters"], re.IGNORECASE)
        return f"{time[1]}-{time[2]}-{time[3]}{clock}{f' ({zone[1]})' if zone and clock else ''}"
    if line["name"].upper() in ("ADR", "ORG"):
        value = ", ".join(filter(None, (part.strip() for part in re.split(r"(?<!\\);", value))))
    elif line["name"].upper() == "N":  # family; given; other; before; after
        family, *others = re.split(r"(?<!\\);", value)
        value = " ".join(filter(None, (part.strip() for part in (*others[2:3], *others[:2], family, *others[3:]))))
    person = re.search(r"CN=(?:\"([^\"]*)\"|([^;:]*))", line["parameters"], re.IGNORECASE)
    value = re.sub(
        r"^(?:mailto|tel):", "", ESCAPED_SIGN.sub(lambda sign: "\n" if sign[1] in "nN" else sign[1], value), flags=re.I
    )
    return f"{person[1] or person[2]} ({value})" if person else value
