"""Class names: each names one thing, whichever room it is in; names of types count as names of classes."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SHARED: dict[str, str] = {}  # a name that two rooms may define -> the reason


@cache
def defined(source: str) -> tuple[tuple[int, str], ...]:
    """Return line and name of each class, and of each type that a module names, at the top of a module."""
    return tuple(_defined(source))


def _defined(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and name of each class, and of each type that a module names, at the top of a module."""
    for node in ast.parse(source).body:
        match node:
            case ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                if name.lstrip("_")[:1].isupper() and any(letter.islower() for letter in name):
                    yield node.lineno, name


def twice(modules: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield a sentence for each name that several of the (path, source) define."""
    places: dict[str, list[str]] = defaultdict(list)
    for path, source in modules:
        for line, name in defined(source):
            places[name].append(f"{path}:{line}")
    for name, where in sorted(places.items()):
        if len(where) > 1 and name not in SHARED:
            yield (
                f"{' and '.join(where)} each define {name}: name one by what sets it apart, or let both be one; where "
                "neither can be, give the reason in SHARED in tests/gate/test_class_names.py"
            )


def modules() -> Iterator[tuple[str, str]]:
    """Yield (path, source) of every module of the product."""
    for package in ("workbench", "mcp_app", "evals"):
        for path in sorted((ROOT / package).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def test_no_two_classes_have_one_name() -> None:
    assert list(twice(modules())) == []


def test_no_name_is_excused_that_is_not_shared() -> None:
    counts: dict[str, int] = defaultdict(int)
    for _, source in modules():
        for _, name in defined(source):
            counts[name] += 1
    assert {name for name in SHARED if counts[name] < 2} == set()


def test_a_second_class_or_type_of_one_name_is_named_with_both_places() -> None:
    first = ("workbench/a.py", "class Span:\n    pass\n")
    for second in ("class Span: ...", "Span = tuple[int, int]", "Span: TypeAlias = tuple[int, int]"):
        (told,) = twice([first, ("evals/b.py", second), ("evals/c.py", "SPAN = 1\nT = TypeVar('T')\n")])
        assert told.startswith("workbench/a.py:1 and evals/b.py:1 each define Span: ")
