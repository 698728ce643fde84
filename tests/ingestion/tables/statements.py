"""Financial statements on generated pages, with the faults of real ones, and the correct figures.

No ruling lines; lines close together; currency signs apart from their figures; brackets for what is less than
nothing; dashes; long labels on two lines; parts; notes; a text over all columns; a title close above.
"""

from __future__ import annotations

import io
import random
from dataclasses import dataclass

PARTS = ("Operating activities", "Investing activities:", "Current assets:", "EQUITY")
THINGS = (
    "Harbour dues", "Ice and bait", "Towage", "Pilotage (Note 14)", "Repairs, net of what was recovered", "Wages",
    "Depreciation and amortization", "Other income (expense), net", "Interest expense", "Lighthouse levies",
    "Rent of the quay", "Fuel", "Provision for storms", "Shares, 754.6 issued", "Long-term debt", "Stores and spares",
)  # fmt: skip
LONG = ("Net increase (decrease) in the value of boats that were", "held for sale at the end of the year")
WIDTH, HEIGHT, MARGIN = 612, 792, 50


@dataclass(frozen=True)
class Statement:
    """A statement's page as a PDF, the names of its columns, and the figures of each row by its label."""

    pdf: bytes
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]


def statement(seed: int) -> Statement:
    """Return a statement; its faults are drawn from the seed."""
    from reportlab.pdfgen.canvas import Canvas

    chance = random.Random(seed)
    columns = tuple(str(2023 - number) for number in range(chance.choice((2, 2, 3, 3, 4))))
    size = chance.choice((7.5, 8.5, 9.5))
    leading = size * chance.choice((1.12, 1.2, 1.35))
    target = io.BytesIO()
    canvas = Canvas(target, pagesize=(WIDTH, HEIGHT))
    edges = [WIDTH - MARGIN - (len(columns) - 1 - number) * 72 for number in range(len(columns))]
    height = HEIGHT - 60

    def line(
        label: str, figures: tuple[str, ...] = (), indent: int = 0, bold: bool = False, signs: bool = False
    ) -> None:
        nonlocal height
        canvas.setFont("Times-Bold" if bold else "Times-Roman", size)
        canvas.drawString(MARGIN + indent, height, label)
        for edge, figure in zip(edges, figures, strict=False):
            canvas.drawRightString(edge, height, figure)
            if signs:
                canvas.drawString(edge - 52, height, "$")
        height -= leading

    canvas.setFont("Times-Bold", size + 2)
    canvas.drawCentredString(WIDTH / 2, height, f"CONSOLIDATED STATEMENT OF THE HARBOUR, PART {seed}")
    height -= leading * 1.3
    line("(in thousands, except per share amounts)" if chance.random() < 0.5 else "The Harbour and its subsidiaries")
    if chance.random() < 0.6:
        canvas.setFont("Times-Bold", size)
        canvas.drawCentredString((edges[0] - 30 + edges[-1]) / 2, height, "Year ended December 31,")
        height -= leading
    line("", columns, bold=True)
    rows: list[tuple[str, tuple[str, ...]]] = []
    labels = chance.sample(THINGS, 14)
    for number, label in enumerate(labels):
        if number % 5 == 0:
            line(chance.choice(PARTS), bold=True)
        figures = tuple(_figure(chance) for _ in columns)
        if number == 7:
            line(LONG[0], indent=8)
            line(LONG[1], figures, indent=16)
            rows.append((" ".join(LONG), figures))
            continue
        line(label, figures, indent=8, signs=number in (0, 13))
        rows.append((label, figures))
        if number % 5 == 4:
            height -= leading * 0.4
    height -= leading
    line("See the accompanying notes to the consolidated statements, which are a part of them.")
    canvas.save()
    return Statement(target.getvalue(), columns, tuple(rows))


def _figure(chance: random.Random) -> str:
    figure = f"{chance.randint(2, 99_999):,}"
    drawn = chance.random()
    return "-" if drawn < 0.06 else f"({figure})" if drawn < 0.25 else figure
