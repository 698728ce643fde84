"""The pages of one document that are read from their pictures, one after the other, and what is said of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.errors import Cancelled
from workbench.ingestion.scans.page_text import PageText, read_page

if TYPE_CHECKING:
    from PIL.Image import Image

UNSURE = 0.9  # mean confidence of a page's words; pages below are named
OnPage = Callable[[int, int], None]  # (page of the document, pages); called before each, and may raise to stop


@dataclass(frozen=True, slots=True)
class ReadScans:
    """The pages that were read from their pictures, by number, and the numbers of those that failed."""

    pages: dict[int, PageText]
    failed: tuple[int, ...] = ()

    def metadata(self) -> dict[str, object]:
        """Return what the document's metadata say of them: which pages, how sure, and which are uncertain."""
        if not self.pages:
            return {}
        sizes = {number: len(page.text) for number, page in self.pages.items()}
        sure = sum(page.scan.confidence * sizes[number] for number, page in self.pages.items()) / sum(sizes.values())
        unsure = [number for number, page in self.pages.items() if page.scan.confidence < UNSURE]
        facts: dict[str, object] = {"scanned_pages": sorted(self.pages), "ocr_confidence": round(sure, 3)}
        return facts | ({"uncertain_pages": unsure} if unsure else {})


def read_scans(
    numbers: Iterable[int], total: int, picture: Callable[[int], Image], on_page: OnPage | None
) -> ReadScans:
    """Read pages of a document of ``total`` pages; one that fails costs that page. One picture is held at a time."""
    pages: dict[int, PageText] = {}
    failed: list[int] = []
    for number in numbers:
        if on_page is not None:
            on_page(number, total)
        try:
            page = read_page(picture(number), number)
        except Cancelled:
            raise
        except Exception:  # noqa: BLE001 - pictures and models fail in any way they like
            failed.append(number)
            continue
        if page is not None:
            pages[number] = page
    return ReadScans(pages, tuple(failed))
