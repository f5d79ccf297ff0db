"""Names of filters as people read them."""

from __future__ import annotations

from tamis.filters.base import Filter
from tamis.filters.registered import REGISTERED
from tamis.filters.unknown import UnknownFilter

_LONGEST_LABEL = 30


def filter_name(each: Filter) -> str:
    """Name a filter: one that tamis has no type for by what its writer called it, and its number."""
    if not isinstance(each, UnknownFilter):
        return each.name
    # Some writers give whole sentences, or add where to get it after a semicolon.
    label = each.label.partition(";")[0].strip()
    if len(label) > _LONGEST_LABEL:
        label = REGISTERED.get(each.id, label)
    return f"{label or 'filter'} [{each.id}]"
