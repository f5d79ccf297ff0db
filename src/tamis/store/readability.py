"""Which readers can read an array as it is stored."""

from __future__ import annotations

from dataclasses import dataclass


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
        How to get absent filters for h5py, if that is known.
    words
        The readers in words, if HDF5 is not among them.
    """

    plugins: tuple[str, ...]
    szip: bool
    h5py: bool
    tamis: bool
    hint: str
    words: str = ""

    @property
    def any_hdf5(self) -> bool:
        """True if every HDF5 library since 1.8 can read the data."""
        return not (self.plugins or self.szip or self.words)

    def __str__(self) -> str:
        if self.any_hdf5:
            return "any HDF5"
        if self.words:
            return self.words
        needs = ["built with szip"] if self.szip else []
        if self.plugins:
            needs.append(f"with the plugin{'s' * (len(self.plugins) > 1)} {' and '.join(self.plugins)}")
        h5py = "yes" if self.h5py else f"no{', ' * bool(self.hint)}{self.hint}"
        return f"HDF5 {' and '.join(needs)} (here: h5py {h5py}; tamis {'yes' if self.tamis else 'no'})"
