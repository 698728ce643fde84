"""Foreign retrievers: what a user's own strategy calls, and the hits that it returns.

A retriever is a LlamaIndex retriever or query engine, a LangChain retriever, a function, or an HTTP endpoint. Its hits
are matched to stored passages by ``workbench.retrieval.retrievers.foreign``. At the end are our strategies as
retrievers of other frameworks: each asks the search of every face, and returns the ids of its passages, so that a hit
that comes back from there is matched.
"""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import json
import math
import threading
import time
import uuid
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from numbers import Integral
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from workbench.errors import ConfigurationError, InvalidInput, describe_fault
from workbench.types import JsonObject, ParameterValue, Passage, Value

if TYPE_CHECKING:
    from haystack import Document as HaystackDocument
    from langchain_core.documents import Document as LangChainDocument
    from langchain_core.retrievers import BaseRetriever as LangChainRetriever
    from llama_index.core.retrievers import BaseRetriever as LlamaIndexRetriever
    from llama_index.core.schema import NodeWithScore

OWN_NOTE = "retriever: "  # starts each note about a foreign retriever
UNMATCHED_PREFIX = "own_"  # starts the ids of such hits
MAX_HITS_READ = 1000  # per answer
MAX_TEXT_CHARS = 100_000  # per hit
MAX_REPLY_BYTES = 20_000_000  # from an HTTP endpoint
MAX_SECONDS = 3600.0  # the longest time limit that can be set for a question
MAX_CALLS = 16  # concurrent calls of one retriever; calls that timed out count until they end
ACCEPTED_RETRIEVERS = (
    "a LlamaIndex retriever or query engine, a LangChain retriever (anything with invoke), a function (question, "
    "limit), or the URL of an HTTP endpoint"
)

# Hits of a foreign retriever


@dataclass(frozen=True, slots=True)
class OwnHit(Value):
    """A hit as a foreign retriever returned it, before it is matched to a stored passage."""

    ids: tuple[str, ...] = ()  # ids that may belong to a passage or a document, the most specific first
    url: str = ""  # URL of its document
    path: str = ""  # path of its document's file
    text: str = ""  # text of the hit; "" if it has none
    title: str = ""  # title of its document
    score: float | None = None  # score in the retriever's own unit; None if it has none


_IDS = ("passage_id", "id", "_id", "id_", "node_id", "chunk_id", "document_id", "doc_id", "ref_doc_id")
_URLS = ("url", "source_url", "link", "source")
_PATHS = ("path", "file_path", "source", "file_name", "filename")
_TEXTS = ("text", "page_content", "content")
_METADATA = ("metadata", "meta", "payload")


def read_hit(item: object) -> OwnHit:
    """Return a hit in any of its forms: a node, a LangChain document, a passage, an object, a tuple, an id or a text.

    Raises:
        TypeError: It has none of these forms.
    """
    if isinstance(item, OwnHit):
        return item
    if key := _read_id(item):
        return OwnHit((key,), text=key[:MAX_TEXT_CHARS] if " " in key else "")
    if isinstance(item, Passage):
        ids = (item.passage_id, item.document_id)
        return OwnHit(ids, item.url or "", item.path or "", item.text, item.document_title, item.score)
    if isinstance(item, Mapping):
        return _from_fields(cast("Mapping[str, object]", item))
    if isinstance(item, tuple | list):
        return _from_tuple(cast("Sequence[object]", item))
    if hasattr(item, "node") and hasattr(item, "score"):
        return _from_node(cast("Any", item).node, cast("Any", item).score)
    if hasattr(item, "get_content"):
        return _from_node(cast("Any", item), None)
    names = (*_IDS, *_URLS, *_PATHS, *_TEXTS, "title", "score", *_METADATA)  # of a document of LangChain or Haystack
    fields = {name: value for name in names if (value := getattr(item, name, None)) is not None}
    if not fields:
        raise TypeError(f"it is {describe_type(item)}")
    return _from_fields(fields)


def _from_node(item: object, score: object) -> OwnHit:
    node = cast("Any", item)
    named = {"id": node.node_id, "ref_doc_id": getattr(node, "ref_doc_id", None), "text": node.get_content()}
    return _from_fields({"metadata": node.metadata, **named, "score": score})


def _from_tuple(item: Sequence[object]) -> OwnHit:
    """Read (id, score), (id, text), (id, text, score) or (document, score)."""
    key = _read_id(item[0]) if item else None
    match item:
        case [_, str() as text] if key:
            return OwnHit((key,), text=text[:MAX_TEXT_CHARS])
        case [_, str() as text, score]:
            return OwnHit((key,) if key else (), text=text[:MAX_TEXT_CHARS], score=_read_score(score))
        case [document, score] if not isinstance(document, tuple | list):
            return replace(read_hit(document), score=_read_score(score))
        case _:
            raise TypeError("a tuple must be (id, text, score), (id, score) or (document, score)")


def _read_id(value: object) -> str | None:
    """Return an id as text: databases and libraries also have numbers and UUIDs."""
    is_id = isinstance(value, str | Integral | uuid.UUID) and not isinstance(value, bool)
    return str(value) if is_id and str(value) else None


def _from_fields(fields: Mapping[str, object]) -> OwnHit:
    for name in _METADATA:
        if isinstance(nested := fields.get(name), Mapping):
            has_text = any(isinstance(fields.get(one), str) for one in _TEXTS)
            rest = cast("Mapping[str, object]", nested).items()
            fields = {key: value for key, value in rest if not has_text or key not in _TEXTS} | dict(fields)
    ids = tuple(dict.fromkeys(key for name in _IDS if (key := _read_id(fields.get(name)))))
    url = next((text for text in _list_texts(fields, _URLS) if "://" in text), "")
    path = next((text for text in _list_texts(fields, _PATHS) if "://" not in text), "")
    text = next(_list_texts(fields, _TEXTS), "")
    title = next(_list_texts(fields, ("title", "document_title")), "")
    score = next((fields[name] for name in ("score", "relevance_score", "_score") if name in fields), None)
    if not (ids or url or path or text):
        raise TypeError("a hit has neither an id, a URL, a path nor a text")
    return OwnHit(ids, url, path, text[:MAX_TEXT_CHARS], title[:500], _read_score(score))


def _list_texts(fields: Mapping[str, object], names: Sequence[str]) -> Iterator[str]:
    return (value for name in names if isinstance(value := fields.get(name), str) and value.strip())


def _read_score(value: object) -> float | None:
    try:
        score = float(cast("Any", value))
    except (TypeError, ValueError):
        return None
    return score if math.isfinite(score) else None


def describe_type(item: object) -> str:
    name = type(item).__name__
    return f"an {name}" if name[0].lower() in "aeiou" else f"a {name}"


# Ways to ask a foreign retriever

Ask = Callable[[str, int, Mapping[str, ParameterValue]], object]


def make_ask(retriever: object, headers: Mapping[str, str]) -> tuple[str, Ask]:
    """Return a description of a retriever, and the function that calls it.

    Raises:
        InvalidInput: It is not a kind of retriever that can be called.
    """
    if isinstance(retriever, str) and urlsplit(retriever).scheme in ("http", "https"):
        return "HTTP endpoint", _Endpoint(retriever, headers).ask
    if isinstance(retriever, type):
        raise InvalidInput(f"Invalid retriever {retriever.__name__}: it is a class; pass an instance of it.")
    given = cast("Any", retriever)
    if callable(getattr(given, "retrieve", None)) or callable(getattr(given, "query", None)):
        return "LlamaIndex retriever", lambda question, limit, parameters: _ask_object(given, question)
    if callable(getattr(given, "invoke", None)):
        return "LangChain retriever", lambda question, limit, parameters: given.invoke(question)
    if callable(given):
        return "function", _make_function_ask(given)
    raise InvalidInput(f"Invalid retriever, {describe_type(retriever)}: pass {ACCEPTED_RETRIEVERS}.")


def _ask_object(given: object, question: str) -> object:
    """Ask an object with ``retrieve`` or ``query``; LlamaIndex's get the question as its ``QueryBundle``."""
    retriever = cast("Any", given)
    if hasattr(retriever, "retrieve"):
        asked: object = question
        if any(one.__module__.startswith("llama_index.") for one in type(given).__mro__):
            from llama_index.core.schema import QueryBundle

            asked = QueryBundle(question)
        try:
            return retriever.retrieve(asked)
        except NotImplementedError:  # a query engine that only answers
            pass
    return retriever.query(question)


_LIMIT_NAMES = (
    "limit", "k", "top_k", "top_n", "n", "n_results", "num_results", "max_results", "match_count", "count", "size",
)  # fmt: skip


def _make_function_ask(function: Callable[..., object]) -> Ask:
    """Return what calls a function with a question and a limit.

    The limit is its parameter of such a name, else the second one unless that has a default. A function without
    parameters makes the retriever when the first question is asked.
    """
    try:
        declared = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a builtin
        return lambda question, limit, parameters: function(question, limit, **parameters)
    if not declared:
        return _Made(function).ask
    names = [one.name for one in declared if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    limit_name = next((name for name in _LIMIT_NAMES if name in names), "")
    positional = [one for one in declared if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    takes_two = len(positional) > 1 and positional[1].default is inspect.Parameter.empty
    takes_two = takes_two or any(one.kind is one.VAR_POSITIONAL for one in declared)
    is_reversed = len(positional) > 1 and positional[0].name == limit_name

    def ask(question: str, limit: int, parameters: Mapping[str, ParameterValue]) -> object:
        named = {limit_name: limit, **parameters} if limit_name else parameters
        if is_reversed:
            return function(**{positional[1].name: question, **named})
        if not positional and not takes_two:
            return function(**{names[0]: question, **named})
        return function(question, *([limit] if takes_two and not limit_name else []), **named)

    return ask


class _Made:
    def __init__(self, make: Callable[[], object]) -> None:
        self._make, self._lock = make, threading.Lock()

    @cached_property
    def _ask(self) -> Ask:
        return make_ask(self._make(), {})[1]

    def ask(self, question: str, limit: int, parameters: Mapping[str, ParameterValue]) -> object:
        with self._lock:
            asked = self._ask
        return asked(question, limit, parameters)


class _NoRedirects(HTTPRedirectHandler):
    """Follow no redirect, because that would send the headers elsewhere."""

    def redirect_request(
        self, req: Request, fp: object, code: int, msg: str, headers: object, newurl: str
    ) -> Request | None:
        return None


class _Endpoint:
    """An HTTP endpoint; ``docs/reference/strategy-endpoint.json`` describes its requests and replies."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self._url = url
        self._headers = {"Content-Type": "application/json", "Accept": "application/json", **headers}
        self._opener = build_opener(_NoRedirects)

    def ask(self, question: str, limit: int, parameters: Mapping[str, ParameterValue]) -> object:
        body = json.dumps({"question": question, "limit": limit, "parameters": dict(parameters)}).encode()
        request = Request(self._url, body, self._headers, method="POST")
        try:
            with self._opener.open(request, timeout=MAX_SECONDS) as reply:  # the caller waits less
                content = reply.read(MAX_REPLY_BYTES + 1)
        except HTTPError as error:
            error.close()
            raise ConnectionError(f"the endpoint answered with status {error.code}") from error
        except URLError as error:
            raise ConnectionError(f"the endpoint is unreachable ({error.reason})") from error
        if len(content) > MAX_REPLY_BYTES:
            raise ValueError(f"the reply has over {MAX_REPLY_BYTES // 1_000_000} MB")
        try:
            hits = json.loads(content)["hits"]
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError('the reply is not JSON of the form {"hits": [...]}') from error
        return hits


# Retrievals and their errors


class RetrieverFault(Exception):
    """A foreign retriever failed; the message is a clause that describes how."""


@dataclass(frozen=True, slots=True)
class OwnAnswer:
    """The hits of a foreign retriever, and how many of its items could not be read."""

    hits: tuple[OwnHit, ...]
    unreadable: int = 0
    first_fault: str = ""


@dataclass(frozen=True, eq=False)
class OwnRetrieval:
    """The retriever behind a user's strategy."""

    retriever: object  # the retriever as it was given
    kind: str  # description of what it is
    ask_raw: Ask  # calls it
    postprocessors: tuple[object, ...]  # llamaIndex node postprocessors that are applied to its hits
    seconds: float  # time limit for one question
    version: str  # part of the key of stored runs: answers of another version are not reused
    _free: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(MAX_CALLS))

    def ask(self, question: str, limit: int, parameters: Mapping[str, ParameterValue]) -> OwnAnswer:
        """Return the hits for a question.

        Raises:
            RetrieverFault: It raised an exception, took too long, or returned something other than hits.
        """
        deadline = time.monotonic() + self.seconds
        late = f"it did not answer within {self.seconds:g} s"
        if not self._free.acquire(timeout=self.seconds):
            raise RetrieverFault(f"{late}, because {MAX_CALLS} earlier questions are still waiting")
        outcome: list[OwnAnswer | BaseException] = []

        def work() -> None:
            try:
                outcome.append(self._ask(question, limit, parameters))
            except BaseException as error:  # noqa: BLE001 - even SystemExit: it becomes the retriever's fault
                outcome.append(error)
            finally:
                self._free.release()

        thread = threading.Thread(target=copy_context().run, args=(work,), name="own-strategy", daemon=True)
        thread.start()
        thread.join(max(0.0, deadline - time.monotonic()))
        if not outcome:
            raise RetrieverFault(late)
        if isinstance(outcome[0], OwnAnswer):
            return outcome[0]
        raise RetrieverFault(f"it failed with {describe_fault(outcome[0])}") from outcome[0]

    def _ask(self, question: str, limit: int, parameters: Mapping[str, ParameterValue]) -> OwnAnswer:
        found = self.ask_raw(question, limit, parameters)
        if inspect.isawaitable(found):
            found = asyncio.run(_await_hits(cast("Awaitable[object]", found)))
        if isinstance(found, AsyncIterable):
            found = asyncio.run(_collect_hits(cast("AsyncIterable[object]", found)))
        faults = list[str]()
        items = _list_items(found)
        if self.postprocessors:
            items = self._postprocess(question, _read_all(_make_node, items, faults))
        hits = _read_all(read_hit, items, faults)
        return OwnAnswer(tuple(hits), len(faults), faults[0] if faults else "")

    def _postprocess(self, question: str, nodes: list[NodeWithScore]) -> Sequence[object]:
        from llama_index.core.schema import QueryBundle

        for stage in self.postprocessors:
            nodes = cast("Any", stage).postprocess_nodes(nodes, query_bundle=QueryBundle(question))
        return nodes


Read = TypeVar("Read")


def _read_all(read: Callable[[object], Read], items: Iterable[object], faults: list[str]) -> list[Read]:
    """Return the items that can be read; the reasons for the others are added to ``faults``."""
    done: list[Read] = []
    for item in items:
        try:
            done.append(read(item))
        except TypeError as error:
            faults.append(str(error))
        except Exception as error:  # noqa: BLE001 - of any kind: an attribute may be the user's code
            faults.append(describe_fault(error))
    return done


async def _await_hits(found: Awaitable[object]) -> object:
    return await found


async def _collect_hits(found: AsyncIterable[object]) -> list[object]:
    return [item async for item in found]


_LISTS = ("hits", "documents", "source_documents", "context", "results")  # of an endpoint, or of a LangChain chain


def _list_items(found: object) -> Sequence[object]:
    if hasattr(found, "source_nodes"):
        found = cast("Any", found).source_nodes
    if hasattr(found, "iterrows"):  # a table of pandas
        found = cast("Any", found).to_dict("records")
    if isinstance(found, Mapping):
        lists = cast("Mapping[str, object]", found)
        found = next((lists[name] for name in _LISTS if isinstance(lists.get(name), list)), None)
        if found is None:
            raise TypeError(f"it returned a dict without a list named {', '.join(_LISTS)}")
    if found is None or isinstance(found, str | bytes) or not isinstance(found, Iterable):
        raise TypeError(f"it returned {describe_type(found)}, not a list of hits")
    return list(islice(cast("Iterable[object]", found), MAX_HITS_READ + 1))  # one more shows that there are more


def _make_node(item: object) -> NodeWithScore:
    from llama_index.core.schema import NodeWithScore, TextNode

    if isinstance(item, NodeWithScore):
        return item
    hit = read_hit(item)
    named = {"passage_id": hit.ids[0] if hit.ids else "", "document_id": hit.ids[-1] if hit.ids else ""}
    fields = named | {"url": hit.url, "path": hit.path, "title": hit.title}
    metadata = {name: value for name, value in fields.items() if value}
    node = TextNode(id_=hit.ids[0] if hit.ids else str(uuid.uuid4()), text=hit.text, metadata=metadata)
    node.excluded_llm_metadata_keys = node.excluded_embed_metadata_keys = list(metadata)
    return NodeWithScore(node=node, score=hit.score)


# Our strategies as retrievers of other frameworks, which are imported when one is made


class HaystackRetriever(Protocol):
    """A Haystack component; it is added to a pipeline, or run by itself."""

    def run(self, query: str, top_k: int | None = None) -> dict[str, list[HaystackDocument]]:
        """Return the passages for a question, best first, as ``documents``."""
        ...


Search = Callable[[str, int | None], Iterable[Passage]]  # a question and a limit (None for the usual one)


def describe_passage(passage: Passage) -> JsonObject:
    """Return the metadata of a passage: ids, title, place, span and score."""
    metadata: JsonObject = {
        "passage_id": passage.passage_id,
        "document_id": passage.document_id,
        "title": passage.document_title,
        "source_id": passage.source_id,
        "path": passage.path,
        "url": passage.url,
        "start": passage.start,
        "end": passage.end,
        "score": passage.score,
    }
    return {name: value for name, value in metadata.items() if value is not None}


def _check_installed(module: str, package: str) -> None:
    if importlib.util.find_spec(module) is None:
        raise ConfigurationError(f"This retriever needs a package that is not installed; run: pip install {package}.")


def make_llama_index_retriever(search: Search) -> LlamaIndexRetriever:
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

    class StrategyRetriever(BaseRetriever):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            nodes: list[NodeWithScore] = []
            for passage in search(query_bundle.query_str, None):
                metadata = describe_passage(passage)
                shown = {"title": metadata["title"]}
                hidden = [name for name in metadata if name not in shown]
                node = TextNode(
                    id_=passage.passage_id,
                    text=passage.text,
                    metadata=metadata,
                    excluded_llm_metadata_keys=hidden,
                    excluded_embed_metadata_keys=hidden,
                )
                nodes.append(NodeWithScore(node=node, score=passage.score))
            return nodes

    return StrategyRetriever()


def make_langchain_retriever(search: Search) -> LangChainRetriever:
    """Return a LangChain ``BaseRetriever``.

    Raises:
        ConfigurationError: langchain-core is not installed.
    """
    _check_installed("langchain_core", "langchain-core")
    from langchain_core.callbacks import CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

    class StrategyRetriever(BaseRetriever):
        def _get_relevant_documents(
            self, query: str, *, run_manager: CallbackManagerForRetrieverRun
        ) -> list[LangChainDocument]:
            return [
                Document(id=passage.passage_id, page_content=passage.text, metadata=describe_passage(passage))
                for passage in search(query, None)
            ]

    return StrategyRetriever()


def make_haystack_retriever(search: Search) -> HaystackRetriever:
    """Return a Haystack component with the inputs ``query`` and ``top_k``, and the output ``documents``.

    Raises:
        ConfigurationError: haystack-ai is not installed.
    """
    _check_installed("haystack", "haystack-ai")
    from haystack import Document, component

    @component
    class StrategyRetriever:
        @component.output_types(documents=list[Document])
        def run(self, query: str, top_k: int | None = None) -> dict[str, Any]:
            return {
                "documents": [
                    Document(
                        id=passage.passage_id, content=passage.text, meta=describe_passage(passage), score=passage.score
                    )
                    for passage in search(query, top_k)
                ]
            }

    return StrategyRetriever()
