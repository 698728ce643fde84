"""The PDF reader: Markdown with headings and tables, page by page, parsed with liteparse."""

from __future__ import annotations

import html
import io
import logging
import re
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeVar, cast

from workbench.errors import Cancelled, UnreadableDocument
from workbench.ingestion.metadata import CONTENTS_HEADINGS, OWN_TITLE_KEY, UNINFORMATIVE_NAMES
from workbench.ingestion.ocr.document import (
    INSTALL_ADVICE,
    OnPage,
    PictureWords,
    ReadScans,
    is_ocr_installed,
    read_picture_words,
    read_scans,
)
from workbench.ingestion.ocr.images import PDF_MEDIA_TYPE, render_page
from workbench.ingestion.raw import Draft
from workbench.ingestion.readers.office import DAMAGED_PARTS, XmlElement, format_alt_text, local_name, parse_xml
from workbench.ingestion.readers.pdf.layout import (
    CHECKED_BOX,
    INVISIBLE_MODES,
    PASSWORD_FLAG,
    UNCHECKED_BOX,
    find_lost_lines,
    insert_picture_words,
    place_picture_words,
    read_glyphs,
    strip_running_lines,
)
from workbench.ingestion.readers.pdf.pages import PDF_SIGNATURE, PdfPages, choose_labels, read_pages, trim_preamble
from workbench.ingestion.readers.plain_text import find_first_heading
from workbench.ingestion.text import HIDDEN_MARK, leave_out, normalise, take_hidden

if TYPE_CHECKING:
    from pypdf import PageObject, PdfReader, PdfWriter
    from pypdf.generic import DictionaryObject, IndirectObject, PdfObject, StreamObject

# --- Document properties that describe the contents ---

PROPERTY_KEYS = ("title", "author", "subject", "keywords")
TWO_LETTERS = re.compile(r"[^\W\d_]{2}")  # a bare registration number is not informative
PRINT_PREFIX = re.compile(r"microsoft (?:word|excel|powerpoint) - ", re.IGNORECASE)
FILE_NAME = re.compile(r"\S+\.(?:docx?|pptx?|xlsx?|pdf|indd|tex|dvi|rtf|odt|html?)", re.IGNORECASE)
PLACEHOLDER_AUTHORS = frozenset(("anonymous", "unknown", "user", "admin", "administrator", "owner", "author"))
LIST_SEPARATOR = re.compile(r"\s*[;,]\s*")
PLACEHOLDER_VALUES = frozenset(("unspecified", "unknown", "none", "n/a"))  # placeholders written by programs
MAX_PROPERTY_CHARS = 1_000  # characters of a property
MAX_TITLE_CHARS = 300
MAX_TREE_DEPTH = 32


def read_properties(data: bytes) -> dict[str, str]:
    """Return the informative properties of a PDF, and count the files embedded in it, or the failures of either.

    Titles that are file names and texts without a word are left out.
    """
    from pypdf import PdfReader

    properties = dict.fromkeys(PROPERTY_KEYS, "")
    try:
        file = PdfReader(io.BytesIO(data))
        embedded = file.root_object.get("/Names", {}).get("/EmbeddedFiles")
        named = [one for node, _ in _walk_tree(embedded, "/Kids") for one in node.get("/Names", ())[1::2]]
        associated = [one for part in (file.root_object, *file.pages) for one in part.get("/AF", ())]
        leave_out("embedded files", len({getattr(one, "idnum", id(one)) for one in (*named, *associated)}))
        facts = file.metadata or {}
        properties = {name: str(facts.get(f"/{name.title()}") or "") for name in PROPERTY_KEYS}
    except Exception:  # noqa: BLE001 - damaged object tables; the text can still be read
        leave_out("failed checks for properties or embedded files")
    properties = {name: " ".join(text.split())[:MAX_PROPERTY_CHARS] for name, text in properties.items()}
    properties["title"] = _clean_title(properties["title"])
    properties["keywords"] = ", ".join(
        word for word in LIST_SEPARATOR.split(properties["keywords"]) if TWO_LETTERS.search(word)
    )
    for name, unsaid in (
        ("author", PLACEHOLDER_AUTHORS),
        ("subject", PLACEHOLDER_VALUES),
        ("keywords", PLACEHOLDER_VALUES),
    ):
        if properties[name].strip("()[]<>").casefold() in unsaid:
            properties[name] = ""
    return {name: text for name, text in properties.items() if TWO_LETTERS.search(text)}


def _walk_tree(root: object, below: str, on: str = "") -> Iterator[tuple[DictionaryObject, int]]:
    """Yield each node of a tree once, with the object number of its page, or 0. Damaged nodes are counted.

    Args:
        root: The first node, or a list of nodes.
        below: Key of the nodes below a node.
        on: Key of a node's page, which applies to the nodes below it.
    """
    waiting: list[tuple[Any, int]] = [(root, 0)]
    seen: set[int] = set()
    while waiting:
        part, page = waiting.pop()
        number = getattr(part, "idnum", 0)
        node = None if part is None or number in seen else _read_leniently(part.get_object)
        seen |= {number} if number else set()
        if isinstance(node, list):
            waiting += [(each, page) for each in reversed(cast("list[Any]", node))]
        elif isinstance(node, dict):
            node = cast("DictionaryObject", node)
            page = getattr(node.raw_get(on) if on in node else None, "idnum", page)
            yield node, page
            waiting.append((node.raw_get(below) if below in node else None, page))


def _clean_title(text: str) -> str:
    words = PRINT_PREFIX.sub("", text)
    is_file = words != text or FILE_NAME.fullmatch(words) is not None
    return "" if is_file or words.casefold() in UNINFORMATIVE_NAMES else words[:MAX_TITLE_CHARS]


# --- Choice of the title ---

WORD = re.compile(r"[^\W\d_]{3,}")
ANY_WORD = re.compile(r"\w+")
YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
NON_LETTERS = re.compile(r"[\W\d_]+")


def choose_title(name: str, heading: str, own_title: str) -> str:
    """Return the title of a PDF, or "" if its file name is a better title than its heading and title property.

    A heading is often only the first line of the title in the property. File names may contain the company and the
    year ("HARBOUR_2023_report.pdf"). A heading without any of these words may be boilerplate, such as the name of an
    authority.
    """
    if re.match(re.escape(heading) + r"(?!\w)", own_title, re.IGNORECASE):
        heading = own_title
    stem = PurePath(name).stem
    words = [word.casefold() for word in WORD.findall(stem)]
    if not words or not YEAR.search(stem):
        return heading or own_title
    return next((title for title in (heading, own_title) if _shares_word(title, words)), "")


def _shares_word(title: str, words: list[str]) -> bool:
    """Return whether a title contains one of the words, even if it splits the word in two."""
    letters = NON_LETTERS.sub("", title.casefold())
    return any(word in letters for word in words)


GARBLED_READ = "pages read by OCR because their fonts have no or a wrong Unicode map"
GARBLED_UNREAD = "pages whose fonts have no or a wrong Unicode map"
LINES_READ = "lines read by OCR because their fonts have no or a wrong Unicode map"
LINES_UNREAD = "lines whose fonts have no or a wrong Unicode map"
CURVES_READ = "pages with text read by OCR because it is drawn as curves"
CURVES_UNREAD = "pages with text drawn as curves"
NEED_OCR = "pages that need OCR, which is not installed"
EMPTY_SCANS = "pages of images in which OCR found no text"
MAX_IMAGE_PAGES = 40  # pages per file whose images are read, largest images first; each takes a second or two
CHART_DPI = 110  # dots per inch: chart text is rarely small, and half the dots take half the memory
MIN_LINE_SHARE = 0.005  # of a page's height; lines of text are higher
PDF_DATE = re.compile(r"D:(\d{4})(\d{2})?(\d{2})?")


def read_pdf(data: bytes, name: str, on_page: OnPage | None = None, left_out: Collection[int] = ()) -> Draft:
    """Return the pages that have text. Pages without text are read by OCR if the extra ``ocr`` is installed.

    Pages in ``left_out`` failed before and are reported as failed.

    Raises:
        UnreadableDocument: The file is encrypted, damaged, or has no text on any page.
    """
    data = trim_preamble(data)
    if not data.startswith(PDF_SIGNATURE):
        raise UnreadableDocument(f"'{name}' is not a PDF file despite its suffix. Check its source.")
    whole, (data, notes) = data, _strip_hidden(data)
    try:
        file = read_pages(data, name, left_out, on_page=on_page)
    except UnreadableDocument:
        data = whole = _rebuild_file(data)
        file = read_pages(data, name, left_out, on_page=on_page)
    if invisible := {page.number for page in file.pages if page.is_mixed and not page.may_be_scan}:
        data, notes = _strip_hidden(whole, invisible)
        file = read_pages(data, name, left_out)
    file, scans = _read_scans(data, file, on_page) if is_ocr_installed() else (file, ReadScans({}))
    # The Markdown of a page without text is an empty fence, so check the plain text.
    with_text = [page for page in file.pages if page.has_text and page.number not in scans.pages]
    numbers = (page.number for page in with_text)
    chart_words, unread_pictures = _read_chart_words(data, file, on_page)
    page_texts = [insert_picture_words(page.texts, page.charts, chart_words.get(page.number, ())) for page in with_text]
    texts = dict(zip(numbers, map(normalise, strip_running_lines(page_texts)), strict=True))
    pictures = [place_picture_words(texts[number], number, words) for number, words in chart_words.items()]
    layers = {page.number: "\n".join(page.texts.blocks) for page in file.pages if page.has_text and not page.is_garbled}
    for number, page in scans.pages.items():
        texts[number] = _add_lines(page.text, layers.get(number, "").splitlines(), page.text)
    texts, damaged, unmapped = _read_with_pypdf(data, file, texts)
    _add_hidden(data, whole, file, texts, notes)
    unread = {*damaged, *_count_scans(file, {*texts, *scans.failed})} - texts.keys()
    scans = ReadScans(scans.pages, (*scans.failed, *unread))
    drawn = {page.number for page in file.pages if page.charts.drawn}
    leave_out(CURVES_READ, len(drawn & {*scans.pages, *(number for number, words in chart_words.items() if words)}))
    leave_out(CURVES_UNREAD, len(drawn - unread - scans.pages.keys() - chart_words.keys()))
    texts = _add_xfa(texts, file.xfa)
    if not texts and damaged:
        raise UnreadableDocument(f"'{name}' is not a valid PDF. Download or export it again.")
    if not texts:
        advice = "OCR found none either." if is_ocr_installed() else f"It is probably scanned. {INSTALL_ADVICE}"
        raise UnreadableDocument(f"'{name}' has no text on any page. {advice}")
    pages = tuple(sorted(texts.items()))
    headings = (find_first_heading(page) for _, page in pages[:2])
    heading = next((heading for heading in headings if heading and heading.casefold() not in CONTENTS_HEADINGS), "")
    properties = read_properties(data)
    own_title = properties.pop("title", "")
    title = choose_title(name, heading, own_title)
    if own_title and own_title != title:
        properties[OWN_TITLE_KEY] = own_title
    return Draft(
        title=title,
        pages=pages,
        scans=(*(page.scan for page in scans.pages.values()), *filter(None, pictures)),
        metadata=properties | _build_metadata(file, scans, unread_pictures, damaged, unmapped) | scans.metadata(),
    )


PAGE = re.compile(rb"(\d+\s+\d+)\s+obj\b(?:(?!endobj)[^\0]){0,2000}?/Type\s*/Page\b")
CATALOG = re.compile(rb"(\d+\s+\d+)\s+obj\b(?:(?!endobj)[^\0]){0,2000}?/Type\s*/Catalog\b")


OBJECT_STREAM = re.compile(rb"/ObjStm\b[^\0]{0,500}?stream\r?\n")
MAX_OBJECT_BYTES = 100_000_000  # of the objects of one stream


def _unpack_objects(data: bytes) -> Iterator[bytes]:
    """Yield the objects in the compressed object streams of a file as objects of their own."""
    for stream in OBJECT_STREAM.finditer(data):
        unpacker, end = zlib.decompressobj(), data.find(b"endstream", stream.end())
        head = data[max(0, stream.start() - 500) : stream.end()].rpartition(b" obj")[2]
        try:
            text = unpacker.decompress(data[stream.end() : end if end > 0 else None], MAX_OBJECT_BYTES)
            start = int(head.partition(b"/First")[2].split(b"/")[0].rstrip(b"stream>\r\n "))
            numbers = list(map(int, text[:start].split()))
        except (zlib.error, ValueError):  # damaged, or encrypted
            continue
        places = [start + place for place in numbers[1::2]] + [len(text)] * unpacker.eof
        for number, (first, last) in zip(numbers[::2], pairwise(places), strict=False):
            yield b"\n%d 0 obj\n%s\nendobj" % (number, text[first:last])


def _rebuild_file(data: bytes) -> bytes:
    """Return a file rewritten by pypdf, which reads damaged files more leniently; unchanged if pypdf fails.

    A file that was cut off, as by a broken download, gets a new trailer with its catalog, or one of the pages left.
    """
    from pypdf import PdfReader, PdfWriter

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # the reader reports what is wrong with a file
    data += b"\nendstream\nendobj" + b"".join(_unpack_objects(data))
    catalogs, pages = ([] if b"/Encrypt" in data else part.findall(data) for part in (CATALOG, PAGE))
    pages = list(dict.fromkeys(pages))  # an update repeats the pages that it changes
    leave_out(DAMAGED_PARTS, bool(catalogs or pages))
    tree = b"<</Type/Pages/Count %d/Kids[%s]>>" % (len(pages), b" ".join(b"%s R" % page for page in pages))
    roots = [b"%s R" % catalog for catalog in catalogs[-1:]]  # its tree of pages may be lost
    roots += [b"<</Type/Catalog/Pages %s>>" % tree] if pages else []
    end = b"\ntrailer\n<</Root %s>>\nstartxref\n0\n%%%%EOF"
    for part in [end % root for root in roots] or [b""]:
        try:
            reader, writer, target = PdfReader(io.BytesIO(data + part), strict=False), PdfWriter(), io.BytesIO()
            if not reader.is_encrypted and reader.pages:
                for page in reader.pages:
                    writer.add_page(page)
                writer.write(target)
                return target.getvalue()
        except Exception:  # noqa: BLE001 - pypdf raises any exception; the first error is reported
            continue
    return data


# --- XFA forms, whose pages are a placeholder ---

XFA_PLACEHOLDER = re.compile(r"please wait|adobe reader|not eventually replaced|pdf viewer may not|bitte warten", re.I)
PLACEHOLDER_PAGE = re.compile(
    r"not\s+eventually\s+replaced|viewer\s+may\s+not\s+be\s+able\s+to\s+display\s+this"
    r"|\A\W*(?:bitte\s+warten|veuillez\s+patienter|espere|attendere|aguarde)\b",
    re.IGNORECASE,
)


def _add_xfa(texts: dict[int, str], parts: Mapping[str, str]) -> dict[int, str]:
    """Return the texts of pages with that of an XFA form, which takes the place of a placeholder."""
    form = read_xfa(parts) if parts else []
    waiting = sum(bool(PLACEHOLDER_PAGE.search(text)) for text in texts.values())
    leave_out("pages with a placeholder instead of a form", 0 if form else waiting)
    if form and all(XFA_PLACEHOLDER.search(text) for text in texts.values()):
        return {1: "\n\n".join(form)}
    if form:
        texts[max(texts)] = _add_lines(texts[max(texts)], form, " ".join(texts.values()))
    return texts


def read_xfa(parts: Mapping[str, str]) -> list[str]:
    """Return the texts of an XFA form: fixed texts, and the captions of fields with their values.

    Args:
        parts: XML of its parts by name: ``template`` is the form, ``datasets`` the values by field name. A part
            without a name contains all others.
    """
    values: dict[str, list[str]] = {}
    parts = dict.fromkeys(("datasets", "template"), parts[""]) if "" in parts else parts
    data, template = (parse_xml(parts[name].encode()) if parts.get(name) else None for name in ("datasets", "template"))
    elements = [one for part in data.iter("{*}datasets") for one in part.iter()] if data is not None else []
    for element in elements:
        if not len(list(element)) and (text := " ".join((element.text or "").split())):
            values.setdefault(local_name(element), []).append(text)
    lines: list[str] = []
    for element in template.iter("{*}draw", "{*}field") if template is not None else ():
        caption, value = (_element_text(element.find(f"{{*}}{name}")) for name in ("caption", "value"))
        own = values.get(element.get("name") or "")
        value = own.pop(0) if own else value
        lists = sorted(
            element.iterfind("{*}items"), key=lambda items: items.get("save") != "1"
        )  # the saved values first
        choices = [[_element_text(one) for one in items] for items in lists]
        if element.find("{*}ui/{*}checkButton") is not None and choices:
            caption, value = f"{CHECKED_BOX if choices[0][:1] == [value] else UNCHECKED_BOX} {caption}", ""
        elif len(choices) > 1:
            value = dict(zip(*choices[:2], strict=False)).get(value, value)
        lines.append(f"{caption}: {value}" if caption and value else caption or value)
    lines += [f"{name}: {value}" for name, rest in values.items() for value in rest]
    return list(filter(None, lines))


def _element_text(element: XmlElement | None) -> str:
    return "" if element is None else " ".join(" ".join(one.text or "" for one in element.iter()).split())


def _add_lines(text: str, lines: Iterable[str], read: str) -> str:
    """Add to a text the lines with words that ``read`` lacks."""
    known = set(ANY_WORD.findall(read))
    return "\n\n".join([text, *(line for line in lines if not known.issuperset(ANY_WORD.findall(line)))])


# --- Hidden text ---

UNDRAWN_KINDS = ("/Text", "/FileAttachment")  # of annotations, drawn as an icon
UNREAD_KINDS = {
    "/FileAttachment": "embedded files",
    "/StrikeOut": "passages struck out by an annotation, which were read",
    "/Ink": "drawings by hand",
    **dict.fromkeys(("/Sound", "/Movie", "/Screen", "/RichMedia", "/3D"), "recordings and models"),
}
MARKED_CONTENT = (b"BDC", b"BMC", b"EMC")  # operators around content with a mark, such as its layer
SHOWN_TEXT = (b"Tj", b"TJ", b"'", b'"')  # operators whose last operand is text
TAG = re.compile(r"<[^>]*>")  # of rich text
PUSH_BUTTON_FLAG, RADIO_FLAG = 1 << 16, 1 << 15  # of a button (ISO 32000-2, table 229)
MAX_LAYERED_BYTES = 5_000_000  # drawing instructions of a page with layers that are off; pypdf takes 40 times as much
TAKEN = "/WorkbenchTaken"  # marks a hidden annotation that was removed from its page
HIDDEN_FLAGS = 2 | 32  # Hidden and NoView, of an annotation (ISO 32000-2, table 167)
ANY_FLAGS = re.compile(rb"/F\s+(\d{1,4})\b")
INVISIBLE_MODE = re.compile(rb"(?<![\d.])[37]\s+Tr\b")  # the operator that makes text invisible
FAILED_CHECKS = "failed checks for hidden text"
# Whether a group of layers is hidden, from its layers and those that are off (ISO 32000-2, table 97).
HIDDEN_GROUPS: Mapping[str, Callable[[set[int], set[int]], bool]] = {
    "/AllOn": lambda own, off: bool(own & off),
    "/AnyOn": lambda own, off: own <= off,
    "/AnyOff": lambda own, off: not own & off,
    "/AllOff": lambda own, off: not own <= off,
}


T = TypeVar("T")


def _read_leniently(read: Callable[..., T], *arguments: object) -> T | None:
    """Return what a function reads from a damaged file, or None, counted, if pypdf fails on that part."""
    try:
        return read(*arguments)
    except Exception:  # noqa: BLE001 - pypdf raises any exception on damaged files
        leave_out(DAMAGED_PARTS)
        return None


def _read_annotation(page: PageObject, reference: PdfObject) -> str:
    """Return the text that an annotation draws on its page; count a comment, an attached file, or a recording."""
    note = cast("DictionaryObject", reference.get_object() or {})
    kind, comment = note.get("/Subtype"), note.get("/Contents") or note.get("/RC")
    if kind in ("/Link", "/Widget", "/Popup", None):
        return ""
    drawing: Any = cast("dict[str, Any]", note.get("/AP", {})).get("/N") if kind not in UNDRAWN_KINDS else None
    text = page.extract_xform_text(drawing) if hasattr(drawing, "get_data") else ""
    if kind == "/FreeText":
        text, comment = str(note.get("/Contents") or text), None
    text = " ".join(text.split())
    leave_out("stamps without text", kind == "/Stamp" and not text)
    if kind in UNREAD_KINDS:
        leave_out(UNREAD_KINDS[kind])
    leave_out("comments", bool(comment) and comment != text and kind != "/FileAttachment")
    return text


def _find_alt_texts(reader: PdfReader) -> dict[int, list[str]]:
    """Return the alternative texts of a tagged file's images and formulas, by the object number of their page."""
    found: dict[int, list[str]] = {}
    tree = cast("dict[str, Any]", reader.trailer["/Root"]).get("/StructTreeRoot")
    for element, page in _walk_tree(tree, "/K", "/Pg"):
        alt = _read_leniently(element.get, "/Alt")
        alt = alt.decode("latin-1").strip("\0") if isinstance(alt, bytes) else alt
        if text := format_alt_text(alt if isinstance(alt, str) else None):
            found.setdefault(page, []).append(text)
    return found


def _read_field(reference: PdfObject) -> str:
    """Return the value of a form field on a page if the parser does not read it: of a signature, or rich text."""
    field = cast("DictionaryObject", reference.get_object() or {})
    if field.get("/Subtype") != "/Widget" or field.get("/F", 0) & HIDDEN_FLAGS:
        return ""
    kind, value, rich = _inherit(field, "/FT", "/V", "/RV")
    return _describe_annotation(field) if rich != "" or (value and kind == "/Sig") else ""


MAPPED = re.compile(rb"<[0-9A-Fa-f\s]+>\s*<([0-9A-Fa-f\s]*)>")
MIN_MAPPED_GLYPHS = 5  # a font with fewer glyphs may have one character for all


def _check_fonts(page: PageObject, fonts: dict[int, bool]) -> bool:
    """Return whether a font of a page maps all glyphs to the same character; ``fonts`` has this by its identity."""
    is_any = False
    for part in (page, *_list_forms(page, set())):
        for one in part.get("/Resources", {}).get("/Font", {}).values():
            font = one.get_object()
            if id(font) not in fonts:
                stream = font.get("/ToUnicode")
                text = stream.get_data() if hasattr(stream, "get_data") else b""
                single = b"".join(re.findall(rb"beginbfchar(.*?)endbfchar", text, re.DOTALL))
                mapped = [b"".join(match.split()).strip(b"0").lower() for match in MAPPED.findall(single)]
                is_same = len(mapped) >= MIN_MAPPED_GLYPHS and len(set(mapped)) == 1 and b"beginbfrange" not in text
                fonts[id(font)] = is_same and mapped[0] not in (b"", b"fffd")
            is_any |= fonts[id(font)]
    return is_any


def _list_forms(part: DictionaryObject, seen: set[int]) -> Iterator[StreamObject]:
    """Yield the drawings (form XObjects and tiling patterns) of a page or form, and theirs, each once."""
    resources = part.get("/Resources", {})
    drawn = [one.get_object() for key in ("/XObject", "/Pattern") for one in resources.get(key, {}).values()]
    for form in drawn:
        if (form.get("/Subtype") == "/Form" or form.get("/PatternType") == 1) and id(form) not in seen:
            seen.add(id(form))
            yield form
            yield from _list_forms(form, seen)


def _strip_hidden(data: bytes, invisible: Collection[int] = ()) -> tuple[bytes, dict[int, list[str]]]:
    """Return a file without the text of layers that are off and of hidden annotations; unchanged if there is none.

    It has no invisible text on the pages in ``invisible`` either.

    The lines of hidden annotations are returned by page number, for each page that has hidden text.
    """
    has_flags = any(int(flags) & HIDDEN_FLAGS for flags in ANY_FLAGS.findall(data))
    if b"/OCProperties" not in data and b"/ObjStm" not in data and not has_flags and not invisible:
        return data, {}  # without pypdf, which fails on damaged files
    from pypdf import PdfReader, PdfWriter

    lines: dict[int, list[str]] = {}
    try:
        reader = PdfReader(io.BytesIO(data))
        has_layers = invisible or _find_layers_off(reader.root_object) or any(map(_has_groups, reader.pages))
        if not has_layers and not any(_take_annotations(page, set()) for page in reader.pages):
            return data, {}
        writer, target = PdfWriter(clone_from=io.BytesIO(data)), io.BytesIO()
        off, forms = _find_layers_off(writer.root_object), dict[int, bool]()
        for number, page in enumerate(writer.pages, 1):
            is_mixed = number in invisible
            hides = _hide_text(page, off, writer, forms, is_mixed=is_mixed)
            texts = _take_annotations(page, off)
            lines |= {number: texts} if hides or texts or is_mixed else {}
        writer.write(target)
    except Exception:  # noqa: BLE001 - pypdf raises any exception on damaged files, which are read as they are
        leave_out(FAILED_CHECKS)
        return data, {}
    return (target.getvalue(), lines) if lines else (data, {})


def _hide_text(
    part: DictionaryObject, off: set[int], writer: PdfWriter, forms: dict[int, bool], *, is_mixed: bool
) -> bool:
    """Remove the text of layers that are off from a page or form, and from the forms that it draws.

    Returns whether there is any. ``forms`` has this for each form that was seen, by its identity. Invisible text is
    removed too if ``is_mixed``.
    """
    from pypdf.generic import ArrayObject, ByteStringObject, ContentStream, StreamObject

    resources, found = part.get("/Resources", {}), False
    drawn = {name: one.get_object() for name, one in resources.get("/XObject", {}).items()}
    for form in drawn.values():
        if form.get("/Subtype") == "/Form" and id(form) not in forms:
            forms[id(form)] = _is_hidden(form, "/OC", off)
            if forms[id(form)]:
                _store(form, b"")
            else:
                forms[id(form)] = _hide_text(form, off, writer, forms, is_mixed=is_mixed)
        found |= forms.get(id(form), False)
    properties = resources.get("/Properties", {})
    hidden = {name for name in properties if _is_hidden(properties, name, off)}
    content = part if isinstance(part, StreamObject) else cast("PageObject", part).get_contents()
    stream, depth, operations, modes = ContentStream(content, writer), 0, [], [0]
    is_mixed = is_mixed and INVISIBLE_MODE.search(stream.get_data()) is not None
    if not (hidden or is_mixed):
        return found
    if len(stream.get_data()) > MAX_LAYERED_BYTES:
        leave_out("large drawings whose hidden text is read as visible")
        return found
    for operands, operator in stream.operations:
        begins = not depth and operator == b"BDC" and operands[0] == "/OC" and operands[1] in hidden
        if operator in MARKED_CONTENT and (depth or begins):
            depth += -1 if operator == b"EMC" else 1
        found |= begins
        _track_mode(modes, operator, operands)
        if (depth or (is_mixed and modes[-1] in INVISIBLE_MODES)) and operator in SHOWN_TEXT:
            operands[-1] = ArrayObject() if operator == b"TJ" else ByteStringObject()
        if not depth or operator != b"Do" or id(drawn.get(operands[0])) not in forms:
            operations.append((operands, operator))
    stream.operations = operations
    if isinstance(part, StreamObject):
        _store(part, stream.get_data())
    else:
        cast("PageObject", part).replace_contents(stream)
    return found


def _track_mode(modes: list[int], operator: bytes, operands: Sequence[Any]) -> None:
    """Update the stack of text rendering modes, the current one last."""
    if operator == b"q":
        modes.append(modes[-1])
    elif operator == b"Q" and len(modes) > 1:
        modes.pop()
    elif operator == b"Tr":
        modes[-1] = operands[0]


def _store(form: StreamObject, content: bytes) -> None:
    from pypdf.generic import StreamObject

    for key in ("/Filter", "/DecodeParms"):
        form.pop(key, None)
    StreamObject.set_data(form, content)  # that of an encoded stream compresses, or fails for other filters


def _find_layers_off(root: DictionaryObject) -> set[int]:
    """Return the object numbers of the layers that are off when the file is opened."""
    layers = root.get("/OCProperties", {})
    settings = layers.get("/D", {})
    every = {one.idnum for one in layers["/OCGs"]} if settings.get("/BaseState") == "/OFF" else set[int]()
    return every - {one.idnum for one in settings.get("/ON", ())} | {one.idnum for one in settings.get("/OFF", ())}


def _has_groups(page: PageObject) -> bool:
    """Return whether a page has groups of layers, which may hide text even if no layer is off."""
    properties = page.get("/Resources", {}).get("/Properties", {})
    return any(properties[name].get("/Type") == "/OCMD" for name in properties)


def _is_hidden(part: DictionaryObject, key: str, off: set[int]) -> bool:
    """Return whether the layers of an entry hide its content."""
    from pypdf.generic import IndirectObject

    if key not in part:
        return False
    layer = cast("DictionaryObject", part[key])
    if "/VE" in layer:
        return not _evaluate(layer.raw_get("/VE"), off)
    members = layer.raw_get("/OCGs") if "/OCGs" in layer else part.raw_get(key)
    several = members.get_object()
    several = several if isinstance(several, list) else [members]
    own = {one.idnum for one in several if isinstance(one, IndirectObject)}
    return bool(own) and HIDDEN_GROUPS[layer.get("/P", "/AnyOn")](own, off)


def _evaluate(expression: PdfObject, off: set[int]) -> bool:
    """Return whether an expression of layers shows content (ISO 32000-2, 8.11.2.2)."""
    several = expression.get_object()
    if not isinstance(several, list):
        return cast("IndirectObject", expression).idnum not in off
    states = [_evaluate(one, off) for one in several[1:]]
    return any(states) if several[0] == "/Or" else all(states) if several[0] == "/And" else not all(states)


def _take_annotations(page: PageObject, off: set[int]) -> list[str]:
    """Remove the hidden annotations and form fields with text from a page, and return their texts."""
    from pypdf.generic import ArrayObject, NameObject

    kept, lines = ArrayObject(), list[str]()
    for one in page.get("/Annots") or ():
        text = _read_leniently(_describe_hidden, one, off) or ""
        lines += [text] if text else []
        kept += [] if text else [one]
        if text:
            one.get_object()[NameObject(TAKEN)] = NameObject(TAKEN)
    if lines:
        page[NameObject("/Annots")] = kept
    return lines


def _describe_hidden(reference: PdfObject, off: set[int]) -> str:
    """Return the text of an annotation if it is hidden, else ""."""
    from pypdf.generic import DictionaryObject

    note = reference.get_object()
    flags = note.get("/F", 0) if isinstance(note, DictionaryObject) else None
    if not isinstance(note, DictionaryObject) or not isinstance(flags, int):
        return ""
    is_hidden = flags & HIDDEN_FLAGS or _is_hidden(note, "/OC", off)
    return " ".join(_describe_annotation(note).split()) if is_hidden else ""


def _inherit(field: DictionaryObject, *keys: str) -> list[Any]:
    """Return the entries of a form field, or of the fields above it, and "" for those without a value."""
    chain = [field]
    while (parent := chain[-1].get("/Parent")) is not None and len(chain) < MAX_TREE_DEPTH:
        chain.append(parent)
    return [next((one[key] for one in chain if key in one), "") for key in keys]


def _describe_annotation(note: DictionaryObject) -> str:
    """Return the text of an annotation that was typed on a page, or the name and value of a form field."""
    if note.get("/Subtype") == "/FreeText":
        return str(note.get("/Contents", ""))
    kind, flags, state, value, name, tip, rich = _inherit(note, "/FT", "/Ff", "/AS", "/V", "/T", "/TU", "/RV")
    if kind == "/Sig" and isinstance(value, dict):
        signed = cast("dict[str, Any]", value)
        value = [signed[key] for key in ("/Name", "/Reason", "/Location") if key in signed]
    rich = rich.get_data().decode("utf-8", "replace") if hasattr(rich, "get_data") else rich
    if isinstance(rich, str) and rich:
        value = html.unescape(TAG.sub("", re.sub(r"</p>|<br[^>]*>", " ", rich)))
    state = state if "/Subtype" in note else value  # of a field without a place on a page
    is_checked, flags = state not in ("", "/Off"), cast("int", flags or 0)
    if kind == "/Btn" and not flags & PUSH_BUTTON_FLAG and (is_checked or not flags & RADIO_FLAG):
        return f"{CHECKED_BOX if is_checked else UNCHECKED_BOX} {tip or name}"
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    is_text = kind in ("/Tx", "/Ch", "/Sig") and text and not flags & PASSWORD_FLAG
    return f"{tip or name}: {text}" if is_text else ""


def _read_with_pypdf(
    data: bytes, file: PdfPages, read: Mapping[int, str]
) -> tuple[dict[int, str], list[int], list[int]]:
    """Read the pages that are not in ``read``; add alternative texts to each page, and what its annotations draw.

    Annotations without text, and fonts that the parser misreads because of their Unicode map, are counted.

    Returns the texts of all pages by number, and the numbers of the pages whose contents are damaged or missing, and of
    those with such fonts.
    """
    from pypdf import PdfReader

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # the reader reports what is wrong with a file
    texts = dict(read)
    damaged: list[int] = []
    unmapped: list[int] = []
    fonts: dict[int, bool] = {}
    placed, broken = set[int](), dict[int, bool]()  # object numbers of annotations; by the identity of a stream
    try:
        reader = PdfReader(io.BytesIO(data))
        sources, alt_texts = reader.pages, _read_leniently(_find_alt_texts, reader) or {}
        numbers = {cast("Any", page).indirect_reference.idnum: number for number, page in enumerate(sources, start=1)}
        parts = {number: [*alt_texts.get(page, ())] for page, number in numbers.items()}
        parts[1] = [*alt_texts.get(0, ()), *parts.get(1, ())]
        leave_out("pages that the file does not count", max(0, len(sources) - file.total))
        for page in file.pages:
            number, source = page.number, sources[page.number - 1]
            if _read_leniently(_is_damaged, source, broken) is not False:
                damaged.append(number)
            text = _read_leniently(source.extract_text) if number not in read else ""
            if (
                text
                and text.strip()
                and (not page.exceeds or take_hidden("pages whose text is outside the visible area"))
            ):
                texts[number] = normalise(text.strip())
            unmapped += [number] if _read_leniently(_check_fonts, source, fonts) else []
            notes = source.get("/Annots") or ()
            placed.update(getattr(one, "idnum", 0) for one in notes)
            drawn = [_read_leniently(_read_annotation, source, one) for one in notes]
            for text in filter(None, [*parts[number], *drawn]):
                texts[number] = "\n\n".join(filter(None, [texts.get(number, ""), normalise(text)]))
            added = [
                *(_read_leniently(_read_patterns, source) or ()),
                *(_read_leniently(_read_field, one) for one in notes),
            ]
            if any(added):
                before = texts.get(number, "")
                texts[number] = _add_lines(before, map(normalise, filter(None, added)), before).strip()
        _read_leniently(_add_unplaced_fields, reader, numbers, placed, texts)
    except Exception:  # noqa: BLE001 - pypdf raises any exception on damaged files; the text that was read stays
        leave_out(FAILED_CHECKS)
    leave_out("fonts with the same character for all glyphs", sum(fonts.values()))
    return texts, damaged, unmapped


def _is_damaged(page: PageObject, broken: dict[int, bool]) -> bool:
    """Return whether the contents of a page are missing, or they or a drawing are; ``broken`` has those known."""
    if page.get_contents() is None:
        return "/Contents" in page
    contents: Any = page["/Contents"]
    parts: list[Any] = [one.get_object() for one in (contents if isinstance(contents, list) else [contents])]
    parts += _list_forms(page, set())
    for part in parts:
        if id(part) not in broken:
            broken[id(part)] = _is_broken(part._data, part.get("/Filter", []))
        if broken[id(part)]:
            return True
    return False


PADDING = b"\0 \r\n"  # after the last instruction
HOLE = bytes(32)  # zeros in drawing instructions, as a broken download leaves


def _is_broken(data: bytes, filters: str | list[str]) -> bool:
    """Return whether compressed data is damaged or has no end, or drawing instructions have a hole."""
    from pypdf.filters import ASCII85Decode

    filters = filters if isinstance(filters, list) else [filters]
    if filters[:1] == ["/ASCII85Decode"]:
        data, filters = ASCII85Decode.decode(data), filters[1:]
    if filters == ["/FlateDecode"] and data:
        unpacked = zlib.decompressobj(-zlib.MAX_WBITS)  # without the checksum at the end, which may be missing
        try:
            data = unpacked.decompress(data[2:])
        except zlib.error:
            return True
        if not unpacked.eof:
            return True
    if (padded := data.rstrip(PADDING)).endswith((b"ET", b"Q", b"EMC")):
        data = padded
    return HOLE in data and b"ID" not in data  # images among the instructions may have zeros


def _read_patterns(page: PageObject) -> list[str]:
    """Return the texts of the patterns that fill areas of a page."""
    patterns = (form for form in _list_forms(page, set()) if "/PatternType" in form)
    return [" ".join(page.extract_xform_text(cast("Any", form)).split()) for form in patterns]


def _add_unplaced_fields(
    reader: PdfReader, numbers: Mapping[int, int], placed: Collection[int], texts: dict[int, str]
) -> None:
    """Add to the texts of pages, as hidden text, the form fields that are not among the annotations of any page.

    They are added to the page that they name, or to the last one.
    """
    form = cast("dict[str, Any]", reader.trailer["/Root"]).get("/AcroForm", {})
    for field, page in _walk_tree(form.get("/Fields"), "/Kids", "/P"):
        is_placed = TAKEN in field or getattr(field.indirect_reference, "idnum", 0) in placed
        text = "" if is_placed or field.get("/Kids") else _read_leniently(_describe_annotation, field)
        if text and take_hidden("form fields on no page"):
            number = numbers.get(page, max(texts, default=1))
            texts[number] = "\n\n".join(filter(None, [texts.get(number, ""), normalise(text) + HIDDEN_MARK]))


def _add_hidden(
    data: bytes, whole: bytes, file: PdfPages, texts: dict[int, str], notes: Mapping[int, Sequence[str]]
) -> None:
    """Add to the texts of pages, by number, what is hidden on them.

    Args:
        data: The file without what ``_strip_hidden`` removes.
        whole: The file with it.
        file: Its pages.
        texts: Texts of pages by number.
        notes: Lines of hidden annotations, for each page that has hidden text in ``whole``.
    """
    hidden = {page.number: [*page.unseen] for page in file.pages if page.has_text}
    for (number, page), (_, seen) in zip(read_glyphs(whole, notes), read_glyphs(data, notes), strict=True):
        hidden[number] = [*hidden.get(number, ()), *find_lost_lines(page.text, seen.text), *notes[number]]
    for number, lines in hidden.items():
        if lines and take_hidden("lines that are invisible or outside the visible area", len(lines)):
            marked = (normalise(one) + HIDDEN_MARK for one in lines)
            texts[number] = "\n\n".join(filter(None, [texts.get(number, ""), *marked]))


def _read_scans(data: bytes, file: PdfPages, on_page: OnPage | None) -> tuple[PdfPages, ReadScans]:
    """Read the pages that lack text by OCR. Pages whose text seems garbled keep it if OCR reads the same words."""
    sizes = {page.number: page.size for page in file.pages if page.lacks_text}
    scans = read_scans(
        sizes, file.total, lambda number: render_page(data, PDF_MEDIA_TYPE, number, sizes[number]), on_page
    )
    garbled = {page.number: set(WORD.findall(" ".join(page.texts.blocks))) for page in file.pages if page.is_garbled}
    for number in garbled.keys() & scans.pages.keys():
        words = WORD.findall(scans.pages[number].text)
        if 2 * sum(word in garbled[number] for word in words) > len(words):
            del scans.pages[number], garbled[number]
    pages = (
        replace(page, is_garbled=page.number in garbled, lacks_text=page.lacks_text and page.number in garbled)
        if page.is_garbled
        else page
        for page in file.pages
    )
    return replace(file, pages=tuple(pages)), scans


def _count_scans(file: PdfPages, read: Collection[int]) -> list[int]:
    """Count the pages of images without text that are not in ``read``; return their numbers if OCR is missing."""
    images = [page.number for page in file.pages if not page.has_text and (page.may_be_scan or page.charts.share)]
    unread = [number for number in images if number not in read]
    leave_out(EMPTY_SCANS if is_ocr_installed() else NEED_OCR, len(unread))
    return [] if is_ocr_installed() else unread


def _read_chart_words(
    data: bytes, file: PdfPages, on_page: OnPage | None
) -> tuple[dict[int, list[PictureWords]], list[int]]:
    """Read the words in images on pages that have text; return them by page, and the pages that failed.

    Pages whose images are not read, because the extra ``ocr`` is missing or there are too many, are counted.
    """
    pages = {page.number: page for page in file.pages if page.has_text and not page.lacks_text}
    words: dict[int, list[PictureWords]] = {}
    failed: list[int] = []
    largest = sorted((n for n, page in pages.items() if page.charts.share), key=lambda n: -pages[n].charts.share)
    chosen = largest[:MAX_IMAGE_PAGES] if is_ocr_installed() else []
    unread = [pages[number].charts for number in largest if number not in chosen]
    leave_out(
        "pages with images whose words were not read", sum(not charts.garbled and not charts.drawn for charts in unread)
    )
    for number in sorted(chosen):
        page = pages[number]
        if on_page is not None:
            on_page(number, file.total, True)
        try:
            picture = render_page(data, PDF_MEDIA_TYPE, number, page.size, file.turned.get(number, 0), CHART_DPI)
            words[number] = read_picture_words(
                picture, page.charts.text, *([MIN_LINE_SHARE] if page.charts.garbled or page.charts.drawn else [])
            )
        except Cancelled:
            raise
        except Exception:  # noqa: BLE001 - decoders and models raise any exception; the text stays
            failed.append(number)
    for page in pages.values():
        is_read = bool(page.charts.garbled and words.get(page.number))
        leave_out(LINES_READ if is_read else LINES_UNREAD, len(page.charts.garbled))
        leave_out("undecodable characters", 0 if is_read else page.undecodable)
    return words, sorted(failed)


def _build_metadata(
    file: PdfPages, scans: ReadScans, unread_pictures: list[int], damaged: list[int], unmapped: Collection[int]
) -> dict[str, Any]:
    metadata: dict[str, Any] = {"pages": file.total}
    labels = choose_labels([page.label for page in file.pages])
    if labels:
        metadata["page_labels"] = labels
    if file.turned:
        metadata["turned_pages"] = {str(number): turn for number, turn in file.turned.items()}
    failed = sorted({*file.failed, *scans.failed})
    if failed:
        metadata["unreadable_pages"] = failed
    if partial := [number for number in damaged if number not in failed]:
        metadata["damaged_pages"] = partial
    if garbled := [page.number for page in file.pages if page.is_garbled]:
        by_ocr = sum(number in scans.pages for number in garbled)
        leave_out(GARBLED_READ, by_ocr)
        leave_out(GARBLED_UNREAD, len(garbled) - by_ocr)
    lossy = (page.number for page in file.pages if page.charts.garbled or page.undecodable or page.is_garbled)
    if garbled := sorted({*unmapped, *lossy} - scans.pages.keys()):
        metadata["garbled_pages"] = garbled
    if unread_pictures:
        metadata["unread_pictures"] = unread_pictures
    properties = file.facts
    for key, value in (
        (("created", properties.creation_date), ("modified", properties.mod_date)) if properties is not None else ()
    ):
        match = PDF_DATE.match(value or "")
        if match:
            metadata[key] = "-".join(part for part in match.groups() if part)
    return metadata
