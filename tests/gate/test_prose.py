"""Docstrings and comments say their subject first: no sentence begins with a clause such as "What answers nothing"."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("workbench", "mcp_app", "evals", "tests")
WORDS = r"(?:What|Whoever|Whatever|Who)\b"
CLAUSE = re.compile(rf"(?:\A|[.!?]\s+|\n\s*\n\s*)({WORDS}[^.?!]*\??)")  # a question may begin so
COMMENTS = {  # lines of one comment, one below the other, are one text
    ".js": re.compile(r"/\*.*?\*/|(?:^[ \t]*//[^\n]*\n?)+|(?<=\s)//[^\n]*", re.DOTALL | re.MULTILINE),
    ".css": re.compile(r"/\*.*?\*/", re.DOTALL),
    ".sql": re.compile(r"(?:^[ \t]*--[^\n]*\n?)+|--[^\n]*", re.MULTILINE),
}
SIGNS = re.compile(r"^\s*(?://|--|/\*+|\*+/?)|\*+/\s*$", re.MULTILINE)


def clauses(text: str, suffix: str) -> Iterator[tuple[int, str]]:
    """Yield the line of each comment or docstring that has a clause as a sentence's subject, and the clause."""
    if not re.search(WORDS, text):
        return
    for line, prose in _of_python(text) if suffix == ".py" else _of_others(text, COMMENTS[suffix]):
        for match in CLAUSE.finditer(prose):
            if not match[1].endswith("?"):
                yield line, " ".join(match[1].split())


def _of_python(source: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node)
            if docstring:
                yield node.body[0].lineno, docstring
    first, lines = 0, list[str]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        below = token.start[0] == first + len(lines) and token.line.lstrip().startswith("#")
        if lines and not below:
            yield first, "\n".join(lines)
        first, lines = (first, lines) if below else (token.start[0], [])
        lines.append(token.string.lstrip("# "))
    yield first, "\n".join(lines)


def _of_others(source: str, comment: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    for match in comment.finditer(source):
        yield source.count("\n", 0, match.start()) + 1, SIGNS.sub("", match[0]).strip()


@pytest.mark.parametrize("suffix", [".py", *COMMENTS])
def test_no_sentence_of_a_docstring_or_comment_has_a_clause_as_its_subject(suffix: str) -> None:
    told = [
        f"{path.relative_to(ROOT)}:{line}: {clause}"
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob(f"*{suffix}"))
        if not {"migrations", "node_modules"} & set(path.parts)
        for line, clause in clauses(path.read_text(encoding="utf-8"), suffix)
    ]
    assert told == [], "name the thing: a noun, or a verb in the imperative"


@pytest.mark.parametrize(
    ("suffix", "text", "line"),
    [
        (".py", '"""Draw it. What scrolls stays."""\n', 1),
        (".py", "X = 1\n# One.\n# What holds\n# stays.\n", 2),
        (".py", "X = 1  # What is X stays\n", 1),
        (".js", "let x;\n// A line.\n// What scrolls stays.\n", 2),
        (".css", "a {}\n/* What scrolls stays. */\n", 2),
        (".sql", "SELECT 1;\n-- a: the best. What holds\n-- little is skipped.\n", 2),
    ],
)
def test_a_clause_is_seen_in_any_sentence_of_any_language(suffix: str, text: str, line: int) -> None:
    assert [found for found, _ in clauses(text, suffix)] == [line]


def test_a_question_and_a_text_of_the_program_may_begin_so() -> None:
    assert list(clauses('"""Ask. What is shown? This."""\nX = "What scrolls stays."\n', ".py")) == []
