"""Strategies side by side while you change the question: ``marimo edit strategies_live.py``, or run it as a script.

The marimo companion of the eight notebooks: one Python file whose cells run again when their inputs change.
"""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="Strategies, live")


@app.cell
def _():
    import marimo as mo
    from sandbox import open_workbench
    from workbench.retrieval.strategies import STRATEGIES

    wb = open_workbench("strategies_live")
    return STRATEGIES, mo, wb


@app.cell
def _(mo):
    mo.md("""
    # Strategies, live

    The sample's articles, several strategies, one question. Change any of the three: the cells below run again.
    """)
    return


@app.cell
def _(STRATEGIES, mo):
    question = mo.ui.text(value="how do I combine two rankings?", label="Question", full_width=True)
    strategies = mo.ui.multiselect(
        options=list(STRATEGIES),
        value=["vector", "keyword", "hybrid", "rerank"],
        label="Strategies",
    )
    limit = mo.ui.slider(start=3, stop=10, value=5, label="Passages", show_value=True)
    mo.vstack([question, strategies, limit])
    return limit, question, strategies


@app.cell
def _(limit, question, strategies, wb):
    results = {name: wb.search(question.value, name, limit=limit.value) for name in strategies.value}
    return (results,)


@app.cell
def _(mo, results):
    columns = [
        mo.vstack([mo.md(f"**{name}**"), *(mo.md(f"{rank}. {hit.document_title}") for rank, hit in enumerate(hits, 1))])
        for name, hits in results.items()
    ]
    mo.hstack(columns, widths="equal")
    return


@app.cell
def _(mo, results):
    found = {name: {hit.document_title for hit in hits} for name, hits in results.items()}
    everywhere = set.intersection(*found.values()) if found else set()
    mo.md(f"In every column: {', '.join(sorted(everywhere)) or 'nothing'}.")
    return (everywhere,)


@app.cell
def _(everywhere, mo, results):
    if mo.app_meta().mode == "script":
        for name, hits in results.items():
            print(f"{name}: {' | '.join(hit.document_title for hit in hits)}")
        print(f"In every column: {', '.join(sorted(everywhere)) or 'nothing'}")
    return


@app.cell
def _(mo, wb):
    if mo.app_meta().mode == "script":
        wb.close()
    return


if __name__ == "__main__":
    app.run()
