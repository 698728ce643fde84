"""Strategies that users add: their own retriever under a name, compared and measured like the built-in ones."""

from __future__ import annotations

import json
import re
import tomllib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from workbench.errors import ConfigurationError, Conflict, InvalidInput, NotFound, describe_fault, list_choices
from workbench.retrieval.own import MAX_SECONDS, OwnRetrieval, describe_type, make_ask
from workbench.retrieval.strategies import BUILT_IN_STRATEGIES, STRATEGIES
from workbench.retrieval.strategy import Strategy
from workbench.types import OWN, VECTOR, Parameter

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINT_GROUP = "rag_workbench.strategies"
DEFAULT_SECONDS = 30.0
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,40}")


@dataclass(frozen=True, slots=True)
class Definition:
    """A strategy for an entry point or ``workbench.toml``; its fields are the arguments of ``OwnStrategies.add``."""

    retriever: object
    postprocessors: Sequence[object] = ()
    title: str = ""
    summary: str = ""
    parameters: Sequence[Parameter] = ()
    seconds: float | None = None
    version: str = ""


def make_strategy(name: str, definition: Definition, seconds: float, headers: Mapping[str, str]) -> Strategy:
    """Return the row of a user's strategy.

    Raises:
        InvalidInput: The name, the retriever, a postprocessor or the time limit is invalid.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(
            f"Invalid strategy name {name!r}: use up to 41 lowercase letters, digits, '-' and '_', the first a letter."
        )
    for stage in definition.postprocessors:
        if not callable(getattr(stage, "postprocess_nodes", None)):
            raise InvalidInput(f"Invalid postprocessor {describe_type(stage)}; pass LlamaIndex node postprocessors.")
    limit_s = seconds if definition.seconds is None else definition.seconds
    if not isinstance(limit_s, int | float) or not 0 < limit_s <= MAX_SECONDS:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"Invalid time limit of {limit_s!r} s; use a number above 0, up to {MAX_SECONDS:g}.")
    kind, ask = make_ask(definition.retriever, headers)
    stages, version = tuple(definition.postprocessors), definition.version or uuid.uuid4().hex
    retrieval = OwnRetrieval(definition.retriever, kind, ask, stages, limit_s, version)
    return Strategy(
        name,
        definition.title or name,
        definition.summary or f"Your own: {kind}{' and postprocessors' if stages else ''}.",
        "ForeignRetriever",
        legs=(OWN, VECTOR),
        parameters=tuple(definition.parameters),
        own=retrieval,
    )


class OwnStrategies:
    """The strategies of a workbench: ``wb.strategies``.

    Strategies belong to the process: a second workbench in it also sees them, but another process does not. To have one
    everywhere, declare it with an entry point of the group ``rag_workbench.strategies`` or in ``workbench.toml``.
    """

    def __init__(
        self, config: Path, applied: Path | None = None, seconds: float = DEFAULT_SECONDS, headers: str = ""
    ) -> None:
        """Register the strategies of packages and of a file, without reading them yet.

        Args:
            config: Path of ``workbench.toml``, which need not exist.
            applied: Path of the file in which ``store`` keeps strategies; those of ``config`` replace them.
            seconds: Time limit for one question.
            headers: JSON object of HTTP headers by URL prefix.
        """
        self._config, self._applied, self._seconds, self._headers = config, applied, seconds, headers
        STRATEGIES.declare(str(config.absolute()), self._read_declared)

    def add(
        self,
        name: str,
        retriever: object,
        postprocessors: Sequence[object] = (),
        *,
        title: str = "",
        summary: str = "",
        parameters: Sequence[Parameter] = (),
        seconds: float | None = None,
        headers: Mapping[str, str] | None = None,
        version: str = "",
        replace: bool = False,
    ) -> Strategy:
        """Add your own strategy to this process.

        Args:
            name: Name in calls and URLs: lowercase letters, digits, '-' and '_'.
            retriever: A LlamaIndex retriever or query engine, a LangChain retriever, a function (question, limit) that
                returns passages, (id, text, score) tuples or similar, or the URL of an HTTP endpoint.
            postprocessors: LlamaIndex node postprocessors applied to its hits.
            title: Display name.
            summary: One sentence for users.
            parameters: Parameters of a function or an endpoint, which can then be set and tuned.
            seconds: Time limit for one question; WORKBENCH_STRATEGY_SECONDS if None.
            headers: HTTP headers for an endpoint, in addition to WORKBENCH_STRATEGY_HEADERS.
            version: Name of this version. Stored answers are reused only if it is given and unchanged.
            replace: Replace another strategy of this name.

        Raises:
            InvalidInput: An argument is invalid.
            Conflict: The name is taken.
        """
        if isinstance(retriever, Definition):
            definition = retriever
        else:
            definition = Definition(retriever, postprocessors, title, summary, parameters, seconds, version)
        strategy = self._make(name, definition, headers)
        STRATEGIES.add(strategy, replace=replace)
        return strategy

    def remove(self, name: str) -> None:
        """Remove your own strategy from this process. Raises NotFound, or Conflict if it is built in."""
        STRATEGIES.remove(name)

    def list(self) -> list[Strategy]:
        """Return all strategies, the built-in ones first.

        Raises:
            ConfigurationError: ``workbench.toml`` is invalid.
        """
        return list(STRATEGIES.values())

    def get(self, name: str) -> Strategy:
        """Return a strategy by name. Raises NotFound."""
        if name not in STRATEGIES:
            raise NotFound("strategy", name, f"Use one of {list_choices(STRATEGIES, 20)}.")
        return STRATEGIES[name]

    def read_stored(self) -> dict[str, object]:
        """Return the tables of the strategies that ``workbench.toml`` and ``store`` declare, by name.

        Raises:
            ConfigurationError: A file is invalid.
        """
        files = [path for path in (self._applied, self._config) if path is not None]
        return {name: table for path in files for name, table in _read_strategies(path).items()}

    def define(self, name: str, table: Mapping[str, object]) -> Strategy:
        """Return the strategy of a table as in ``workbench.toml``, without adding it.

        Raises:
            InvalidInput: The table is invalid.
        """
        if name in BUILT_IN_STRATEGIES:
            raise InvalidInput(f"The strategy {name!r} is built in; choose another name")
        try:
            return self._make(name, _read_table(table, strict=True))
        except (TypeError, ValueError, AttributeError) as error:
            raise InvalidInput(f"{error}; write {_EXAMPLE}") from error

    def store(self, tables: Mapping[str, Mapping[str, object]]) -> None:
        """Declare strategies for every process of this data folder, by tables as in ``workbench.toml``.

        Raises:
            Conflict: ``workbench.toml`` declares one of them in another way.
            ConfigurationError: The data folder is not writable.
        """
        own = _read_strategies(self._config)
        for name, table in tables.items():
            if own.get(name, table) != table:
                raise Conflict(f"{self._config} declares the strategy {name!r} differently; change it there.")
        wanted = {name: table for name, table in tables.items() if name not in own}
        if wanted and self._applied is not None:
            content = json.dumps({"strategies": _read_strategies(self._applied) | wanted}, indent=2)
            try:
                self._applied.parent.mkdir(parents=True, exist_ok=True)
                draft = self._applied.with_suffix(".new")
                draft.write_text(content, encoding="utf-8")
                draft.replace(self._applied)
            except OSError as error:
                raise ConfigurationError(
                    f"{self._applied} is not writable ({error.strerror}); correct that."
                ) from error
        for name, table in tables.items():
            STRATEGIES.add(self.define(name, table), replace=True)

    def _make(self, name: str, definition: Definition, headers: Mapping[str, str] | None = None) -> Strategy:
        known = self._find_headers(definition.retriever) if isinstance(definition.retriever, str) else {}
        return make_strategy(name, definition, self._seconds, {**known, **(headers or {})})

    def _find_headers(self, url: str) -> dict[str, str]:
        """Return the configured headers for a URL, matched by its host and the beginning of its path."""
        if not self._headers:
            return {}
        try:
            by_prefix = cast("dict[str, dict[str, str]]", json.loads(self._headers))
            found: dict[str, str] = {}
            for prefix, headers in by_prefix.items():
                if urlsplit(url)[:2] == urlsplit(prefix)[:2] and urlsplit(url).path.startswith(urlsplit(prefix).path):
                    found |= {str(name): str(value) for name, value in headers.items()}
        except (ValueError, AttributeError):
            raise ConfigurationError(
                'WORKBENCH_STRATEGY_HEADERS is not valid; use JSON such as {"https://host/": {"Authorization": "..."}}.'
            ) from None
        return found

    def _read_declared(self) -> Mapping[str, Strategy]:
        from importlib.metadata import entry_points

        definitions: dict[str, Definition] = {}
        for entry in entry_points(group=ENTRY_POINT_GROUP):
            version = f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else ""
            definitions[entry.name] = _load(entry, {"version": version})
        for path in (self._applied, self._config):
            definitions |= {} if path is None else read_config(path)
        return {
            name: self._make(name, definition)
            for name, definition in definitions.items()
            if name not in BUILT_IN_STRATEGIES
        }


# Declared strategies


def _load(entry: EntryPoint, options: Mapping[str, Any]) -> Definition:
    """Return the object named by an entry point; if loading fails, return a strategy that always fails."""
    try:
        found: object = entry.load()
    except Exception as error:  # noqa: BLE001 - of any kind: the other strategies can still be used
        message = f"loading {entry.value} failed ({describe_fault(error)})"

        def fail(question: str, limit: int) -> object:
            raise ConfigurationError(message)

        return Definition(fail, **options)
    return found if isinstance(found, Definition) else Definition(found, **options)


_OPTIONS = {"use": str, "url": str, "title": str, "summary": str, "seconds": int | float, "version": str}
_EXAMPLE = '[strategies.mine] with use = "package.module:retriever" or url = "https://host/path"'


def read_configuration_file(path: Path) -> dict[str, object]:
    """Return the tables of a TOML or YAML file, by suffix.

    Raises:
        FileNotFoundError: There is no such file.
        ConfigurationError: Unreadable; the message has the line.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        is_yaml = path.suffix.lower() in (".yaml", ".yml", ".json")
        tables = _parse_yaml(text) if is_yaml else tomllib.loads(text)
    except FileNotFoundError:
        raise
    except (OSError, ValueError, TypeError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise ConfigurationError(f"The file {path} is unreadable ({reason}); correct or remove it.") from error
    if not isinstance(tables, dict):
        raise ConfigurationError(f"The file {path} has no tables; it starts with one such as [strategies.mine].")
    return cast("dict[str, object]", tables)


def _parse_yaml(text: str) -> object:
    """Return what a YAML text holds; PyYAML would silently use the last of repeated keys."""
    import yaml  # imported on use, because it takes 0.1 s

    class UniqueKeys(yaml.SafeLoader):
        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            keys = [self.construct_object(key, deep=True) for key, _ in node.value]
            for position, key in enumerate(keys):
                if key in keys[:position]:
                    mark = node.value[position][0].start_mark
                    raise yaml.MarkedYAMLError(problem=f"the key {key!r} is repeated", problem_mark=mark)
            return super().construct_mapping(node, deep)

    try:
        return yaml.load(text, UniqueKeys) or {}
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark is not None else ""
        raise ValueError(f"{line}{error.problem}") from error
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def _read_strategies(path: Path) -> dict[str, Any]:
    """Return the tables of a file's strategies by name; {} if there is no such file."""
    try:
        tables = read_configuration_file(path).get("strategies", {})
    except FileNotFoundError:
        return {}
    if not isinstance(tables, dict):
        raise ConfigurationError(f"The file {path} is not valid: strategies is not a table. Write {_EXAMPLE}.")
    return cast("dict[str, Any]", tables)


def read_config(path: Path) -> dict[str, Definition]:
    """Return the strategies of a ``workbench.toml`` by name; {} if there is no such file.

    Raises:
        ConfigurationError: The file is invalid.
    """
    try:
        return {name: _read_table(table) for name, table in _read_strategies(path).items()}
    except (TypeError, ValueError, AttributeError, InvalidInput) as error:
        raise ConfigurationError(f"The file {path} is not valid: {error}. Write {_EXAMPLE}.") from error


def _read_table(table: Mapping[str, Any], *, strict: bool = False) -> Definition:
    """Return the strategy of a table; with ``strict``, fail if loading its object fails."""
    declared = dict(table)
    parameters = tuple(Parameter(name, why="", **one) for name, one in declared.pop("parameters", {}).items())
    for name, value in declared.items():
        if name not in _OPTIONS or not isinstance(value, _OPTIONS[name]):
            raise ValueError(f"{name} = {value!r} is not an option of a strategy")
    target, url = declared.pop("use", None), declared.pop("url", None)
    if (target is None) == (url is None):
        raise ValueError("a strategy has either use or url")
    options: dict[str, Any] = {**declared, "parameters": parameters}
    if target is None:
        return Definition(url, **options)
    from importlib.metadata import EntryPoint

    entry = EntryPoint("", target, ENTRY_POINT_GROUP)
    if strict:
        try:
            entry.load()
        except Exception as error:
            raise InvalidInput(
                f"loading {target} failed ({describe_fault(error)}); install it, or add its folder to PYTHONPATH"
            ) from error
    return _load(entry, options)
