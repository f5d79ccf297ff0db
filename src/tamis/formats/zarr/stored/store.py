"""A Zarr hierarchy in a local folder as a store of arrays; see `tamis.stores.protocols.Store`."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tamis import meaning
from tamis.errors import FileError, MissingFilterError
from tamis.formats.zarr.stored.array import ZarrArray, check_sizes
from tamis.formats.zarr.stored.attributes import NAME as TYPES
from tamis.formats.zarr.stored.attributes import (
    Types,
    dimension_names,
    known_forms,
    known_types,
    netcdf_attributes,
    variable_of,
)
from tamis.lazy_property import lazy_property
from tamis.library_lock import imported
from tamis.remote.address import Address
from tamis.safety.disk import nbytes_of
from tamis.safety.library_errors import disk_text
from tamis.stores.arrays import ListedStore
from tamis.stores.data_model import Dimension, NamedGroup
from tamis.stores.header import Header, header_of


def check_installed(label: object, *others: str) -> None:
    """Raise MissingFilterError if zarr, numcodecs or another package is not installed; names the extra."""
    for name in ("zarr", "numcodecs", *others):
        try:
            imported(name)
        except ImportError as error:
            extra = name if name in others else "zarr"
            raise MissingFilterError(
                f"{label}: expected the package {name}, found no {error.name}: pip install 'tamis[{extra}]'"
            ) from error


@contextmanager
def quietly() -> Iterator[None]:
    """Suppress warnings of zarr-python that codecs, types and consolidated metadata are not in Zarr's core."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning, module=r"zarr\.")
        warnings.filterwarnings("ignore", message=".*(Zarr|Consolidated|Numcodecs|specification).*")
        yield


def _members(place: Any, **options: Any) -> list[tuple[str, Any]]:
    """Return the root of a store and all groups and arrays in it, by name."""
    import zarr

    root = zarr.open(place, mode="r", **options)
    return [("", root), *(sorted(root.members(max_depth=None)) if isinstance(root, zarr.Group) else ())]


def _place_of_refusal(place: str | Address) -> str:
    """Return the first metadata of an array or a group in a folder that zarr-python refuses, for an error."""
    import zarr

    files = [] if isinstance(place, Address) else [*Path(place).rglob(".zarray"), *Path(place).rglob("zarr.json")]
    for file in sorted(files):
        try:
            with quietly():
                zarr.open(file.parent, mode="r", use_consolidated=False)
        except Exception:  # as above
            return f" ({file})"
    return ""


def _consolidated(path: Path) -> set[str]:
    """Return the names of arrays in the consolidated metadata of a store."""
    names: set[str] = set()
    for file in (".zmetadata", "zarr.json"):
        with suppress(OSError, ValueError, LookupError, TypeError, AttributeError):
            content = json.loads((path / file).read_bytes())
            metadata = content.get("consolidated_metadata", content)["metadata"].items()
            arrays = (key for key, each in metadata if key.endswith("/.zarray") or each.get("node_type") == "array")
            names.update(key.removesuffix("/.zarray") for key in arrays)
    return names


class ZarrStore(ListedStore[ZarrArray]):
    """A folder for reading, through zarr-python."""

    is_loose = True
    reader_words = "Zarr"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path if isinstance(path, Address) else os.fsdecode(path).rstrip("/") or "/"
        check_installed(self.path)
        import zarr

        consolidated: set[str] = set()
        try:
            with quietly():
                if isinstance(self.path, Address):
                    members = _members(_place(self.path))
                else:  # what is consolidated may be older than chunks
                    members = _members(self.path, use_consolidated=False)
                    consolidated = _consolidated(Path(self.path))
                    absent = consolidated.difference(name for name, _ in members)
                    if lost := {name for name in absent if (Path(self.path) / name).is_dir()}:
                        members += [member for member in _members(self.path) if member[0] in lost]
                for name, member in members:
                    _check_attributes(name, member.metadata.attributes)
                    if not isinstance(member, zarr.Group):
                        check_sizes(name, member)
        except Exception as error:  # zarr-python raises many kinds for damaged metadata
            reason = f"{error.filename}: {disk_text(error)}" if isinstance(error, OSError) and error.filename else error
            text = f"{self.path}: its Zarr metadata cannot be read: {reason}{_place_of_refusal(self.path)}"
            raise FileError(text).at(path=self.path) from error
        groups: dict[str, Any] = {f"/{name}": member for name, member in members if isinstance(member, zarr.Group)}
        self._groups = groups or {"/": None}
        nodes = {f"/{name}" if name else f"/{Path(self.path).stem}": member for name, member in members}
        arrays = {path: member for path, member in nodes.items() if not isinstance(member, zarr.Group)}
        names = _named_axes(arrays)
        self._arrays = {
            path: ZarrArray(self.path, path, member, number, names[path])
            for number, (path, member) in enumerate(arrays.items())
        }
        for array in self._arrays.values():
            array.arrays, array.is_consolidated = self._arrays, array.path.strip("/") in consolidated
            group = self._groups.get(array.path.rpartition("/")[0] or "/")
            array.group_types = None if group is None else group.attrs.get(TYPES)
        if len(members) == 1 and arrays:  # the folder is an array itself
            next(iter(self._arrays.values())).folder = self.path if isinstance(self.path, Address) else Path(self.path)

    @lazy_property
    def nbytes(self) -> int:
        """Bytes of all files."""
        return nbytes_of(self.path)

    @lazy_property
    def roles(self) -> Mapping[str, meaning.Role]:
        """The role of each array by path."""
        variables = (
            variable_of(path, array.shape, array.number_type, array.dimensions, array.attributes)
            for path, array in self._arrays.items()
        )
        return meaning.roles_of(variables, {path: self.group_attributes(path) for path in self._groups})

    def group_attributes(self, path: str) -> dict[str, Any]:
        """Return the attributes of a group."""
        group = self._groups[path]
        if group is None:
            return {}
        return netcdf_attributes(dict(group.attrs), None, group.metadata.zarr_format, self._attribute_types(path))

    def _attribute_types(self, path: str) -> Types:
        group = self._groups[path]
        return {} if group is None else known_types(group.attrs.get(TYPES))

    @property
    def kind(self) -> str:
        """The format."""
        return "Zarr"

    def header(self) -> Header:
        """Return variables, dimensions, attributes and codecs as CDL describes them."""
        codecs = {path: json.dumps(array.codecs, default=str) for path, array in self._arrays.items()}
        return header_of(self, self._arrays, codecs)

    def group(self, path: str) -> NamedGroup:
        """Return a group with its dimensions, whose sizes are those of the arrays; see `DataModel`."""
        path = f"/{path.strip('/')}"
        if path not in self._groups:
            raise FileError(f"{self.path}: expected a group at {path!r}, found none")
        own = self._arrays_by_group.get(path, {})
        dimensions: dict[str, Dimension] = {}
        for array in own.values():
            for name, extent in zip(array.dimensions, array.shape, strict=True):
                known = self._dimension_around(path, name)
                size = dimensions.get(name, known)
                if size is not None and size.size != extent:
                    raise FileError(
                        f"{array.label}: expected {size.size} values along {name!r}, as others have, found {extent}"
                    )
                if known is None:
                    dimensions[name] = Dimension(extent, is_unlimited=None)
        variables = {
            name.rpartition("/")[2]: array.named()
            for name, array in own.items()
            if name not in self._hidden and (array.is_text or not array.varies)
        }
        left_out = {
            name.rpartition("/")[2]: "expected numbers, characters or text, got objects"
            for name, array in own.items()
            if array.varies and not array.is_text
        }
        forms = known_forms(self._attribute_types(path))
        return NamedGroup(path, dimensions, variables, self.group_attributes(path), left_out, forms)

    @lazy_property
    def _arrays_by_group(self) -> Mapping[str, Mapping[str, ZarrArray]]:
        """The arrays of each group, by the paths of both."""
        groups: dict[str, dict[str, ZarrArray]] = {}
        for path, array in self._arrays.items():
            groups.setdefault(path.rpartition("/")[0] or "/", {})[path] = array
        return groups

    @lazy_property
    def _hidden(self) -> frozenset[str]:
        """The paths of companions."""
        return frozenset(companion.path for companion, _ in self.arrays.companions())

    def _dimension_around(self, path: str, name: str) -> Dimension | None:
        """Return the dimension of that name in the enclosing groups: that of the variable with this name."""
        while path != "/":
            path = path.rpartition("/")[0] or "/"
            scale = self._arrays.get(f"{path.rstrip('/')}/{name}")
            if scale is not None and scale.dimensions == (name,):
                return Dimension(scale.shape[0], is_unlimited=None)
        return None

    def group_paths(self, path: str = "/") -> list[str]:
        """Return the paths of a group and of the groups in it."""
        top = f"/{path.strip('/')}"
        return [known for known in self._groups if known == top or known.startswith(f"{top.rstrip('/')}/")]


def _place(path: str) -> Any:
    """Return what zarr-python opens for a path or an address."""
    if not isinstance(path, Address):
        return path
    from tamis.formats.zarr.stored.elsewhere import place_for_zarr  # late: most files are here

    return place_for_zarr(path)


def _check_attributes(name: str, attributes: object) -> None:
    """Raise TypeError unless the attributes of a group or array are a JSON object."""
    if not isinstance(attributes, dict):
        raise TypeError(f"/{name}: expected the attributes to be an object, found {attributes!r:.80}")


def _named_axes(arrays: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the names of the axes of all arrays; unnamed axes get one from their length, as in netCDF-C."""
    phony: dict[tuple[str, int, int], str] = {}
    names: dict[str, tuple[str, ...]] = {}
    for path, array in arrays.items():
        group, counts = path.rpartition("/")[0], dict[int, int]()
        metadata, shape = array.metadata, array.shape
        listed = getattr(metadata, "dimension_names", None) if metadata.zarr_format == 3 else None
        axes = []
        for name, extent in zip(dimension_names(listed, dict(array.attrs), shape), shape, strict=True):
            if name is not None:
                axes.append(name)
                continue
            counts[extent] = counts.get(extent, 0) + 1
            axes.append(phony.setdefault((group, extent, counts[extent]), f"phony_dim_{len(phony)}"))
        names[path] = tuple(axes)
    return names
