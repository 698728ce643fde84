"""The sample corpus agrees with its README; nothing here uses the product's own readers."""

import csv
import datetime
import json
import re
from collections import Counter
from pathlib import Path

import pytest
import yaml

from workbench.sample import articles_dir, questions_dir

FIELDS = ["title", "description", "category", "tags", "status", "lastUpdated"]
STATUSES = {"Live", "Experimental", "Draft", "Deprecated", "Proposed"}
KINDS = {"meaning", "keyword", "typo", "plain"}
PATHS = sorted(articles_dir().glob("*/*.md"))
WORD = re.compile(r"[^\W_]+")
# Words that carry no subject; a "meaning" question may share these with its article.
FUNCTION_WORDS = frozenset(
    """a an and any are although after amid as at back be by can could do does down each every for from how i if in
    instead into is it its just me my never no not of on one or other our out over so some something than that the
    their them there these they this those through to two up us was we what when where which while who whose why will
    with without would you your""".split()  # noqa: SIM905 - sixty quoted words would be unreadable
)


def split_article(path: Path) -> tuple[dict, str]:
    _, front, body = path.read_text(encoding="utf-8").split("---\n", 2)
    return yaml.safe_load(front), body


ARTICLES = {path.stem: split_article(path) for path in PATHS}
TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in PATHS}
QUERIES = [json.loads(line) for line in (questions_dir() / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
with (questions_dir() / "qrels" / "test.tsv").open(encoding="utf-8", newline="") as stream:
    QRELS = list(csv.DictReader(stream, delimiter="\t"))


def words(text: str) -> set[str]:
    return {word.casefold() for word in WORD.findall(text) if len(word) > 1}


def stems(text: str) -> set[str]:
    return {re.sub(r"(ing|ed|es|s|e)$", "", word) if len(word) > 4 else word for word in words(text)}


def relevant(query_id: str, grade: int = 1) -> list[str]:
    return [row["corpus-id"] for row in QRELS if row["query-id"] == query_id and int(row["score"]) >= grade]


def of_kind(kind: str) -> list[dict]:
    return [query for query in QUERIES if query["kind"] == kind]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_front_matter_is_complete_and_valid(path):
    front, body = split_article(path)
    assert list(front) == FIELDS
    assert front["category"] == path.parent.name in {"concepts", "patterns", "practices"}
    assert front["status"] in STATUSES
    assert isinstance(front["lastUpdated"], datetime.date) and 2024 <= front["lastUpdated"].year <= 2026
    assert front["tags"] and all(isinstance(tag, str) and tag == tag.lower() for tag in front["tags"])
    assert front["title"].strip() and front["description"].strip()
    assert 400 <= len(body.split()) <= 900


def test_there_are_about_forty_articles_with_every_status_and_unique_slugs():
    assert len(PATHS) >= 40
    assert len(ARTICLES) == len(PATHS)
    counts = Counter(front["status"] for front, _ in ARTICLES.values())
    assert set(counts) == STATUSES
    assert counts["Live"] > len(PATHS) / 2


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_every_link_between_articles_resolves(path):
    text = re.sub(r"```.*?```", "", TEXTS[path.stem], flags=re.DOTALL)
    inline = re.findall(r"\]\(([^)\s]+\.md)\)", text)
    defined = dict(re.findall(r"^\[([^\]]+)\]: (\S+)$", text, re.MULTILINE))
    assert inline or defined, "an article that links to none is an island"
    assert all((path.parent / target).resolve() in PATHS for target in [*inline, *defined.values()])
    assert set(re.findall(r"\]\[([^\]]+)\]", text)) <= set(defined)
    assert set(re.findall(r"\[\[([a-z][a-z-]+)\]\]", text)) <= set(ARTICLES)


def test_every_judgment_points_to_a_readable_article_and_an_existing_query():
    ids = [query["_id"] for query in QUERIES]
    assert len(set(ids)) == len(ids)
    assert {row["query-id"] for row in QRELS} == set(ids)
    assert {row["score"] for row in QRELS} == {"1", "2"}
    assert {ARTICLES[row["corpus-id"]][0]["status"] for row in QRELS} <= {"Live", "Experimental"}
    assert len({(row["query-id"], row["corpus-id"]) for row in QRELS}) == len(QRELS)
    assert all(relevant(query_id, grade=2) for query_id in ids)


def test_there_are_enough_questions_of_each_kind():
    counts = Counter(query["kind"] for query in QUERIES)
    assert set(counts) == KINDS
    assert len(QUERIES) >= 80 and min(counts.values()) >= 10
    assert all(query["text"].strip() and query["reference_answer"].strip() for query in QUERIES)


@pytest.mark.parametrize("query", of_kind("keyword"), ids=lambda query: query["_id"])
def test_the_token_of_a_keyword_question_is_in_its_articles_and_hardly_elsewhere(query):
    token = query["metadata"]["token"]
    holders = {slug for slug, text in TEXTS.items() if token in text}
    assert token in query["text"]
    assert set(relevant(query["_id"])) <= holders
    assert len(holders) <= 3


@pytest.mark.parametrize("query", of_kind("typo"), ids=lambda query: query["_id"])
def test_the_misspelled_words_of_a_typo_question_are_in_no_article(query):
    misspelt = set(query["metadata"]["misspelt"])
    assert misspelt and misspelt <= words(query["text"])
    assert not misspelt & words(" ".join(TEXTS.values()))


@pytest.mark.parametrize("query", of_kind("meaning"), ids=lambda query: query["_id"])
def test_a_meaning_question_shares_no_content_word_with_the_articles_that_answer_it(query):
    content = stems(" ".join(words(query["text"]) - FUNCTION_WORDS))
    for slug in relevant(query["_id"]):
        assert not content & stems(TEXTS[slug]), slug
