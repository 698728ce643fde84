"""The layout of the citation graph: nodes are apart, linked ones are close, and it is always the same."""

from __future__ import annotations

from itertools import combinations
from math import dist

from workbench.app.graph.page import lay_out


def test_two_groups_that_no_link_joins_are_apart_and_no_two_dots_on_one_place():
    groups = (range(12), range(12, 24))
    links = tuple(pair for group in groups for pair in combinations(group, 2))
    at = lay_out(24, links)
    inside = [dist(at[one], at[two]) for group in groups for one, two in combinations(group, 2)]
    between = [dist(at[first], at[two]) for first in groups[0] for two in groups[1]]
    assert min(inside) > 0.1
    assert sum(between) / len(between) > 1.5 * sum(inside) / len(inside)


def test_dots_without_any_link_stay_within_one_picture():
    at = lay_out(300, ())
    assert max(dist((0, 0), place) for place in at) < 3 * 300**0.5


def test_the_same_links_make_the_same_picture_and_nothing_makes_none():
    lay_out.cache_clear()
    first = lay_out(5, ((0, 1), (1, 2)))
    lay_out.cache_clear()
    assert lay_out(5, ((0, 1), (1, 2))) == first
    assert lay_out(0, ()) == ()
    assert len(lay_out(1, ((0, 0),))) == 1
