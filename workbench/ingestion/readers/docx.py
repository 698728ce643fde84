"""The reader of Word files: mammoth to HTML by the paragraph styles, then to Markdown."""

from __future__ import annotations

import io

from workbench.ingestion.raw import Draft
from workbench.ingestion.readers.html import fragment_to_markdown
from workbench.ingestion.readers.markdown import first_heading
from workbench.ingestion.readers.package import core_properties, open_package, without_title

STYLES = "p[style-name='Title'] => h1:fresh\np[style-name='Subtitle'] => p:fresh"


def read_docx(data: bytes, name: str) -> Draft:
    """Return headings, paragraphs, lists, tables and footnotes; pictures are left out."""
    with open_package(data, name) as package:
        properties = core_properties(package)
    import mammoth

    html = mammoth.convert_to_html(
        io.BytesIO(data), style_map=STYLES, convert_image=mammoth.images.img_element(lambda image: {})
    ).value
    text = fragment_to_markdown(html)
    heading = first_heading(text)
    return Draft(text, properties.get("title") or heading, without_title(properties))
