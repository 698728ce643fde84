"""The blocks of source code: top-level definitions, and the definitions above a deeper line."""

from __future__ import annotations

import re

from workbench.ingestion.chunking.blocks import Block, Line, lines_of

DEFINITION = re.compile(
    r"[ \t]*(?:(?:export|default|public|private|protected|internal|static|final|abstract|async|pub(?:\([^)]*\))?|"
    r"override|virtual|inline|unsafe|extern|sealed|partial|open|data)\s+)*"
    r"(?:def|class|function|fn|func|interface|struct|enum|trait|impl|module|namespace|type|object|sub|package|"
    r"CREATE\s+(?:OR\s+REPLACE\s+)?(?:TABLE|VIEW|FUNCTION|INDEX))\b[^\n]*"
)
CLOSING = re.compile(r"[ \t]*(?:[\])}]|end\b|else\b|elif\b|except\b|finally\b|catch\b|case\b)")
NAME_CHARACTERS = 80


def code_blocks_of(text: str) -> list[Block]:
    """Return one block a run of lines that blank lines or a definition set apart; every non-blank line is in one.

    A block's path are the first lines of the definitions around it and its own: ("class Stack:", "def push(self):").
    """
    blocks: list[Block] = []
    scope: list[tuple[int, str]] = []
    run: list[Line] = []
    for line in lines_of(text):
        if _parts(run, line):
            blocks.append(_block(run, scope))
            run = []
        if not line.blank or run:
            run.append(line)
    if any(not line.blank for line in run):
        blocks.append(_block(run, scope))
    return blocks


def indent_of(line: str) -> int:
    """Return the width of a line's indentation, a tab counting four."""
    return len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())


def _parts(run: list[Line], line: Line) -> bool:
    """Tell whether a new block begins at ``line``: after a blank line, or at a definition not under its decorators."""
    if not run or line.blank or CLOSING.match(line.text):
        return False
    if run[-1].blank:
        return True
    if not DEFINITION.match(line.text):
        return False
    above = run[-1].text.strip()
    return not above.startswith(("@", "#", "//", "/*", "*", "--", '"""')) and not above.endswith((",", "("))


def _block(run: list[Line], scope: list[tuple[int, str]]) -> Block:
    """Close the run; ``scope`` is the stack of open definitions and is moved on by the run's own."""
    lines = [line for line in run if not line.blank]
    shallowest = min(indent_of(line.text) for line in lines)
    while scope and scope[-1][0] >= shallowest:
        scope.pop()
    path = tuple(name for _, name in scope)
    own = next((line for line in lines if DEFINITION.match(line.text)), None)
    if own is not None:
        name = own.text.strip().rstrip("{").strip()[:NAME_CHARACTERS]
        path = (*path, name)
        scope.append((indent_of(own.text), name))
    return Block(lines[0].start, lines[-1].end, "code", 0, path, lines[0].start)
