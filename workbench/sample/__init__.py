"""The sample corpus: articles on retrieval, and a judged test set, both written for this project."""

from importlib.resources import files
from pathlib import Path


def articles_dir() -> Path:
    """Return the folder of Markdown articles, with the subfolders concepts, patterns and practices."""
    return Path(str(files(__name__))) / "articles"


def questions_dir() -> Path:
    """Return the folder with queries.jsonl and qrels/test.tsv; corpus ids are the articles' slugs."""
    return Path(str(files(__name__))) / "questions"
