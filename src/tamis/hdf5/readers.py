"""Which readers can read filtered data: HDF5 libraries in general, h5py's here, and tamis itself."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable

from tamis.filters import Filter, UnknownFilter, Zfp
from tamis.filters.registered import REGISTERED
from tamis.hdf5.lib.damage import pass_interrupt
from tamis.hdf5.lib.foreign_filters import decodes
from tamis.store.readability import Readers

_EVERYWHERE = frozenset({1, 2, 3, 5, 6})
_SZIP, _LZF = 4, 32000
_HDF5PLUGIN = frozenset({307, 32001, 32004, 32008, 32013, 32015, 32017, 32018, 32024, 32026, 32028})


def readers_of(filters: Iterable[Filter]) -> Readers:
    """Return which readers can read data with these filters.

    h5py's library also searches the folders of its plugin path for filters.
    """
    unique = tuple(dict.fromkeys(filters))
    absent = [entry for entry in unique if not _has(entry)]
    others = [entry for entry in unique if entry.id not in _EVERYWHERE and entry.id != _SZIP]
    return Readers(
        plugins=tuple(dict.fromkeys(map(_plugin, others))),
        szip=any(entry.id == _SZIP for entry in unique),
        h5py=not absent,
        tamis=not any(isinstance(entry, UnknownFilter) or entry.undecodable() for entry in unique),
        hint=_hint(absent),
    )


def library_failure(applied: Iterable[Filter], error: Exception) -> str:
    """Return why HDF5 could not read a dataset with these filters, and how to get an absent filter."""
    pass_interrupt(error)
    filters = dict.fromkeys(applied)
    absent = [entry.in_words().removeprefix("filter ") for entry in filters if not _has(entry)]
    if not absent:
        return str(error)
    reason = f"HDF5 lacks filter {' and '.join(absent)}"
    if install := [text for entry in filters if (text := entry.undecodable())]:
        return f"{reason}: {' and '.join(install)}"
    if any(isinstance(entry, UnknownFilter) for entry in filters):
        return f"{reason}, and so does tamis: set HDF5_PLUGIN_PATH to a folder with its plugin"
    return (
        f"{reason}, which tamis decodes for values of a fixed size only: set HDF5_PLUGIN_PATH to a folder that has it,"
        " such as what python -c 'import hdf5plugin; print(hdf5plugin.PLUGIN_PATH)' prints"
    )


def _has(entry: Filter) -> bool:
    if entry.id == Zfp.id and isinstance(entry, UnknownFilter):
        return False  # its parameters are damaged, or of another codec: the plugin refuses them
    return decodes(entry.id)


def _plugin(entry: Filter) -> str:
    if entry.id in REGISTERED:
        return REGISTERED[entry.id]
    name = entry.registered_name or getattr(entry, "label", "").partition(";")[0].strip()
    return f"{name} [{entry.id}]" if name else f"of filter {entry.id}"


def _hint(absent: list[Filter]) -> str:
    if not absent or any(entry.id not in _HDF5PLUGIN or entry.id == Zfp.id for entry in absent):
        return ""
    if "hdf5plugin" in sys.modules or importlib.util.find_spec("hdf5plugin") is None:
        return "pip install hdf5plugin" + (" with this filter" if "hdf5plugin" in sys.modules else "")
    return "import hdf5plugin in the program that reads"
