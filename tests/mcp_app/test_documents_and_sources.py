"""The effects of manage_document and manage_source on the corpus."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcp_app.paging import tokens
from mcp_app.server import create_server
from tests.mcp_app.agent import Agent
from workbench import Workbench


def test_a_document_without_a_source_goes_to_uploads(agent: Agent) -> None:
    made = agent("manage_document", action="create", content="# Notes\n\nSome words.", metadata={"year": 2024})
    assert made["document"]["title"] == "Notes"
    assert made["document"]["metadata"]["year"] == 2024
    assert (made["document"]["status"], made["document"]["chunks_created"]) == ("completed", 1)
    source = agent("manage_source", action="get", source_id=made["document"]["source_id"])["source"]
    assert (source["title"], source["documents_count"], source["passages_count"]) == ("Uploads", 1, 1)


def test_the_same_content_again_changes_nothing_and_reports_it(agent: Agent, tmp_path: Path) -> None:
    for name in ("a.md", "b.md"):
        (tmp_path / "docs" / name).write_text("# Same\n\nThe same words.")
    first = agent("manage_document", action="create", file_path="a.md")
    again = agent("manage_document", action="create", file_path="b.md")
    assert again["message"] == "The source already has this content; nothing was changed"
    assert again["document"]["id"] == first["document"]["id"]
    assert agent("manage_document", action="list")["total_count"] == 1


def test_content_without_words_is_not_reported_as_a_file(agent: Agent) -> None:
    for content in (" \n", "\x00\x00"):
        refused = agent.failure("manage_document", action="create", content=content)
        assert refused["error"] == "The text is empty."
        assert agent("manage_document", action="list")["total_count"] == 0
    assert agent("manage_source", action="list")["total_count"] == 0


def test_an_unreadable_file_leaves_no_source(agent: Agent, tmp_path: Path) -> None:
    (tmp_path / "docs" / "broken.pdf").write_bytes(b"%PDF-1.7 nothing")
    agent.failure("manage_document", action="create", file_path="broken.pdf")
    assert agent("manage_source", action="list")["total_count"] == 0


def test_two_files_of_the_same_name_are_two_documents(agent: Agent, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / "docs" / name).mkdir()
        (tmp_path / "docs" / name / "readme.md").write_text(f"# {name}\n\nWords of {name}.")
        agent("manage_document", action="create", file_path=f"{name}/readme.md")
    assert agent("manage_document", action="list")["total_count"] == 2


def test_an_update_of_the_title_leaves_the_passages_alone(agent: Agent, wb: Workbench) -> None:
    document_id = agent("manage_document", action="create", content="Some words.", title="Old")["document"]["id"]
    before = [passage.id for passage in wb.documents.passages(document_id)]
    changed = agent(
        "manage_document", action="update", document_id=document_id, title="New", metadata='{"reviewed": true}'
    )
    assert (changed["document"]["title"], changed["document"]["metadata"]) == ("New", {"reviewed": True})
    assert [passage.id for passage in wb.documents.passages(document_id)] == before


def test_an_update_of_the_content_is_found_and_keeps_id_title_and_metadata(agent: Agent) -> None:
    made = agent("manage_document", action="create", content="Old zebra.", title="T", metadata={"a": 1})["document"]
    changed = agent("manage_document", action="update", document_id=made["id"], content="New giraffe.")["document"]
    assert (changed["id"], changed["title"], changed["metadata"]) == (made["id"], "T", {"a": 1})
    texts = [hit["text"] for hit in agent("search_knowledge_base", query="zebra giraffe")["results"]]
    assert texts == ["New giraffe."]


def test_a_source_gets_a_language_and_an_unknown_one_is_refused(agent: Agent) -> None:
    text = "Die Häuser stehen am Fluss, und die Kinder gehen am Morgen über die Brücke zur Schule."
    made = agent("manage_document", action="create", content=text)["document"]
    assert agent("search_knowledge_base", query="Haus Kind", language="french")["results"] == []
    changed = agent("manage_source", action="update", source_id=made["source_id"], language="fr")
    assert changed["success"]
    hit = agent("search_knowledge_base", query="Fluss", language="french")["results"][0]
    assert hit["metadata"]["language"] == "french"
    agent("manage_source", action="update", source_id=made["source_id"], language="auto")
    hit = agent("search_knowledge_base", query="Fluss", language="german")["results"][0]
    assert hit["metadata"]["language"] == "german"
    refused = agent.failure("manage_source", action="update", source_id=made["source_id"], language="klingon")
    assert "There is no language 'klingon'" in refused["error"]


def test_a_source_gets_an_encoding_and_what_to_do_with_hidden_parts(agent: Agent, tmp_path: Path) -> None:
    source = agent("manage_source", action="create", title="Letters")["source"]["id"]
    changed = agent("manage_source", action="update", source_id=source, encoding="cp866", hidden="skip")["source"]
    assert (changed["encoding"], changed["hidden"]) == ("cp866", "skip")
    (tmp_path / "docs" / "letter.txt").write_bytes("Мир и труд".encode("cp866"))
    made = agent("manage_document", action="create", file_path="letter.txt", source_id=source)["document"]
    assert agent("manage_document", action="get", document_id=made["id"])["document"]["preview"] == "Мир и труд"
    back = agent("manage_source", action="update", source_id=source, encoding="auto", hidden="read")["source"]
    assert "encoding" not in back and "hidden" not in back
    refused = agent.failure("manage_source", action="update", source_id=source, encoding="klingon")
    assert "There is no encoding 'klingon'" in refused["error"]


def test_a_document_in_a_language_that_the_model_was_not_trained_for_comes_with_an_offer(
    minilm_wb: Workbench,
) -> None:
    agent = Agent(create_server(minilm_wb, toolsets=["all"]))
    german = "Der Turm steht in der alten Stadt und ist dreihundert Meter hoch, und man sieht den Fluss."
    assert "in German" in agent("manage_document", action="create", content=german)["message"]
    english = agent("manage_document", action="create", content="The tower stands in the old town, by the river.")
    assert english["message"] == "Document ingested successfully with 1 chunks"
    stray = agent("manage_document", action="create", content=f"{german} Zweiter Turm.", title="Zwei")["message"]
    assert "chunks. " in stray and ".." not in stray


def test_large_metadata_hides_no_document_from_a_list(agent: Agent) -> None:
    facts = {f"fact{number}": "word " * 50 for number in range(100)}
    for number in range(3):
        agent("manage_document", action="create", content=f"Words {number}.", metadata=facts)
    listed = agent.text("manage_document", action="list")
    shown = json.loads(listed)["documents"]
    assert len(shown) == 3
    assert shown[0]["metadata"]["..."].endswith("of 100 entries are too long to show")
    got = agent.text("manage_document", action="get", document_id=shown[0]["id"])
    assert len(json.loads(got)["document"]["metadata"]) > len(shown[0]["metadata"])
    assert max(tokens(listed), tokens(got)) < 8000


def test_numbers_that_json_lacks_are_null_in_metadata(agent: Agent) -> None:
    made = agent("manage_document", action="create", content="Words.", metadata='{"a": NaN, "b": [1, -Infinity]}')
    assert made["document"]["metadata"] == {"a": None, "b": [1, None]}
    changed = agent("manage_document", action="update", document_id=made["document"]["id"], metadata='{"c": 1e999}')
    assert "c" not in changed["document"]["metadata"]  # null removes a name


def test_overlong_titles_and_urls_are_refused_whatever_else_is_given(agent: Agent) -> None:
    made = agent("manage_document", action="create", content="Old words.", title="T")["document"]
    arguments = {"action": "update", "document_id": made["id"], "content": "New words."}
    assert "at most 300" in agent.failure("manage_document", **arguments, title="t" * 301)["error"]
    assert "at most 4,000" in agent.failure("manage_document", **arguments, url="http://x/" + "u" * 4000)["error"]
    source = {"action": "create", "title": "S", "url": "http://x/" + "u" * 4000}
    assert "at most 4,000" in agent.failure("manage_source", **source)["error"]


def test_get_shows_a_preview_and_where_the_whole_text_is(agent: Agent) -> None:
    made = agent("manage_document", action="create", content="word " * 1000, title="Long")["document"]
    shown = agent("manage_document", action="get", document_id=made["id"])["document"]
    assert len(shown["preview"]) == 1000
    assert shown["full_text"] == f"resource document://{made['id']}"
    assert "content" not in shown


def test_delete_reports_what_went(agent: Agent) -> None:
    text = "Some words and [a link](https://example.com/a)."
    made = agent("manage_document", action="create", content=text, title="T")["document"]
    gone = agent("manage_document", action="delete", document_id=made["id"])
    assert gone["deleted"] == {"document_id": made["id"], "title": "T", "passages": 1, "citations": 1}
    assert agent("search_knowledge_base", query="words")["count"] == 0


def test_lists_are_paged(agent: Agent, wb: Workbench) -> None:
    for number in range(25):
        wb.sources.create(f"Source {number}")
    first = agent("manage_source", action="list", per_page=50)
    second = agent("manage_source", action="list", per_page=20, page=2)
    assert (first["count"], first["total_count"], second["count"]) == (20, 25, 5)
    assert not {source["id"] for source in first["sources"]} & {source["id"] for source in second["sources"]}


def test_an_unreadable_file_reports_the_reason(agent: Agent, tmp_path: Path) -> None:
    (tmp_path / "docs" / "broken.pdf").write_bytes(b"%PDF-1.7 broken")
    (tmp_path / "docs" / "empty.md").write_bytes(b"")
    for name in ("broken.pdf", "empty.md"):
        assert name in agent.failure("manage_document", action="create", file_path=name)["error"]
    assert agent("manage_document", action="list")["total_count"] == 0


def test_a_source_is_renamed_and_found_by_its_title(agent: Agent) -> None:
    made = agent("manage_source", action="create", title="Old", source_type="crawl", url="https://example.com/")[
        "source"
    ]
    agent("manage_source", action="update", source_id=made["id"], title="New")
    assert agent("manage_source", action="get", source_id="New")["source"]["id"] == made["id"]
    assert agent("manage_source", action="get", source_id="https://example.com/")["source"]["title"] == "New"


def test_a_title_that_is_taken_is_refused_in_words_of_the_field(agent: Agent) -> None:
    agent("manage_source", action="create", title="Lab")
    refused = agent.failure("manage_source", action="create", title="Lab")
    assert refused["error"] == "There is already a source with that name; choose another name, or use the existing one."


def test_nul_characters_in_text_and_metadata_are_left_out(agent: Agent) -> None:
    metadata = {"note\x00": "a\x00b", "list": ["c\x00", {"d": "\x00"}]}
    created = agent("manage_document", action="create", content="Alpha\x00 beta.", title="T", metadata=metadata)
    document = created["document"]
    assert document["metadata"] == {"note": "ab", "list": ["c", {"d": ""}]}
    changed = agent("manage_document", action="update", document_id=document["id"], metadata={"e": "\x00f"})
    assert changed["document"]["metadata"]["e"] == "f"
    assert agent("search_knowledge_base", query="alpha beta")["results"][0]["text"].endswith("Alpha beta.")


@pytest.mark.parametrize("tool", ["search_knowledge_base", "rag_search_knowledge_base"])
def test_metadata_narrows_a_search(agent: Agent, wb: Workbench, tool: str) -> None:
    for status in ("draft", "final"):
        about = {"status": status, "author": "Ana"}
        wb.documents.create(title=f"Harbour {status}", text=f"The {status} quay is of granite.", metadata=about)

    def titles(*metadata: str) -> set[str]:
        results = agent(tool, query="granite quay", metadata=list(metadata))["results"]
        return {result.get("document_title") or result["title"] for result in results}

    assert titles("status=final") == {"Harbour final"}
    assert titles("author=ana", "status=draft", "status=final") == {"Harbour draft", "Harbour final"}
    assert titles("status=gone") == set()
    refused = agent.failure(tool, query="granite quay", metadata=["status"])["error"]
    assert refused == "Invalid metadata 'status': use NAME=VALUE, such as status=final."
