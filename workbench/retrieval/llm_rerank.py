"""LLM rerank: an LLM reads the question with the first passages and grades each from 0 to 10."""

from __future__ import annotations

from typing import Any

from llama_index.core.schema import NodeWithScore

from workbench.errors import ModelError
from workbench.retrieval.mixing import mixed
from workbench.retrieval.nodes import hit_of
from workbench.retrieval.prompts import GRADE, RETRIEVAL_SYSTEM, numbered
from workbench.retrieval.stage import Stage

HIGHEST = 10.0


class LlmRerank(Stage):
    """Mix the grades into the order; the order as it was, and a note, where the LLM fails."""

    def apply(self, query: str, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        """Grade the first ``graded`` passages in one question to the LLM."""
        request = self._request
        assert request.llm is not None  # build_engine saw to it
        shown = nodes[: int(request.parameters["graded"])]
        prompt = GRADE.format(query=query, passages=numbered([node.node.get_content() for node in shown]))
        try:
            with request.trace.stage("llm"):
                grades = read_grades(request.llm.read_json(RETRIEVAL_SYSTEM, prompt), len(shown))
        except ModelError as error:
            request.trace.note(f"llm-rerank: {error} The order is that of rerank.")
            return nodes
        if not grades:
            request.trace.note("llm-rerank: the LLM graded no passage; the order is that of rerank.")
            return nodes
        raw = {hit_of(shown[number - 1]).id: grade for number, grade in grades.items()}
        scaled = {key: grade / HIGHEST for key, grade in raw.items()}
        return mixed(nodes, "llm", raw, scaled, float(request.parameters["llm_weight"]))


def read_grades(answer: Any, count: int) -> dict[int, float]:
    """Return the grades by passage number from ``{"1": 7, ...}`` or ``[7, ...]``; what is neither is left out."""
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
        if 1 <= number <= count and grade == grade:  # NaN is not itself
            grades[number] = min(HIGHEST, max(0.0, grade))
    return grades
