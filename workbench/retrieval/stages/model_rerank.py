"""Reranks by a model that reads question and passage together: a cross-encoder, or an LLM that grades 0 to 10."""

from __future__ import annotations

from llama_index.core.schema import NodeWithScore

from workbench.errors import ModelError
from workbench.retrieval.hits import add_leg
from workbench.retrieval.llm_prompts import GRADE, RETRIEVAL_SYSTEM, grades_schema, number_texts
from workbench.retrieval.nodes import node_hit, replace_hits
from workbench.retrieval.parameters import CROSS_WEIGHT, GRADED_PASSAGES, LLM_WEIGHT
from workbench.retrieval.stages.stage import Query, Stage
from workbench.types import CROSS_ENCODER, LLM, TimedStep

# --- Cross-encoder rerank: a model scores question and candidate together ---


class CrossEncoderRerank(Stage):
    """A stage that adds the model's scores, scaled to 0..1 over the candidates."""

    leg = CROSS_ENCODER

    def apply(self, query: Query, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        """Score all candidates; unchanged, with a note, if the model fails."""
        request = self._request
        assert request.cross_encoder is not None  # guaranteed by build_engine
        try:
            with request.trace.stage(TimedStep.CROSS_ENCODER, request.cross_encoder.name):
                scores = request.cross_encoder.scores(query.text, [node.node.get_content() for node in nodes])
        except ModelError as error:
            request.trace.note(f"cross-encoder: {error} The order is that of hybrid.")
            return nodes
        hits = [node_hit(node) for node in nodes]
        raw = {hit.id: score for hit, score in zip(hits, scores, strict=True)}
        return replace_hits(nodes, add_leg(hits, self.leg, raw, request.float_param(CROSS_WEIGHT)))


# --- LLM rerank: an LLM grades each of the first passages for the question from 0 to 10 ---

MAX_GRADE = 10.0


class LlmRerank(Stage):
    """A stage that adds an LLM's grades to the scores; unchanged, with a note, if the LLM fails."""

    leg = LLM

    def apply(self, query: Query, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        """Grade the first ``graded`` passages in one call."""
        request = self._request
        assert request.llm is not None  # guaranteed by build_engine
        graded = nodes[: int(request.float_param(GRADED_PASSAGES))]
        prompt = GRADE.format(query=query.text, passages=number_texts([node.node.get_content() for node in graded]))
        try:
            with request.trace.stage(TimedStep.LLM):
                reply = request.llm.read_json(RETRIEVAL_SYSTEM, prompt, grades_schema(len(graded)))
                grades = parse_grades(reply, len(graded))
        except ModelError as error:
            request.trace.note(f"llm-rerank: {error} The order is that of rerank.")
            return nodes
        if not grades:
            request.trace.note("llm-rerank: the LLM graded no passage; the order is that of rerank.")
            return nodes
        raw = {node_hit(graded[number - 1]).id: grade for number, grade in grades.items()}
        scaled = {key: grade / MAX_GRADE for key, grade in raw.items()}
        hits = add_leg([node_hit(node) for node in nodes], self.leg, raw, request.float_param(LLM_WEIGHT), scaled)
        return replace_hits(nodes, hits)


def parse_grades(answer: object, count: int) -> dict[int, float]:
    """Return the grades by passage number from ``{"1": 7, ...}`` or ``[7, ...]``; other entries are ignored."""
    if isinstance(answer, list):
        answer = dict(enumerate(answer, start=1))
    if not isinstance(answer, dict):
        return {}
    grades = {}
    for key, value in answer.items():
        try:
            number, grade = int(key), float(value)
        except (TypeError, ValueError):
            continue
        if 1 <= number <= count and grade == grade:  # NaN
            grades[number] = min(MAX_GRADE, max(0.0, grade))
    return grades
