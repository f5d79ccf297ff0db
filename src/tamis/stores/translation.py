"""What becomes of each kind of thing between HDF5, netCDF and Zarr: docs/format.md has the same table.

What a copy loses or changes is told by name: repack, its dry run and export print it, and verify notes the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple

from tamis.stores.data_model import Translation, is_latin_1, own_name, recoded_text

if TYPE_CHECKING:
    from tamis.stores.data_model import DataModel, NamedArray, NamedGroup
    from tamis.stores.protocols import Store

Said = Literal["", "listed", "refused"]
"""Whether each thing of a kind is listed by name, or refused until it is left out (``--drop``)."""


class Row(NamedTuple):
    """A kind of thing."""

    section: str
    thing: str  # In HDF5, netCDF-4 or netCDF classic
    becomes: str  # In Zarr
    returns: str  # In HDF5, if that becomes a file again
    said: Said = ""


_SAME = "the same"

TO_ZARR: dict[str, Row] = {
    "numbers": Row("types", "integers and floats of 1 to 8 bytes", _SAME, "the same, little-endian"),
    "complex": Row("types", "complex numbers", "complex numbers", "the named compound type of netCDF4-python"),
    "booleans": Row("types", "enumeration of FALSE and TRUE", "`bool`", "the enumeration, and the attribute `dtype`"),
    "enumerations": Row(
        "types",
        "other enumerations",
        "integers with the attributes `flag_values` and `flag_meanings`",
        "integers with these attributes",
    ),
    "bitfields": Row("types", "bitfields", "unsigned integers", "unsigned integers"),
    "fixed text": Row(
        "types",
        "text of a fixed length",
        "bytes of that length, as h5py reads them; of one byte in NCZarr's form",
        "text of a fixed length, ASCII, padded with zeros; in a file named `.nc`, text of varying length",
    ),
    "text": Row("types", "text of varying length", "text of varying length", "the same, UTF-8"),
    "opaque": Row(
        "types", "opaque values", "raw bytes in Zarr 2; Zarr 3: refused", "opaque values without a tag", "refused"
    ),
    "records": Row(
        "types",
        "compounds of numbers without axes",
        "records without gaps in Zarr 2; Zarr 3: refused",
        "a named compound type, `NAME_t`, of little-endian numbers",
        "refused",
    ),
    "others": Row(
        "types",
        "lists of varying length, arrays as elements, references, `long double`, other compounds, null dataspaces",
        "refused",
        "",
        "refused",
    ),
    "named types": Row(
        "types", "named types", "values have the type, without its name", "types without a name", "listed"
    ),
    "attributes": Row(
        "attributes",
        "attributes of any type and shape: numbers, booleans, complex numbers, enumerations, records, opaque values,"
        " text of any form, lists, without a value",
        "JSON, whose numbers readers take as int64 and float64, and their types in `_nczarr_attr`",
        _SAME,
    ),
    "latin-1": Row(
        "attributes", "text that is not UTF-8", "the same characters, read as Latin-1", "the same bytes", "listed"
    ),
    "reference attributes": Row("attributes", "references to objects or regions", "left out", "", "listed"),
    "scale attributes": Row(
        "attributes",
        "`CLASS`, `NAME`, `DIMENSION_LIST`, `REFERENCE_LIST` of dimension scales, and netCDF-4's own",
        "names of the axes",
        "made anew",
    ),
    "fill values": Row(
        "fill values",
        "HDF5's fill value",
        "Zarr 3: the same; Zarr 2: that of `_FillValue`, otherwise 0, and all chunks are stored",
        "as in Zarr",
    ),
    "fill attributes": Row("fill values", "`_FillValue`", "the same, as xarray encodes it", _SAME),
    "never stored": Row("fill values", "chunks that are not stored", "not stored", "not stored"),
    "hard links": Row(
        "links",
        "several links to an array, hard or soft, or hard links to a group",
        "a copy at each path",
        "as many objects",
        "listed",
    ),
    "cycles": Row("links", "hard link to a group around it", "left out", "", "listed"),
    "links": Row(
        "links", "soft links to groups or to nothing, external and user-defined links", "left out", "", "listed"
    ),
    "taken in": Row(
        "links",
        "external links, with [`--self-contained`](repack.md#targets-that-need-no-other-file)",
        "what they lead to",
        "arrays and groups",
    ),
    "groups": Row("groups", "groups, also empty ones, and their attributes", _SAME, _SAME),
    "group settings": Row("groups", "filters of links, order of creation, times", "left out", "creation order"),
    "dimensions": Row("dimensions", "dimensions of netCDF and HDF5", "names of the axes", "dimension scales"),
    "bare dimensions": Row(
        "dimensions", "dimensions without a variable", "names of the axes", "dimensions, if an array has them"
    ),
    "unnamed axes": Row("dimensions", "axes without a dimension", "`phony_dim_0` …", "dimensions of that name"),
    "other scales": Row(
        "dimensions", "an axis with several scales", "the name of the last one", "the last one", "listed"
    ),
    "scale names": Row(
        "dimensions", "a scale with another name than its dataset", "the dataset's", "the dataset's", "listed"
    ),
    "labels": Row("dimensions", "labels of axes", "the attribute `DIMENSION_LABELS`", _SAME),
    "unlimited": Row("dimensions", "unlimited and largest extents", "the present extents", "the present extents"),
    "shorter": Row(
        "dimensions",
        "a variable that ends before its unlimited dimension",
        "the fill value up to the end, as netCDF reads it",
        "values up to the end",
        "listed",
    ),
    "filters of both": Row(
        "filters",
        "none, shuffle, deflate, fletcher32, bzip2, zstd, blosc, zfp and other lossy filters",
        "the same bytes",
        "the same bytes, if all programs with HDF5 have them or they are lossy; otherwise deflate",
    ),
    "other filters": Row(
        "filters",
        "szip, lzf, bitshuffle and other lossless filters; chunks with several masks",
        "the smallest of deflate, zstd and blosc, with and without shuffle, for a sample of chunks",
        "as in Zarr",
        "listed",
    ),
    "layouts": Row(
        "layouts", "contiguous and compact values", "chunks of at most 1 MiB, without filters", "contiguous values"
    ),
    "elsewhere": Row("layouts", "virtual and external datasets", "their values", "their values"),
    "short chunks": Row("layouts", "chunks that end after the last value of the array", "whole chunks", "whole chunks"),
    "user block": Row("file", "user block", "left out", "", "listed"),
    "comments": Row("file", "comments, times and settings of objects and files", "left out", ""),
}
"""The kinds of things of HDF5, netCDF-4 and netCDF classic, by a short name."""

TO_HDF5: dict[str, Row] = {
    "zarr fixed text": Row(
        "types",
        "bytes of a fixed length of more than one byte",
        "text of varying length in a file named `.nc`, as netCDF has it, without the attribute `_Encoding`; of a fixed"
        " length in others",
        "as in HDF5",
        "listed",
    ),
    "zarr arrays": Row("types", "numbers, booleans, complex numbers", "the same, numbers little-endian", "the same"),
    "zarr text": Row(
        "types",
        "text of varying length, and NumPy's characters, such as `<U6`",
        "text of varying length, without chunks and fill value",
        "text of varying length; from Zarr to Zarr the same, with its chunks",
    ),
    "zarr records": Row(
        "types",
        "records of numbers",
        "a compound type, of little-endian numbers",
        "in Zarr 2, the same; Zarr 3: refused",
    ),
    "bytes": Row("types", "bytes of varying length, times, records of anything but numbers", "refused", "", "refused"),
    "json attributes": Row(
        "attributes",
        "numbers, text, lists of numbers or of text",
        "int64 or float64, text",
        "the same",
    ),
    "structured attributes": Row(
        "attributes", "objects, nested lists, `true`, `false`, `null`", "their JSON as text", "text"
    ),
    "zeros in text": Row(
        "attributes",
        "text with the character U+0000",
        "the same, padded with zeros: those at its end belong to the padding",
        "the same, without zeros at its end",
    ),
    "zarr fill values": Row("fill values", "the fill value", "HDF5's fill value", _SAME),
    "text fill values": Row(
        "fill values",
        "the fill value of text, from Zarr 3 to Zarr 2",
        "left out, and all chunks are stored: xarray takes it for missing in Zarr 2",
        "",
        "listed",
    ),
    "zarr codecs": Row(
        "filters",
        "codecs that are filters of HDF5, and zfp",
        "the same bytes, if all programs with HDF5 have them or they are lossy",
        "the same bytes",
    ),
    "other codecs": Row(
        "filters",
        "other codecs",
        "deflate, with shuffle if that is smaller for a sample of chunks",
        "as in HDF5",
        "listed",
    ),
    "packed codecs": Row(
        "filters",
        "`scale_offset` and `cast_value`",
        "the same integers with `scale_factor` and `add_offset`, where these give the same values bit by bit;"
        " otherwise floats",
        "integers with attributes; with [`--packed-as codecs`](packing.md#zarr-attributes-or-codecs) the same codecs",
        "listed",
    ),
    "one array": Row(
        "groups",
        "a store that is one array, without a group",
        "a variable of the root group, named after the store",
        "an array of the root group; also from Zarr to Zarr",
        "listed",
    ),
    "other files": Row(
        "groups",
        "files that are not of Zarr, such as a README and `OME/METADATA.ome.xml`",
        "left out; from Zarr to Zarr the same, except links and netCDF-C 4.8's `.nczarr` …, which are left out",
        "",
        "listed",
    ),
    "lengths": Row(
        "dimensions",
        "arrays of a group with several lengths along a name",
        "a dimension for each other length, such as `y_8`",
        "names of the axes, such as `y_8`",
        "listed",
    ),
}
"""The kinds of things of Zarr that become netCDF-4."""


def is_one_array(model: DataModel) -> bool:
    """Return whether a store of Zarr is one array, without a group; then its name is that of the store."""
    if model.kind != "Zarr" or model.group_paths() != ["/"]:
        return False
    root = model.group("/")
    return root.document is None and len(root.variables) == 1


def translations(source: Store, *, to_zarr: bool) -> Iterator[Translation]:
    """Yield everything by name that a copy in the other format does not have, or has in another form."""
    model = source.model
    if is_one_array(model):
        name = next(iter(model.group("/").variables))
        text = "the store is this array, without a group: in the target it is an array of the root group"
        yield Translation(f"/{name}", "one array", text, is_lost=False)
    if model.is_loose == to_zarr:
        return
    for path in model.group_paths():
        group = model.group(path)
        if model.is_loose:
            yield from group.lost
            yield from _other_lengths(model, group)
        else:
            yield from group_translations(group)
            yield from _repeated(source, group)
    yield from model.extras()


def group_translations(group: NamedGroup) -> Iterator[Translation]:
    """Yield the translations of a group and of its variables to Zarr."""
    yield from group.lost
    owners: list[NamedGroup | NamedArray] = [group, *group.variables.values()]
    for owner in owners:
        for name in owner.forms:
            if name not in owner.attributes:
                yield Translation(owner.path, "reference attributes", f"attribute {name!r} of references")
        for name, value in owner.attributes.items():
            if is_latin_1(value):
                yield Translation(owner.path, "latin-1", recoded_text(name, value), is_lost=False)
    for variable in group.variables.values():
        if variable.shape != variable.stored_shape:
            yield Translation(variable.path, "shorter", _extension_text(variable), is_lost=False)


def _extension_text(variable: NamedArray) -> str:
    axes = zip(variable.dimensions, variable.shape, variable.stored_shape, strict=True)
    ends = [f"{stored} of {size} along {name!r}" for name, size, stored in axes if size != stored]
    return f"it has values for {' and '.join(ends)}: the others are the fill value, as netCDF reads them"


def _repeated(source: Store, group: NamedGroup) -> Iterator[Translation]:
    """Yield the arrays of a group whose first path is another."""
    for variable in group.variables.values():
        if (first := source.first_path(variable.path)) not in ("", variable.path):
            text = f"another link to {first}: it becomes an array of its own"
            yield Translation(variable.path, "hard links", text, is_lost=False)


def own_dimensions(group: NamedGroup, is_around: Callable[[str, int], bool]) -> dict[tuple[str, int], str]:
    """Return the names of dimensions for the axes of a group of Zarr whose name has other lengths.

    Parameters
    ----------
    group
        The group, whose dimensions have one length each.
    is_around
        Return whether a group around it has a dimension of a name and a length.
    """
    names: dict[tuple[str, int], str] = {}
    taken = {*group.variables, *group.dimensions}
    for variable in group.variables.values():
        for axis in zip(variable.dimensions, variable.shape, strict=True):
            known = group.dimensions.get(axis[0])
            if axis in names or (known is not None and known.size == axis[1]) or is_around(*axis):
                continue
            own = own_name(*axis)
            while own in taken:
                own += "_"
            taken.add(own)
            names[axis] = own
    return names


def _other_lengths(model: DataModel, group: NamedGroup) -> Iterator[Translation]:
    """Yield the arrays of a group of Zarr that get dimensions of their own in netCDF-4."""

    def is_around(name: str, extent: int) -> bool:
        path = group.path
        while path != "/":
            path = path.rpartition("/")[0] or "/"
            known = model.group(path).dimensions.get(name)
            if known is not None and known.size == extent:
                return True
        return False

    names = own_dimensions(group, is_around)
    for variable in group.variables.values():
        for axis in zip(variable.dimensions, variable.shape, strict=True):
            if axis in names:
                text = f"dimension {axis[0]!r} becomes {names[axis]!r}: others of its name have other lengths"
                yield Translation(variable.path, "lengths", text, is_lost=False)


def tables() -> Iterator[str]:
    """Yield the lines of both tables in Markdown."""
    for about, heads, rows in (
        ("HDF5 or netCDF", ("in Zarr", "in HDF5 again"), TO_ZARR),
        ("Zarr", ("in netCDF-4", "in Zarr again"), TO_HDF5),
    ):
        yield f"| | {about} | {' | '.join(heads)} | |"
        yield "|---|---|---|---|---|"
        section = ""
        for row in rows.values():
            shown = "" if row.section == section else row.section
            section = row.section
            yield f"| {shown} | {row.thing} | {row.becomes} | {row.returns} | {row.said} |"
        yield ""
