"""The settings of a run in the words of the leaderboard, from the label that is kept with it."""

from __future__ import annotations

import re

SETTING = re.compile(r"\b([a-z]\w*)=(\S+)")  # of a parameter, as in "vector_weight=0.75"


def settings_text(label: str, strategy: str) -> str:
    """Return a label's index and parameters: "index fine, depth 5" of the label "hybrid on fine depth=5"."""
    rest = label.removeprefix(strategy).strip()
    before = SETTING.split(rest, maxsplit=1)[0].strip()
    index = [f"index {before.removeprefix('on ')}"] if before else []
    return ", ".join([*index, *(f"{name.replace('_', ' ')} {_shown(value)}" for name, value in SETTING.findall(rest))])


def _shown(value: str) -> str:
    try:
        return f"{float(value):g}"
    except ValueError:
        return value
