"""What each variable of a file is for, by its attributes and dimensions and by those that name it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tamis.cf.lookup import Lookup
from tamis.cf.packing import packing_of
from tamis.cf.variables import Attributes, Variable, text

_LISTS = {
    "coordinates": "auxiliary coordinate",
    "bounds": "bounds",
    "climatology": "climatology bounds",
    "formula_terms": "formula term",
    "cell_measures": "cell measure",
    "grid_mapping": "grid mapping",
    "geometry": "geometry",
    "node_count": "index",
    "part_node_count": "index",
    "interior_ring": "index",
    "nodes": "auxiliary coordinate",
    "ancillary_variables": "ancillary variable",
}
"""Attributes that name variables, with what these are for."""

_ENDINGS = {"_coordinates": "auxiliary coordinate", "_connectivity": "index"}
"""The same for attributes of a mesh, or of the container of a geometry."""

_PRIORITY = ("coordinate", *dict.fromkeys((*_LISTS.values(), *_ENDINGS.values())))

_INDEX_ATTRIBUTES = ("compress", "instance_dimension", "sample_dimension")
_FLAG_ATTRIBUTES = ("flag_values", "flag_masks")
_AXES = ("axis", "cartesian_axis", "_CoordinateAxisType")
_STANDARD_NAMES = frozenset(
    (
        *("time", "forecast_reference_time", "forecast_period", "latitude", "longitude", "realization"),
        *("grid_latitude", "grid_longitude", "projection_x_coordinate", "projection_y_coordinate"),
        *("projection_x_angular_coordinate", "projection_y_angular_coordinate"),
    )
)
_UNITS = frozenset(
    f"{word}{sign}{end}"
    for word in ("degree", "degrees")
    for sign, end in (("_", "north"), ("_", "N"), ("", "N"), ("_", "east"), ("_", "E"), ("", "E"))
)
_SMALL = 0.01
"""Of the values of the largest variable of a file: what has no more beside it, along one axis, describes that axis."""


KINDS = ("data", *_PRIORITY, "flags", "enumeration", "integers", "axis values")
"""Of roles."""


@dataclass(frozen=True, slots=True)
class Role:
    """What a variable is for.

    Parameters
    ----------
    kind
        One of `KINDS`.
    reason
        How that is known, in words; empty for data.
    """

    kind: str
    reason: str = ""

    @property
    def is_exact(self) -> bool:
        """Whether an error of its values does more harm than it saves bytes, so that only its name asks for one."""
        return self.kind not in ("data", "ancillary variable")


DATA = Role("data")


def roles_of(variables: Iterable[Variable], groups: Mapping[str, Attributes] | None = None) -> dict[str, Role]:
    """Find out what each variable of a file is for.

    Parameters
    ----------
    variables
        All of a file, or of a dataset: a variable that is not there has no role, and gives none.
    groups
        Attributes of groups, by path: ``coordinates`` of a group names coordinates too.

    Returns
    -------
    dict
        By path.
    """
    known = {each.path: each for each in variables}
    claims = _claims(known, groups or {})
    largest = max((math.prod(each.shape) for each in known.values() if each.dtype is not None), default=0)
    return {path: _role(each, claims.get(path, {}), largest) for path, each in known.items()}


_Claims = dict[str, dict[str, dict[str, None]]]
"""By path: the roles that others give it, each with their names in order."""


def _claims(known: Mapping[str, Variable], groups: Mapping[str, Attributes]) -> _Claims:
    """Gather what variables say of each other."""
    lookup = Lookup(known)
    found: _Claims = defaultdict(lambda: defaultdict(dict))
    for path, each in known.items():
        for dimension in dict.fromkeys(each.dimensions):
            if dimension is not None and dimension in known and dimension != path:
                found[dimension]["coordinate"][each.name] = None
        for kind, other in _named(each.attributes, path.rpartition("/")[0] or "/", lookup):
            if other != path:
                found[other][kind][each.name] = None
    for group, attributes in groups.items():
        for other in lookup.find_all(text(attributes, "coordinates"), group):
            found[other]["auxiliary coordinate"]["the file" if group == "/" else group] = None
    return found


def _named(attributes: Attributes, group: str, lookup: Lookup) -> Iterator[tuple[str, str]]:
    """Yield role and path for each variable that some attributes name."""
    for attribute in attributes:
        kind = _LISTS.get(attribute)
        for ending, role in _ENDINGS.items():
            kind = kind or (role if attribute.endswith(ending) else None)
        if kind:
            yield from ((kind, path) for path in lookup.find_all(text(attributes, attribute), group))


def _role(variable: Variable, claims: Mapping[str, Iterable[str]], largest: int) -> Role:
    """Choose the role that says most: what others say goes before what the variable says of itself."""
    for kind in _PRIORITY:
        if names := claims.get(kind):
            if kind == "ancillary variable":
                break
            return Role(kind, f"{kind} of {_listed(names)}")
    if variable.is_scale or variable.path in variable.dimensions:
        return Role("coordinate", "coordinate of its own dimension")
    if own := _own_role(variable):
        return own
    if len(variable.shape) == 1 and variable.dimensions and 0 < variable.shape[0] <= _SMALL * largest:
        axis = str(variable.dimensions[0] or "").rpartition("/")[2]
        if axis:
            return Role("axis values", f"one value for each step of {axis}, beside larger variables")
    names = claims.get("ancillary variable")
    return Role("ancillary variable", f"ancillary variable of {_listed(names)}") if names else DATA


def _own_role(variable: Variable) -> Role | None:
    """Choose a role by what a variable says of itself."""
    attributes, dtype = variable.attributes, variable.dtype
    for name in _FLAG_ATTRIBUTES:
        if name in attributes:
            return Role("flags", f"flags, by its attribute {name}")
    for name in _INDEX_ATTRIBUTES:
        if name in attributes:
            return Role("index", f"index, by its attribute {name}")
    for name in _AXES:
        if said := text(attributes, name):
            return Role("coordinate", f"coordinate, by its attribute {name} {said[:20]!r}")
    standard_name, units = text(attributes, "standard_name"), text(attributes, "units")
    if standard_name in _STANDARD_NAMES:
        return Role("coordinate", f"coordinate, by its standard_name {standard_name!r}")
    if units in _UNITS:
        return Role("coordinate", f"coordinate, by its units {units!r}")
    if " since " in units:
        return Role("coordinate", "time, by its units")
    if variable.is_enum:
        return Role("enumeration", "enumeration")
    if dtype is not None and dtype.kind in "iu" and packing_of(attributes) is None:
        return Role("integers", "integers, which may count or name something")
    return None


def _listed(found: Iterable[str], most: int = 2) -> str:
    """Name the first, and how many more there are."""
    names = list(found)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
