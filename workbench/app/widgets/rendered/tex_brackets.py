"""Formulas between TeX's own brackets: ``\\( … \\)`` among words, and ``\\[ … \\]`` on lines of their own.

Markdown reads these brackets as escaped ones, so that "\\[1\\] Smith" begins a list of works: only what looks like
mathematics becomes a formula, and everything else stays as it is.
"""

from __future__ import annotations

import re

from markdown_it import MarkdownIt
from markdown_it.ruler import RuleOptionsType
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

_AMONG_WORDS = re.compile(r"\\\(((?:[^\n]|\n(?!\s*\n))+?)\\\)")
_ON_LINES = re.compile(r"\\\[(.*)\\\]\s*", re.DOTALL)
_LIKE_MATHEMATICS = re.compile(r"[\\^_=<>+*/]|^\s*\w\s*$")
_LONGEST = 60  # lines of a formula


def tex_brackets_plugin(parser: MarkdownIt) -> None:
    """Let a parser know the brackets; its tokens are ``math_inline`` and ``math_block``, as for dollars."""
    parser.inline.ruler.before("escape", "tex_brackets", _among_words)
    interrupts: RuleOptionsType = {"alt": ["paragraph", "reference", "blockquote", "list"]}
    parser.block.ruler.before("fence", "tex_brackets_block", _on_lines, interrupts)


def _among_words(state: StateInline, silent: bool) -> bool:
    match = _AMONG_WORDS.match(state.src, state.pos, state.posMax)
    if match is None or not _LIKE_MATHEMATICS.search(match[1]):
        return False
    if not silent:
        token = state.push("math_inline", "math", 0)
        token.content, token.markup = match[1], r"\("
    state.pos = match.end()
    return True


def _on_lines(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    start = state.bMarks[first] + state.tShift[first]
    if state.is_code_block(first) or not state.src.startswith(r"\[", start):
        return False
    for line in range(first, min(last, first + _LONGEST)):
        if state.isEmpty(line) or state.sCount[line] < state.blkIndent:
            return False
        if state.src[state.bMarks[line] : state.eMarks[line]].rstrip().endswith(r"\]"):
            return _block(state, first, line + 1, silent)
    return False


def _block(state: StateBlock, first: int, after: int, silent: bool) -> bool:
    match = _ON_LINES.fullmatch(state.getLines(first, after, state.blkIndent, False).strip())
    if match is None or r"\]" in match[1] or not re.search(r"[\\^_=]", match[1]):
        return False
    if not silent:
        token = state.push("math_block", "math", 0)
        token.content, token.markup, token.map = match[1].strip(), r"\[", [first, after]
        token.block = True
        state.line = after
    return True
