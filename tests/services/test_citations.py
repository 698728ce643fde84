"""Citations are read with their document, resolved when the target is added, and deleted with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from workbench import Scope, Workbench
from workbench.errors import InvalidInput

A = "# Alpha\n\nIntro. For details see [beta](sub/beta.md). It ends."
B = "# Beta\n\nBack to [alpha](../alpha.md), on to [[gamma]], and to https://example.com/delta."


def titles(wb: Workbench, citations: object) -> list[tuple[str, str, float]]:
    titled = wb.citations.documents(end for link in citations for end in (link.source_id, link.target_id))  # type: ignore
    return [(titled[link.source_id].title, titled[link.target_id].title, link.confidence) for link in citations]  # type: ignore


def ids(wb: Workbench) -> dict[str, str]:
    return {document.title: document.id for document in wb.documents.list()}


def test_links_are_resolved_when_the_target_arrives_later_and_gone_with_it(
    wb: Workbench, folder: Callable[..., Path]
) -> None:
    wb.ingest(folder({"alpha.md": A}), source="Notes")
    alpha = ids(wb)["Alpha"]
    assert wb.citations.get([alpha])[alpha].citing == ()
    assert [link.target for link in wb.citations.broken()] == ["sub/beta.md"]
    wb.ingest(folder({"sub/beta.md": B}), source="Notes")
    found = wb.citations.get([alpha])[alpha]
    assert titles(wb, found.citing) == [("Alpha", "Beta", 1.0)]
    assert titles(wb, found.cited) == [("Beta", "Alpha", 1.0)]
    assert found.citing[0].context == "For details see [beta](sub/beta.md)."
    assert wb.documents.delete(ids(wb)["Beta"]).citations == 3
    assert wb.citations.get([alpha])[alpha].citing == wb.citations.get([alpha])[alpha].cited == ()


def test_a_url_leads_to_the_document_that_has_it_also_in_another_source(wb: Workbench) -> None:
    note = wb.documents.create(text="See https://www.example.com/delta/ for it.", title="Note", source=None).document
    page = wb.documents.create(
        text="# Delta", title="Delta", source=wb.sources.create("Pages").id, url="http://example.com/delta"
    ).document
    assert wb.citations.get([page.id])[page.id].cited[0].source_id == note.id


def test_a_scope_shows_no_document_outside_it_that_its_documents_cite(wb: Workbench) -> None:
    wb.projects.create("Shop")
    wb.sources.create("Shop notes", project="Shop")
    wb.documents.create(text="See https://example.com/delta for it.", title="Note", source="Shop notes")
    german = "Das ist eine kurze Notiz, und [hier](Note) steht, was wir gestern im Hafen gesehen haben."
    wb.documents.create(text=german, title="Notiz", source="Shop notes")
    wb.documents.create(
        text="# Delta", title="Delta", source=wb.sources.create("Pages").id, url="https://example.com/delta"
    )
    both = wb.citations.overview()
    assert ([node.title for node in both.most_cited], both.resolved, both.external) == (["Delta"], 1, 0)
    shop = wb.requests.resolve(Scope(kind="project", project="Shop"))
    inside = wb.citations.overview(shop)
    assert (inside.most_cited, inside.resolved, inside.external) == ((), 0, 1)
    assert [node.title for node in inside.orphans] == ["Note", "Notiz"]
    assert wb.citations.graph(shop).nodes == wb.citations.graph(shop, [ids(wb)["Note"]]).edges == ()
    in_german = wb.citations.overview(wb.requests.resolve(Scope(languages=("de",))))
    assert [node.title for node in in_german.orphans] == ["Notiz"]


def test_a_url_never_leads_into_another_project(wb: Workbench) -> None:
    for name in ("One", "Two"):
        wb.projects.create(name)
    secret = wb.sources.create("Secret", project="One")
    target = wb.documents.create(text="Body", title="Page", source=secret.id, url="https://example.com/page").document
    for title, project in (("Open", None), ("Other", "Two"), ("Own", "One")):
        source = wb.sources.create(title, project=project)
        wb.documents.create(text=f"{title}: https://example.com/page", title=title, source=source.id)
    assert [pair[0] for pair in titles(wb, wb.citations.get([target.id])[target.id].cited)] == ["Own"]


def test_a_new_url_makes_a_document_citable_by_it(wb: Workbench) -> None:
    note = wb.documents.create(text="See https://example.com/late.", title="Note").document
    late = wb.documents.create(text="Late", title="Late").document
    wb.documents.update(late.id, url="https://example.com/late")
    assert titles(wb, wb.citations.get([note.id])[note.id].citing) == [("Note", "Late", 1.0)]


def test_a_title_in_words_is_a_citation_of_lower_confidence(wb: Workbench, folder: Callable[..., Path]) -> None:
    files = {
        "a.md": "# One\n\nThis builds on Machine Learning Algorithms, mostly.",
        "b.md": "# Machine learning algorithms\n\nText.",
    }
    wb.ingest(folder(files), source="Notes")
    one = ids(wb)["One"]
    (citation,) = wb.citations.get([one])[one].citing
    assert (citation.kind, citation.confidence) == ("mention", 0.6)
    assert citation.context == "This builds on Machine Learning Algorithms, mostly."


def test_a_loop_of_links_ends_at_every_depth(wb: Workbench, folder: Callable[..., Path]) -> None:
    ring = {f"{n}.md": f"# N{n}\n\n[next]({(n + 1) % 4}.md) and [self]({n}.md)" for n in range(4)}
    wb.ingest(folder(ring), source="Ring")
    first = ids(wb)["N0"]
    for depth in (1, 2, 3):
        found = wb.citations.get([first], depth=depth)[first]
        assert [link.depth for link in found.citing] == list(range(1, depth + 1))
        assert [link.depth for link in found.cited] == list(range(1, depth + 1))


@pytest.mark.parametrize("depth", [0, 4, -1])
def test_a_depth_outside_1_to_3_is_refused(wb: Workbench, depth: int) -> None:
    with pytest.raises(InvalidInput, match="from 1 to 3"):
        wb.citations.get([], depth=depth)


def test_the_overview_names_the_most_cited_the_orphans_and_the_broken(
    wb: Workbench, folder: Callable[..., Path]
) -> None:
    files = {
        "a.md": "# A\n\n[b](b.md) [gone](gone.md) [out](https://example.com/)",
        "b.md": "# B\n\nx",
        "c.md": "# C\n\n[b](b.md)",
    }
    wb.ingest(folder(files | {"lone.md": "# Lone\n\nx"}), source="Notes")
    source = wb.sources.get("Notes").id
    seen = wb.citations.overview(wb.requests.resolve(Scope(sources=(source,))))
    assert (seen.links, seen.resolved, seen.external, seen.broken) == (4, 2, 1, 1)
    assert [(node.title, node.cited_by) for node in seen.most_cited] == [("B", 2)]
    assert [node.title for node in seen.orphans] == ["Lone"]


def test_of_a_large_graph_the_best_linked_documents_are_kept(wb: Workbench, folder: Callable[..., Path]) -> None:
    files = {f"{n}.md": f"# D{n}\n\n[hub](hub.md)" for n in range(6)} | {"hub.md": "# Hub\n\nx"}
    wb.ingest(folder(files), source="Notes")
    graph = wb.citations.graph(limit=3)
    assert (len(graph.nodes), len(graph.edges), graph.left_out) == (3, 2, 4)
    assert graph.nodes[0].title == "Hub"


def test_the_counts_of_links_add_up_and_agree_with_the_graph(wb: Workbench, folder: Callable[..., Path]) -> None:
    files = {
        "a.md": "# A\n\n[b](b.md), [b again](b.md#x), [me](a.md), [gone](gone.md), [out](https://example.com/), []( ), "
        "and the file src/none/there.py in words.",
        "b.md": "# B\n\n[a](a.md)",
    }
    wb.ingest(folder(files), source="Notes")
    seen = wb.citations.overview()
    parts = (seen.resolved, seen.within, seen.external, seen.broken, seen.unjudged)
    assert sum(parts) == seen.links
    assert parts[:4] == (3, 1, 1, 1)
    assert sum(edge.links for edge in wb.citations.graph().edges) == seen.resolved
