"""Markdown as plain text."""

from workbench.app.widgets.looks import strip_markdown


def test_markdown_becomes_running_text():
    source = "## Setup\n\n- **Bold** and `code`\n- a [link](to.md)\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    assert strip_markdown(source) == "Setup — · Bold and code · a link a · b 1 · 2"
    assert strip_markdown("| | a |\n|---|---|\n| b | |") == "a b"
    assert strip_markdown("set ef_search and *this*") == "set ef_search and this"
