"""The head of the Connect page: the promoted strategy that agents get, and a link to change it."""

import re

from workbench import Scope
from workbench.app.connect.page import format_live_strategies, scope_query


def plain(lines):
    """Return lines of HTML as plain text."""
    return [re.sub(r"<[^>]*>", "", line) for line in lines]


def test_without_a_promotion_the_built_in_default_is_named(wb):
    [line] = plain(format_live_strategies(wb))
    assert line.startswith("Default for agents: Rerank, built in (Hybrid in search_knowledge_base)")
    assert "· index main (default) · change in Compare or Evaluate" in line


def test_every_scope_with_a_promotion_has_its_line_and_its_address(wb):
    project = wb.projects.create("Port <b>")
    wb.projects.create_folder(project.id, "Locks & gates")
    folder, source = Scope(project=project.id, folder="Locks & gates"), wb.sources.create("Tides")
    wb.promotions.promote("hybrid", parameters={"fusion": "rrf"}, scope=folder)
    wb.promotions.promote("vector@main", scope=Scope(sources=(source.id,)), note="nDCG@10 <b>")
    first, second, third = format_live_strategies(wb)
    assert first.startswith("Default for agents: ")
    assert "<b>Hybrid</b> is live in the folder <b>Port &lt;b&gt; / Locks &amp; gates</b>" in second
    assert "version 1 · fusion rrf · index main (default)" in plain([second])[0]
    assert f"?project={project.id}&amp;folder=Locks+%26+gates" in second
    assert re.search(
        r"Vector is live in the source Tides · since .+ · version 1 · index main · nDCG@10 &lt;b&gt; · Open in Compare",
        plain([third])[0],
    )
    assert scope_query(wb, wb.promotions.find_active(Scope(sources=(source.id,)))) == f"source={source.id}"
    wb.promotions.promote("keyword")
    assert plain(format_live_strategies(wb))[0].startswith(
        "Default for agents: Keyword is live in all documents · since"
    )
