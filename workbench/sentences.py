"""Sentences by regular expression: fast, language-neutral, and wary of abbreviations, decimals and lists."""

from __future__ import annotations

import re

# An end of sentence, to be checked: Latin marks before a blank, CJK marks anywhere, blank lines, list items.
CANDIDATE = re.compile(
    r"""(?P<latin>[.!?…]+["'”’»)\]*_`]*)(?=\s)"""
    r"""|(?P<cjk>[。！？｡]+["'”’」』）》】]*)"""
    r"""|(?P<gap>\n[ \t]*\n)"""
    r"""|(?P<item>\n(?=[ \t]*(?:[-*+•]|\d{1,9}[.)])[ \t]))"""
)
WORD_BEFORE = re.compile(r"[\w.'’-]+$")
ABBREVIATIONS = frozenset(
    """
    mr mrs ms dr prof sr jr st rev hon gen col maj capt lt sgt gov sen rep pres
    inc ltd co corp llc plc dept univ assn bros no nos vol vols pp ed eds fig figs eq eqs sec ch chap ref refs tab
    e.g i.e cf viz vs etc al ca approx est resp incl excl min max avg
    jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri sat sun
    a.m p.m u.s u.k u.n d.c ph.d m.d b.a m.a b.sc m.sc
    z.b d.h u.a bzw usw ggf evtl vgl hr fr nr str abs art mio mrd tel
    mme mlle env ex p.ex m sra srta ud uds pág núm ej
    """.split()  # noqa: SIM905 - a table of words reads better than a list of quotes
)
RARELY_LAST = frozenset("e.g i.e cf viz vs mr mrs ms dr prof fig figs eq eqs nr z.b d.h vgl p.ex".split())  # noqa: SIM905
LOOK_BACK = 24  # characters before a full stop that tell an abbreviation
RUN_IN = 80  # characters of a bold heading that runs into its sentence
RUN_IN_HEADING = re.compile(
    r"(?:[-*+][ \t]+)?(\*\*|__)(?:(?!\1).)+\1", re.DOTALL
)  # "**Colour.** Warm greys": one thing


def sentence_spans(text: str, start: int = 0, end: int | None = None) -> list[tuple[int, int]]:
    """Return (start, end) of the sentences of ``text[start:end]``, stripped, in order, covering all but blanks."""
    end = len(text) if end is None else end
    spans: list[tuple[int, int]] = []
    begin = start
    for match in CANDIDATE.finditer(text, start, end):
        if match.lastgroup == "latin" and not _ends_sentence(text, match, begin, end):
            continue
        _add(spans, text, begin, match.end())
        begin = match.end()
    _add(spans, text, begin, end)
    return spans


def _ends_sentence(text: str, match: re.Match[str], begin: int, end: int) -> bool:
    following = text[match.end() : min(end, match.end() + 8)].lstrip()
    if not following:
        return True
    if match.end() - begin <= RUN_IN and RUN_IN_HEADING.fullmatch(text[begin : match.end()].strip()):
        return False
    if match.group()[0] != ".":
        return not following[0].islower()
    if match.group().startswith(".."):
        return not following[0].islower()
    return _dot_ends_sentence(text[max(begin, match.start() - LOOK_BACK) : match.start()], following[0])


def _dot_ends_sentence(before: str, following: str) -> bool:
    if following.islower():
        return False
    match = WORD_BEFORE.search(before)
    if match is None:
        return True
    word = match.group().casefold().strip("'’-")
    if word.isdigit() and not before[: match.start()].strip():  # "3. The third step": a list's number
        return False
    if len(word) == 1 and word.isalpha() and match.group().isupper():  # an initial: "J. Smith"
        return False
    if word in RARELY_LAST:
        return False
    return word not in ABBREVIATIONS or (following.isupper() and word in ("etc", "al", "inc", "ltd", "co", "corp"))


def _add(spans: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    while start < end and text[end - 1].isspace():
        end -= 1
    while start < end and text[start].isspace():
        start += 1
    if start < end:
        spans.append((start, end))
