"""Checks of a state at each width and in both themes, by axe among others, with its screenshots and their sheets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from browser_server import ARTIFACTS
from looks import assert_fits, axe_findings
from playwright.sync_api import Page, expect
from sheet import contact_sheet

SIZES = {1440: 1000, 1024: 800, 390: 844}
PICTURED = (1440, 390)  # the widths on a sheet; at the one between, a state only has to fit
RULES = {"dark": ("color-contrast",), "light": ()}  # of axe; the dark theme changes only colours
SCHEMES = tuple(RULES)
Taken = dict[str, list[Path]]


def pictures(page: Page, name: str, landmark: str) -> Taken:
    """Check a visible state in the dark theme, then in the light one at each width; returns its screenshots by theme.

    It leaves the page in the light theme and as narrow as a phone.
    """
    taken: Taken = {}
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": 1440, "height": SIZES[1440]})
        found = axe_findings(page, *RULES[scheme])
        assert not found, f"{name}, {scheme}: {found}"
        for width in SIZES if scheme == "light" else (1440,):
            page.set_viewport_size({"width": width, "height": SIZES[width]})
            expect(page.locator(landmark).first).to_be_attached()
            assert_fits(page, f"{name} at {width}")
            if width in PICTURED:
                path = ARTIFACTS / f"{name}-{width}-{scheme}.jpg"
                page.screenshot(path=path, quality=90)
                taken.setdefault(scheme, []).append(path)
    return taken


def write_sheets(rows: Mapping[str, Taken], kind: str) -> None:
    """Write the contact sheet of each theme, with one row per state."""
    for scheme in SCHEMES:
        contact_sheet({name: taken[scheme] for name, taken in rows.items()}, ARTIFACTS / f"sheet-{kind}-{scheme}.jpg")
