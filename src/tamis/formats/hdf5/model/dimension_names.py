"""The dimensions of a group's datasets by name, also of datasets without dimension scales."""

from __future__ import annotations

from dataclasses import dataclass, field

from tamis.formats.hdf5.model.scanned_group import Place, ScannedArray, ScannedGroup, largest_extent
from tamis.stores.data_model import Dimension


@dataclass(slots=True)
class GroupDimensions:
    """The dimensions of a group."""

    around: GroupDimensions | None  # Dimensions of the enclosing group; None for the root group
    # Dimensions by name. Unnamed ones are numbered: see `phony_name`.
    own: dict[str, Dimension] = field(default_factory=dict)
    places: dict[Place, str] = field(default_factory=dict)  # Names by place of their datasets
    ids: dict[int, str] = field(default_factory=dict)
    # Names of the dimensions of each dataset, by its name in the file
    axes: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def size(self, name: str) -> int:
        """Return the size of a dimension of this group or an enclosing one."""
        return self.own[name].size if name in self.own or self.around is None else self.around.size(name)

    def at(self, place: Place) -> str | None:
        """Return the name of the dimension at a place, in this group or an enclosing one."""
        if place in self.places or self.around is None:
            return self.places.get(place)
        return self.around.at(place)

    def of_id(self, number: int) -> str | None:
        """Return the name of the dimension with a number, in this group or an enclosing one."""
        return self.ids.get(number) or (None if self.around is None else self.around.of_id(number))


def named_dimensions(group: ScannedGroup, around: GroupDimensions | None) -> GroupDimensions:
    """Return the named dimensions of a group; `axes` is still empty."""
    dimensions = GroupDimensions(around)
    users: dict[Place, list[int]] = {}
    for item in group.arrays:
        for scale, extent in zip(item.scales, item.array.shape, strict=True):
            if scale is not None:
                users.setdefault(scale, []).append(extent)
    for item in group.arrays:
        if item.is_scale:
            size = item.array.shape[0]
            if item.is_unlimited:
                extents = users.get(item.place, [])
                # Its other users are in other groups.
                elsewhere = item.user_count > len(extents)
                size = largest_extent(item.array.dataset) if elsewhere else max(size, *extents, size)
            dimensions.own[item.name] = Dimension(size, item.is_unlimited)
            dimensions.places[item.place] = item.name
            if item.dimension_id is not None:
                dimensions.ids[item.dimension_id] = item.name
    return dimensions


def count_phony(group: ScannedGroup, dimensions: GroupDimensions) -> int:
    """Return how many numbered dimensions a group has."""
    before = len(dimensions.own)
    trial = GroupDimensions(dimensions.around, dict(dimensions.own), dimensions.places, dimensions.ids)
    name_axes(group, trial, 0)
    return len(trial.own) - before


def name_axes(group: ScannedGroup, dimensions: GroupDimensions, first: int) -> None:
    """Name the dimensions of each dataset; unnamed dimensions are numbered from `first`.

    As in netCDF-C, an axis without a dimension takes one of the group with the same size, unlimited or not like the
    axis, that no other axis of the dataset uses. A new dimension of no elements is unlimited.
    """
    for item in group.arrays:
        names: list[str | None] = list(_known_names(item, dimensions))
        for axis, (size, most) in enumerate(zip(item.array.shape, item.array.maxshape, strict=True)):
            if names[axis] is None:
                wanted = Dimension(size, most is None)
                alike = (name for name, own in dimensions.own.items() if own == wanted and name not in names)
                names[axis] = name = next(alike, f"phony_dim_{first}")
                if name not in dimensions.own:
                    dimensions.own[name] = Dimension(size, most is None or not size)
                    first += 1
        dimensions.axes[item.link] = tuple(name or "" for name in names)


def _known_names(item: ScannedArray, dimensions: GroupDimensions) -> tuple[str | None, ...]:
    """Return the names that the file gives to the axes of a dataset; None for an axis without a fitting one."""
    array = item.array
    if item.dimension_ids:
        names = tuple(map(dimensions.of_id, item.dimension_ids))
    elif item.is_scale:
        names = (item.name, *(None,) * (len(array.shape) - 1))
    else:
        names = tuple(None if place is None else dimensions.at(place) for place in item.scales)
    # HDF5 accepts scales of another length, such as edges of cells; netCDF does not.
    lengths = zip(names, array.shape, array.maxshape, strict=True)
    return tuple(
        name
        if name is not None and (dimensions.size(name) == extent or (most is None and dimensions.size(name) > extent))
        else None
        for name, extent, most in lengths
    )
