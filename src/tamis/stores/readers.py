"""Who can read what filters and codecs store, as the tests in tests/programs and tests/formats/zarr find it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

EVERY_PROGRAM = frozenset(("shuffle", "deflate", "fletcher32"))
"""Filters of variables with which every program that has HDF5 can do all that it does."""
OF_HDF5 = EVERY_PROGRAM | {"nbit", "scaleoffset", "szip"}
"""HDF5's own filters, which its usual builds read, and so netCDF-C, h5py and all that is based on them."""
NETCDF_PLUGINS = frozenset(("bzip2", "zstd"))
"""Filters of the plugins that netCDF-C builds and installs, also in the wheels of netCDF4."""
OF_HDF5PLUGIN = NETCDF_PLUGINS | {"bitshuffle", "blosc", "blosc2", "lz4", "sperr", "sz3", "zfp"}
"""Filters of hdf5plugin."""
NOT_OF_NCO = frozenset(("scaleoffset", "szip"))
"""HDF5's own that NCO prints, but whose variables its operators do not all copy and average."""
NCO = "NCO 5.1"
"""The version for which that was found, as it is in Debian 12."""


def hdf5_text(filters: Iterable[str]) -> str:
    """Return which HDF5 libraries can read what filters of these names store."""
    names = dict.fromkeys(name for name in filters if name not in EVERY_PROGRAM)
    if [*names] == ["szip"]:
        return f"any HDF5 with szip, not {NCO}"
    return f"HDF5 with {' and '.join(names)}" if names else "any HDF5"


def package_text(package: str, *, bars_store: bool) -> str:
    """Return the note about an array that zarr-python reads with a package; see `Storage.bars_store`."""
    elsewhere = "; elsewhere it opens no group of the store, unless it is made with --no-consolidated"
    verb = "are" if " and " in package else "is"
    return f"zarr-python reads it where {package} {verb} installed{elsewhere if bars_store else ''}"


@dataclass(frozen=True, slots=True)
class Readers:
    """Requirements of readers of filtered data.

    Parameters
    ----------
    plugins
        Plugins that an HDF5 library needs; empty if every library has the filters.
    szip
        Whether the library must be built with szip.
    h5py
        Whether h5py's HDF5 library has all filters here and now.
    tamis
        Whether tamis can decode all of them here without HDF5.
    hint
        How to get absent filters for h5py, if known.
    words
        The readers in words, if HDF5 is not among them.
    not_by
        Programs with HDF5 that have trouble with its own filters.
    """

    plugins: tuple[str, ...]
    szip: bool
    h5py: bool
    tamis: bool
    hint: str
    words: str = ""
    not_by: tuple[str, ...] = ()

    @property
    def any_hdf5(self) -> bool:
        """True if every HDF5 library from 1.8 on can read the data."""
        return not (self.plugins or self.szip or self.words)

    def __str__(self) -> str:
        without = "".join(f", not {program}" for program in self.not_by)
        if self.any_hdf5:
            return f"any HDF5{without}"
        if self.words:
            return self.words
        needs = ["built with szip"] if self.szip else []
        if self.plugins:
            noun = "plugin" if len(self.plugins) == 1 else "plugins"
            needs.append(f"with the {noun} {' and '.join(self.plugins)}")
        hint = f", {self.hint}" if self.hint else ""
        h5py = "yes" if self.h5py else f"no{hint}"
        return f"HDF5 {' and '.join(needs)}{without} (here: h5py {h5py}; tamis {'yes' if self.tamis else 'no'})"
