"""Cut the sample of this folder from a netCDF file: the first records of one variable, with its coordinates.

    python examples/make_sample.py orig.TS.100days.nc examples/data/cam_ts.nc

Attributes, chunk shapes and filters are those of the source. The same source gives the same bytes.
"""

import argparse
from pathlib import Path

import netCDF4


def names_to_keep(source: netCDF4.Dataset, name: str) -> list[str]:
    """Return the variable, the coordinates of its dimensions and their bounds, in the order of the source."""
    keep = {name}
    for dimension in source[name].dimensions:
        if dimension in source.variables:
            keep |= {dimension, getattr(source[dimension], "bounds", dimension)}
    return [variable for variable in source.variables if variable in keep]


def copy_variable(source: netCDF4.Variable, target: netCDF4.Dataset, record: str, count: int) -> None:
    """Copy one variable, cut to `count` along the dimension `record`, with its chunk shape and filters."""
    filters = source.filters()
    copy = target.createVariable(
        source.name,
        source.dtype,
        source.dimensions,
        compression="zlib" if filters["zlib"] else None,
        complevel=filters["complevel"],
        shuffle=filters["shuffle"],
        fletcher32=filters["fletcher32"],
        contiguous=source.chunking() == "contiguous",
        chunksizes=None if source.chunking() == "contiguous" else source.chunking(),
        fill_value=getattr(source, "_FillValue", None),
    )
    copy.set_auto_maskandscale(False)
    copy.setncatts({key: source.getncattr(key) for key in source.ncattrs() if key != "_FillValue"})
    copy[...] = source[tuple(slice(count) if name == record else slice(None) for name in source.dimensions)]


def cut(source_path: Path, target_path: Path, name: str, count: int) -> None:
    """Write the first `count` records of the variable `name` to a new netCDF-4 file."""
    with netCDF4.Dataset(source_path) as source, netCDF4.Dataset(target_path, "w") as target:
        source.set_auto_maskandscale(False)  # stored values, not interpreted ones
        target.setncatts({key: source.getncattr(key) for key in source.ncattrs()})
        step = f"tamis examples/make_sample.py: first {count} records of {name} of {source_path.name}"
        target.history = f"{step}\n{source.history}" if "history" in source.ncattrs() else step
        keep = names_to_keep(source, name)
        record = source[name].dimensions[0]
        used = {dimension for variable in keep for dimension in source[variable].dimensions}
        for dimension in source.dimensions.values():
            if dimension.name in used:
                target.createDimension(dimension.name, None if dimension.isunlimited() else len(dimension))
        for variable in keep:
            copy_variable(source[variable], target, record, count)


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description="Cut a small sample from a netCDF file.")
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--variable", default="TS")
    parser.add_argument("--records", type=int, default=30)
    arguments = parser.parse_args()
    cut(arguments.source, arguments.target, arguments.variable, arguments.records)
    print(f"{arguments.target}: {arguments.target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
