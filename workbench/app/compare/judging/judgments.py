"""Judgments of hits: stored in a test set by the passage's span, so that every chunker can be scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.app.compare.same_text import key_of, place_key
from workbench.types import Comparison

if TYPE_CHECKING:
    from evals.test_set import Question, TestSet
    from evals.test_sets.store import TestSetInfo, TestSetStore
    from workbench.workbench import Workbench

Mark = tuple[int, str, int | None]  # its number in the session, the place that is judged, the grade (None: taken back)


def own_test_sets(workbench: Workbench) -> list[TestSetInfo]:
    """Return the test sets over the person's own sources; the others judge a corpus of their own."""
    from evals.test_sets.store import TestSetStore

    return [info for info in TestSetStore(workbench).list() if info.source_id is None]


@dataclass(frozen=True, slots=True)
class Judging:
    """One question's judgments in one test set."""

    workbench: Workbench
    test_set: TestSetInfo
    question: str

    @property
    def about(self) -> str:
        """A key that is equal where the same question is judged in the same test set."""
        return f"{self.test_set.id} {self.question}"

    def grades(self) -> dict[str, int]:
        """Return place -> grade of every span that a person judged for the question."""
        test_set = self.load()
        question = _same(test_set, self.question)
        return {
            key_of(judgment.document, judgment.start or 0, judgment.end or 0): judgment.grade
            for judgment in test_set.judgments
            if question is not None and judgment.question_id == question.id and judgment.is_span
        }

    def load(self) -> TestSet:
        """Return the test set as it is now. Raises NotFound where it is gone."""
        return self._store.load(self.test_set.id)

    def keep(self, comparison: Comparison, marks: Sequence[Mark]) -> None:
        """Write marks down, the question too where it is new; a place that the board does not show is left out.

        Raises:
            NotFound: the test set is gone. InvalidInput: a grade that is none.
        """
        hits = {place_key(hit): hit for result in comparison.strategies.values() for hit in result}
        last = {place: grade for _, place, grade in marks if place in hits}
        if not last:
            return
        stored = self._stored_question()
        for place, grade in last.items():
            hit = hits[place]
            self._store.judge(
                self.test_set.id,
                stored.id,
                hit.document_id,
                grade,
                start=hit.start,
                end=hit.end,
                quote=hit.text,
            )

    def _stored_question(self) -> Question:
        """Return the question as the test set has it, added if need be."""
        stored = _same(self.load(), self.question)
        return stored or self._store.add_questions(self.test_set.id, [self.question])[0]

    @property
    def _store(self) -> TestSetStore:
        from evals.test_sets.store import TestSetStore

        return TestSetStore(self.workbench)


def _same(test_set: TestSet, question: str) -> Question | None:
    """Return the test set's question of the same words."""
    wanted = " ".join(question.replace("\x00", "").split()).casefold()
    return next((entry for entry in test_set.questions if entry.text.casefold() == wanted), None)


def read_marks(payload: object, after: int) -> list[Mark]:
    """Return the marks that the browser sent and that are numbered beyond ``after``."""
    rows = payload.get("marks") if isinstance(payload, Mapping) else None
    marks = [(int(number), str(place), grade) for number, place, grade in rows or ()]
    return [mark for mark in marks if mark[0] > after]
