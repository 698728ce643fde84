"""What a person says of the hits: kept in a test set by the passage's span, so that every chunker can be scored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workbench.app.joining import Span, same_text, span_of
from workbench.types import Comparison, Passage

if TYPE_CHECKING:
    from evals.dataset import Dataset, Question
    from evals.store import DatasetInfo
    from workbench.workbench import Workbench

Mark = tuple[int, str, int | None]  # its number in the session, the place that is judged, the grade (None: taken back)


def place_key(passage: Passage) -> str:
    """Return what a judgment is about, in one word: the document and the span in it."""
    return _key(span_of(passage))


def same_places(comparison: Comparison, judged: Iterable[str]) -> dict[str, list[str]]:
    """Return of each shown place the others, shown or judged, that are the same text, though cut differently.

    So a judgment made on one index's passage is found again on another's, as the span metrics find it by characters.
    """
    shown = {place_key(hit): span_of(hit) for result in comparison.strategies.values() for hit in result}
    known = {key: _span(key) for key in judged} | shown
    found = {
        key: [other for other, span in known.items() if other != key and same_text(mine, span)]
        for key, mine in shown.items()
    }
    return {key: others for key, others in found.items() if others}


def _key(span: Span) -> str:
    document, start, end = span
    return f"{document}:{start}-{end}"


def _span(key: str) -> Span:
    document, _, stretch = key.rpartition(":")
    start, _, end = stretch.partition("-")
    return document, int(start), int(end)


def own_test_sets(workbench: Workbench) -> list[DatasetInfo]:
    """Return the test sets over the person's own sources; the others judge a corpus of their own."""
    from evals.store import DatasetStore

    return [info for info in DatasetStore(workbench).list() if info.source_id is None]


@dataclass(frozen=True, slots=True)
class Judging:
    """One question's judgments in one test set."""

    workbench: Workbench
    dataset: DatasetInfo
    question: str

    @property
    def about(self) -> str:
        """Equal where the same question is judged in the same test set."""
        return f"{self.dataset.id} {self.question}"

    def grades(self) -> dict[str, int]:
        """Return place -> grade of every span that a person judged for the question."""
        dataset = self._store.load(self.dataset.id)
        asked = _same(dataset, self.question)
        return {
            _key((judgment.document, judgment.start or 0, judgment.end or 0)): judgment.grade
            for judgment in dataset.judgments
            if asked is not None and judgment.question_id == asked.id and judgment.is_span
        }

    def keep(self, comparison: Comparison, marks: Sequence[Mark]) -> None:
        """Write marks down, the question too where it is new; a place that the board does not show is left out.

        Raises:
            NotFound: the test set is gone. InvalidInput: a grade that is none.
        """
        shown = {place_key(hit): hit for result in comparison.strategies.values() for hit in result}
        last = {place: grade for _, place, grade in marks if place in shown}
        if not last:
            return
        asked = self._asked()
        for place, grade in last.items():
            hit = shown[place]
            self._store.judge(
                self.dataset.id,
                asked.id,
                hit.document_id,
                grade,
                start=hit.start,
                end=hit.end,
                quote=hit.text,
            )

    def _asked(self) -> Question:
        """Return the question as the test set has it, added if need be."""
        asked = _same(self._store.load(self.dataset.id), self.question)
        return asked or self._store.add_questions(self.dataset.id, [self.question])[0]

    @property
    def _store(self) -> Any:
        from evals.store import DatasetStore

        return DatasetStore(self.workbench)


def _same(dataset: Dataset, question: str) -> Question | None:
    """Return the test set's question of the same words."""
    wanted = " ".join(question.replace("\x00", "").split()).casefold()
    return next((one for one in dataset.questions if one.text.casefold() == wanted), None)


def read_marks(given: Any, after: int) -> list[Mark]:
    """Return the marks that the browser sent and that are numbered beyond ``after``."""
    rows = given.get("marks") if isinstance(given, Mapping) else None
    marks = [(int(number), str(place), grade) for number, place, grade in rows or ()]
    return [mark for mark in marks if mark[0] > after]
