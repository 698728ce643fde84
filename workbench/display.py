"""Results in a notebook: tables for pandas, HTML for light and dark themes, and a bump chart.

Text from documents and questions is escaped; the HTML has its own style and no script.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from workbench.marking import excerpt, remove_rows, split_matches, table_excerpt
from workbench.runtime import check_extra

if TYPE_CHECKING:
    import altair
    import pandas

    from workbench.types import Comparison, IngestReport, Passage, SearchResult

# characters of a passage in a list, and in a column of a comparison
LIST_EXCERPT_CHARS, COLUMN_EXCERPT_CHARS = (320, 170)
_MAX_LABEL_CHARS = 44  # characters of a passage's name in the chart

_STYLE = """<style>
.wbench{font:13px/1.5 system-ui,sans-serif;color:inherit;max-width:100%;overflow-x:auto}
.wbench table{font-size:inherit;border-collapse:collapse;width:100%;margin:.4em 0;table-layout:auto}
.wbench th,.wbench td{text-align:left!important;vertical-align:top;padding:.45em .6em;background:none!important;
 border-bottom:1px solid rgba(128,128,128,.28);white-space:normal;word-break:break-word}
.wbench th{font-weight:600;opacity:.72}
.wbench .f{width:auto;font-size:12px}
.wbench .f th,.wbench .f td{padding:.1em .8em .1em 0;border:0;font-variant-numeric:tabular-nums}
.wbench .n{white-space:nowrap;font-variant-numeric:tabular-nums;width:1%}
.wbench .t{font-weight:600}
.wbench .q{opacity:.66}
.wbench mark{background:rgba(245,180,0,.34);color:inherit;border-radius:2px;padding:0 1px}
.wbench .b{display:block;height:4px;border-radius:2px;background:rgba(128,128,128,.22);min-width:4.5em;margin-top:.2em}
.wbench .b i{display:block;height:4px;border-radius:2px;background:#5b8def}
.wbench .m{font-size:11px;border:1px solid rgba(128,128,128,.45);border-radius:9px;padding:0 .5em;margin-left:.4em;
 white-space:nowrap;font-weight:400}
</style>"""


def result_frame(result: SearchResult) -> pandas.DataFrame:
    """Return one row per passage: rank, score, title, heading, text, and a column with the score of each leg."""
    check_extra("app")
    import pandas as pd

    legs = list(dict.fromkeys(name for passage in result for name in passage.attribution))
    columns = ["rank", "score", "title", "heading", "text", *legs, "document_id", "passage_id", "copies"]
    rows = [
        {
            "rank": passage.rank,
            "score": passage.score,
            "title": passage.document_title,
            "heading": heading_text(passage),
            "text": passage.text,
            "document_id": passage.document_id,
            "passage_id": passage.passage_id,
            "copies": len(passage.copies),
            **{name: leg.score for name, leg in passage.attribution.items()},
        }
        for passage in result
    ]
    return pd.DataFrame(rows, columns=pd.Index(columns))


def comparison_frame(comparison: Comparison) -> pandas.DataFrame:
    """Return one row per passage and one rank column per strategy, empty if not found; best ranks first."""
    check_extra("app")
    import pandas as pd

    names = list(comparison.strategies)
    passages = {passage.passage_id: passage for result in comparison.strategies.values() for passage in result}
    ranks = {name: {passage.passage_id: passage.rank for passage in comparison.strategies[name]} for name in names}
    frame = pd.DataFrame(
        {
            "title": [passage.document_title for passage in passages.values()],
            "heading": [heading_text(passage) for passage in passages.values()],
            **{name: pd.array([ranks[name].get(key) for key in passages], dtype="Int64") for name in names},
            "text": [passage.text for passage in passages.values()],
        },
        index=pd.Index(list(passages), name="passage_id"),
    )
    order = frame[names].min(axis=1).sort_values(kind="stable").index
    return frame.loc[order]


def result_html(result: SearchResult) -> str:
    """Return a table of the passages: rank, score, heading, and the text with question words marked."""
    head = f"{len(result)} passages by {result.strategy} in {result.timings_ms.get('total', 0):.0f} ms"
    if not result.results:
        return _page(result.query, head, "<p>Nothing was found.</p>", result.notes)
    rows = "".join(
        f"<tr><td class=n>{passage.rank}</td><td class=n>{passage.score:.3f}{_bar(passage.score)}</td>"
        f"<td>{_title(passage)}<br>{_excerpt_html(result.query, passage.text)}{_copies_html(passage)}</td></tr>"
        for passage in result
    )
    table = f"<table><thead><tr><th>#</th><th>Score</th><th>Passage</th></tr></thead><tbody>{rows}</tbody></table>"
    return _page(result.query, head, table, result.notes)


def comparison_html(comparison: Comparison) -> str:
    """Return the strategies as columns; each passage shows its change in rank from the first column."""
    results = comparison.strategies
    first = next(iter(results.values()), ())
    before = {passage.passage_id: passage.rank for passage in first}
    heads = "".join(
        f"<th>{escape(name)} <span class=q>{result.timings_ms.get('total', 0):.0f} ms</span></th>"
        for name, result in results.items()
    )
    rows = []
    for place in range(max((len(result) for result in results.values()), default=0)):
        cells = [
            _cell(result.results[place], comparison.query, before, column) if place < len(result) else "<td></td>"
            for column, result in enumerate(results.values())
        ]
        rows.append(f"<tr><td class=n>{place + 1}</td>{''.join(cells)}</tr>")
    widths = "<col>" + f"<col style='width:{100 / max(1, len(results)):.1f}%'>" * len(results)
    top = f"<table><colgroup>{widths}</colgroup><thead><tr><th>#</th>{heads}</tr></thead>"
    table = f"{top}<tbody>{''.join(rows)}</tbody></table>"
    return _page(comparison.query, _agreement(comparison), table, comparison.notes)


def report_html(report: IngestReport) -> str:
    """Return what an ingest changed, and which files could not be read."""
    counts = f"{report.added:,} added, {report.updated:,} updated, {report.unchanged:,} unchanged"
    head = f"{counts}, {len(report.failures):,} failed; {report.passages:,} passages in {report.seconds:.1f} s"
    rows = "".join(f"<tr><td>{escape(item.path)}</td><td>{escape(item.error)}</td></tr>" for item in report.failures)
    table = (
        f"<table><thead><tr><th>Failed</th><th>Reason</th></tr></thead><tbody>{rows}</tbody></table>" if rows else ""
    )
    return _page("Documents", head, table, tuple(filter(None, (*report.notes, report.left_out_sentence, report.offer))))


def leaderboard_html(
    title: str, head: str, names: Sequence[str], rows: Sequence[Sequence[str]], notes: tuple[str, ...]
) -> str:
    """Return runs as a table with the columns given in ``names``."""
    heads = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return _page(title, head, f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>", notes)


def result_text(result: SearchResult) -> str:
    """Return the passages for a console, one per line, without times and ids."""
    lines = [
        f"{hit.rank:>3}  {hit.score:.2f}  {_name(hit)}" + (f"  ({hit.describe_copies()})" if hit.copies else "")
        for hit in result
    ]
    count = "1 passage" if len(result) == 1 else f"{len(result)} passages"
    preferred = result.notes[: bool(result.preferring)]  # the first is on preferred documents
    far = filter(None, [result.nothing_close])
    return "\n".join([f"{count} by {result.strategy} for {result.query!r}", *preferred, *far, *lines])


def comparison_text(comparison: Comparison) -> str:
    """Return the strategies' results for a console, one after another."""
    return "\n\n".join(result_text(result) for result in comparison.strategies.values())


def report_text(report: IngestReport) -> str:
    """Return what an ingest changed, and which files could not be read, for a console."""
    counts = f"{report.added:,} added, {report.updated:,} updated, {report.unchanged:,} unchanged"
    lines = [f"{item.path}: {item.error}" for item in report.failures]
    lines += filter(None, (*report.notes, report.left_out_sentence, report.offer))
    return "\n".join([f"{counts}, {len(report.failures):,} failed; {report.passages:,} passages", *lines])


def bump_chart(comparison: Comparison) -> altair.LayerChart | altair.FacetChart:
    """Return a chart of ranks by strategy, best on top, with a line through the ranks of each passage."""
    check_extra("app")
    import altair as alt
    import pandas as pd

    names = list(comparison.strategies)
    data = pd.DataFrame(
        [
            {"strategy": name, "rank": hit.rank, "score": hit.score, "passage": hit.passage_id, "name": _name(hit)}
            for name in names
            for hit in comparison.strategies[name]
        ],
        columns=pd.Index(["strategy", "rank", "score", "passage", "name"]),
    )
    depth = int(data["rank"].max()) if len(data) else 1
    lit = alt.selection_point(fields=["passage"], on="pointerover", empty=True)
    base = alt.Chart(data).encode(
        x=alt.X("strategy:N", sort=names, title=None, axis=alt.Axis(labelAngle=0, orient="top", domain=False)),
        y=alt.Y("rank:Q", scale=alt.Scale(domain=[depth + 0.5, 0.5]), axis=None),
        color=alt.Color("passage:N", legend=None, scale=alt.Scale(scheme="tableau20")),
        opacity=alt.condition(lit, alt.value(1.0), alt.value(0.15)),
        tooltip=[alt.Tooltip("name:N", title="Passage"), "strategy:N", "rank:Q", alt.Tooltip("score:Q", format=".3f")],
    )
    lines = base.mark_line(strokeWidth=2.5, interpolate="monotone").encode(detail="passage:N")
    points = base.mark_circle(size=420).add_params(lit)
    ranks = base.mark_text(fontSize=11, fontWeight="bold", color="white").encode(
        text="rank:Q", color=alt.value("white")
    )
    return (
        alt.layer(lines, points, ranks)
        .properties(
            title=alt.Title(comparison.query, anchor="start"), width=130 * max(1, len(names)), height=38 * depth
        )
        .configure(background="transparent")
        .configure_view(stroke=None)
        .configure_axis(labelColor="gray", ticks=False, grid=False)
        .configure_title(color="gray")
    )


def heading_text(passage: Passage) -> str:
    """Return a passage's position in its document: the heading path below the title, and the page."""
    path = list(passage.headings)
    if path and path[0] == passage.document_title:
        path = path[1:]
    return " › ".join(path + ([f"page {passage.page}"] if passage.page else []))


def movement_text(before: int | None, now: int) -> str:
    """Return the change between two ranks: ``↑2``, ``↓1``, ``=``, ``new``."""
    if before is None:
        return "new"
    return "=" if before == now else f"↑{before - now}" if now < before else f"↓{now - before}"


def _page(title: str, head: str, body: str, notes: tuple[str, ...]) -> str:
    lines = "".join(f"<div class=q>{escape(note)}</div>" for note in notes)
    top = f"<div><span class=t>{escape(title)}</span> <span class=q>· {escape(head)}</span></div>"
    return f"{_STYLE}<div class=wbench>{top}{lines}{body}</div>"


def _title(passage: Passage) -> str:
    place = heading_text(passage)
    title = f"<span class=t>{escape(passage.document_title)}</span>"
    return title + (f" <span class=q>{escape(place)}</span>" if place else "")


def _copies_html(passage: Passage) -> str:
    """Return the number of a passage's copies, which opens their titles."""
    if not passage.copies:
        return ""
    titles = " · ".join(dict.fromkeys(copy.document_title for copy in passage.copies))
    return f"<details class=q><summary>{passage.describe_copies(0)}</summary>{escape(titles)}</details>"


def _cell(passage: Passage, query: str, before: dict[str, int], column: int) -> str:
    moved = movement_text(before.get(passage.passage_id), passage.rank)
    badge = f"<span class=m>{moved}</span>" if column else ""
    table = table_excerpt(query, passage.text)
    shown_text = (
        "\n".join(table.lines()[:1]) if table else excerpt(query, remove_rows(passage.text), COLUMN_EXCERPT_CHARS)
    )
    return (
        f"<td>{_title(passage)}{badge}{_bar(passage.score)}"
        f"<div>{_highlight(query, shown_text)}</div>{_copies_html(passage)}</td>"
    )  # fmt: skip


def _excerpt_html(query: str, text: str) -> str:
    """Return a passage's excerpt in a list: table rows below their column names, or prose."""
    table = table_excerpt(query, text)
    if table is None:
        return _highlight(query, excerpt(query, remove_rows(text), LIST_EXCERPT_CHARS))
    heads = "".join(f"<th>{_highlight(query, name)}</th>" for name in table.names)
    head = f"<thead><tr>{heads}</tr></thead>" if any(table.names) else ""
    rows = "".join(f"<tr>{''.join(f'<td>{_highlight(query, cell)}</td>' for cell in row)}</tr>" for row in table.rows)
    return f"<table class=f>{head}<tbody>{rows}</tbody></table>"


def _highlight(query: str, text: str) -> str:
    parts = split_matches(query, text)
    return "".join(f"<mark>{escape(part)}</mark>" if matched else escape(part) for part, matched in parts)


def _bar(score: float) -> str:
    return f"<span class=b><i style=width:{100 * min(1.0, max(0.0, score)):.0f}%></i></span>"


def _agreement(comparison: Comparison) -> str:
    pairs = comparison.agreement.get("jaccard", {})
    shares = [f"{pair.replace('|', ' and ')} {value:.0%}" for pair, value in pairs.items()]
    return "same passages: " + ", ".join(shares) if shares else "one strategy"


def _name(passage: Passage) -> str:
    place = heading_text(passage)
    name = f"{passage.document_title} · {place}" if place else passage.document_title
    return name if len(name) <= _MAX_LABEL_CHARS else name[: _MAX_LABEL_CHARS - 1] + "…"
