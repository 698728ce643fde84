"""What can be set about the strategies: one list, so that the same thing has one name and one range everywhere."""

from __future__ import annotations

from workbench.types import Parameter

VECTOR_WEIGHT = Parameter(
    "vector_weight", "float", 0.5, "Share of meaning against words; 1 is vector alone, 0 keywords alone.", 0.0, 1.0
)
FUSION = Parameter(
    "fusion",
    "choice",
    "convex",
    "Convex keeps how strong a match is; rrf looks at ranks only.",
    choices=("convex", "rrf"),
)
CANDIDATES = Parameter(
    "candidates", "int", 100, "Passages the reranker looks at: all that the two legs bring; fewer saves time.", 10, 400
)
LATE_WEIGHT = Parameter(
    "late_weight", "float", 0.3333, "Share of the word-by-word evidence; a third: all three kinds alike.", 0.0, 1.0
)
# On chunking_evaluation (200-token passages, the best five) .65 kept 88.7 of 89.4 % of the wanted characters and
# raised IoU from 5.7 to 8.8: what scores far below the first seldom holds more of the answer.
CUTOFF = Parameter(
    "cutoff",
    "float",
    0.0,
    "Leave out what scores below this share of the best; 0 gives all that were asked for.",
    0.0,
    0.95,
)
HYBRID = (VECTOR_WEIGHT, FUSION, CUTOFF)
RERANK = (*HYBRID, CANDIDATES, LATE_WEIGHT)

SHARE = Parameter(
    "share", "float", 0.0, "Part of a section that must be found before it is returned whole; 0 always does.", 0.0, 1.0
)
NEIGHBOURS = Parameter("neighbours", "int", 1, "Passages shown on either side of the one found.", 0, 10)
LAMBDA = Parameter("lambda", "float", 0.7, "1 looks at relevance alone; less prefers what is new.", 0.0, 1.0)
# nDCG@10 against rerank, 150 questions each of xquad_en, anthropic_docs, scifact train | scifact test: +.002, -.003,
# +.004 | -.001; three passages at .3 without words: +.002, -.002, +.004 | -.005. More words help where documents say
# the same in other words (at .1: +.013 on scifact train) and hurt where passages are much alike (-.010 on
# anthropic_docs).
FEEDBACK_PASSAGES = Parameter(
    "passages", "int", 5, "First passages taken to be relevant; more is safer and duller.", 1, 20
)
FEEDBACK_WEIGHT = Parameter(
    "weight", "float", 0.25, "How far the question moves towards them; 0 leaves it where it is.", 0.0, 2.0
)
TERMS = Parameter("terms", "int", 5, "Words of the first passages that join the question; 0 adds none.", 0, 50)
TERM_WEIGHT = Parameter(
    "term_weight", "float", 0.05, "What those words count together against the question's own.", 0.0, 1.0
)
HYDE_WEIGHT = Parameter(
    "weight", "float", 1.0, "What the imagined answer counts against the question; 1: alike.", 0.0, 5.0
)
QUERIES = Parameter("queries", "int", 3, "Further questions the LLM writes; each is searched.", 1, 8)
GRADED = Parameter("graded", "int", 10, "First passages that the LLM grades; each costs its tokens.", 2, 40)
LLM_WEIGHT = Parameter("llm_weight", "float", 0.7, "Share of the LLM's grades against the order before.", 0.0, 1.0)
CROSS_WEIGHT = Parameter(
    "cross_weight", "float", 0.8, "Share of the cross-encoder's scores against the order before.", 0.0, 1.0
)
