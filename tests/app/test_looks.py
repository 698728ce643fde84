"""Colours are distinguishable on both themes, also for people with colour blindness."""

import tomllib
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import workbench.app
from workbench.app.widgets.looks import LOOKS, PALETTE, get_look
from workbench.retrieval.strategies import STRATEGIES

CONFIG = tomllib.loads((Path(workbench.app.__file__).parent / "frame" / ".streamlit" / "config.toml").read_text())
THEMES = {"light": 0, "dark": 1}
OF_STREAMLIT = ("blue", "orange", "green", "violet", "yellow", "red", "gray")

# Machado, Oliveira & Fernandes, "A Physiologically-based Model for Simulation of Color Vision Deficiency" (2009),
# table 1, severity 1.0; in linear RGB.
SEEN_BY = {
    "normal": np.eye(3),
    "protanope": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranope": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]]
    ),
    "tritanope": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]]
    ),
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = np.array([0.95047, 1.0, 1.08883])


def linear(hex_colour):
    value = np.array([int(hex_colour[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def contrast(first, second):
    """WCAG 2.2: (L1 + 0.05) / (L2 + 0.05)."""
    bright, dim = sorted((float(TO_XYZ[1] @ linear(colour)) for colour in (first, second)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def lab(rgb):
    ratio = TO_XYZ @ np.clip(rgb, 0, 1) / WHITE
    f = np.where(ratio > 216 / 24389, np.cbrt(ratio), (24389 / 27 * ratio + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("theme", THEMES)
def test_the_theme_and_the_charts_use_the_same_hues(theme):
    assert {name: CONFIG["theme"][theme][f"{name}Color"] for name in OF_STREAMLIT} == {
        name: shades[THEMES[theme]] for name, shades in PALETTE.items() if f"{name}Color" in CONFIG["theme"][theme]
    }


@pytest.mark.parametrize("theme", THEMES)
def test_text_meets_wcag_aa_and_every_hue_contrasts_with_the_background(theme):
    colours = CONFIG["theme"][theme]
    for paper in (colours["backgroundColor"], colours["secondaryBackgroundColor"]):
        assert contrast(colours["textColor"], paper) >= 7
        assert contrast(colours["primaryColor"], paper) >= 4.5
        assert min(contrast(shades[THEMES[theme]], paper) for shades in PALETTE.values()) >= 3


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("eye", SEEN_BY)
def test_the_four_first_strategies_differ_for_every_eye(theme, eye):
    hues = [get_look(name).hex(theme) for name in ("vector", "keyword", "hybrid", "rerank")]
    colours = [lab(SEEN_BY[eye] @ linear(hue)) for hue in hues]
    assert min(float(np.linalg.norm(a - b)) for a, b in combinations(colours, 2)) > 15


def test_no_two_strategies_look_alike():
    appearances = [(get_look(name).hue, get_look(name).shape, get_look(name).dash) for name in STRATEGIES]
    assert len(set(appearances)) == len(STRATEGIES), "give the new strategy a row of LOOKS in app/widgets/looks.py"
    gone = set(LOOKS) - set(STRATEGIES)
    assert gone == set(), "take the rows of strategies that are gone out of LOOKS in app/widgets/looks.py"


def test_no_two_strategies_share_a_hue():
    own = [name for name in STRATEGIES if name in LOOKS]  # a new one borrows a hue, with its own dash pattern
    assert len({get_look(name).hue for name in own}) == len(own)
