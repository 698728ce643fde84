"""The reader of PowerPoint: a page a slide, with its title, text, tables and the speaker's notes."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from workbench.ingestion.raw import Draft
from workbench.ingestion.readers.grid import filled, markdown_table, one_line
from workbench.ingestion.readers.header_rows import with_one_header
from workbench.ingestion.readers.package import core_properties, open_package, without_title

if TYPE_CHECKING:
    from pptx.shapes.base import BaseShape
    from pptx.slide import Slide


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


def _title(slide: Slide) -> str:
    shape = slide.shapes.title
    return one_line(shape.text_frame.text) if shape is not None and shape.has_text_frame else ""


def _slide(slide: Slide) -> str:
    title = _title(slide)
    parts = [f"## {title}"] if title else []
    title_id = slide.shapes.title.shape_id if slide.shapes.title is not None else None
    parts.extend(text for shape in _shapes(slide.shapes) if shape.shape_id != title_id and (text := _shape(shape)))
    if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
        notes = slide.notes_slide.notes_text_frame.text.strip()
        if notes:
            parts.append(f"Notes: {notes}")
    return "\n\n".join(parts)


def _shapes(shapes: Iterable[BaseShape]) -> Iterator[BaseShape]:
    """Yield shapes in reading order, those inside groups included."""
    from pptx.shapes.group import GroupShape

    for shape in shapes:
        if isinstance(shape, GroupShape):
            yield from _shapes(shape.shapes)
        else:
            yield shape


def _shape(shape: BaseShape) -> str:
    from pptx.shapes.autoshape import Shape
    from pptx.shapes.graphfrm import GraphicFrame

    if isinstance(shape, GraphicFrame) and shape.has_table:
        rows = filled([[one_line(cell.text) for cell in row.cells] for row in shape.table.rows])
        return markdown_table(with_one_header(rows)) if rows else ""
    if not isinstance(shape, Shape):
        return ""
    lines = [(paragraph.level, one_line(paragraph.text)) for paragraph in shape.text_frame.paragraphs]
    lines = [(level, text) for level, text in lines if text]
    if len(lines) == 1:
        return lines[0][1]
    return "\n".join(f"{'  ' * level}- {text}" for level, text in lines)
