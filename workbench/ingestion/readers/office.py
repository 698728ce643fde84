"""Readers of Word, RTF, PowerPoint and EPUB files, and the zip packages that they are stored in."""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Protocol
from unicodedata import normalize
from urllib.parse import unquote

from workbench.errors import UnreadableDocument
from workbench.formatting import GB, MB
from workbench.ingestion.raw import Draft
from workbench.ingestion.readers.grid import (
    drop_empty,
    format_cell,
    format_figure,
    format_markdown_table,
    join_header_rows,
)
from workbench.ingestion.readers.html import XML_DECLARATION, convert_fragment, find_charset, format_roman
from workbench.ingestion.readers.plain_text import find_first_heading
from workbench.ingestion.text import (
    HIDDEN_MARK,
    count_cut_parts,
    decode_text,
    find_codec,
    format_struck,
    format_subscript,
    format_superscript,
    leave_out,
    take_hidden,
)

if TYPE_CHECKING:
    from pptx.opc.package import Part
    from pptx.presentation import Presentation
    from pptx.shapes.base import BaseShape
    from pptx.slide import Slide, SlideLayout, SlideMaster

OLE_SIGNATURE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # an encrypted office file, or a binary format from before 2007
MAX_UNPACKED_BYTES = GB
DAMAGED_PARTS = "damaged parts of the file"
UNDESCRIBED = "images without alternative text"
UNKNOWN_SYMBOLS = "symbols of an unknown font"
ENTITY_SCAN_BYTES = 4_096  # at the start of each XML part, where entities are declared
GENERATOR_NOTE = re.compile(  # no description, and the dates of the templates of python-docx and python-pptx
    r"\s*generated (?:by|using|with) |2013-12-23T23:15:00Z|2013-01-27T09:1[45]:\d\dZ", re.IGNORECASE
)
INTERNAL_PROPERTY = re.compile(  # names of properties that programs add
    r"_|MSIP_|ContentTypeId|MediaService|KSO|ICV$|ZOTERO|Mendeley|AppVersion|DocSecurity|HyperlinksChanged|LinksUpToDate"
    "|ScaleCrop|ShareDoc"
)
OFFICE_PROPERTIES = {
    "title": "title",
    "creator": "author",
    "created": "created",
    "modified": "modified",
    "subject": "subject",
    "keywords": "keywords",
    "description": "description",
}
LISTED_PROPERTIES = ("author", "contributor", "subject")  # may have several values


def open_package(data: bytes, name: str) -> zipfile.ZipFile:
    """Open a package after checking its size and encryption.

    Raises:
        UnreadableDocument: It is encrypted, in an old binary format, not a zip archive, or over 1 GB when unpacked.
    """
    if data.startswith(OLE_SIGNATURE):
        raise UnreadableDocument(
            f"'{name}' is password-protected or in a format from before 2007. "
            "Save it without a password as docx, xlsx or pptx."
        )
    try:
        package = zipfile.ZipFile(io.BytesIO(data))
        entries = package.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise UnreadableDocument(f"'{name}' is damaged or has the wrong suffix. Re-save it.") from error
    if any(entry.flag_bits & 1 for entry in entries):
        raise UnreadableDocument(f"'{name}' is password-protected. Save a copy without a password.")
    if sum(entry.file_size for entry in entries) > MAX_UNPACKED_BYTES:
        raise UnreadableDocument(f"'{name}' is over 1 GB when unpacked. Split it.")
    if any(_declares_entities(package, entry) for entry in entries if entry.filename.endswith((".xml", ".rels"))):
        raise UnreadableDocument(
            f"'{name}' declares XML entities, which can expand to gigabytes (an XML bomb). Office programs write none; "
            "open it in one and save a copy."
        )
    return package


def _declares_entities(package: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bool:
    try:
        with package.open(entry) as part:
            return b"<!ENTITY" in part.read(ENTITY_SCAN_BYTES).replace(b"\0", b"")  # without the NULs of UTF-16
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError):
        return False  # damaged, which its reader reports


class XmlElement(Protocol):
    """The parts of lxml's elements that are used here; lxml has no type stubs."""

    text: str | None  # before the first child
    tail: str | None  # after the element
    set: Callable[[str, str], None]
    get: Callable[[str], str | None]
    keys: Callable[[], list[str]]
    getparent: Callable[[], XmlElement | None]
    xpath: Callable[..., list[XmlElement]]
    iterancestors: Callable[..., Iterator[XmlElement]]  # the elements around this one that have one of the tags
    index: Callable[[XmlElement], int]
    insert: Callable[[int, XmlElement], None]
    append: Callable[[XmlElement], None]
    remove: Callable[[XmlElement], None]  # with the text after it
    iter: Callable[..., Iterator[XmlElement]]  # this element and all below it that have one of the tags
    find: Callable[[str], XmlElement | None]
    findtext: Callable[[str], str | None]
    iterfind: Callable[[str], Iterator[XmlElement]]

    @property
    def tag(self) -> object:
        """The element's name as ``{namespace}local``; for a comment, a function."""
        ...

    @property
    def attrib(self) -> Mapping[str, str]:
        """The attributes by name, ``{namespace}local`` if it has a namespace."""
        ...

    def __iter__(self) -> Iterator[XmlElement]: ...

    def __setitem__(self, place: slice, children: Sequence[XmlElement]) -> None: ...


def parse_xml(data: bytes, on_damage: Callable[[], None] = lambda: leave_out(DAMAGED_PARTS)) -> XmlElement | None:
    """Parse XML without entities or network access, up to its damage; return None if nothing can be read."""
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue] - it has no stubs

    parser = etree.XMLParser(resolve_entities=False, no_network=True, recover=True, huge_tree=True)
    root = etree.fromstring(data, parser)
    count_cut_parts(parser.error_log)
    if is_damaged(parser.error_log):
        on_damage()
        if root is not None:
            etree.strip_tags(root, etree.Entity)  # without a definition, which other parsers fail on
    return root


def is_damaged(errors: Iterable[object]) -> bool:
    """Return whether the error log of one of lxml's parsers contains damage, other than parts nested too deeply."""
    return any(re.search(r":FATAL:\w+:(?!ERR_RESOURCE_LIMIT)", str(error)) for error in errors)


def local_name(element: XmlElement) -> str:
    """Return an element's name without its namespace; "" for a comment."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


ESCAPED_CHARACTER = re.compile(r"_x([0-9A-Fa-f]{4})_")


def decode_escapes(text: str) -> str:
    """Return a text of a workbook or a slide with the characters that XML cannot have, such as "_x000B_"."""
    return ESCAPED_CHARACTER.sub(lambda match: chr(int(match[1], 16)), text)


def replace_element(element: XmlElement, others: Sequence[XmlElement]) -> None:
    """Replace an element, and the text after it, with other elements."""
    parent = element.getparent()
    if parent is not None:
        place = parent.index(element)
        parent.remove(element)
        for offset, other in enumerate(others):
            parent.insert(place + offset, other)


COMPATIBILITY = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"


def choose_alternatives(root: XmlElement) -> None:
    """Replace alternative contents with the first one, which has equations, text boxes and newer charts."""
    for element in list(root.iter(COMPATIBILITY + "AlternateContent")):
        chosen = element.find(COMPATIBILITY + "Choice")
        if chosen is None or not list(chosen):
            chosen = element.find(COMPATIBILITY + "Fallback")
        replace_element(element, [] if chosen is None else list(chosen))


STRICT_NAMESPACE = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/")


class Package:
    """The parts of an office file or a book by path. Letter case and the direction of slashes do not count."""

    def __init__(self, data: bytes, name: str) -> None:
        """Open a file.

        Raises:
            UnreadableDocument: As for ``open_package``.
        """
        self._file = open_package(data, name)
        self.parts = {_fold_path(entry.filename): entry for entry in self._file.infolist()}
        self._damaged: set[str] = set()

    def count_damage(self, path: str) -> None:
        """Count a damaged part once, however often it is read."""
        leave_out(DAMAGED_PARTS, path not in self._damaged)
        self._damaged.add(path)

    def read(self, path: str) -> bytes | None:
        """Return a part, or None if it is missing or damaged."""
        entry = self.parts.get(_fold_path(path))
        try:
            return None if entry is None else self._file.read(entry)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError):
            self.count_damage(_fold_path(path))
            return None

    def parse(self, path: str, prepare: Callable[[bytes], bytes] = bytes) -> XmlElement | None:
        """Return the root of a part with the Transitional namespaces, or None if it is missing or damaged."""
        data = STRICT_NAMESPACE.sub(rb"http://schemas.openxmlformats.org/\1/2006/", prepare(self.read(path) or b""))
        return parse_xml(data, lambda: self.count_damage(_fold_path(path))) if data else None

    def links(self, path: str) -> dict[str, tuple[str, str]]:
        """Return (kind, path) of the parts that a part refers to, by id, and the addresses of links."""
        folder, _, file = path.rpartition("/")
        root = self.parse(f"{folder}/_rels/{file}.rels")
        found: dict[str, tuple[str, str]] = {}
        for link in root if root is not None else ():
            target = link.get("Target") or ""
            if link.get("TargetMode") != "External":
                written = _fold_path(posixpath.join("/", folder, target.replace("\\", "/")))
                target = written if written in self.parts else unquote(written)
            found[link.get("Id") or str(len(found))] = (link.get("Type") or "").rpartition("/")[2], target
        return found

    def find_main_part(self, usual: str) -> str:
        """Return the path of the part with the document's text."""
        return next((path for kind, path in self.links("").values() if kind == "officeDocument"), usual)


def _fold_path(path: str) -> str:
    return normalize("NFC", posixpath.normpath(f"/{path}".replace("\\", "/")).lstrip("/").lower())


def read_core_properties(package: Package) -> dict[str, str]:
    """Return the title, author, dates and own properties of an office file, if set."""
    core, custom = (package.parse(f"docProps/{name}.xml") for name in ("core", "custom"))
    entries = custom.iter("{*}property") if custom is not None else ()
    own = {one.get("name") or "_": " ".join(child.text or "" for child in one).strip() for one in entries}
    own = {name: text for name, text in own.items() if text and not INTERNAL_PROPERTY.match(name)}
    return own | _read_properties(core if core is not None else (), OFFICE_PROPERTIES)


def _read_properties(elements: Iterable[XmlElement], names: Mapping[str, str]) -> dict[str, str]:
    """Return the texts of elements by the name of their property; several authors and subjects are joined."""
    properties: dict[str, str] = {}
    for element in elements:
        key, text = names.get(element.get("property") or local_name(element)), (element.text or "").strip()
        if key and text and not GENERATOR_NOTE.match(text) and (key not in properties or key in LISTED_PROPERTIES):
            properties[key] = ", ".join(filter(None, (properties.get(key), text)))
    return properties


def drop_title(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties as metadata without the title, which has its own field."""
    return {key: value for key, value in properties.items() if key != "title"}


# --- Equations as LaTeX ---

MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
ACCENTS = {
    "\u0302": "hat", "\u0303": "tilde", "\u0304": "bar", "\u0305": "overline", "\u20d7": "vec", "\u0307": "dot",
    "\u0308": "ddot", "\u030c": "check", "\u0306": "breve", "\u0301": "acute", "\u0300": "grave",
}  # fmt: skip
DEFAULT_NARY = "∫"
SYMBOL_CODE = re.compile("(?!D[89A-F])[0-9A-F]{2,4}", re.I)  # of a character, but no half of one
FUNCTION_NAMES = frozenset("sin cos tan cot sec csc log ln exp lim max min det gcd sup inf sinh cosh tanh".split())  # noqa: SIM905


def format_equation(element: XmlElement) -> str:
    """Return an equation (``m:oMath`` or ``m:oMathPara``) as LaTeX between dollar signs, or "" if it is empty."""
    lines = [_latex(child) for child in element] if local_name(element) == "oMathPara" else [_latex(element)]
    return " ".join(f"${line.strip()}$" for line in lines if line.strip())


def _latex(element: XmlElement | None) -> str:
    if element is None:
        return ""
    name = local_name(element)
    if name == "t":
        return element.text or ""
    if name == "sym" and (code := SYMBOL_CODE.fullmatch(element.get(WORD + "char") or "")):
        return format_symbols(chr(int(code[0], 16)), element.get(WORD + "font") or "")
    if name.endswith("Pr"):
        return ""
    write = STRUCTURES.get(name)
    return write(element) if write is not None else "".join(map(_latex, element))


def _part(element: XmlElement, name: str) -> str:
    return _latex(element.find(f"{{*}}{name}")).strip()


def _property(element: XmlElement, name: str, default: str = "") -> str:
    """Return a structure's property value; ``default`` if it is not set."""
    found = element.find(f"{{*}}{local_name(element)}Pr/{{*}}{name}")
    value = None if found is None else found.get(MATH + "val")
    return default if value is None else value


def _brace(text: str) -> str:
    return text if len(text) == 1 else f"{{{text}}}"


def _base(element: XmlElement) -> str:
    text = _part(element, "e")
    return text if text.isalnum() else f"{{{text}}}"


def _scripts(element: XmlElement) -> str:
    below, above = _part(element, "sub"), _part(element, "sup")
    return (f"_{_brace(below)}" if below else "") + (f"^{_brace(above)}" if above else "")


def _radical(element: XmlElement) -> str:
    degree = _part(element, "deg")
    root = f"\\sqrt[{degree}]" if degree else "\\sqrt"
    return f"{root}{{{_part(element, 'e')}}}"


def _function(element: XmlElement) -> str:
    name = _part(element, "fName")
    known = f"\\{name}" if name in FUNCTION_NAMES else name
    return f"{known} {_part(element, 'e')}"


def _rows(element: XmlElement, kind: str) -> str:
    rows = (
        [" & ".join(_latex(cell) for cell in row.iterfind("{*}e")) for row in element.iterfind("{*}mr")]
        if kind == "matrix"
        else [_latex(row) for row in element.iterfind("{*}e")]
    )
    return f"\\begin{{{kind}}}" + " \\\\ ".join(rows) + f"\\end{{{kind}}}"


def _group(element: XmlElement) -> str:
    side, sign = "over" if _property(element, "pos") == "top" else "under", _property(element, "chr", "⏟")
    mark = f"{side}brace" if sign in "⏞⏟" else f"{side}set{{{sign}}}"
    return f"\\{mark}{{{_part(element, 'e')}}}"


STRUCTURES = {
    "f": lambda element: f"\\frac{{{_part(element, 'num')}}}{{{_part(element, 'den')}}}",
    "sSup": lambda element: _base(element) + _scripts(element),
    "sSub": lambda element: _base(element) + _scripts(element),
    "sSubSup": lambda element: _base(element) + _scripts(element),
    "sPre": lambda element: "{}" + _scripts(element) + _base(element),
    "rad": _radical,
    "nary": lambda element: f"{_property(element, 'chr', DEFAULT_NARY)}{_scripts(element)} {_part(element, 'e')}",
    "d": lambda element: (
        _property(element, "begChr", "(").replace("{", "\\{")
        + _property(element, "sepChr", "|").join(map(_latex, element.iterfind("{*}e")))
        + _property(element, "endChr", ")").replace("}", "\\}")
    ),
    "func": _function,
    "limLow": lambda element: f"{_part(element, 'e')}_{_brace(_part(element, 'lim'))}",
    "limUpp": lambda element: f"{_part(element, 'e')}^{_brace(_part(element, 'lim'))}",
    "acc": lambda element: f"\\{ACCENTS.get(_property(element, 'chr'), 'hat')}{{{_part(element, 'e')}}}",
    "bar": lambda element: (
        f"\\{'over' if _property(element, 'pos') == 'top' else 'under'}line{{{_part(element, 'e')}}}"
    ),
    "groupChr": _group,
    "phant": lambda element: "" if _property(element, "show") == "0" else _part(element, "e"),
    "m": lambda element: _rows(element, "matrix"),
    "eqArr": lambda element: _rows(element, "aligned"),
}


# --- Charts as rows ---

CHART_TEXTS = (
    ("axes", ".//{*}plotArea/*/{*}title"),
    ("labels", ".//{*}dLbl/{*}tx//{*}r", ".//{*}dlblRangeCache/{*}pt"),  # written for a point, or taken from cells
)


def read_chart(root: XmlElement) -> tuple[str, list[list[str]]]:
    """Return a chart's title and its rows: the names of the series, then one row for each category.

    A chart without stored values has no rows and is counted.
    """
    title = ", ".join(_titles(root, ".//{*}chart/{*}title"))
    for name, *paths in CHART_TEXTS:
        texts = [text for path in paths for text in _titles(root, path)]
        title = f"{title} ({name}: {', '.join(texts)})".strip() if texts else title
    leave_out("drawings on charts", root.find("{*}userShapes") is not None)
    old = root.find("{*}date1904")
    points = partial(_points, epoch=datetime(1904, 1, 1) if old is not None and old.get("val") != "0" else None)
    series = [
        (
            _first_value(one.find("{*}tx")),
            points(one.find("{*}cat"), one.find("{*}xVal")),
            points(one.find("{*}val"), one.find("{*}yVal")),
            points(one.find("{*}bubbleSize")),
        )
        for one in root.iterfind(".//{*}ser")
    ] or list(_iter_new_series(root))
    series = [one for one in series if one[2]]
    if not series:
        leave_out("charts")
        return title, []
    header, columns = [""], []
    categories: dict[int, str] = {}
    for name, names, values, sizes in series:
        categories |= {place: names.get(place, str(place + 1)) for place in names | values if place not in categories}
        header.append(name or f"series {len(header)}")
        columns.append(values)
        if sizes:
            header.append(f"{header[-1]} (size)")
            columns.append(sizes)
    shared = all(one[1] == series[0][1] or not one[1] for one in series)
    if not shared:  # scatter charts: each series has its own x values
        rows = [["", "x", "y"]]
        rows += [[one[0], one[1].get(place, ""), value] for one in series for place, value in one[2].items()]
        return title, rows
    places = sorted(categories)
    return title, [header, *([categories[at], *(column.get(at, "") for column in columns)] for at in places)]


def _points(*elements: XmlElement | None, epoch: datetime | None = None) -> dict[int, str]:
    """Return the cached values in their number format by index; names on several levels are joined, outermost first."""
    values: dict[int, str] = {}
    for element in elements:
        levels = [] if element is None else list(element.iterfind(".//{*}lvl")) or [element]
        places = {int(point.get("idx") or 0) for level in levels for point in level.iterfind(".//{*}pt")}
        form = "" if element is None or not any("num" in local_name(one) for one in element.iter()) else "General"
        for level in reversed(levels):
            form = form and (level.findtext(".//{*}formatCode") or level.get("formatCode") or form)
            points = level.iterfind(".//{*}pt")  # with a value, or with a text in charts of Office 2016
            own = {int(one.get("idx") or 0): format_cell(one.findtext("{*}v") or one.text) for one in points}
            own = {place: _format_point(value, form, epoch) for place, value in own.items()} if form else own
            last = ""
            for place in sorted({*values, *places}):
                last = own.get(place, last)
                values[place] = f"{values[place]} {last}".strip() if place in values else last
    return values


def _format_point(value: str, form: str, epoch: datetime | None) -> str:
    with suppress(ValueError):
        return format_figure(float(value), form, epoch)
    return value


def _first_value(element: XmlElement | None) -> str:
    if element is None:
        return ""
    values = [format_cell(value.text) for value in element.iterfind(".//{*}v")]
    return " ".join(filter(None, values))


def _iter_new_series(root: XmlElement) -> Iterator[tuple[str, dict[int, str], dict[int, str], dict[int, str]]]:
    """Yield the series of an Office 2016 chart, such as a waterfall or a treemap."""
    data = {one.get("id"): one for one in root.iterfind(".//{*}chartData/{*}data")}
    for one in root.iterfind(".//{*}series"):
        found = one.find("{*}dataId")
        own = data.get(found.get("val")) if found is not None else None
        if own is not None:
            name = _first_value(one.find("{*}tx"))
            yield name, _points(*own.iterfind("{*}strDim")), _points(*own.iterfind("{*}numDim")), {}


def _titles(root: XmlElement, path: str) -> Iterator[str]:
    texts = ("".join(part.text or "" for part in one.iter("{*}t", "{*}v")) for one in root.iterfind(path))
    yield from filter(None, map(format_cell, texts))


# --- SmartArt as lines ---


def read_diagram(root: XmlElement) -> list[tuple[int, str]]:
    """Return (depth, text) for each point of a SmartArt diagram, in hierarchical order."""
    points = {point.get("modelId"): point for point in root.iterfind(".//{*}ptLst/{*}pt")}
    children: dict[str | None, list[tuple[int, str | None]]] = {}
    for link in root.iterfind(".//{*}cxnLst/{*}cxn"):
        if link.get("type") in (None, "parOf"):
            children.setdefault(link.get("srcId"), []).append((int(link.get("srcOrd") or 0), link.get("destId")))
    lines: list[tuple[int, str]] = []
    seen: set[str | None] = set()

    def visit(key: str | None, depth: int) -> None:
        if key in seen or key not in points:
            return
        seen.add(key)
        text = format_cell(" ".join(part.text or "" for part in points[key].iterfind(".//{*}t")))
        if text:
            lines.append((depth, text))
        for _, child in sorted(children.get(key, []), key=lambda one: one[0]):
            visit(child, depth + 1 if text else depth)

    for key, point in points.items():
        if point.get("type") == "doc":
            visit(key, 0)
    for key, point in points.items():
        if point.get("type") in (None, "node", "asst"):
            visit(key, 0)
    return lines


def read_graphics(
    element: XmlElement, load: Callable[[str], XmlElement | None]
) -> Iterator[tuple[list[tuple[int, str]], list[list[str]]]]:
    """Yield (depth, text) lines and rows for each chart and SmartArt diagram that a drawing refers to by an id."""
    for one in element.iter():
        name = local_name(one)
        key = one.get(RELATION + ("dm" if name == "relIds" else "id")) if name in ("chart", "relIds") else None
        if key is None:
            continue
        root = load(key)
        lines = read_diagram(root) if root is not None and name == "relIds" else []
        title, rows = read_chart(root) if root is not None and name == "chart" else ("", [])
        leave_out("diagrams" if name == "relIds" else "charts", root is None or (name == "relIds" and not lines))
        yield lines or ([(0, title)] if title else []), rows


# --- Symbol fonts, and alternative text of images ---


SYMBOL_FONT, PRIVATE_SIGN = re.compile("Symbol|dings"), re.compile("[\uf020-\uf0ff]")


def format_symbols(text: str, *fonts: str | None) -> str:
    """Return text in a font such as Wingdings as the signs that it shows; count private characters of other fonts."""
    if not PRIVATE_SIGN.search(text) and not SYMBOL_FONT.search(" ".join(filter(None, fonts))):
        return text
    from mammoth.docx.dingbats import dingbats

    letters = [ord(sign) - (0xF000 if PRIVATE_SIGN.match(sign) else 0) for sign in text]
    codes = [next(filter(None, (dingbats.get((font or "", letter)) for font in fonts)), None) for letter in letters]
    shown = "".join(chr(code or ord(sign)) for code, sign in zip(codes, text, strict=True))
    leave_out(UNKNOWN_SYMBOLS, len(PRIVATE_SIGN.findall(shown)))
    return shown


GENERATED_ALT = re.compile(
    r"\s*(?:Description automatically generated|AI-generated content may be incorrect)\.?\s*", re.I
)
FILE_NAME_ALT = re.compile(r".+\.(?:png|jpe?g|gif|bmp|tiff?|emf|wmf|svg|webp)|(?:picture|image|bild)\s*\d*", re.I)


def format_alt_text(text: str | None) -> str:
    """Return an image's alternative text in brackets, or "" if it describes nothing."""
    words = format_cell(GENERATED_ALT.sub("", text or ""))
    return "" if not words or FILE_NAME_ALT.fullmatch(words) else f"[Image: {words}]"


def list_alt_texts(element: XmlElement) -> list[str]:
    """Return the alternative texts of a drawing and of what is in it."""
    texts = [one.get("descr") or one.get("title") for one in element.iter("{*}docPr", "{*}cNvPr")]
    texts += [one.get("alt") for one in element.iter(VML + "*")]
    return list(dict.fromkeys(filter(None, map(format_alt_text, texts))))


# --- Word: mammoth makes HTML of it, after what mammoth does not read was written as ordinary paragraphs ---

WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
WORD_2010 = "{http://schemas.microsoft.com/office/word/2010/wordml}"
RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
VML = "{urn:schemas-microsoft-com:vml}"
OFFICE_VML = "{urn:schemas-microsoft-com:office:office}"
XML_SPACE = "{http://www.w3.org/XML/1998/namespace}space"
DOCX_STYLES = "p[style-name='Title'] => h1:fresh\np[style-name='Subtitle'] => p:fresh"
MAIN_PART = "word/document.xml"


def read_docx(data: bytes, name: str) -> Draft:
    """Return headings, paragraphs, lists, tables and footnotes, without images."""
    package = Package(data, name)
    properties = read_core_properties(package)
    texts: list[str] = []
    notes = 0
    for prepared in _prepare_packages(package):
        source, count = _convert_part(prepared, notes)
        texts.append(convert_fragment(source))
        notes += count
    text = INCLUDED_FILE.sub(lambda mark: _insert_file(package, mark), "\n\n".join(filter(None, texts)))
    return Draft(text, properties.get("title") or find_first_heading(text), drop_title(properties))


INCLUDED_FILE = re.compile("\ufdd0(.*?)\ufdd1")  # its path, between characters that no text may have


def _insert_file(package: Package, mark: re.Match[str]) -> str:
    """Return the text of an included file, on one line if its place is a cell of a table."""
    text = _read_included(package, mark[1])
    is_cell = mark.string[mark.string.rfind("\n", 0, mark.start()) + 1] == "|"
    return " ".join(text.split()).replace("|", r"\|") if is_cell else text


def _read_included(package: Package, path: str) -> str:
    """Return the text of a file that Word inserts into the document, or "" if it is damaged or its format unknown."""
    data = package.read(path) or b""
    with suppress(UnreadableDocument, OSError, KeyError, ValueError):
        if data.startswith(b"PK"):
            return read_docx(data, path).text
        if data.startswith(b"{\\rtf"):
            return read_rtf(data, path).text.strip()
        if data and not re.match(rb"(?i)MIME-Version:|From:", data):
            text = decode_text(data, path, find_charset(data))
            return convert_fragment(text) if re.match(r"\s*<", text) else text
    leave_out("embedded files" if data else "inserted files that are missing in the file")
    return ""


MAMMOTH_NOTE = re.compile(r'(note-ref-[^"]*">\[)(\d+)|<ol>(?=<li id="(?:foot|end)note-)')


def _convert_part(package: bytes, notes: int) -> tuple[str, int]:
    """Return a package as HTML whose notes continue the numbers of those before, and the number of its notes."""
    import mammoth

    result = mammoth.convert_to_html(
        io.BytesIO(package), style_map=DOCX_STYLES, convert_image=mammoth.images.img_element(lambda image: {})
    )
    leave_out(UNKNOWN_SYMBOLS, sum("A w:sym element" in message.message for message in result.messages))

    def write(found: re.Match[str]) -> str:
        return f"{found[1]}{int(found[2]) + notes}" if found[1] else f'<ol start="{notes + 1}">'

    return MAMMOTH_NOTE.sub(write, result.value), result.value.count("note-ref-") // 2  # each has a way back


# --- The parts of a file ---


@dataclass(frozen=True, slots=True)
class WordPart:
    """A part of a Word file that contains paragraphs."""

    path: str  # its path in the package
    root: XmlElement  # its XML
    links: dict[str, tuple[str, str]]  # kind and path of the parts that it refers to, by id


MAX_ELEMENTS_AT_ONCE = 100_000  # of the body: mammoth makes about 2 kB of each


def _prepare_packages(package: Package) -> Iterator[bytes]:
    """Yield copies of a Word file, without media, from which mammoth reads all text: one for each slice of its body."""
    main = package.find_main_part(MAIN_PART)
    names = ("styles", "numbering", "comments", "footnotes", "endnotes")
    by_kind = {name: f"word/{name}.xml" for name in names} | dict(package.links(main).values())
    styles, numbering, comments, *notes = (by_kind[name] for name in names)
    known = StyleSheet.read(package.parse(styles))
    parts = [part for path in dict.fromkeys((main, *notes)) if (part := _load_part(package, path)) is not None]
    _write_comments(package.parse(comments), [part.root for part in parts])
    for part in parts:
        _prepare_part(package, part, known)
        if part.path == main:
            NumberedText(Numbering(package.parse(numbering), known), known).write(part.root)
            _name_headings(part.root, known)
            _add_margins(package, part, known)
    _drop_dangling_references([part.root for part in parts])
    body = next((part.root.find(WORD + "body") for part in parts if part.path == main), None)
    for blocks in _slice_blocks(body if body is not None else ()):
        if body is not None:
            body[:] = blocks
        yield _pack_word_file(package, {part.path: part.root for part in parts})


def _slice_blocks(blocks: Iterable[XmlElement]) -> list[list[XmlElement]]:
    """Return the blocks of a body in slices that do not end within a list or a field."""
    slices: list[list[XmlElement]] = [[]]
    size = depth = 0
    for block in blocks:
        number = _value(block.find(f"{WORD}pPr/{WORD}numPr/{WORD}numId"), "0")
        if size > MAX_ELEMENTS_AT_ONCE and number == "0" and depth <= 0:
            slices.append([])
            size = 0
        slices[-1].append(block)
        size += sum(1 for _ in block.iter())
        kinds = [one.get(WORD + "fldCharType") for one in block.iter(WORD + "fldChar")]
        depth += kinds.count("begin") - kinds.count("end")
    return slices


def _pack_word_file(package: Package, replaced: Mapping[str, XmlElement]) -> bytes:
    """Return a copy of a file with some parts replaced.

    Names of parts are in lower case, in the package and where other parts refer to them, since mammoth compares case.
    """
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue] - it has no stubs

    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as copy:
        for path in package.parts:
            if path in replaced:
                copy.writestr(path, etree.tostring(replaced[path], encoding="UTF-8", xml_declaration=True))
            elif path.endswith((".xml", ".rels")) and (root := package.parse(path)) is not None:
                for link in root if path.endswith(".rels") else ():
                    if (address := link.get("Target")) and link.get("TargetMode") != "External":
                        link.set("Target", address.lower().replace("\\", "/"))
                copy.writestr(path.replace("[content_types]", "[Content_Types]"), etree.tostring(root))
    return target.getvalue()


def _drop_dangling_references(roots: Sequence[XmlElement]) -> None:
    """Remove references to missing footnotes and endnotes, because mammoth fails on them."""
    for kind in ("footnote", "endnote"):
        known = {note.get(WORD + "id") for root in roots for note in root.iter(WORD + kind)}
        for reference in [one for root in roots for one in root.iter(f"{WORD}{kind}Reference")]:
            if reference.get(WORD + "id") not in known:
                leave_out(f"{kind}s that are missing in the file")
                replace_element(reference, [])


# The appearance of text: an element and its attributes take about 500 bytes.
LAYOUT = re.compile(
    rb"<w:(?:rFonts(?![^>]*(?:Symbol|dings))|lang|szCs|sz|spacing|color|kern|noProof|bCs|iCs|proofErr)\b[^<>]*/>"
    rb'|(?: w:rsid\w*="[^"]*"| xml:space="preserve")(?=[^<>]*>)'
)
RUN_TEXT = rb"<w:t>[^<]*</w:t></w:r>"
SAME_RUNS = re.compile(
    rb"(<w:r>(?:<w:rPr>(?:<(?!/w:rPr>)[^>]*+>)*+</w:rPr>)?+)" + RUN_TEXT + rb"(?:\1" + RUN_TEXT + rb"){1,200}"
)


def _join_runs(data: bytes) -> bytes:
    """Return a part without layout, with adjacent runs of one format joined; some programs write one a word."""
    joined, start = io.BytesIO(), 0
    while start < len(data):  # in slices, because the pieces between matches take several times their memory
        end = data.find(b"</w:r>", start + MB)
        end = len(data) if end < 0 else end + len(b"</w:r>")
        part = LAYOUT.sub(b"", data[start:end]).replace(b"<w:rPr></w:rPr>", b"").replace(b"<w:dstrike", b"<w:strike")
        joined.write(SAME_RUNS.sub(lambda runs: runs[0].replace(b"</w:t></w:r>%b<w:t>" % runs[1], b""), part))
        start = end
    return joined.getvalue()


def _load_part(package: Package, path: str) -> WordPart | None:
    root = package.parse(path, _join_runs)
    if root is None:
        return None
    choose_alternatives(root)
    return WordPart(path, root, package.links(path))


DELETED_TEXTS = "texts deleted under change tracking"
UNREAD_ELEMENTS = {
    "embedded files": (OFFICE_VML + "OLEObject",),
    "linked subdocuments": (WORD + "subDoc",),
    "ActiveX controls": (WORD + "control",),
    "ink drawings": (WORD + "contentPart",),
    DELETED_TEXTS: (WORD + "delText",),
}


def _prepare_part(package: Package, part: WordPart, known: StyleSheet, *, is_margin: bool = False) -> None:
    _write_bound_values(package, part.root)
    _simplify(part.root)
    _join_drop_caps(part.root)
    for what, tags in UNREAD_ELEMENTS.items():
        leave_out(what, len(list(part.root.iter(*tags))))
    for equation in list(part.root.iter(MATH + "oMathPara", MATH + "oMath")):
        if part.root in equation.iterancestors():
            replace_element(equation, [make_run(format_equation(equation))])
    _prepare_fields(part.root, drop_page_numbers=is_margin)
    _write_form_fields(part.root)
    for chunk in list(part.root.iter(WORD + "altChunk")):
        path = part.links.get(chunk.get(RELATION + "id") or "", ("", "missing"))[1]
        replace_element(chunk, [make_paragraph(f"\ufdd0{path}\ufdd1")])
    _prepare_tables(part.root)
    _write_drawings(package, part)
    _mark_hidden_rows(part.root)
    for paragraph in part.root.iter(WORD + "p"):
        _write_symbols(paragraph, known)
        _mark_hidden_text(paragraph, known)
        _write_superscripts(paragraph, known)


def _write_comments(comments: XmlElement | None, roots: Sequence[XmlElement]) -> None:
    """Write comments after the paragraphs that they are about."""
    known = {one.get(WORD + "id"): one for one in (comments.iter(WORD + "comment") if comments is not None else ())}
    references = [one for root in roots if known for one in root.iter(WORD + "commentReference")]
    for reference in reversed(references):  # each is put directly after its paragraph
        comment, paragraph = known.pop(reference.get(WORD + "id"), None), _find_outer(reference, "p")
        text = "" if comment is None else " ".join(filter(None, map(_text, comment.iter(WORD + "p"))))
        leave_out("comments without text", comment is not None and not text)
        if comment is not None and paragraph is not None and text and take_hidden("comments"):
            author = f" by {name}" if (name := comment.get(WORD + "author")) else ""
            _append_blocks(paragraph, [make_paragraph(f"[Comment{author}: {text}]")])
    leave_out("comments", len(known))


CUSTOM_PROPERTIES = re.compile(r"customxml/itemprops(\d+)\.xml")
NAMESPACE_PREFIX = re.compile(r"xmlns:([\w-]+)\s*=\s*['\"]([^'\"]+)")


def _write_bound_values(package: Package, root: XmlElement) -> None:
    """Write the values of the file's custom XML into the text controls that are bound to it, as Word does."""
    from lxml.etree import XPathError  # pyright: ignore[reportAttributeAccessIssue] - it has no stubs

    stores: dict[str, XmlElement | None] = {}
    for path in package.parts if next(root.iter(WORD + "dataBinding"), None) is not None else ():
        if (number := CUSTOM_PROPERTIES.fullmatch(path)) and (about := package.parse(path)) is not None:
            identifier = next((about.get(key) or "" for key in about.keys() if key.endswith("}itemID")), "")  # noqa: SIM118
            stores[identifier] = package.parse(f"customxml/item{number[1]}.xml")
    for control in root.iter(WORD + "sdt"):
        binding, is_text = control.find(f"{WORD}sdtPr/{WORD}dataBinding"), control.find(f"{WORD}sdtPr/{WORD}text")
        store = None if binding is None or is_text is None else stores.get(binding.get(WORD + "storeItemID") or "")
        if binding is None or store is None:
            continue
        prefixes = dict(NAMESPACE_PREFIX.findall(binding.get(WORD + "prefixMappings") or ""))
        with suppress(XPathError, TypeError, IndexError, AttributeError):  # AttributeError: the path of an attribute
            found = store.xpath(binding.get(WORD + "xpath") or "", namespaces=prefixes)[0]
            value = " ".join((part.text or "").strip() for part in found.iter()).strip()
            for place, text in enumerate(list(control.iter(WORD + "t")) if value else ()):
                text.text = "" if place else value


# --- Elements of the document tree ---

LINK_FIELD = re.compile(r'\s*HYPERLINK\s+"([^"]+)"')
UNWRAPPED_TAGS = frozenset(("moveTo", "customXml", "smartTag", "dir", "bdo", "fldSimple", "ruby", "rubyBase"))
REMOVED_TAGS = frozenset(("del", "moveFrom", "rt", "rubyPr"))
RENAMED_TAGS = {"ptab": "tab", "cr": "br"}


def _simplify(root: XmlElement) -> None:
    """Unwrap, remove or rename elements that mammoth does not support."""
    for element in list(root.iter(*(WORD + name for name in (*UNWRAPPED_TAGS, *REMOVED_TAGS, *RENAMED_TAGS, "br")))):
        name = local_name(element)
        if name in UNWRAPPED_TAGS:
            instruction, text = element.get(WORD + "instr") or "", _text(element)
            is_silent, link = list(element) or SILENT_FIELD.match(instruction), LINK_FIELD.match(instruction)
            leave_out(FIELDS_WITHOUT_RESULT, name == "fldSimple" and not is_silent)
            replace_element(element, [make_run(format_link(text, link[1]))] if link and text else list(element))
        elif name in REMOVED_TAGS:
            leave_out("ruby readings", name == "rt")
            if name == "del":
                leave_out(DELETED_TEXTS, sum(1 for _ in element.iter(WORD + "delText", MATH + "t")))
            if name != "del" or list(element):  # else it is the mark of a deleted paragraph or row
                replace_element(element, [])
        elif name in RENAMED_TAGS or element.get(WORD + "type") in ("page", "column"):
            around = next(element.iterancestors(WORD + "p"), element)
            ends_word = name in RENAMED_TAGS or _text(around)  # the end of a page does, unless it is all there is
            replace_element(element, [make_element(RENAMED_TAGS.get(name, "tab"))] if ends_word else [])
    for run in list(root.iter(WORD + "r")):  # the base of a ruby is a run in a run
        parent = run.getparent()
        if parent is not None and parent.tag == WORD + "r":
            replace_element(parent, list(parent))


def _join_drop_caps(root: XmlElement) -> None:
    """Join each drop cap, which is a paragraph of its own, with the word that it starts."""
    for frame in [one for one in root.iter(WORD + "framePr") if one.get(WORD + "dropCap") not in (None, "none")]:
        cap = _find_outer(frame, "p")
        following = cap.xpath("following-sibling::*[1]") if cap is not None else []
        if cap is not None and following and following[0].tag == WORD + "p":
            first = following[0].find(WORD + "pPr")
            for place, run in enumerate(list(cap.iterfind(WORD + "r")), 0 if first is None else 1):
                following[0].insert(place, run)


def make_element(name: str, *children: XmlElement) -> XmlElement:
    """Return an element of WordprocessingML."""
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

    element = etree.Element(WORD + name)
    for child in children:
        element.append(child)
    return element


def make_run(text: str) -> XmlElement:
    """Return a run of text."""
    words = make_element("t")
    words.text = text
    words.set(XML_SPACE, "preserve")
    return make_element("r", words)


def make_paragraph(text: str) -> XmlElement:
    """Return a paragraph of text."""
    return make_element("p", make_run(text))


def make_table(rows: Sequence[Sequence[str]]) -> XmlElement:
    """Return a table."""
    return make_element(
        "tbl", *(make_element("tr", *(make_element("tc", make_paragraph(cell)) for cell in row)) for row in rows)
    )


def _append_blocks(element: XmlElement, others: Iterable[XmlElement]) -> None:
    parent = element.getparent()
    if parent is not None:
        for offset, other in enumerate(others, parent.index(element) + 1):
            parent.insert(offset, other)


def _find_outer(element: XmlElement, name: str) -> XmlElement | None:
    """Return the nearest element of a name around an element."""
    return next(element.iterancestors(WORD + name), None)


def _text(element: XmlElement) -> str:
    parts = element.iter(WORD + "t", MATH + "oMath")
    return "".join((part.text or "") if local_name(part) == "t" else format_equation(part) for part in parts)


def _value(element: XmlElement | None, default: str = "") -> str:
    return default if element is None else element.get(WORD + "val") or default


def _is_set(element: XmlElement | None) -> bool:
    return element is not None and _value(element, "1") not in ("0", "false", "off")


# --- Form fields, drawings and superscripts ---

MIN_RAISED_HALF_POINTS = 4  # of text raised by a distance, in Word and RTF
CHECKED_BOX, UNCHECKED_BOX = "☒", "☐"
FIELDS_WITHOUT_RESULT = "fields without a result"
PAGE_FIELD = re.compile(r"\s*(?:PAGE|NUMPAGES|SECTIONPAGES)\b")
SILENT_FIELD = re.compile(r"\s*(?:XE|T[CA]|RD|SET|ASK|PRIVATE|ADDIN|IF|NEXT\w*|SKIPIF|SEQ|FORMTEXT|\w*PAGES?)\b", re.I)
FIELD_PARTS = [WORD + name for name in ("fldChar", "instrText", "t", "sym", "drawing", "pict", "object")]


def _prepare_fields(root: XmlElement, *, drop_page_numbers: bool = False) -> None:
    """Count fields without a stored result, and remove what mammoth would read of a field's instruction."""
    fields: list[list[list[XmlElement]]] = []  # the instruction of each open field, and its result if that was reached
    for part in list(root.iter(*FIELD_PARTS)):
        kind = part.get(WORD + "fldCharType")
        if kind == "begin":
            fields.append([[part]])
        elif fields and kind == "separate":
            fields[-1].append([])
        elif fields and kind != "end":
            fields[-1][-1].append(part)
        elif fields:
            (start, *instruction), *results = fields.pop()
            result = results[-1] if results else []
            written = "".join(one.text or "" for one in instruction if local_name(one) == "instrText")
            is_page, has_form = PAGE_FIELD.match(written) is not None, start.find(WORD + "ffData") is not None
            is_shown = not fields or len(fields[-1]) > 1
            leave_out(FIELDS_WITHOUT_RESULT, is_shown and not (result or has_form or SILENT_FIELD.match(written)))
            if fields:
                fields[-1][-1] += result[:1] if is_shown else result
            is_box = has_form and written.strip() == "FORMCHECKBOX"  # of which mammoth would make another box
            dropped = [one for one in instruction if is_box or local_name(one) == "t"]
            for one in dropped + (result if is_page and drop_page_numbers else []):
                one.text = ""


def _write_form_fields(root: XmlElement) -> None:
    """Write the state of check boxes and the chosen entry of lists as text."""
    for box in list(root.iter(WORD_2010 + "checkbox")):
        control, properties = _find_outer(box, "sdt"), box.getparent()
        content = control.find(WORD + "sdtContent") if control is not None else None
        if properties is not None:
            properties.remove(box)
        if content is not None and not _text(content) and content.find(f".//{WORD}sym") is None:
            state = box.find(WORD_2010 + "checked")
            checked = state is not None and state.get(WORD_2010 + "val") not in ("0", "false")
            run = make_run(CHECKED_BOX if checked else UNCHECKED_BOX)
            content.append(run if _find_outer(content, "p") is not None else make_element("p", run))
    for data in list(root.iter(WORD + "ffData")):
        run = _find_outer(data, "r")
        box, entries = data.find(WORD + "checkBox"), data.find(WORD + "ddList")
        if run is None or (box is None and entries is None):
            continue
        if box is not None:
            state = box.find(WORD + "checked")
            text = CHECKED_BOX if _is_set(box.find(WORD + "default") if state is None else state) else UNCHECKED_BOX
        else:
            names = [_value(entry) for entry in data.iter(WORD + "listEntry")]
            chosen = int(_value(data.find(f"{WORD}ddList/{WORD}result"), "0"))
            text = names[chosen] if chosen < len(names) else ""
        parent = run.getparent()
        if parent is not None:
            parent.insert(parent.index(run), make_run(text))


def _write_drawings(package: Package, part: WordPart) -> None:
    """Write text boxes, charts, SmartArt and alternative texts after the paragraphs that they are anchored in."""
    for drawing in list(part.root.iter(WORD + "drawing", WORD + "pict", WORD + "object")):
        paragraph = _find_outer(drawing, "p")
        if paragraph is None or part.root not in drawing.iterancestors():
            continue
        boxes = list(drawing.iter(WORD + "txbxContent"))
        blocks = [block for box in boxes for block in list(box)]
        for box in boxes:  # the drawings in it are read on their own
            replace_element(box, [])
        loose = [make_paragraph(one.text) for one in drawing.iter(DRAWING + "t") if one.text]
        art = [make_paragraph(word.get("string") or "") for word in drawing.iter(VML + "textpath")]
        graphics: list[XmlElement] = []
        for lines, rows in read_graphics(drawing, lambda key: package.parse(part.links.get(key, ("", ""))[1])):
            graphics += [make_paragraph(text) for _, text in lines] + ([make_table(rows)] if rows else [])
        alts = list_alt_texts(drawing)
        if not any(format_alt_text(one.get("descr") or one.get("title")) for one in drawing.iter("{*}docPr")):
            pictures = drawing.iter(DRAWING + "blip", VML + "imagedata", "{*}model3d")
            around = [next(one.iterancestors("{*}pic", VML + "shape"), one) for one in pictures]
            leave_out(UNDESCRIBED, sum(not list_alt_texts(one) for one in around))
        added = [*map(make_paragraph, alts), *loose, *art, *graphics, *blocks]
        hidden = (one.get("hidden") in TRUE_VALUES for one in drawing.iter() if local_name(one) == "docPr")
        if added and next(hidden, False):
            added = [*added, make_paragraph(HIDDEN_MARK.strip())] if take_hidden("shapes") else []
        _append_blocks(paragraph, added)
        replace_element(drawing, [])  # mammoth fails on images that are missing
    for link in list(part.root.iter(WORD + "hyperlink")):
        if (link.get(RELATION + "id") or "") not in {"", *part.links}:
            replace_element(link, list(link))


def _write_symbols(paragraph: XmlElement, known: StyleSheet) -> None:
    """Write the signs of symbol fonts: those of a run, and for private characters those of its style."""
    style = _value(paragraph.find(f"{WORD}pPr/{WORD}pStyle"))
    for text in paragraph.iter(WORD + "t"):
        run, written = text.getparent(), text.text or ""
        if run is None:
            continue
        if PRIVATE_SIGN.search(written):
            found = known.find_property(run, "rFonts", style)
            fonts = [found.get(WORD + name) for name in ("ascii", "hAnsi")] if found is not None else []
            text.text = PRIVATE_SIGN.sub(lambda sign, fonts=fonts: format_symbols(sign[0], *fonts), written)
        elif (own := run.find(f"{WORD}rPr/{WORD}rFonts")) is not None:
            text.text = format_symbols(written, own.get(WORD + "ascii"))


MAX_HEADING_CHARS = 120  # of a paragraph with an outline level; contracts give them to whole clauses


def _name_headings(root: XmlElement, known: StyleSheet) -> None:
    """Give headings outside tables whose style has an outline level the style that the converter knows."""
    for style in root.iter(WORD + "pStyle"):
        found = (one.find(f"{WORD}pPr/{WORD}outlineLvl") for one in known.chain(_value(style)))
        level = next((_value(one) for one in found if one is not None), "9")
        paragraph = next(style.iterancestors(WORD + "p"), root)
        is_apart = next(paragraph.iterancestors(WORD + "tc"), None) is None
        if level in "012345" and is_apart and len(_text(paragraph)) <= MAX_HEADING_CHARS:
            style.set(WORD + "val", f"Heading{int(level) + 1}")


def _write_superscripts(paragraph: XmlElement, known: StyleSheet) -> None:
    """Write superscripts as characters, so that an exponent is not read as more digits of its number."""
    before, group = "", list[XmlElement]()
    for run in [*paragraph.iter(WORD + "r"), None]:
        if run is not None and _text(run) and _is_raised_run(run, known):
            group.append(run)
            continue
        if group:
            raised = format_superscript("".join(map(_text, group)), before)
            before += raised
            for place, part in enumerate(text for one in group for text in one.iter(WORD + "t")):
                part.text = "" if place else raised
            for one in group:
                alignment = one.find(f"{WORD}rPr/{WORD}vertAlign")
                if alignment is not None:
                    replace_element(alignment, [])
            group = []
        before += _text(run) if run is not None else ""


def _is_raised_run(run: XmlElement, known: StyleSheet) -> bool:
    position = _value(known.find_property(run, "position"), "0").removesuffix("pt")
    is_high = position.isdecimal() and int(position) >= MIN_RAISED_HALF_POINTS
    return is_high or _value(known.find_property(run, "vertAlign")) == "superscript"


# --- Tables and hidden text ---


def _mark_hidden_text(paragraph: XmlElement, known: StyleSheet) -> None:
    """Mark the hidden runs of a paragraph, or remove them."""
    group: list[XmlElement] = []
    style = _value(paragraph.find(f"{WORD}pPr/{WORD}pStyle"))
    for run in [*paragraph.iter(WORD + "r"), None]:
        if run is not None and not _text(run):
            continue
        if run is not None and _is_set(known.find_property(run, "vanish", style)):
            group.append(run)
            continue
        if group and "".join(map(_text, group)).strip():
            if take_hidden("parts of the text"):
                _append_blocks(group[-1], [make_run(HIDDEN_MARK)])
            else:
                for one in group:
                    replace_element(one, [])
        group = []


def _prepare_tables(root: XmlElement) -> None:
    """Write what mammoth does not read: captions, cells left out before a row, and merged cells of header rows."""
    for properties in root.iter(WORD + "trPr"):
        before = _value(properties.find(WORD + "gridBefore"), "0")
        count = int(before) if re.fullmatch(r"\d\d?", before) else 0  # tables have at most 63 columns
        _append_blocks(properties, [make_element("tc", make_paragraph("")) for _ in range(count)])
    for table in list(root.iter(WORD + "tbl")):
        captions = (table.find(f"{WORD}tblPr/{WORD}tbl{name}") for name in ("Caption", "Description"))
        texts = [make_paragraph(text) for one in captions if (text := _value(one))]
        if texts and _find_outer(table, "tbl") is None:
            replace_element(table, [*texts, table])
        first, second = [*table.iterfind(WORD + "tr"), None, None][:2]
        if first is not None and second is not None and first.find(f"{WORD}tc/{WORD}tcPr/{WORD}gridSpan") is not None:
            for merged in list(second.iterfind(f"{WORD}tc/{WORD}tcPr/{WORD}vMerge")):
                replace_element(merged, [merged] if _value(merged) == "restart" else [])  # two header rows become one


def _mark_hidden_rows(root: XmlElement) -> None:
    """Mark the hidden rows of tables, or remove them."""
    for row in list(root.iter(WORD + "tr")):
        hidden = row.find(f"{WORD}trPr/{WORD}hidden")
        if hidden is None or not _is_set(hidden) or not _text(row).strip():
            continue
        if not take_hidden("rows"):
            replace_element(row, [])
            continue
        paragraph = next(one for one in row.iter(WORD + "p") if _text(one).strip())
        paragraph.append(make_run(HIDDEN_MARK))


# --- Headers and footers ---

PAGE_WORDS = re.compile(r"(?:[\W\d_]|\b(?:pages?|p|seite|página|pagina|of|von|de|sur|di|van)\b)*", re.IGNORECASE)


def _add_margins(package: Package, document: WordPart, known: StyleSheet) -> None:
    """Write each distinct header once at the start of the document, and each distinct footer once at its end."""
    body = document.root.find(WORD + "body")
    if body is None:
        return
    seen: set[str] = set()
    for name in ("header", "footer"):
        references = list(document.root.iter(f"{WORD}{name}Reference"))
        blocks: list[XmlElement] = []
        for _, path in dict.fromkeys(
            document.links.get(one.get(RELATION + "id") or "", ("", "")) for one in references
        ):
            part = _load_part(package, path)
            leave_out("headers and footers that are missing in the file", path not in package.parts)
            if part is not None:
                blocks += _margin_blocks(package, part, known, seen)
        place = 0 if name == "header" else len(list(body))
        body[place:place] = blocks


def _margin_blocks(package: Package, part: WordPart, known: StyleSheet, seen: set[str]) -> Iterator[XmlElement]:
    """Yield the paragraphs and tables of a header or footer that contain words and are new."""
    for simple in list(part.root.iter(WORD + "fldSimple")):
        replace_element(simple, [] if PAGE_FIELD.match(simple.get(WORD + "instr") or "") else list(simple))
    _prepare_part(package, part, known, is_margin=True)
    for link in list(part.root.iter(WORD + "hyperlink")):
        replace_element(link, list(link))
    for block in list(part.root):
        text = " ".join(_text(block).split())
        if text not in seen and not PAGE_WORDS.fullmatch(text):
            seen.add(text)
            yield deepcopy(block)


# --- Styles and automatic numbers ---

NumberingKey = tuple[str, int]  # numId and level


@dataclass(frozen=True, slots=True)
class StyleSheet:
    """The styles of a file by id."""

    styles: dict[str, XmlElement] = field(default_factory=dict[str, XmlElement])

    @classmethod
    def read(cls, root: XmlElement | None) -> StyleSheet:
        """Read the part ``styles``."""
        found = root.iter(WORD + "style") if root is not None else ()
        return cls({style.get(WORD + "styleId") or "": style for style in found})

    def chain(self, key: str) -> Iterator[XmlElement]:
        """Yield a style and the styles it is based on."""
        seen: set[str] = set()
        while key in self.styles and key not in seen:
            seen.add(key)
            yield self.styles[key]
            key = _value(self.styles[key].find(WORD + "basedOn"))

    def find_property(self, run: XmlElement, name: str, style: str = "") -> XmlElement | None:
        """Return a property of a run: its own, or that of its style or of a paragraph style."""
        styles = [one for key in (_value(run.find(f"{WORD}rPr/{WORD}rStyle")), style) for one in self.chain(key)]
        found = (one.find(f"{WORD}rPr/{WORD}{name}") for one in (run, *styles))
        return next((one for one in found if one is not None), None)

    def is_heading(self, key: str) -> bool:
        """Return whether a paragraph style is a heading or title."""
        names = [_value(style.find(WORD + "name")).lower() for style in self.chain(key)]
        return any(name.startswith("heading") or name == "title" for name in names)


class Numbering:
    """The automatic numbers of a file: their formats, and the counters so far."""

    def __init__(self, root: XmlElement | None, known: StyleSheet) -> None:
        self._known = known
        self._abstract: dict[str, XmlElement] = {}
        self._links: dict[str, str] = {}
        self._numbers: dict[str, XmlElement] = {}
        self._counters: dict[str, dict[int, int]] = {}
        self._started: set[str] = set()
        for element in root if root is not None else ():
            if element.tag == WORD + "abstractNum":
                key = element.get(WORD + "abstractNumId") or ""
                self._abstract[key] = element
                if link := _value(element.find(WORD + "styleLink")):
                    self._links[link] = key
            elif element.tag == WORD + "num":
                self._numbers[element.get(WORD + "numId") or ""] = element

    def find_key(self, paragraph: XmlElement) -> NumberingKey | None:
        """Return the numbering of a paragraph, its own or its style's; None if it has none."""
        own = paragraph.find(f"{WORD}pPr/{WORD}numPr")
        style = _value(paragraph.find(f"{WORD}pPr/{WORD}pStyle"))
        number, level = "", None
        for properties in (own, *(one.find(f"{WORD}pPr/{WORD}numPr") for one in self._known.chain(style))):
            if properties is not None:
                number = number or _value(properties.find(WORD + "numId"))
                found = properties.find(WORD + "ilvl")
                level = level if level is not None or found is None else min(int(_value(found, "0")), 8)
        if number not in self._numbers:
            return None
        if level is None:
            level = next((place for place in range(9) if self._level_style(number, place) == style and style), 0)
        return number, level

    def level(self, number: str, level: int) -> XmlElement | None:
        """Return the definition of a level."""
        wanted = str(level)
        for override in self._numbers[number].iterfind(WORD + "lvlOverride"):
            own = override.find(WORD + "lvl")
            if override.get(WORD + "ilvl") == wanted and own is not None:
                return own
        definition = self._abstract.get(self._abstract_key(number))
        levels = definition.iterfind(WORD + "lvl") if definition is not None else ()
        return next((one for one in levels if (one.get(WORD + "ilvl") or "0") == wanted), None)

    def count(self, number: str, level: int) -> dict[int, int]:
        """Count a paragraph; return the counters of its level and those above."""
        counters = self._counters.setdefault(self._abstract_key(number), {})
        if number not in self._started:
            self._started.add(number)
            for override in self._numbers[number].iterfind(WORD + "lvlOverride"):
                start = override.find(WORD + "startOverride")
                if start is not None:
                    counters[int(override.get(WORD + "ilvl") or 0)] = int(_value(start, "1")) - 1
        for above in range(level):
            counters.setdefault(above, self._start(number, above))
        counters[level] = counters.get(level, self._start(number, level) - 1) + 1
        for below in [place for place in counters if place > level]:
            definition = self.level(number, below)
            restart = definition.find(WORD + "lvlRestart") if definition is not None else None
            if restart is None or int(_value(restart, "0")) > level:
                del counters[below]
        return {place: counters[place] for place in range(level + 1)}

    def label(self, number: str, level: int, counters: dict[int, int]) -> str:
        """Return a paragraph's number as displayed."""
        definition = self.level(number, level)
        pattern = _value(definition.find(WORD + "lvlText")) if definition is not None else ""
        legal = definition is not None and _is_set(definition.find(WORD + "isLgl"))

        def one(match: re.Match[str]) -> str:
            place = int(match[1]) - 1
            form = "decimal" if legal else self.level_format(number, place)
            return format_counter(counters.get(place, self._start(number, place)), form)

        return re.sub(r"%(\d)", one, pattern).strip()

    def level_format(self, number: str, level: int) -> str:
        """Return the format of a level: "decimal", "bullet", "lowerLetter" and others."""
        definition = self.level(number, level)
        return _value(definition.find(WORD + "numFmt") if definition is not None else None, "decimal")

    def _abstract_key(self, number: str) -> str:
        key = _value(self._numbers[number].find(WORD + "abstractNumId"))
        definition = self._abstract.get(key)
        link = _value(definition.find(WORD + "numStyleLink")) if definition is not None else ""
        return self._links.get(link, key)

    def _start(self, number: str, level: int) -> int:
        definition = self.level(number, level)
        return int(_value(definition.find(WORD + "start") if definition is not None else None, "1"))

    def _level_style(self, number: str, level: int) -> str:
        definition = self.level(number, level)
        return _value(definition.find(WORD + "pStyle")) if definition is not None else ""


class NumberedText:
    """Writes automatic numbers into paragraphs. Lists that Markdown would number in the same way stay lists."""

    def __init__(self, numbering: Numbering, known: StyleSheet) -> None:
        """Args:
        numbering: Formats and counters.
        known: Styles of the file.
        """
        self._numbering, self._known = numbering, known
        self._open: dict[int, tuple[str, int]] = {}  # numId and last number of the open lists by level

    def write(self, root: XmlElement) -> None:
        """Write the numbers of all paragraphs of a document."""
        for paragraph in list(root.iter(WORD + "p")):
            key = self._numbering.find_key(paragraph)
            if key is None or not _text(paragraph):
                marks = paragraph.find(f"{WORD}pPr/{WORD}rPr")
                is_deleted = marks is not None and next(marks.iter(WORD + "del", WORD + "moveFrom"), None) is not None
                if key is not None and not is_deleted:
                    self._numbering.count(*key)
                self._open = {}
                continue
            self._write_one(paragraph, *key)

    def _write_one(self, paragraph: XmlElement, number: str, level: int) -> None:
        form = self._numbering.level_format(number, level)
        counters = self._numbering.count(number, level)
        value = 0 if form == "bullet" else counters[level]
        style = _value(paragraph.find(f"{WORD}pPr/{WORD}pStyle"))
        if form == "bullet" or self._is_plain(number, level, counters, style):
            self._open = {place: last for place, last in self._open.items() if place < level}
            self._open[level] = (number, value)
            _set_numbering(paragraph, number, level)
            return
        self._open = {}
        _set_numbering(paragraph, "0", 0)
        if label := self._numbering.label(number, level, counters):
            properties = paragraph.find(WORD + "pPr")
            place = 0 if properties is None else paragraph.index(properties) + 1
            paragraph.insert(place, make_run(f"{label} "))

    def _is_plain(self, number: str, level: int, counters: dict[int, int], style: str) -> bool:
        """Return whether Markdown gives a list item the same number."""
        if self._known.is_heading(style) or self._numbering.label(number, level, counters) != f"{counters[level]}.":
            return False
        before = self._open.get(level)
        if counters[level] == 1:
            return before is None or before[1] == 0
        return before == (number, counters[level] - 1)


DIGITS = ("", *"一二三四五六七八九")
# The numbers from 1 of lists in other scripts; later ones are decimal.
LETTERS = {
    **dict.fromkeys(("hebrew1", "hebrew2"), "אבגדהוזחטי"),
    "arabicAbjad": "أبجدهوزحطيكلمنسعفصقرشتثخذضظغ", "arabicAlpha": "أبتثجحخدذرزسشصضطظعغفقكلمنهوي",
    "russianLower": "абвгдежзиклмнопрстуфхцчшщыэюя", "russianUpper": "АБВГДЕЖЗИКЛМНОПРСТУФХЦЧШЩЫЭЮЯ",
    "thaiLetters": "กขคงจฉชซฌญฎฏฐฑฒณดตถทธนบปผฝพฟภมยรลวศษสหฬอฮ",
    **dict.fromkeys(("aiueo", "aiueoFullWidth"), "アイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホ"),
    **dict.fromkeys(("iroha", "irohaFullWidth"), "イロハニホヘトチリヌルヲワカヨタレソツネナラムウヰノオクヤマ"),
    "ganada": "가나다라마바사아자차카타파하", "ideographTraditional": "甲乙丙丁戊己庚辛壬癸",
    "ideographZodiac": "子丑寅卯辰巳午未申酉戌亥", "koreanDigital": "일이삼사오육칠팔구",
    "ideographDigital": "一二三四五六七八九",
    **dict.fromkeys(("decimalEnclosedCircle", "decimalEnclosedCircleChinese"), "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳"),
}  # fmt: skip
MAX_COUNTERS = {"Roman": 3_999, "Letter": 26 * 4}  # up to "zzzz"


def format_counter(value: int, form: str) -> str:
    """Return a number in one of Word's formats; rare formats, and numbers of too many letters, become decimal."""
    if value > MAX_COUNTERS.get(form[5:], value):
        return str(value)
    if form in ("lowerLetter", "upperLetter"):
        letter = chr(ord("a") + (value - 1) % 26) * ((value - 1) // 26 + 1) if value > 0 else ""
        return letter if form == "lowerLetter" else letter.upper()
    if form in ("lowerRoman", "upperRoman"):
        return format_roman(value).lower() if form == "lowerRoman" else format_roman(value)
    if 0 < value < 100 and re.match("(?:chinese|japanese|taiwanese)Counting", form):
        tens, ones = divmod(value, 10)
        return (DIGITS[tens] if tens > 1 else "") + "十" * (tens > 0) + DIGITS[ones]
    if 0 < value <= len(LETTERS.get(form, "")):
        return LETTERS[form][value - 1]
    if form == "ordinal":
        ending = {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th") if value % 100 not in (11, 12, 13) else "th"
        return f"{value}{ending}"
    return {"none": "", "bullet": "", "decimalZero": f"{value:02}"}.get(form, str(value))


def _set_numbering(paragraph: XmlElement, number: str, level: int) -> None:
    properties = paragraph.find(WORD + "pPr")
    if properties is None:
        properties = make_element("pPr")
        paragraph.insert(0, properties)
    for old in list(properties.iterfind(WORD + "numPr")):
        properties.remove(old)
    place, key = make_element("ilvl"), make_element("numId")
    place.set(WORD + "val", str(level))
    key.set(WORD + "val", number)
    properties.append(make_element("numPr", place, key))


# --- RTF ---

RTF_SIGNATURE = b"{\\rtf"
RTF_CODE_PAGE, RTF_MAC = re.compile(rb"\\ansicpg(\d+)"), re.compile(rb"\\mac\b|\\ansicpg10000\b")
RTF_PROPERTIES = re.compile(r"\{\\(title|author|subject|keywords) ((?:[^{}\\]|\\[^{}]|\\[{}])*)\}")
# Groups that striprtf skips, and what they contain.
RTF_SKIPPED = (
    (re.compile(r"\{\\(?:header|footer)[lrf]?\b"), "headers and footers"),
    (re.compile(r"\{\\footnote\b"), "footnotes"),
    (re.compile(r"\{\\\*\\annotation\b"), "comments"),
    (re.compile(r"\{\\shptxt\b"), "text boxes"),
    (re.compile(r"(?<!\{\\nonshppict)\{\\pict\b"), UNDESCRIBED),
    (re.compile(r"\{\\object\b"), "embedded files"),
    (re.compile(r"\\moMath\b"), "equations"),
    (re.compile(r"\\fftype[12]\b"), "form fields"),
    (re.compile(r'\bHYPERLINK +"'), "addresses of links"),
)
RTF_DELETED = re.compile(r"\{[^{}]*\\deleted\b[^{}]*\}")  # under change tracking
RTF_ROW = re.compile(r"(?:^[^\n|]*(?:\|[^\n|]*)*\|$\n?)+", re.MULTILINE)  # lines whose cells each end with a bar
# A brace, characters (matched without backtracking, which takes much memory), or a control word or sign.
RTF_TOKEN = re.compile(
    r"(?P<brace>[{}])|(?P<text>(?:\\u-?\d+ ?|\\'[0-9a-f]{2}|\\[~_-]|[^\\{}]+)++)"
    r"|\\(?P<word>[a-z]+)(?P<number>-?\d+)? ?|\\.?",
    re.IGNORECASE | re.DOTALL,
)
RTF_COLUMN = re.compile(r"(?<!\\)((?:\\\\)*)\\column\b")  # its end; "\\column" is a text
RTF_FONT_WITHOUT_CHARSET = re.compile(r"(\\f\d+)(?![^;]{0,200}\\fcharset)")
# Characters that no text may have: for a bar that is not the end of a cell, and around texts with a property.
RTF_BAR = "\ufdd0"
RTF_MARKS = {"raised": ("\ufdd1", "\ufdd2"), "struck": ("\ufdd3", "\ufdd4"), "hidden": ("\ufdd5", "\ufdd6")}
# The property that a control word sets, unless its number is 0, and those that it ends.
RTF_SET = {
    "super": "raised", "up": "raised", "strike": "struck", "striked": "struck", "v": "hidden", "trowd": "table",
    "intbl": "table",
}  # fmt: skip
RTF_ENDED = RTF_SET | {
    "nosupersub": "raised", "sub": "raised", "dn": "raised", "plain": "raised struck hidden", "row": "table",
    "pard": "table",
}  # fmt: skip


def read_rtf(data: bytes, name: str) -> Draft:
    """Return the paragraphs and tables of a Rich Text file; notes, headers and text boxes are counted.

    Raises:
        UnreadableDocument: It is not a Rich Text file.
    """
    from striprtf.striprtf import rtf_to_text

    if not data.lstrip().startswith(RTF_SIGNATURE):
        raise UnreadableDocument(f"'{name}' is not a Rich Text file despite its suffix. Re-save it.")
    page, is_mac = RTF_CODE_PAGE.search(data), RTF_MAC.search(data[:ENTITY_SCAN_BYTES]) is not None
    codec = find_codec(f"windows-{int(page[1])}" if page else None) or ("mac_roman" if is_mac else "cp1252")
    source, deleted = RTF_DELETED.subn("", data.lstrip().decode(codec, "replace"))
    leave_out(DELETED_TEXTS, deleted)
    source = source.replace("{\\pntext", "{\\listtext").replace("\\ansicpg10000", "")
    source = RTF_COLUMN.sub(r"\1\\page", source)
    source = RTF_FONT_WITHOUT_CHARSET.sub(r"\1\\fcharset1", source)  # which striprtf takes from the next font

    def convert(rtf: str) -> str:
        text = rtf_to_text(rtf, codec, "replace")
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # joins the halves of an emoji

    for pattern, what in RTF_SKIPPED:
        leave_out(what, len(pattern.findall(source)))
    properties = {key: convert(f"{{\\rtf1 {value}}}").strip() for key, value in RTF_PROPERTIES.findall(source)}
    text = convert("".join(_mark_rtf(source)))
    leave_out("bytes that are not valid text", text.count("\ufffd"))
    text = _write_rtf_marks(text.replace("\n", "\n\n").replace("|\n\n", "|\n"))
    text = re.sub(r"\n{3,}", "\n\n", RTF_ROW.sub(_write_rtf_table, text)).replace(RTF_BAR, "|")
    return Draft(text, properties.get("title", ""), drop_title({key: text for key, text in properties.items() if text}))


def _mark_rtf(source: str) -> Iterator[str]:
    """Yield the tokens of a file, with marks around raised and hidden text, and without bars and lines in cells."""
    states: list[frozenset[str]] = [frozenset()]  # the properties of the text in each open group
    for token in RTF_TOKEN.finditer(source):
        text, word = token[0], token["word"] or ""
        if token["brace"] == "{":
            states.append(states[-1])
        elif token["brace"]:
            del states[max(1, len(states) - 1) :]
        elif word in ("par", "line") and "table" in states[-1]:
            text = "\\emspace "
        elif token["text"]:
            text = text.replace("|", RTF_BAR)
            for key, marks in RTF_MARKS.items():
                text = text.join(marks) if key in states[-1] and text.strip("\r\n") else text
        else:
            states[-1] = states[-1].difference(RTF_ENDED.get(word, "").split())
            if word in RTF_SET and token["number"] != "0":
                states[-1] |= {RTF_SET[word]}
        yield text


def _write_rtf_marks(text: str) -> str:
    """Write raised text as superscripts, mark struck text, and mark hidden text or remove it."""

    def write_struck(found: re.Match[str]) -> str:
        return format_struck(found[1])

    def write_raised(found: re.Match[str]) -> str:
        return format_superscript(found[1], found.string[max(0, found.start() - 40) : found.start()])

    def write_hidden(found: re.Match[str]) -> str:
        return found[1] + HIDDEN_MARK if take_hidden("parts of the text") else ""

    for (start, end), write in zip(RTF_MARKS.values(), (write_raised, write_struck, write_hidden), strict=True):
        text = re.sub(f"{start}([^{end}]*){end}", write, text.replace(end + start, ""))
    return text


def _write_rtf_table(lines: re.Match[str]) -> str:
    lined = (line.split("|")[:-1] for line in lines[0].strip().split("\n"))
    rows = drop_empty([[format_cell(cell.replace(RTF_BAR, "|")) for cell in line] for line in lined])
    return f"\n\n{format_markdown_table(join_header_rows(rows))}\n\n" if rows else ""


# --- PowerPoint: one page per slide, in reading order, with tables, charts and speaker notes ---

RAISED_BASELINE = re.compile(r"[1-9]\d*%?")
TRUE_VALUES, FALSE_VALUES = ("1", "true", "on"), ("0", "false", "off")
SHOW_TYPE = re.compile(rb"presentationml\.(?:slideshow|template)\.main")  # which python-pptx does not open
TEMPLATE_TITLE = "PowerPoint Presentation"  # the title in python-pptx's default template
PAGE_NUMBER_TYPE = "sldNum"
MARGIN_TYPES = ("ftr", "hdr", "dt")


def read_pptx(data: bytes, name: str) -> Draft:
    """Return the slides in order."""
    package = Package(data, name)
    properties = read_core_properties(package)
    presentation = _open_presentation(data, package)
    for entry in [one for one in presentation.element.iter() if local_name(one) == "sldId"]:
        key = entry.get(RELATION + "id")  # None for an entry of a section
        if key is not None and key not in presentation.part.rels:
            leave_out("slides that are missing in the file")
            replace_element(entry, [])
    for slide in presentation.slides:
        _simplify_shapes(slide.element)
    first = next((title for slide in presentation.slides if (title := _slide_title(slide))), "")
    reader = SlideReader()
    sections = {
        (slides[0].get("id") or ""): f"# {section.get('name')}\n\n"
        for section in presentation.element.iter("{*}section")
        if (slides := list(section.iterfind(".//{*}sldId")))
    }
    pages = tuple(
        (number, sections.get(str(slide.slide_id), "") + reader.read(slide, number))
        for number, slide in enumerate(presentation.slides, 1)
        if slide.element.get("show") not in FALSE_VALUES or take_hidden("slides")
    )
    title = properties.get("title", "")
    return Draft(title=first if title in ("", TEMPLATE_TITLE) else title, pages=pages, metadata=drop_title(properties))


def _open_presentation(data: bytes, package: Package) -> Presentation:
    """Open a file, or a repaired copy with the Transitional namespaces if it is Strict, damaged or lacks parts."""
    from lxml.etree import XMLSyntaxError, tostring  # pyright: ignore[reportAttributeAccessIssue] - it has no stubs
    from pptx import Presentation

    if not STRICT_NAMESPACE.search(package.read(package.find_main_part("ppt/presentation.xml")) or b""):
        with suppress(XMLSyntaxError, KeyError, ValueError):  # ValueError: a slide show or a template
            return Presentation(io.BytesIO(data))
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as copy:
        for path, entry in package.parts.items():
            root = package.parse(path) if path.endswith((".xml", ".rels")) else None
            if root is not None and path.endswith(".rels"):
                _drop_dangling_links(package, path, root)
            content = tostring(root) if root is not None else package.read(path) or b""
            copy.writestr(entry, SHOW_TYPE.sub(rb"presentationml.presentation.main", content))
    return Presentation(target)


def _drop_dangling_links(package: Package, path: str, root: XmlElement) -> None:
    """Remove links to parts that the file lacks, because python-pptx fails on them."""
    known = package.links(path.replace("_rels/", "").removesuffix(".rels"))
    for link in [one for one in root if one.get("TargetMode") != "External"]:
        if known.get(link.get("Id") or "", ("", ""))[1] not in package.parts:
            replace_element(link, [])


def _simplify_shapes(root: XmlElement, *, count: bool = True) -> None:
    """Choose the newer of alternative contents, and remove ink, which python-pptx fails on."""
    choose_alternatives(root)
    for ink in [one for one in root.iter() if local_name(one) == "contentPart"]:
        leave_out("ink drawings", count)
        replace_element(ink, [])


class SlideReader:
    """Reads the slides of a file one after another. Repeated footers and master texts are read once."""

    def __init__(self) -> None:
        self._margins: set[str] = set()  # texts of footers, layouts and masters that were read
        self._after_hidden = False  # True if the slide before was hidden: its heading does not apply to this one

    def read(self, slide: Slide, number: int) -> str:
        """Return a slide's text: title, shapes in reading order, new footers, and notes."""
        _write_links(slide.part, slide.element)
        is_hidden = slide.element.get("show") in FALSE_VALUES
        title = _slide_title(slide) or (f"Slide {number}" if self._after_hidden and not is_hidden else "")
        mark, self._after_hidden = (" (hidden slide)" if is_hidden else ""), is_hidden
        parts = [f"## {title}{mark}".replace("  ", " ")] if title or mark else []
        own = _find_title(slide)
        shapes = [shape for shape in slide.shapes if own is None or shape.element is not own.element]  # ids may repeat
        parts += self._read_shapes(order_shapes(shapes))
        for background in _list_backgrounds(slide):
            _simplify_shapes(background.element, count=False)
            fixed = [shape for shape in background.shapes if not shape.is_placeholder]
            parts += self._new_texts(self._read_shapes(order_shapes(fixed), count=False))
        if slide.has_notes_slide:
            notes = slide.notes_slide
            _simplify_shapes(notes.element)
            _write_links(notes.part, notes.element)
            body = notes.notes_text_frame
            texts = [] if body is None else list(map(_paragraph_text, _paragraphs(body._txBody)))  # pyright: ignore[reportPrivateUsage]
            others = (one for one in notes.shapes if _placeholder_type(one) not in (*MARGIN_TYPES, "body", "sldImg"))
            written = ["\n".join(filter(None, texts)), *self._read_shapes(others)]
            parts += [f"Notes: {text}" for text in written if text]
        leave_out(UNDESCRIBED, slide.element.find(f"{{*}}cSld/{{*}}bg//{DRAWING}blip") is not None)
        leave_out("ActiveX controls", len(list(slide.element.iter("{*}control"))))
        for relation in slide.part.rels.values():
            if relation.reltype.endswith("/comments") and not relation.is_external:
                root = parse_xml(relation.target_part.blob)
                for one in root.iter("{*}cm", "{*}reply") if root is not None else ():
                    body = one.find("{*}txBody")  # in the format of 2021
                    text = format_cell(one.findtext("{*}text")) if body is None else _element_text(body)
                    parts += [f"[Comment: {text}]"] if text and take_hidden("comments") else []
        return "\n\n".join(parts)

    def _read_shapes(self, shapes: Iterable[BaseShape], *, count: bool = True) -> Iterator[str]:
        """Yield the texts of shapes, including grouped ones."""
        from pptx.shapes.group import GroupShape

        for shape in shapes:
            kind, own = _placeholder_type(shape), shape.element
            if kind == PAGE_NUMBER_TYPE:
                continue
            if isinstance(shape, GroupShape):
                own = own[0]  # the properties of the group itself
                members = self._read_shapes(order_shapes(list(shape.shapes)), count=count)
                text = "\n\n".join([*list_alt_texts(own), *members])
            else:
                text = self._read_shape(shape, count=count)
            if text and any(local_name(one) == "cNvPr" and one.get("hidden") in TRUE_VALUES for one in own.iter()):
                text = f"{text}{HIDDEN_MARK}" if take_hidden("shapes") else ""
            if kind in MARGIN_TYPES:
                yield from self._new_texts([text])
            elif text:
                yield text

    def _new_texts(self, texts: Iterable[str]) -> Iterator[str]:
        for text in texts:
            if text and text not in self._margins:
                self._margins.add(text)
                yield text

    def _read_shape(self, shape: BaseShape, *, count: bool) -> str:
        from pptx.shapes.autoshape import Shape
        from pptx.shapes.graphfrm import GraphicFrame

        element: XmlElement = shape.element
        alt = "\n\n".join(list_alt_texts(element))
        if isinstance(shape, Shape | GraphicFrame):
            leave_out(UNDESCRIBED, count and not alt and element.find(f"{{*}}spPr/{DRAWING}blipFill") is not None)
            text = read_shape_text(element) if isinstance(shape, Shape) else self._read_frame(shape)
            return "\n\n".join(filter(None, [text, alt]))
        if local_name(element) != "pic":
            return alt
        media = [one for one in element.iter() if local_name(one) in ("videoFile", "audioFile", "wavAudioFile")]
        if count and media:
            leave_out("audio and video")
        elif count and not alt:
            leave_out(UNDESCRIBED)
        return alt

    def _read_frame(self, frame: BaseShape) -> str:
        """Return the text of a table, a chart or a SmartArt diagram; count other objects."""
        element: XmlElement = frame.element
        table = element.find(f".//{DRAWING}tbl")
        if table is not None:
            grid: list[list[str]] = []
            is_wide = table.find(f"{DRAWING}tr/{DRAWING}tc[@gridSpan]") is not None  # with a second header row
            for row in table.iterfind(DRAWING + "tr"):
                above = grid[-1] if len(grid) > is_wide else []
                cells = [_element_text(one) for one in row.iterfind(DRAWING + "tc")]
                merged = [one.get("vMerge") in TRUE_VALUES for one in row.iterfind(DRAWING + "tc")]
                grid.append([above[at] if merged[at] and at < len(above) else cell for at, cell in enumerate(cells)])
            rows = drop_empty(grid)
            return format_markdown_table(join_header_rows(rows)) if rows else ""

        def load(key: str) -> XmlElement | None:
            relation = frame.part.rels.get(key)
            return parse_xml(relation.target_part.blob) if relation is not None and not relation.is_external else None

        names = set(map(local_name, element.iter()))
        leave_out("embedded files", "oleObj" in names)
        leave_out("3D models", "model3d" in names)
        return "\n\n".join(format_graphics(element, load))


def _list_backgrounds(slide: Slide) -> Iterator[SlideLayout | SlideMaster]:
    """Yield the layout and the master of a slide, unless the file lacks them."""
    with suppress(KeyError):
        yield slide.slide_layout
        yield slide.slide_layout.slide_master


# --- Reading order ---

MAX_OVERLAP = 0.25  # of the smaller of two shapes: neighbours may overlap by this much


def order_shapes(shapes: Sequence[BaseShape]) -> list[BaseShape]:
    """Return shapes in reading order: rows from the top, and each row from the left.

    A part of the slide without a horizontal gap is read column by column. Slides with placeholders only keep the
    layout's order, which is the reading order.
    """
    if all(shape.is_placeholder for shape in shapes):
        return list(shapes)
    return _cut_rows([shape for shape in shapes if _has_place(shape)]) + [
        shape for shape in shapes if not _has_place(shape)
    ]


def _has_place(shape: BaseShape) -> bool:
    from pptx.exc import InvalidXmlError

    with suppress(InvalidXmlError, ValueError):  # a shape without properties, or at a fraction of a unit
        return None not in (shape.top, shape.left, shape.height, shape.width)
    return False


def _cut_rows(shapes: Sequence[BaseShape]) -> list[BaseShape]:
    bands = _cut(shapes, lambda shape: (shape.top, shape.top + shape.height))
    if len(bands) > 1:
        return [shape for band in bands for shape in _cut_rows(band)]
    columns = _cut(shapes, lambda shape: (shape.left, shape.left + shape.width))
    if len(columns) > 1:
        return [shape for column in columns for shape in _cut_rows(column)]
    return sorted(shapes, key=lambda shape: (shape.top, shape.left))


def _cut(shapes: Sequence[BaseShape], extent: Callable[[BaseShape], tuple[int, int]]) -> list[list[BaseShape]]:
    """Return groups of shapes that do not overlap in one direction, in order."""
    groups: list[list[BaseShape]] = []
    reached = 0
    for shape in sorted(shapes, key=extent):
        start, end = extent(shape)
        smallest = min((high - low for low, high in map(extent, [*(groups[-1] if groups else []), shape])), default=0)
        if not groups or start >= reached - MAX_OVERLAP * smallest:
            groups.append([])
        groups[-1].append(shape)
        reached = max(reached, end)
    return groups


# --- The text of a shape ---


def _find_title(slide: Slide) -> BaseShape | None:
    """Return the title of a slide; a footer without an index would count as one too."""
    shape = slide.shapes.title
    return None if shape is None or _placeholder_type(shape) in (*MARGIN_TYPES, PAGE_NUMBER_TYPE) else shape


def _slide_title(slide: Slide) -> str:
    shape = _find_title(slide)
    return "" if shape is None or not shape.has_text_frame else _element_text(shape.element)


def _element_text(element: XmlElement) -> str:
    return format_cell(" ".join(map(_paragraph_text, _paragraphs(element))))


def _placeholder_type(shape: BaseShape) -> str:
    element: XmlElement = shape.element
    found = next((one for one in element.iter() if local_name(one) == "ph"), None)
    return "" if found is None else found.get("type") or ""


def _paragraphs(element: XmlElement) -> Iterator[XmlElement]:
    return element.iter(DRAWING + "p")


def _paragraph_text(paragraph: XmlElement) -> str:
    """Return a paragraph's text on one line, with superscripts and equations."""
    text, raised = "", ""
    for part in [
        *paragraph.iter(DRAWING + "t", DRAWING + "br", DRAWING + "tab", MATH + "oMathPara", MATH + "oMath"),
        None,
    ]:
        run = part.getparent() if part is not None else None
        properties = run.find(DRAWING + "rPr") if run is not None else None
        if part is not None and properties is not None and RAISED_BASELINE.fullmatch(properties.get("baseline") or ""):
            raised += part.text or ""
            continue
        if raised:
            text, raised = text + format_superscript(raised, text), ""
        if part is not None:
            is_lowered = properties is not None and (properties.get("baseline") or "").startswith("-")
            text += format_subscript(_part_text(part), text) if is_lowered else _part_text(part)
    return format_cell(text)


def _part_text(part: XmlElement) -> str:
    name, parent = local_name(part), part.getparent()
    properties = parent.find(f"{DRAWING}rPr") if name == "t" and parent is not None else None
    if properties is not None and (properties.get("strike") or "noStrike") != "noStrike":
        return format_struck(part.text or "")
    if name == "oMath" and parent is not None and local_name(parent) == "oMathPara":
        return ""  # its paragraph has written it
    text = format_equation(part) if name.startswith("oMath") else " "
    text = decode_escapes(part.text or "") if name == "t" else text
    if text.isascii() and len(text.strip()) != 1:  # words in the usual font
        return text
    fonts = [properties.find(DRAWING + kind) for kind in ("sym", "latin")] if properties is not None else []
    return format_symbols(text, *(font.get("typeface") for font in fonts if font is not None))


def read_shape_text(element: XmlElement) -> str:
    """Return the paragraphs of a shape, as a list if there are several."""
    lines: list[tuple[int, str]] = []
    numbers: dict[int, tuple[str, int]] = {}  # form and last number of the open lists by level
    for paragraph in _paragraphs(element):
        properties = paragraph.find(DRAWING + "pPr")
        level = int((properties.get("lvl") if properties is not None else None) or 0)
        number = paragraph.find(f"{DRAWING}pPr/{DRAWING}buAutoNum")
        if text := _paragraph_text(paragraph):
            form, start = ("", "0") if number is None else (number.get("type") or "", number.get("startAt") or "1")
            last, value = numbers.setdefault(level, ("", 0))
            value = value + 1 if last == form else int(start)
            numbers = {place: one for place, one in numbers.items() if place < level} | {level: (form, value)}
            lines.append((level, f"{_slide_number(form, value)} {text}".strip()))
    return format_list(lines)


SLIDE_NUMBERS = {"alphaLc": "lowerLetter", "alphaUc": "upperLetter", "romanLc": "lowerRoman", "romanUc": "upperRoman"}


def _slide_number(form: str, value: int) -> str:
    """Return an automatic number of a slide in a form such as "alphaLcParenR"; "" for a bullet."""
    number = format_counter(value, SLIDE_NUMBERS.get(form[:7], "decimal"))
    end = "." if form.endswith("Period") else ")" if "Paren" in form else ""
    return f"{'(' if form.endswith('Both') else ''}{number}{end}" if form else ""


def format_list(lines: Sequence[tuple[int, str]]) -> str:
    """Return (depth, text) lines as a Markdown list; a single line is a paragraph."""
    if len(lines) == 1:
        return lines[0][1]
    return "\n".join(f"{'  ' * level}- {text}" for level, text in lines)


def _write_links(part: Part, element: XmlElement) -> None:
    """Write the addresses of linked words as Markdown links; count those of linked shapes."""
    for link in element.iter(DRAWING + "hlinkClick"):
        relation = part.rels.get(link.get(RELATION + "id") or "")
        address = relation.target_ref if relation is not None and relation.is_external else ""
        properties = link.getparent()
        run = properties.getparent() if properties is not None else None
        words = run.find(DRAWING + "t") if run is not None else None
        if words is not None and (text := words.text) and text.strip():
            words.text = format_link(text, address)
        else:
            leave_out("addresses of linked shapes", bool(address))


def format_link(text: str, address: str) -> str:
    """Return linked words as a Markdown link; unchanged if they show the address, or it is inside the file."""
    is_shown = address.removeprefix("mailto:").rstrip("/").casefold() in text.casefold()
    return text if is_shown or address.startswith("#") else f"[{text}]({address})"


def format_graphics(element: XmlElement, load: Callable[[str], XmlElement | None]) -> Iterator[str]:
    """Yield the charts and diagrams of a drawing as Markdown."""
    for lines, rows in read_graphics(element, load):
        yield "\n\n".join(filter(None, [format_list(lines), format_markdown_table(rows) if rows else ""]))


# --- EPUB: the chapters in spine order, as Markdown ---

CHAPTER_MEDIA_TYPES = ("application/xhtml+xml", "text/html", "text/x-oeb1-document", "application/x-dtbook+xml")
OWN_PROPERTIES = ("contributor", "publisher", "date", "language")  # of books
EPUB_PROPERTIES = OFFICE_PROPERTIES | {"dcterms:modified": "modified"} | {name: name for name in OWN_PROPERTIES}


def read_epub(data: bytes, name: str) -> Draft:
    """Return a book's text, with title and author from its package description.

    Chapters outside the reading order, such as notes that open as windows, come last.

    Raises:
        UnreadableDocument: It is not an EPUB book, or all its chapters are encrypted (DRM).
    """
    package = Package(data, name)
    container = package.parse("META-INF/container.xml")
    renditions = [] if container is None else list(container.iterfind(".//{*}rootfile"))
    listed = [unquote(each.get("full-path") or "") for each in renditions]
    opf_path = next(iter(listed or sorted(path for path in package.parts if path.endswith(".opf"))), "")
    leave_out("other renditions of the book", len(listed[1:]))
    data = package.read(opf_path) or b""
    source = XML_DECLARATION.sub("", decode_text(data, name, find_charset(data)))  # by the labels of browsers
    opf = parse_xml(source.encode("utf-8", "replace")) if source.strip() else None
    if opf is None:
        raise UnreadableDocument(f"'{name}' is not an EPUB book: it has no list of chapters. Download it again.")
    chapters = _list_spine(opf, posixpath.dirname(opf_path.replace("\\", "/")))
    encryption = package.parse("META-INF/encryption.xml")  # of fonts as well, which does not matter here
    references = encryption.iterfind(".//{*}CipherReference") if encryption is not None else ()
    encrypted = set(chapters) & {_fold_path(unquote(reference.get("URI") or "")) for reference in references}
    chapters = [chapter for chapter in chapters if chapter not in encrypted]
    if encrypted and set(chapters).isdisjoint(package.parts):
        raise UnreadableDocument(f"'{name}' is protected by DRM. Only books without DRM can be read.")
    leave_out("chapters that are encrypted", len(encrypted))
    leave_out("chapters that are missing in the file", sum(chapter not in package.parts for chapter in chapters))
    pages = (posixpath.basename(path) for path in package.parts if path.endswith((".xhtml", ".html", ".htm")))
    hrefs = {posixpath.basename(unquote(item.get("href") or "")).lower() for item in opf.iter("{*}item")}
    leave_out("pages that the book does not list", sum(page not in hrefs for page in pages))
    sources = ((content, chapter) for chapter in chapters if (content := package.read(chapter)) is not None)
    texts = [convert_fragment(decode_text(data, name, find_charset(data))) for data, name in sources]
    described = _read_properties(opf.iterfind(".//{*}metadata/*"), EPUB_PROPERTIES)
    title, summary = described.pop("title", ""), convert_fragment(described.pop("description", "")).strip()
    described |= {"description": summary} if summary else {}
    return Draft("\n\n".join(text.strip() for text in texts if text.strip()), title, described)


def _list_spine(opf: XmlElement, folder: str) -> list[str]:
    """Return the paths of the chapters in reading order, then of those outside it; no tables of contents."""
    items = {item.get("id"): item for item in opf.iterfind(".//{*}manifest/{*}item")}
    spine = [_pop_chapter(items, entry.get("idref")) for entry in opf.iterfind(".//{*}spine/{*}itemref")]
    others = (item for item in items.values() if (item.get("media-type") or "").lower() in CHAPTER_MEDIA_TYPES)
    chapters = (item for item in (*spine, *others) if item is not None)
    return [
        _fold_path(posixpath.join(folder, unquote(item.get("href") or "")))
        for item in chapters
        if "nav" not in (item.get("properties") or "").split()
    ]


def _pop_chapter(items: dict[str | None, XmlElement], name: str | None) -> XmlElement | None:
    """Take an item of the reading order, or its fallback if it is no text, out of the items of a book."""
    item = items.pop(name, None)
    if item is None or (item.get("media-type") or "").lower() in ("", "image/svg+xml", *CHAPTER_MEDIA_TYPES):
        return item
    leave_out("chapters in formats that are not read", not item.get("fallback"))
    return _pop_chapter(items, item.get("fallback"))
