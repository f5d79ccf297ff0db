"""The options of a repack, each declared once: for Python, for the command line, and for what both check.

Nothing is imported here that takes long, because the command line builds its help from the table.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Option(NamedTuple):
    """An option of a function such as `tamis.repack`, and of the command."""

    name: str
    default: Any
    help: str = ""  # Line of the command's help; empty if the command has another form of the option
    metavar: str = ""  # What the command calls its value
    least: int | None = None  # Bounds of a whole number
    most: int | None = None
    choices: tuple[str, ...] = ()  # The texts that it may be
    is_flag: bool = False  # Whether it is True or False
    is_negated: bool = False  # Whether the command also has ``--no-name``
    is_repeated: bool = False  # Whether the command takes it several times
    shows_default: bool = False  # Whether the command's help ends with the default
    flags: tuple[str, ...] = ()  # What the command calls it; by default ``--name``
    is_of_format: bool = False  # Whether it is about the format of the target, and passed on to that


TABLE = (
    Option("chunks", None),
    Option("require", None),
    Option(
        "checksum",
        default=True,
        help="Add the checksum fletcher32 after zfp, so that readers notice damage.",
        is_flag=True,
        is_negated=True,
        shows_default=True,
    ),
    Option("threads", None),
    Option(
        "missing",
        None,
        help="Missing values: exact, the default, keeps each bit by bit; mask moves them to a missing-value mask, a"
        " second dataset (best ratio, but all readers except tamis.open see invented values in their place);"
        " refuse fails if there are any, and counts them.",
        choices=("exact", "mask", "refuse"),
    ),
    Option(
        "follow",
        default=False,
        help="Let patterns also copy values of virtual datasets and external raw files into OUT; otherwise OUT refers"
        " to the same files as IN.",
        is_flag=True,
    ),
    Option(
        "self_contained",
        default=False,
        help="Store all that is in other files in OUT, which then needs none: the values of every virtual dataset and"
        " raw file, with or without filters, and what external links lead to.",
        is_flag=True,
    ),
    Option(
        "min_size",
        None,
        help="Patterns skip datasets with fewer bytes of values; by default 4096 without chunks, 0 with chunks.",
        metavar="BYTES",
        least=0,
    ),
    Option(
        "larger",
        default=False,
        help="Let patterns also change datasets that become larger than in IN.",
        is_flag=True,
    ),
    Option(
        "keep_classic",
        default=False,
        help="Copy a netCDF classic file unchanged if it would be larger as netCDF-4.",
        is_flag=True,
    ),
    Option(
        "zarr_format",
        None,
        help="Version of the Zarr format, 2 or 3; 3 by default.",
        metavar="N",
        least=2,
        most=3,
        is_of_format=True,
    ),
    Option(
        "shards",
        None,
        help="Store up to this many chunks per file of a Zarr 3 store; by default each chunk has its own file.",
        metavar="CHUNKS",
        least=1,
        is_of_format=True,
    ),
    Option(
        "packed_as",
        None,
        help="Packed values of a Zarr store: attributes keeps integers with scale_factor and add_offset, which every"
        " reader opens; codecs gives floats to readers with Zarr's codecs scale_offset and cast_value, as"
        " zarr 3.2 has them. By default, those of a Zarr source stay what they are, and others get attributes.",
        choices=("attributes", "codecs"),
        is_of_format=True,
    ),
    Option(
        "consolidated",
        None,
        help="Repeat the metadata of all arrays in the root of a Zarr store, as xarray does (default).",
        is_flag=True,
        is_negated=True,
        is_of_format=True,
    ),
    Option(
        "cloud",
        default=False,
        help="Store the metadata of an HDF5 or netCDF-4 OUT together: opening it over a network takes few requests.",
        is_flag=True,
    ),
    Option(
        "storage",
        "disk",
        help="Where OUT is read from. With s3, datasets without -c get chunks of 4 to 16 MiB of stored bytes, and"
        " --cloud is on.",
        choices=("disk", "s3"),
        shows_default=True,
    ),
    Option(
        "history",
        default=True,
        help="Record the command in OUT's attribute history, if OUT has history or Conventions.",
        is_flag=True,
        is_negated=True,
        shows_default=True,
    ),
    Option("drop", (), help="Leave out datasets by name or pattern; repeatable.", metavar="NAME", is_repeated=True),
    Option(
        "witness",
        None,
        help="Let xarray read IN and OUT in a process without tamis before OUT gets its name: all metadata, and the"
        " first, last and worst chunk of each variable must be alike. Costs a second.",
        choices=("xarray",),
    ),
    Option(
        "resume",
        default=False,
        help="Continue an interrupted run; leave OUT unchanged if it is complete.",
        is_flag=True,
    ),
)
"""All options but `overwrite`, which only some of the functions take, in the order of the command's help."""

DEFAULTS = {option.name: option.default for option in TABLE}
"""Defaults of the options of repack, by name."""
