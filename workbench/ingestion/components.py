"""LlamaIndex's node parsers and transformations in the definition of an index, and our chunkers as parsers.

A parser cuts documents instead of a chunker; a transformation adds metadata or text to passages, such as a title or a
summary by an LLM. What it adds becomes part of the passage's context, so it is embedded and indexed, and the passage
keeps its span of the document.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qsl

from workbench.errors import InvalidInput, NotFound, UnreadableDocument, WorkbenchError, describe_fault
from workbench.ingestion.chunking import ChunkInput, CutPassage, CuttingTask, Piece, Spans, Tokenize, cut_spans
from workbench.types import JsonValue

if TYPE_CHECKING:
    from llama_index.core.node_parser import NodeParser
    from llama_index.core.schema import BaseNode, Document, TextNode
    from llama_index.core.storage.docstore import SimpleDocumentStore

    from workbench.models.encoder import Encoder, OnBatch
    from workbench.storage.indexes import Indexes
    from workbench.types import Index

PYTHON, OBJECT = "python:", "object:"
BATCH_NODES = 16  # passages that a transformation receives and whose results are stored together
# Extractors of LlamaIndex that read each passage by itself; others receive all passages of a document together.
BY_PASSAGE = ("KeywordExtractor", "QuestionsAnsweredExtractor", "DocumentContextExtractor", "PydanticProgramExtractor")

# Components by name

_objects: dict[str, object] = {}  # components of this process that were passed as objects


def is_component(name: str) -> bool:
    """Return whether a chunker or a transformation is named as a component."""
    return name.startswith((PYTHON, OBJECT))


def name_component(given: object) -> str:
    """Return the name that an index stores for a component.

    An object is known in this process only. The name depends on its class and settings, so another process that
    names an equal object can use the index.

    Raises:
        InvalidInput: It is neither a name nor a component.
    """
    if isinstance(given, str):
        if is_component(given):
            _split_name(given)
            return given
        raise InvalidInput(f"Invalid component {given!r}: use python:PACKAGE.MODULE:NAME, or pass an object.")
    _check_component(given, type(given).__name__)
    digest = hashlib.blake2b(describe_settings(given).encode(), digest_size=5).hexdigest()
    name = f"{OBJECT}{type(given).__name__}-{digest}"
    _objects[name] = given
    return name


def describe_settings(component: object) -> str:
    """Return a component's class and settings as JSON, without what changes from run to run."""
    to_dict = getattr(component, "to_dict", None)
    settings: Mapping[str, object] = {}
    if callable(to_dict):
        left_out = {"callback_manager", "docstore", "doc_ids", "id_func"}
        fields: Mapping[str, object] = getattr(type(component), "model_fields", {})
        settings = cast("Mapping[str, object]", to_dict(exclude=left_out & set(fields)))
    kind = type(component)
    code = ""
    if not kind.__module__.startswith("llama_index."):
        with suppress(OSError, TypeError):  # a class without a file
            code = inspect.getsource(kind)
    described = [kind.__module__, kind.__qualname__, code, settings]
    return json.dumps(described, sort_keys=True, default=lambda value: type(value).__qualname__)


def _split_name(name: str) -> tuple[str, dict[str, object]]:
    """Return the path and the options of a name ``python:package.module:attribute?option=value``."""
    address, _, query = name.removeprefix(PYTHON).partition("?")
    if not all(address.replace(":", ".").split(".")) or "." not in address.replace(":", "."):
        raise InvalidInput(f"Invalid component {name!r}: use python:PACKAGE.MODULE:NAME.")
    return address, {key: _read_value(value) for key, value in parse_qsl(query, keep_blank_values=True)}


def _read_value(value: object) -> object:
    """Return an option's value; a text that is JSON is read, as on the command line all are texts."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


def load_component(name: str, given: Mapping[str, object], offered: Mapping[str, Callable[[], object]]) -> object:
    """Return the component of a name.

    Args:
        name: ``python:package.module:attribute``, or the name of an object of this process. The attribute is a
            component, or a class or function that makes one.
        given: Options for the class or function, in addition to those in the name.
        offered: Makes arguments that a class or function receives if it declares them and they are not given.

    Raises:
        InvalidInput: It was not found, could not be made, or is not a component.
        ConfigurationError: It needs an LLM, and none is configured.
        NotFound: It was an object of another process.
    """
    if name.startswith(OBJECT):
        if name not in _objects:
            hint = "It was passed as an object in another process; pass it to wb.indexes.add_component here, too."
            raise NotFound("component", name, hint)
        return _objects[name]
    from importlib.metadata import EntryPoint

    path, options = _split_name(name)
    options |= {key: _read_value(value) for key, value in given.items()}
    try:
        found: object = EntryPoint("", path if ":" in path else ":".join(path.rsplit(".", 1)), "").load()
    except Exception as error:
        raise InvalidInput(f"Importing the component {name!r} failed ({describe_fault(error)}).") from error
    if inspect.isclass(found) or not _is_runnable(found):
        found = _make(name, found, options, offered)
    elif options:
        raise InvalidInput(f"The component {name!r} is an object and takes no options; name its class or a function.")
    _check_component(found, name)
    return found


def _make(
    name: str, factory: object, options: dict[str, object], offered: Mapping[str, Callable[[], object]]
) -> object:
    if not callable(factory):
        raise InvalidInput(f"The component {name!r} is a {type(factory).__name__}, not a parser or transformation.")
    try:
        declared = inspect.signature(factory).parameters
        options |= {key: make() for key, make in offered.items() if key in declared and key not in options}
        return factory(**options)
    except WorkbenchError:
        raise
    except Exception as error:  # any exception, since the factory is not ours
        raise InvalidInput(f"Creating the component {name!r} failed ({describe_fault(error)}).") from error


def _is_runnable(found: object) -> bool:
    from llama_index.core.schema import TransformComponent

    return isinstance(found, TransformComponent)


def _check_component(found: object, name: str) -> None:
    if inspect.isclass(found) or not _is_runnable(found):
        kind = found.__name__ if inspect.isclass(found) else type(found).__name__
        raise InvalidInput(
            f"The component {name!r} is a {kind}; it must be a LlamaIndex NodeParser or TransformComponent."
        )


# Cost of transformations


@dataclass(frozen=True, slots=True)
class BuildCost:
    """Estimated cost of the transformations of a build."""

    documents: int = 0  # documents to add
    passages: int = 0  # their passages, before transformations
    calls: int = 0  # calls of LLMs, as far as known
    tokens: int = 0  # tokens of the texts that these calls read, without prompts
    stored: int = 0  # results that are already stored

    def plus(self, other: BuildCost) -> BuildCost:
        """Return the sum of two costs."""
        return BuildCost(*(getattr(self, name) + getattr(other, name) for name in BuildCost.__slots__))

    def __str__(self) -> str:
        return (
            f"{self.documents:,} documents in {self.passages:,} passages: about {self.calls:,} LLM calls that read "
            f"about {self.tokens:,} tokens, without prompts; {self.stored:,} results are already stored."
        )


def count_calls(component: object, passages: int) -> int:
    """Return how many LLM calls a component makes for so many passages of one document, 0 if it has no LLM."""
    if getattr(component, "llm", None) is None:
        return 0
    if type(component).__name__ == "TitleExtractor":  # one for each of the first passages, and one for all
        return min(passages, int(cast("Any", component).nodes)) + 1
    return passages


# Components of an index


@dataclass
class _Cut:
    """A passage with its place in the document, and the node that transformations change."""

    passage: CutPassage
    node: TextNode
    text: str  # of the node before any transformation


class IndexComponents:
    """The components that an index names. Thread-safe if they are."""

    def __init__(self, index: Index, results: Indexes, offered: Mapping[str, Callable[[], object]]) -> None:
        """Load the components.

        Args:
            index: Names its chunker and transformations.
            results: Table with the results of transformations.
            offered: Arguments for classes and functions that declare them; see ``load_component``.

        Raises:
            InvalidInput: A component could not be made.
            NotFound: A component was an object of another process.
        """
        self._results = results
        offered = {**offered, "docstore": lambda: self._documents}
        self._parser_name = index.chunker if is_component(index.chunker) else ""
        if self._parser_name:
            self._parser = load_component(index.chunker, index.chunker_options, offered)
        self._transformations = [(name, load_component(name, {}, offered)) for name in index.transformations]

    @cached_property
    def _documents(self) -> SimpleDocumentStore:
        """Store of the documents being cut, for components that read them whole."""
        from llama_index.core.storage.docstore import SimpleDocumentStore

        return SimpleDocumentStore()

    def cut(
        self, document: ChunkInput, tokens: Tokenize, limit: int, spans: Spans | None, on_batch: OnBatch | None = None
    ) -> list[CutPassage]:
        """Cut a document and transform its passages.

        Args:
            document: The document.
            tokens: Returns the token spans of a text.
            limit: Tokens that the model reads.
            spans: The passages of a chunker, or None if a parser cuts.
            on_batch: Called between batches with 0; may raise to stop.

        Raises:
            UnreadableDocument: A component failed on this document.
        """
        if not document.text.strip():
            return []
        whole = _make_document(document)
        cuts = self._parse(document, whole, tokens, limit) if spans is None else _wrap_spans(document, whole, spans)
        if self._transformations:
            self._documents.add_documents([whole])
            try:
                for name, component in self._transformations:
                    cuts = self._transform(name, component, document, whole, cuts, on_batch)
            finally:
                self._documents.delete_document(whole.id_, raise_error=False)
        return [_finish(cut, tokens, limit) for cut in cuts]

    def estimate(self, document: ChunkInput, tokens: Tokenize, limit: int, spans: Spans | None) -> BuildCost:
        """Estimate the cost of a document's transformations, as if each read what the chunker cuts.

        Raises:
            UnreadableDocument: The parser failed on this document.
        """
        if not document.text.strip():
            return BuildCost(documents=1)
        whole = _make_document(document)
        cuts = self._parse(document, whole, tokens, limit) if spans is None else _wrap_spans(document, whole, spans)
        cost = BuildCost(documents=1, passages=len(cuts))
        sizes = [len(tokens(cut.text)) for cut in cuts]
        for _, component in self._transformations:
            groups = _make_groups(component, whole, cuts)
            known = self._results.component_results([key for key, _ in groups])
            missing = [place for key, places in groups if key not in known for place in places]
            calls = count_calls(component, len(missing))
            read = sum(sizes[place] for place in missing)
            if calls and _reads_documents(component):
                read += calls * len(tokens(document.text))
            stored = len(cuts) - len(missing)
            cost = cost.plus(BuildCost(calls=calls, tokens=read if calls else 0, stored=stored))
        return cost

    def _parse(self, document: ChunkInput, whole: Document, tokens: Tokenize, limit: int) -> list[_Cut]:
        """Cut by the parser and find each node's text in the document."""
        from llama_index.core.schema import NodeRelationship, TextNode

        nodes = _call(self._parser_name, self._parser, [whole])
        locator = Locator(document.text)
        parents = {node.node_id: node.parent_node.node_id if node.parent_node else "" for node in nodes}
        found = {node.node_id: locator.find(_get_text(node), parents[node.node_id]) for node in nodes}
        leaves = [node for node in nodes if not node.child_nodes and _get_text(node).strip()]
        pieces: dict[str, Piece] = {}
        for node in leaves:
            span, above = found[node.node_id], found.get(parents[node.node_id])
            if span is None:
                continue
            parent = above if above and above[0] <= span[0] and span[1] <= above[1] else None
            window = node.metadata.get("window")  # of LlamaIndex's SentenceWindowNodeParser
            around = locator.find(window, "window") if isinstance(window, str) else None
            pieces[node.node_id] = Piece(*span, parent, {"window": around} if around else {})
        task = CuttingTask(document, tokens, limit, {"size": limit})
        spans = dict(zip(pieces, Spans(task, list(pieces.values())), strict=True))
        cuts: list[_Cut] = []
        for node in leaves:
            text = _get_text(node)
            own = TextNode(id_=node.node_id, text=text, metadata=dict(node.metadata))
            own.excluded_embed_metadata_keys = list(node.metadata)  # a parser's metadata is not part of the text
            own.relationships = {NodeRelationship.SOURCE: whole.as_related_node_info()}
            passage = spans.get(node.node_id) or CutPassage(0, 0, header=task.header(()), text=text)
            cuts.append(_Cut(passage, own, text))
        return cuts

    def _transform(
        self,
        name: str,
        component: object,
        document: ChunkInput,
        whole: Document,
        cuts: Sequence[_Cut],
        on_batch: OnBatch | None,
    ) -> list[_Cut]:
        groups = _make_groups(component, whole, cuts)
        results = self._results.component_results([key for key, _ in groups])
        missing = [(key, places) for key, places in groups if key not in results]
        for start in range(0, len(missing), BATCH_NODES):
            if on_batch is not None:
                on_batch(0)
            batch = missing[start : start + BATCH_NODES]
            sent = [cuts[place].node.model_copy(deep=True) for _, places in batch for place in places]
            made = _call(name, component, sent)
            fresh = _share_out(name, batch, sent, made)
            # Results that equal their input are not stored: the component may have swallowed an error.
            same = {
                key: [_dump(cuts[place].node, number) for number, place in enumerate(places)] for key, places in batch
            }
            self._results.keep_component_results({key: nodes for key, nodes in fresh.items() if nodes != same[key]})
            results |= fresh
        locator = Locator(document.text)
        return [
            _apply(cast("dict[str, Any]", node), [cuts[place] for place in places], locator, whole)
            for key, places in groups
            for node in cast("list[JsonValue]", results[key])
        ]


def _make_document(document: ChunkInput) -> Document:
    from llama_index.core.schema import Document

    digest = hashlib.blake2b(f"{document.title}\0{document.text}".encode(), digest_size=16).hexdigest()
    return Document(id_=digest, text=document.text)


def _wrap_spans(document: ChunkInput, whole: Document, spans: Spans) -> list[_Cut]:
    """Return the passages of a chunker with nodes for transformations."""
    from llama_index.core.schema import NodeRelationship, TextNode

    cuts: list[_Cut] = []
    for span in spans:
        text = document.text[span.start : span.end]
        node = TextNode(text=text, relationships={NodeRelationship.SOURCE: whole.as_related_node_info()})
        cuts.append(_Cut(span, node, text))
    return cuts


def _get_text(node: BaseNode) -> str:
    from llama_index.core.schema import MetadataMode

    return node.get_content(MetadataMode.NONE)


def _call(name: str, component: object, nodes: Sequence[BaseNode]) -> list[BaseNode]:
    """Run a component in a thread without an event loop, as its own may be asynchronous."""
    from llama_index.core.schema import BaseNode

    run = cast("Callable[[list[BaseNode]], Sequence[BaseNode]]", component)
    with ThreadPoolExecutor(1, thread_name_prefix="component") as pool:
        try:
            made = list(pool.submit(copy_context().run, run, list(nodes)).result())
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # even SystemExit; it is reported as the document's error
            raise UnreadableDocument(f"The component {name!r} failed ({describe_fault(error)}).") from error
    if not all(isinstance(node, BaseNode) for node in made):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UnreadableDocument(f"The component {name!r} did not return nodes.")
    return made


# Results of transformations, by what was read


def _is_by_passage(component: object) -> bool:
    """Return whether a component treats each passage by itself, by its attribute ``by_passage`` if it has one."""
    kind = type(component).__name__
    alone = kind == "SummaryExtractor" and list(cast("Any", component).summaries) == ["self"]
    return bool(getattr(component, "by_passage", alone or kind in BY_PASSAGE))


def _reads_documents(component: object) -> bool:
    return getattr(component, "docstore", None) is not None


def _make_groups(component: object, whole: Document, cuts: Sequence[_Cut]) -> list[tuple[bytes, tuple[int, ...]]]:
    """Return the passages that a component reads together, by the key of their result."""
    settings = describe_settings(component)
    if _reads_documents(component):
        settings += whole.id_
    every = range(len(cuts))
    read = [json.dumps([_get_text(cut.node), _clean(cut.node.metadata)], sort_keys=True) for cut in cuts]
    groups = [(place,) for place in every] if _is_by_passage(component) else [tuple(every)] if cuts else []
    return [(_hash([settings, *(read[place] for place in group)]), group) for group in groups]


def _hash(parts: Sequence[str]) -> bytes:
    return hashlib.blake2b("\0\0".join(parts).encode(errors="replace"), digest_size=16).digest()


def _clean(metadata: Mapping[str, Any]) -> dict[str, JsonValue]:
    """Return metadata as JSON; what JSON cannot express becomes text."""
    return json.loads(json.dumps(dict(metadata), default=str))


def _share_out(
    name: str, batch: Sequence[tuple[bytes, tuple[int, ...]]], sent: Sequence[BaseNode], made: Sequence[BaseNode]
) -> dict[bytes, JsonValue]:
    """Return the results of a batch by key. A result is a list of nodes, with the place of each in its group."""
    place_of = {node.node_id: place for place, node in enumerate(sent)}
    if len(batch) == 1:
        return {batch[0][0]: [_dump(node, place_of.get(node.node_id)) for node in made]}
    results: dict[bytes, JsonValue] = {}
    for node in made:
        place = place_of.get(node.node_id)
        if place is None or batch[place][0] in results:
            raise UnreadableDocument(f"The component {name!r} did not return one node for each passage.")
        results[batch[place][0]] = [_dump(node, 0)]
    return {key: results.get(key, []) for key, _ in batch}


def _dump(node: BaseNode, place: int | None) -> JsonValue:
    return {
        "of": place,
        "text": _get_text(node),
        "metadata": _clean(node.metadata),
        "hidden": list(getattr(node, "excluded_embed_metadata_keys", [])),
    }


def _apply(made: dict[str, Any], group: Sequence[_Cut], locator: Locator, whole: Document) -> _Cut:
    """Return the passage of a transformed node."""
    from llama_index.core.schema import NodeRelationship, TextNode

    node = TextNode(text=made["text"], metadata=made["metadata"], excluded_embed_metadata_keys=made["hidden"])
    node.relationships = {NodeRelationship.SOURCE: whole.as_related_node_info()}
    before = None if made["of"] is None else group[made["of"]]
    if before is not None:
        node.id_ = before.node.node_id
        if before.text in made["text"]:
            return _Cut(before.passage, node, before.text)
    span = locator.find(made["text"])  # it replaced the text, or is a part of a passage, or something new
    first = group[0].passage
    inside = next((cut.passage for cut in group if span and cut.passage.start <= span[0] < cut.passage.end), first)
    bounds = {"start": 0, "end": 0, "text": made["text"]} if span is None else {"start": span[0], "end": span[1]}
    return _Cut(replace(before.passage if before else inside, **{"text": "", **bounds}), node, made["text"])


def _finish(cut: _Cut, tokens: Tokenize, limit: int) -> CutPassage:
    """Return the passage with added context, and flags for anything it lacks."""
    hidden = set(cut.node.excluded_embed_metadata_keys)
    values = [value for key, value in cut.node.metadata.items() if key not in hidden]
    around = _get_text(cut.node).replace(cut.text, "", 1)
    lines = [around, *(value if isinstance(value, str) else json.dumps(value) for value in values if value)]
    extra = "\n".join(line.strip() for line in lines if line.strip())
    header = "\n".join(part for part in (cut.passage.header, extra) if part)
    added: dict[str, JsonValue] = {}
    if metadata := _clean(cut.node.metadata):
        added["component"] = metadata
    if cut.passage.text:
        added["no_span"] = True
    if len(tokens(f"{header}\n\n{cut.text}")) > limit:
        added["cut_off"] = True
    return replace(cut.passage, header=header, added=added)


# Locating the texts of nodes in the document


class Locator:
    """Finds texts in a document, ignoring white space."""

    def __init__(self, text: str) -> None:
        self._text, self._letters = text, "".join(text.split())
        self._last = dict[str, tuple[int, int]]()  # the text found last, by series

    @cached_property
    def _places(self) -> array[int]:
        return array("I", (place for place, letter in enumerate(self._text) if not letter.isspace()))

    def find(self, text: str, series: str = "") -> tuple[int, int] | None:
        """Return the span of a text, or None.

        If there are several, it is the one right after the previous text of the series, else the next one after that
        text's start, else the first.
        """
        wanted = "".join(text.split())
        if not wanted:
            return None
        begin, end = self._last.get(series, (-1, 0))
        place = end if self._letters.startswith(wanted, end) else self._letters.find(wanted, begin + 1)
        if place < 0:
            place = self._letters.find(wanted)
        if place < 0:
            return None
        self._last[series] = place, place + len(wanted)
        return self._places[place], self._places[place + len(wanted) - 1] + 1


def list_notes(no_span: int, cut_off: int, limit: int) -> Iterator[str]:
    """Yield sentences on the passages of an index that lack something."""
    if no_span:
        theirs = "its document; judgments by span do not apply to it"
        if no_span > 1:
            theirs = "their documents; judgments by span do not apply to them"
        yield f"{_count(no_span)} not found in the text of {theirs}."
    if cut_off:
        theirs = "its" if cut_off == 1 else "their"
        yield f"{_count(cut_off)} longer, with {theirs} context, than the {limit:,} tokens that the model reads."


def _count(passages: int) -> str:
    return "1 passage is" if passages == 1 else f"{passages:,} passages are"


# Our chunkers in LlamaIndex


def make_node_parser(name: str, options: Mapping[str, object], encoder: Encoder) -> NodeParser:
    """Return a chunker as a LlamaIndex node parser.

    A node has its place in the document, and the passage's headings as metadata "context".

    Raises:
        InvalidInput: There is no such chunker or option.
    """
    from llama_index.core.bridge.pydantic import PrivateAttr
    from llama_index.core.node_parser import NodeParser
    from llama_index.core.node_parser.node_utils import build_nodes_from_splits

    def cut(document: ChunkInput) -> Spans:
        embed = (lambda texts: encoder.encode(texts).vectors) if name == "semantic" else None
        return cut_spans(name, document, encoder.token_spans, {**options, "limit": encoder.max_tokens, "embed": embed})

    cut(ChunkInput("", ""))  # checks the name and the options

    class ChunkerNodeParser(NodeParser):
        """A chunker of the workbench."""

        _spans: dict[str, CutPassage] = PrivateAttr(default_factory=dict[str, CutPassage])

        def _parse_nodes(
            self, nodes: Sequence[BaseNode], show_progress: bool = False, **kwargs: object
        ) -> list[BaseNode]:
            made: list[BaseNode] = []
            for node in nodes:
                text, title = _get_text(node), str(node.metadata.get("title") or "")
                spans = cut(ChunkInput(title, text))
                parts = build_nodes_from_splits(
                    [text[one.start : one.end] for one in spans], node, id_func=self.id_func
                )
                for part, span in zip(parts, spans, strict=True):
                    if span.header:
                        part.metadata["context"] = span.header
                    self._spans[part.node_id] = span
                made += parts
            return made

        def _postprocess_parsed_nodes(
            self, nodes: list[BaseNode], parent_doc_map: dict[str, Document]
        ) -> list[BaseNode]:
            finished = super()._postprocess_parsed_nodes(nodes, parent_doc_map)
            for node in finished:  # LlamaIndex looks for the text, which may be elsewhere, too
                span = self._spans.pop(node.node_id)
                cast("TextNode", node).start_char_idx, cast("TextNode", node).end_char_idx = span.start, span.end
            return finished

    return ChunkerNodeParser()
