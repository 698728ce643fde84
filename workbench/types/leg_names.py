"""The names of the legs, which are the keys of an attribution; ``workbench.retrieval.legs`` has a row for each."""

from __future__ import annotations

VECTOR = "vector"
KEYWORD = "keyword"
DOCUMENT = "document"
FEEDBACK = "feedback"
HYDE = "hyde"
QUERY = "query"
LATE = "late"
CLUSTER = "cluster"
CROSS_ENCODER = "cross-encoder"
LLM = "llm"
LEARNED = "learned"
NOVELTY = "novelty"
