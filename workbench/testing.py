"""Conformance suites for authors of strategies, encoders and chunkers, to call in their own tests.

Each function exercises the object and raises ``ConformanceError``, an AssertionError that lists every rule it breaks.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING, cast

import numpy as np

from workbench.errors import InvalidInput, describe_fault
from workbench.ingestion.components import Locator
from workbench.retrieval.own import OwnHit, OwnRetrieval, RetrieverFault, make_ask

if TYPE_CHECKING:
    from workbench.models.encoder import EncodedTexts, Encoder

ODD_QUESTIONS = ("?", "'; DROP TABLE x; --", "ünïcödé 漢字 🦦", "long " * 2000)
SAMPLE_TEXTS = (
    "Cats purr when they are content.",
    "The invoice is due within thirty days of delivery.",
    "Photosynthesis turns light, water and carbon dioxide into sugar.",
)
SAMPLE_QUESTIONS = ("Why do cats purr?", "When is the invoice due?", "What does photosynthesis produce?")
SAMPLE_DOCUMENT = (
    "# Rivers\n\nA river flows to the sea. Its source is a spring.\n\n## Otters\n\n"
    + " ".join(f"Otter {number} swims in cold water and eats fish." for number in range(40))
    + "\n\n| Animal | Food |\n|---|---|\n| otter | fish |\n\n```py\nprint('one')\n```\n\nThe end 漢字 🦦.\n"
)
TOLERANCE = 0.02  # difference between vectors of the same text in different batches
THREADS = 4


class ConformanceError(AssertionError):
    """The checked object breaks rules; ``faults`` has a sentence for each."""

    def __init__(self, subject: str, faults: Sequence[str]) -> None:
        """List the faults of the subject."""
        self.faults = tuple(faults)
        super().__init__("\n".join([f"{subject} breaks {len(faults)} of the rules:", *(f"- {one}" for one in faults)]))


def _finish(subject: str, faults: Sequence[str]) -> None:
    if faults:
        raise ConformanceError(subject, tuple(dict.fromkeys(faults)))


# Strategies


def check_strategy(
    retriever: object,
    questions: Sequence[str],
    *,
    limit: int = 10,
    seconds: float = 30.0,
    postprocessors: Sequence[object] = (),
) -> None:
    """Check a retriever as ``wb.strategies.add`` takes it.

    The rules: it answers every question in time, including unusual ones; every hit can be read and has an id, a URL, a
    path or a text; none is repeated; scores fall and none is missing; a function or an endpoint respects the limit; and
    the same question always has the same hits, also from several threads.

    Args:
        retriever: A LlamaIndex or LangChain retriever, a query engine, a function or a URL.
        questions: Questions that have hits.
        limit: Hits to ask for.
        seconds: Time limit of a question.
        postprocessors: LlamaIndex node postprocessors applied to its hits.

    Raises:
        ConformanceError: A rule is broken.
        InvalidInput: It is not a retriever, or there are no questions.
    """
    if not questions:
        raise InvalidInput("Give at least one question that has hits.")
    kind, ask = make_ask(retriever, {})
    retrieval = OwnRetrieval(retriever, kind, ask, tuple(postprocessors), seconds, "1")
    faults: list[str] = []

    def find(question: str, count: int = limit) -> tuple[OwnHit, ...]:
        shown = question[:40]
        try:
            answer = retrieval.ask(question, count, {})
        except RetrieverFault as fault:
            faults.append(f"{shown}: {fault}")
            return ()
        if answer.unreadable:
            faults.append(f"{shown}: {answer.unreadable} unreadable hits (the first: {answer.first_fault})")
        if kind.startswith(("function", "HTTP")) and len(answer.hits) > count:
            faults.append(f"{shown}: {len(answer.hits)} hits for a limit of {count}")
        return answer.hits

    first = [find(question) for question in questions]
    for question, hits in zip(questions, first, strict=True):
        faults += [f"{question[:40]}: {fault}" for fault in _judge_hits(hits)]
    for question in ODD_QUESTIONS:
        find(question)
    find(questions[0], 1)
    with ThreadPoolExecutor(THREADS) as pool:
        again = list(pool.map(find, questions))
    for question, before, after in zip(questions, first, again, strict=True):
        if [(hit.ids, hit.text) for hit in before] != [(hit.ids, hit.text) for hit in after]:
            faults.append(f"{question[:40]}: asked again, the same question returns other hits")
    _finish(f"The {kind}", faults)


def _judge_hits(hits: Sequence[OwnHit]) -> list[str]:
    """Return the faults in the hits of a question that should have some."""
    if not hits:
        return ["no hits, though the question has some"]
    faults: list[str] = []
    places = Counter((hit.ids, hit.url, hit.path, hit.text) for hit in hits)
    if repeated := sum(count - 1 for count in places.values()):
        faults.append(f"{repeated} hits are repeated")
    scores = [hit.score for hit in hits]
    known = [score for score in scores if score is not None]
    if known and len(known) < len(scores):
        faults.append(f"{len(scores) - len(known)} hits have no score")
    if any(not math.isfinite(score) for score in known):
        faults.append("a score is not a finite number")
    if any(later > earlier for earlier, later in pairwise(known)):
        faults.append("scores rise with rank")
    return faults


# Encoders


def check_encoder(encoder: Encoder) -> None:
    """Check an object that implements ``workbench.models.encoder.Encoder``.

    The rules: vectors are float32 rows of length 1 with the declared dimensions, one for each text in its order,
    regardless of the rest of the batch; a question is nearer to its answer than to other texts; token vectors, if any,
    have 16 bytes per token; token spans are in order; and threads do not disturb each other.

    Raises:
        ConformanceError: A rule is broken.
    """
    faults: list[str] = []
    for rule in (_check_batch, _check_order, _check_odd_texts, _check_questions, _check_tokens, _check_threads):
        try:
            faults += rule(encoder)
        except Exception as error:  # noqa: BLE001 - of any kind: the other rules are still checked
            faults.append(f"it failed ({describe_fault(error)})")
        if faults and rule is _check_batch:
            break  # the other rules compare these vectors
    _finish(f"The encoder {getattr(encoder, 'name', encoder)!r}", faults)


def _check_batch(encoder: Encoder) -> list[str]:
    counted: list[int] = []
    encoded = encoder.encode(SAMPLE_TEXTS, on_batch=counted.append)
    faults = _judge_vectors(encoder, encoded, len(SAMPLE_TEXTS))
    if sum(counted) != len(SAMPLE_TEXTS):
        faults.append(f"on_batch counted {sum(counted)} of {len(SAMPLE_TEXTS)} texts")
    return faults


def _check_order(encoder: Encoder) -> list[str]:
    vectors, turned = encoder.encode(SAMPLE_TEXTS).vectors, encoder.encode(SAMPLE_TEXTS[::-1]).vectors
    same = np.allclose(vectors, turned[::-1], atol=TOLERANCE)
    return [] if same else ["the vector of a text depends on its order or batch"]


def _check_odd_texts(encoder: Encoder) -> list[str]:
    faults: list[str] = []
    for text in ("", "ünïcödé 漢字 🦦", "word " * 5000):
        vectors = encoder.encode([text]).vectors
        if vectors.shape != (1, encoder.dimensions) or not np.isfinite(vectors).all():
            faults.append(f"encode([{text[:12]!r}]) returns no finite vector")
    return faults


def _check_tokens(encoder: Encoder) -> list[str]:
    text = SAMPLE_TEXTS[0]
    share = encoder.reads(text)
    faults = [] if 0 <= share <= 1 else [f"reads returns {share!r}, which is not a share from 0 to 1"]
    if not _are_in_order(encoder.token_spans(text), len(text)):
        faults.append("token spans are empty, outside the text or not in order")
    return faults


def _check_threads(encoder: Encoder) -> list[str]:
    with ThreadPoolExecutor(THREADS) as pool:
        rows = list(pool.map(lambda text: encoder.encode([text]).vectors[0], SAMPLE_TEXTS * THREADS))
    same = np.allclose(rows, np.tile(encoder.encode(SAMPLE_TEXTS).vectors, (THREADS, 1)), atol=TOLERANCE)
    return [] if same else ["vectors differ between threads"]


def _judge_vectors(encoder: Encoder, encoded: EncodedTexts, count: int) -> list[str]:
    vectors = encoded.vectors
    if vectors.shape != (count, encoder.dimensions):
        return [f"vectors have the shape {vectors.shape} instead of {(count, encoder.dimensions)}"]
    faults: list[str] = []
    if vectors.dtype != np.float32:
        faults.append(f"vectors are {vectors.dtype} instead of float32")
    if not np.isfinite(vectors).all() or not np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3):
        faults.append("a vector does not have length 1")
    bits = encoded.token_bits
    if encoder.has_token_vectors and (bits is None or len(bits) != count or any(len(one) % 16 for one in bits)):
        faults.append("token vectors are not one bytes object per text, of 16 bytes per token")
    return faults


def _check_questions(encoder: Encoder) -> list[str]:
    faults: list[str] = []
    vectors = encoder.encode(SAMPLE_TEXTS).vectors
    for place, text in enumerate(SAMPLE_QUESTIONS):
        question = encoder.encode_query(text)
        length = float(np.linalg.norm(question.vector))
        if question.vector.shape != (encoder.dimensions,) or not math.isclose(length, 1, abs_tol=1e-3):
            faults.append("the vector of a question does not have the declared dimensions and length 1")
        elif int(np.argmax(vectors @ question.vector)) != place:
            faults.append(f"{text!r} is nearer to another text than to its answer")
        axes = question.token_axes
        if axes is not None and axes.shape != (len(question.token_spans), 128):
            faults.append("token axes of a question are not one row of 128 for each token span")
    return faults


def _are_in_order(spans: Sequence[tuple[int, int]], end: int) -> bool:
    within = all(0 <= start < stop <= end for start, stop in spans)
    return bool(spans) and within and all(one[0] <= other[0] for one, other in pairwise(spans))


# Chunkers


def check_chunker(chunker: object, text: str = SAMPLE_DOCUMENT, *, max_chars: int | None = None) -> None:
    """Check a LlamaIndex node parser, or a function from a text to its passages (texts, or (start, end) spans).

    The rules: every word of the text is in a passage; every passage is part of the text, ignoring white space; passages
    are in order and none is blank; a blank text has none; and the same text is always cut in the same way.

    Args:
        chunker: The chunker to check.
        text: Text to cut.
        max_chars: Maximum characters of a passage; not checked if None.

    Raises:
        ConformanceError: A rule is broken.
        InvalidInput: It is not a chunker.
    """
    cut = _make_cut(chunker)
    faults: list[str] = []
    try:
        spans = cut(text)
        if spans != cut(text):
            faults.append("cutting the same text again gives other passages")
        if any(text[start:end].strip() for start, end in cut("  \n\n ")):
            faults.append("a blank text has passages")
        faults += _judge_spans(text, spans, max_chars)
    except Exception as error:  # noqa: BLE001 - of any kind: it is the chunker's
        faults.append(str(error) if isinstance(error, _NotInText) else f"it failed ({describe_fault(error)})")
    _finish(f"The chunker {getattr(chunker, '__name__', type(chunker).__name__)!r}", faults)


class _NotInText(ValueError):
    """A passage is not part of the text."""


def _make_cut(chunker: object) -> Callable[[str], list[tuple[int, int]]]:
    parse = getattr(chunker, "get_nodes_from_documents", None)
    if parse is None and not callable(chunker):
        raise InvalidInput(f"Invalid chunker {chunker!r}: pass a LlamaIndex node parser, or a function of a text.")

    def cut(text: str) -> list[tuple[int, int]]:
        passages: Sequence[object]
        if parse is not None:
            from llama_index.core.schema import Document

            passages = [node.get_content() for node in parse([Document(text=text)])]
        else:
            passages = list(cast("Callable[[str], Sequence[object]]", chunker)(text))
        spans: list[tuple[int, int]] = []
        locator = Locator(text)
        for passage in passages:
            if not isinstance(passage, str):
                spans.append(_read_span(passage))
            elif (span := locator.find(passage)) is not None:
                spans.append(span)
            elif not passage.strip():  # an empty span after the previous one
                spans.append((spans[-1][1], spans[-1][1]) if spans else (0, 0))
            else:
                raise _NotInText(f"a passage is not part of the text: {passage.strip()[:60]!r}")
        return spans

    return cut


def _read_span(passage: object) -> tuple[int, int]:
    match passage:
        case [int() as start, int() as end]:
            return start, end
        case _:
            raise TypeError(f"a passage is a text or (start, end), not {passage!r}")


def _judge_spans(text: str, spans: Sequence[tuple[int, int]], max_chars: int | None) -> list[str]:
    faults: list[str] = []
    if any(not 0 <= start <= end <= len(text) for start, end in spans):
        return ["a span is outside the text"]
    if any(not text[start:end].strip() for start, end in spans):
        faults.append("a passage is blank")
    if any(one[0] > other[0] for one, other in pairwise(spans)):
        faults.append("passages are not in the order of the text")
    covered = np.zeros(len(text), dtype=bool)
    for start, end in spans:
        covered[start:end] = True
    lost = "".join(char if char.isalnum() and not covered[at] else " " for at, char in enumerate(text)).split()
    if lost:
        faults.append(f"{len(lost)} words are in no passage, the first: {lost[0][:40]!r}")
    if max_chars is not None and (longest := max((end - start for start, end in spans), default=0)) > max_chars:
        faults.append(f"a passage has {longest:,} characters, more than {max_chars:,}")
    return faults
