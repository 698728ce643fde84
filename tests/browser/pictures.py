"""Screenshots of a state at each width and in both themes, after axe has found nothing serious, and their sheets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from browser_server import ARTIFACTS
from looks import assert_fits, serious
from playwright.sync_api import Page, expect
from sheet import contact_sheet

SIZES = {1440: 1000, 1024: 800, 390: 844}
RULES = {"light": (), "dark": ("color-contrast",)}  # of axe; the dark theme changes only colours
SCHEMES = tuple(RULES)
Taken = dict[str, list[Path]]


def pictures(page: Page, name: str, landmark: str, widths: Iterable[int] = SIZES) -> Taken:
    """Check a visible state at each width, and in the dark theme at the first one; returns its screenshots by theme."""
    taken: Taken = {}
    first, *others = widths
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": 1440, "height": 1000})
        found = serious(page, *RULES[scheme])
        assert not found, f"{name}, {scheme}: {found}"
        for width in [first, *(others if scheme == "light" else ())]:
            page.set_viewport_size({"width": width, "height": SIZES[width]})
            expect(page.locator(landmark).first).to_be_attached()
            assert_fits(page, f"{name} at {width}")
            path = ARTIFACTS / f"{name}-{width}-{scheme}.png"
            page.screenshot(path=path)
            taken.setdefault(scheme, []).append(path)
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1440, "height": 1000})
    return taken


def write_sheets(rows: Mapping[str, Taken], kind: str) -> None:
    """Write the contact sheet of each theme, with one row per state."""
    for scheme in SCHEMES:
        contact_sheet({name: taken[scheme] for name, taken in rows.items()}, ARTIFACTS / f"sheet-{kind}-{scheme}.png")
