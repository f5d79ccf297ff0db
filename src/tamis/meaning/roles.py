"""The role of each variable of a file, from its attributes and dimensions, and from variables that refer to it."""

from __future__ import annotations

import math
import posixpath
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tamis.arguments import MAPPING, Kind
from tamis.meaning.variables import Attributes, Variable, packing_of, text

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
"""Attributes that name other variables, with the role of those."""

_ENDINGS = {"_coordinates": "auxiliary coordinate", "_connectivity": "index"}
"""The same by the ending of the attribute's name, for meshes and containers of geometries."""

_PRIORITY = ("coordinate", *dict.fromkeys((*_LISTS.values(), *_ENDINGS.values())))

_INDEX_ATTRIBUTES = ("compress", "instance_dimension", "sample_dimension")
_FLAG_ATTRIBUTES = ("flag_values", "flag_masks")
_AXES = ("axis", "cartesian_axis", "_CoordinateAxisType")
_STANDARD_NAMES = frozenset(
    {
        "time",
        "forecast_reference_time",
        "forecast_period",
        "latitude",
        "longitude",
        "realization",
        "grid_latitude",
        "grid_longitude",
        "projection_x_coordinate",
        "projection_y_coordinate",
        "projection_x_angular_coordinate",
        "projection_y_angular_coordinate",
    }
)
_UNIT_ENDINGS = ("_north", "_N", "N", "_east", "_E", "E")
_UNITS = frozenset(f"{word}{ending}" for word in ("degree", "degrees") for ending in _UNIT_ENDINGS)
_SMALL = 0.01
"""A 1-D variable describes its axis if it has at most this fraction of the values of the largest variable."""


_MOST_GROUPS = 256
_MOST_NAMES = 1024
"""Groups in which a name is looked up, and names of one attribute: a hostile file may have any number."""

_SHOWN = 2
"""Names of variables in a reason."""

KINDS = ("data", *_PRIORITY, "flags", "enumeration", "integers", "axis values")
"""All kinds of roles."""


@dataclass(frozen=True, slots=True)
class Role:
    """The role of a variable.

    Parameters
    ----------
    kind
        One of `KINDS`.
    reason
        Why the variable has this role, in words; empty for data.
    """

    kind: str
    reason: str = ""

    @property
    def is_exact(self) -> bool:
        """True if values must stay exact unless the variable is named: errors would harm more than they save."""
        return self.kind not in ("data", "ancillary variable")


DATA = Role("data")
"""The role of a variable that is nothing else."""


_VARIABLES = Kind(
    "several tamis.cf.Variable",
    lambda value: isinstance(value, Iterable) and all(type(item) is Variable for item in value),
)


def roles_of(variables: Iterable[Variable], groups: Mapping[str, Attributes] | None = None) -> dict[str, Role]:
    """Return the role of each variable of a file.

    Parameters
    ----------
    variables
        All variables of a file or dataset; absent variables neither get nor give a role.
    groups
        Attributes of groups, by path; ``coordinates`` of a group also names coordinates.

    Returns
    -------
    dict
        Roles by path.
    """
    if isinstance(variables, Iterable):
        variables = list(variables)
    _VARIABLES.check("variables", variables)
    MAPPING.check_optional("groups", groups)
    by_path = {variable.path: variable for variable in variables}
    claims = _claims(by_path, groups or {})
    largest = max((math.prod(variable.shape) for variable in by_path.values() if variable.dtype is not None), default=0)
    return {path: _role(variable, claims.get(path, {}), largest) for path, variable in by_path.items()}


_Claims = dict[str, dict[str, dict[str, None]]]
"""For each path the kinds of roles that other variables give it, with the names of those variables in order."""


def _claims(variables: Mapping[str, Variable], groups: Mapping[str, Attributes]) -> _Claims:
    """Return the roles that variables give each other."""
    lookup = _Lookup(variables)
    claims: _Claims = defaultdict(lambda: defaultdict(dict))
    for path, variable in variables.items():
        for dimension in dict.fromkeys(variable.dimensions):
            if dimension is not None and dimension in variables and dimension != path:
                claims[dimension]["coordinate"][variable.name] = None
        for kind, other in _named(variable.attributes, path.rpartition("/")[0] or "/", lookup):
            if other != path:
                claims[other][kind][variable.name] = None
    for group, attributes in groups.items():
        for other in lookup.find_all(text(attributes, "coordinates"), group):
            claims[other]["auxiliary coordinate"]["the file" if group == "/" else group] = None
    return claims


def _named(attributes: Attributes, group: str, lookup: _Lookup) -> Iterator[tuple[str, str]]:
    """Yield kind and path of each variable that attributes name."""
    for attribute in attributes:
        kind = _kind_named_by(attribute)
        if kind is not None:
            for path in lookup.find_all(text(attributes, attribute), group):
                yield kind, path


def _kind_named_by(attribute: str) -> str | None:
    """Return the kind of role that an attribute gives to the variables that it names; None if it names none."""
    if attribute in _LISTS:
        return _LISTS[attribute]
    return next((kind for ending, kind in _ENDINGS.items() if attribute.endswith(ending)), None)


def _role(variable: Variable, claims: Mapping[str, Iterable[str]], largest: int) -> Role:
    """Return the most specific role; roles given by other variables precede those by own attributes."""
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
    """Return the role by the variable's own attributes and type; None if there is none."""
    attributes, dtype = variable.attributes, variable.dtype
    for name in _FLAG_ATTRIBUTES:
        if name in attributes:
            return Role("flags", f"flags, by its attribute {name}")
    for name in _INDEX_ATTRIBUTES:
        if name in attributes:
            return Role("index", f"index, by its attribute {name}")
    for name in _AXES:
        if value := text(attributes, name):
            return Role("coordinate", f"coordinate, by its attribute {name} {value[:20]!r}")
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
        return Role("integers", "integers, which may be counts or labels")
    return None


def _listed(names_in_order: Iterable[str]) -> str:
    """Return the first names, and the number of others."""
    names = list(names_in_order)
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


class _Lookup:
    """Paths of variables by their names in attributes."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = frozenset(paths)

    def find(self, name: str, group: str) -> str | None:
        """Return the path of a variable, from an absolute or relative path, or a name in this group or one above."""
        if "/" in name:
            path = posixpath.normpath(posixpath.join(group, name))
            return path if path in self._paths else None
        scope = group.rstrip("/")
        for _ in range(_MOST_GROUPS):
            path = f"{scope}/{name}"
            if path in self._paths:
                return path
            if not scope:
                return None
            scope = scope.rpartition("/")[0]
        return None

    def find_all(self, names: str, group: str) -> Iterator[str]:
        """Yield the paths of variables by names separated by blanks; keys such as ``area:`` are skipped."""
        for name in names.split(maxsplit=_MOST_NAMES)[:_MOST_NAMES]:
            if not name.endswith(":") and (path := self.find(name, group)) is not None:
                yield path
