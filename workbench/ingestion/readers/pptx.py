"""Read PowerPoint: a page a slide, with its title, text, tables and the speaker's notes."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from workbench.ingestion.raw import Draft
from workbench.ingestion.readers.grid import markdown_table, one_line
from workbench.ingestion.readers.package import core_properties, open_package, without_title


def read_pptx(data: bytes, name: str) -> Draft:
    """Return the slides in order."""
    with open_package(data, name) as package:
        properties = core_properties(package)
    from pptx import Presentation

    presentation = Presentation(io.BytesIO(data))
    pages = tuple((number, _slide(slide)) for number, slide in enumerate(presentation.slides, 1))
    first = next((_title(slide) for slide in presentation.slides if _title(slide)), "")
    title = properties.get("title", "")
    # python-pptx's own template leaves this as the title of every file it makes
    return Draft(
        title=first if title in ("", "PowerPoint Presentation") else title,
        pages=pages,
        metadata=without_title(properties),
    )


def _title(slide: Any) -> str:
    shape = slide.shapes.title
    return one_line(shape.text_frame.text) if shape is not None and shape.has_text_frame else ""


def _slide(slide: Any) -> str:
    title = _title(slide)
    parts = [f"## {title}"] if title else []
    title_id = slide.shapes.title.shape_id if slide.shapes.title is not None else None
    parts.extend(text for shape in _shapes(slide.shapes) if shape.shape_id != title_id and (text := _shape(shape)))
    if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
        notes = slide.notes_slide.notes_text_frame.text.strip()
        if notes:
            parts.append(f"Notes: {notes}")
    return "\n\n".join(parts)


def _shapes(shapes: Any) -> Iterator[Any]:
    """Yield shapes in reading order, those inside groups included."""
    for shape in shapes:
        if hasattr(shape, "shapes"):
            yield from _shapes(shape.shapes)
        else:
            yield shape


def _shape(shape: Any) -> str:
    if getattr(shape, "has_table", False):
        return markdown_table([[one_line(cell.text) for cell in row.cells] for row in shape.table.rows])
    if not shape.has_text_frame:
        return ""
    lines = [(paragraph.level, one_line(paragraph.text)) for paragraph in shape.text_frame.paragraphs]
    lines = [(level, text) for level, text in lines if text]
    if len(lines) == 1:
        return lines[0][1]
    return "\n".join(f"{'  ' * level}- {text}" for level, text in lines)
