"""The contact sheet: the screenshots of one theme in rows, one page or state per row, a desk's width and a phone's."""

from __future__ import annotations

from pathlib import Path

from PIL import Image, ImageDraw

HEIGHT = 420  # pixels of a row
GAP, TITLE = 10, 18
PAPER, INK = "#8d8a84", "#ffffff"


def contact_sheet(rows: dict[str, list[Path]], path: Path) -> None:
    """Write one picture of all screenshots: one row per name, all of equal height."""
    pictures = {name: [_scaled(picture) for picture in row] for name, row in rows.items()}
    width = max(sum(picture.width + GAP for picture in row) for row in pictures.values()) + GAP
    sheet = Image.new("RGB", (width, len(rows) * (HEIGHT + TITLE + GAP)), PAPER)
    draw = ImageDraw.Draw(sheet)
    top = 0
    for name, row in pictures.items():
        draw.text((GAP, top + 2), name, fill=INK)
        left = GAP
        for picture in row:
            sheet.paste(picture, (left, top + TITLE))
            left += picture.width + GAP
        top += HEIGHT + TITLE + GAP
    sheet.save(path)


def _scaled(path: Path) -> Image.Image:
    with Image.open(path) as picture:
        size = (round(picture.width * HEIGHT / picture.height), HEIGHT)
        return picture.convert("RGB").resize(size, reducing_gap=2.0)
