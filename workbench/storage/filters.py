"""LlamaIndex metadata filters as SQL with bound parameters: a value can never become SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.errors import InvalidInput, choices
from workbench.storage.database import clean

if TYPE_CHECKING:
    from llama_index.core.vector_stores.types import MetadataFilter
    from sqlalchemy import BindParameter, TextClause

_COMPARISONS = {"==": "=", "!=": "!=", ">": ">", "<": "<", ">=": ">=", "<=": "<="}


def bound_clause(filter_: MetadataFilter) -> TextClause:
    """Return a SQLAlchemy condition on ``metadata_`` for one filter.

    Numbers compare as numbers where the stored value is one (other rows do not match and do not fail), text as text.

    Raises:
        InvalidInput: an operator that has no meaning here.
    """
    from sqlalchemy import String, bindparam, text

    operator = filter_.operator.value
    key, value = clean(str(filter_.key)), filter_.value
    if operator in _COMPARISONS:
        sign = _COMPARISONS[operator]
        if isinstance(value, int | float) and not isinstance(value, bool):
            condition = (
                "CASE WHEN jsonb_typeof(metadata_::jsonb -> :key) = 'number' "
                f"THEN (metadata_::jsonb ->> :key)::float8 {sign} :value ELSE false END"
            )
            return text(condition).bindparams(_fresh("key", key), _fresh("value", float(value)))
        shown = clean(str(value).lower() if isinstance(value, bool) else str(value))
        return text(f"metadata_ ->> :key {sign} :value").bindparams(_fresh("key", key), _fresh("value", shown))
    if operator in ("in", "nin"):
        negation = "NOT " if operator == "nin" else ""
        return text(f"{negation}(metadata_ ->> :key = ANY(:value))").bindparams(
            _fresh("key", key), _fresh("value", _texts(value))
        )
    if operator in ("any", "all"):
        function = "jsonb_exists_any" if operator == "any" else "jsonb_exists_all"
        return text(f"{function}(metadata_::jsonb -> :key, :value)").bindparams(
            _fresh("key", key), _fresh("value", _texts(value))
        )
    if operator == "contains":
        return text("jsonb_exists(metadata_::jsonb -> :key, :value)").bindparams(
            _fresh("key", key), _fresh("value", clean(str(value)))
        )
    if operator in ("text_match", "text_match_insensitive"):
        column = "metadata_ ->> :key" if operator == "text_match" else "lower(metadata_ ->> :key)"
        shown = clean(str(value)) if operator == "text_match" else clean(str(value)).lower()
        return text(f"strpos({column}, :value) > 0").bindparams(
            _fresh("key", key), bindparam("value", shown, String, unique=True)
        )
    if operator == "is_empty":
        return text("metadata_ ->> :key IS NULL").bindparams(_fresh("key", key))
    valid = [*_COMPARISONS, "in", "nin", "any", "all", "contains", "text_match", "text_match_insensitive", "is_empty"]
    raise InvalidInput(f"A metadata filter cannot use the operator {operator!r}; use one of {choices(valid, 20)}.")


def _fresh(name: str, value: object) -> BindParameter[object]:
    """Bind under a name that stays unique when several filters are joined."""
    from sqlalchemy import bindparam

    return bindparam(name, value, unique=True)


def _texts(value: object) -> list[str]:
    return [clean(str(item)) for item in (value if isinstance(value, list | tuple) else [value])]
