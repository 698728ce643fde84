"""Parameters of the strategies: one list, so that a parameter has one name and range everywhere.

Retrievers, stages and screens refer to a parameter's row, never to its name as a string.
"""

from __future__ import annotations

from workbench.types import MAX_RANKED_PASSAGES, Parameter

# A question has one ranking, of which ``limit`` is a prefix, so pages neither repeat nor miss a passage.
# So the number and scores of candidates never depend on the limit: the first ones are those of each
# leg up to FIRST_DEPTH; if more are requested, they follow in the order of a search
# to MAX_DEPTH.
# On scifact's train questions nDCG@10 of hybrid / rerank was .740 / .752 with 30, .740 / .752 with 50 and .742 / .752
# with 100: the plateau is flat, and 50 leaves a margin for rarer answers.
FIRST_DEPTH = 50
MAX_DEPTH = MAX_RANKED_PASSAGES

VECTOR_WEIGHT = Parameter(
    "vector_weight", "float", 0.5, "Weight of meaning relative to words; 1 is vector only, 0 keywords only.", 0.0, 1.0
)
CONVEX, RRF = "convex", "rrf"
FUSION = Parameter(
    "fusion", "choice", CONVEX, "Convex uses the strength of matches; rrf uses only ranks.", choices=(CONVEX, RRF)
)
CANDIDATES = Parameter(
    "candidates",
    "int",
    100,
    "Passages to rerank; each leg finds half as many, but at least 50. Fewer is faster.",
    10,
    400,
)
LATE_WEIGHT = Parameter(
    "late_weight",
    "float",
    0.3333,
    "Weight of late-interaction scoring; 0.33 weights all three signals equally.",
    0.0,
    1.0,
)
# Chosen on scifact's train part, anthropic_docs and mtrag_un, which all gain from .1 to .175 (docs/benchmarks.md).
CLUSTER_WEIGHT = Parameter(
    "cluster_weight", "float", 0.125, "Share of the score for similarity to the top passages; 0 turns it off.", 0.0, 1.0
)
# On chunking_evaluation (200-token passages, the best five) .65 keeps 88.8 of 89.2% of the relevant characters and
# raises IoU from 5.7 to 8.3: a passage far below the first rarely has more of the answer.
# Eight passages above .7 have 91.0% at an IoU of 8.5, ten 91.6% at 8.3; five without a cutoff 89.2% at 5.7
# (docs/benchmarks.md). Used for answers and agents; searches by people show all results.
AGENT_CUTOFF = 0.7
# For documents the cutoff is lower, since each one missed is a whole text. Of the first ten by rerank on
# anthropic_docs (100 questions) .5 keeps 7.5 with 89.0 of 90.8% of the relevant documents, .7 keeps 3.6 with 81.3%;
# on scifact (300 questions) .5 keeps 8.1 with all of 88.4%, .7 keeps 4.4 with 84.2%.
DOCUMENT_CUTOFF = 0.5
CUTOFF = Parameter(
    "cutoff", "float", 0.0, "Omit passages that score below this share of the best; 0 keeps all.", 0.0, 0.95
)
# nDCG@10 of hybrid / rerank without and with it: anthropic_docs .839 / .841 and .849 / .853, scifact .737 / .750 and
# .735 / .749; annual reports: the right document first for 58% of the questions and for 95% (rerank).
DOCUMENT_WEIGHT = Parameter(
    "document_weight",
    "float",
    0.15,
    "Share of the score for the part of the title or file name that the question contains.",
    0.0,
    1.0,
)
IGNORE_TURNS, JOIN_TURNS, ASK_LLM = "ignore", "join", "llm"
HISTORY = Parameter(
    "history",
    "choice",
    JOIN_TURNS,
    "Earlier turns of a conversation: joined to a short question, ignored, or an LLM rewrites the question.",
    choices=(IGNORE_TURNS, JOIN_TURNS, ASK_LLM),
)
HYBRID = (VECTOR_WEIGHT, FUSION, DOCUMENT_WEIGHT, CUTOFF, HISTORY)
RERANK = (*HYBRID, CANDIDATES, LATE_WEIGHT, CLUSTER_WEIGHT)

SECTION, PAGE = "section", "page"
UNIT = Parameter(
    "unit",
    "choice",
    SECTION,
    "What small passages are merged into: the section under their heading, or the page.",
    choices=(SECTION, PAGE),
)
SHARE = Parameter(
    "share", "float", 0.0, "Share of a unit that must be found before it is returned whole; 0 for always.", 0.0, 1.0
)
NEIGHBOURS = Parameter("neighbours", "int", 1, "Passages shown on either side of each result.", 0, 10)
LAMBDA = Parameter("lambda", "float", 0.7, "1 ranks by relevance only; lower values prefer new content.", 0.0, 1.0)
# nDCG@10 against rerank, 150 questions each of xquad_en, anthropic_docs, scifact train | scifact test: +.002, -.003,
# +.004 | -.001; three passages at .3 without words: +.002, -.002, +.004 | -.005. More words help if documents say
# the same in other words (at .1: +.013 on scifact train) and hurt if passages are very similar (-.010 on
# anthropic_docs).
FEEDBACK_PASSAGES = Parameter(
    "passages", "int", 5, "Number of top passages assumed to be relevant; more is safer but less specific.", 1, 20
)
FEEDBACK_WEIGHT = Parameter(
    "weight", "float", 0.25, "How far the question vector moves towards them; 0 for not at all.", 0.0, 2.0
)
TERMS = Parameter("terms", "int", 5, "Number of words from the top passages added to the question; 0 for none.", 0, 50)
TERM_WEIGHT = Parameter(
    "term_weight", "float", 0.05, "Total weight of those words relative to the question's own.", 0.0, 1.0
)
HYDE_WEIGHT = Parameter(
    "weight",
    "float",
    1.0,
    "Weight of the hypothetical answer relative to the question; 1 weights both equally.",
    0.0,
    5.0,
)
QUERIES = Parameter("queries", "int", 3, "Number of rephrasings the LLM writes; each is searched.", 1, 8)
GRADED_PASSAGES = Parameter("graded", "int", 10, "Top passages that the LLM grades; each costs tokens.", 2, 40)
LLM_WEIGHT = Parameter("llm_weight", "float", 0.7, "Weight of the LLM's grades relative to earlier scores.", 0.0, 1.0)
LLM_NAME = Parameter(
    "llm",
    "text",
    "",
    "LLM for this run, such as openai:gpt-5-mini or endpoint:MODEL?url=URL; if empty, WORKBENCH_LLM_MODEL.",
)
RERANKER = Parameter(
    "reranker",
    "text",
    "",
    "Cross-encoder for this run, such as cohere:rerank-v3.5 or a folder; if empty, WORKBENCH_RERANKER.",
)
CROSS_WEIGHT = Parameter(
    "cross_weight", "float", 0.8, "Weight of the cross-encoder's scores relative to earlier scores.", 0.0, 1.0
)
DEFAULT_RANKER = "default"  # the shipped ranker
RANKER = Parameter(
    "ranker", "name", DEFAULT_RANKER, "The trained weights to rank candidates with; see 'workbench rankers list'."
)
TYPO_TOLERANCE = Parameter(
    "forgive",
    "bool",
    True,
    "Also search for corrections of misspelled words; if off, a passage must contain one of the typed words.",
)
MIN_SIMILARITY = Parameter(
    "least_meaning", "float", 0.3, "Minimum cosine similarity of a passage without any of the words.", 0.0, 1.0
)
