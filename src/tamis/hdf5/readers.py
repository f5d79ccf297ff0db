"""What can read filtered data: HDF5 libraries in general, h5py's here, and tamis itself."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable
from dataclasses import dataclass

from h5py import h5z

from tamis.filters import Filter, UnknownFilter, Zfp
from tamis.filters.registered import REGISTERED

_EVERYWHERE = frozenset({1, 2, 3, 5, 6})
_SZIP, _LZF = 4, 32000
_HDF5PLUGIN = frozenset({307, 32001, 32004, 32008, 32013, 32015, 32017, 32018, 32024, 32026, 32028})


@dataclass(frozen=True, slots=True)
class Readers:
    """What can read data that went through some filters.

    Parameters
    ----------
    plugins
        Plugins that an HDF5 library needs; none where every library has the filters.
    szip
        Whether the library must have been built with szip.
    h5py
        Whether h5py's HDF5 library has all of the filters here and now.
    tamis
        Whether tamis can decode all of them here without HDF5.
    hint
        What gives h5py the filters, where it lacks some and that is known.
    """

    plugins: tuple[str, ...]
    szip: bool
    h5py: bool
    tamis: bool
    hint: str

    @property
    def any_hdf5(self) -> bool:
        """Return whether every HDF5 library since 1.8 can read it."""
        return not self.plugins and not self.szip

    def __str__(self) -> str:
        if self.any_hdf5:
            return "any HDF5"
        needs = ["built with szip"] if self.szip else []
        if self.plugins:
            needs.append(f"with the plugin{'s' * (len(self.plugins) > 1)} {' and '.join(self.plugins)}")
        h5py = "yes" if self.h5py else f"no{', ' * bool(self.hint)}{self.hint}"
        return f"HDF5 {' and '.join(needs)} (here: h5py {h5py}; tamis {'yes' if self.tamis else 'no'})"


def readers_of(filters: Iterable[Filter]) -> Readers:
    """Return what can read data that went through these filters.

    h5py's library looks for a filter that it does not have yet in the folders of its plugin path.
    """
    wanted = tuple(dict.fromkeys(filters))
    absent = [each for each in wanted if not _has(each)]
    others = [each for each in wanted if each.id not in _EVERYWHERE and each.id != _SZIP]
    return Readers(
        plugins=tuple(dict.fromkeys(map(_plugin, others))),
        szip=any(each.id == _SZIP for each in wanted),
        h5py=not absent,
        tamis=not any(isinstance(each, UnknownFilter) or each.undecodable() for each in wanted),
        hint=_hint(absent),
    )


def library_failure(applied: Iterable[Filter], error: Exception) -> str:
    """Return why HDF5 could not read a dataset that went through filters, and what to do where it lacks one."""
    filters = dict.fromkeys(applied)
    absent = [each.in_words().removeprefix("filter ") for each in filters if not _has(each)]
    if not absent:
        return str(error)
    reason = f"HDF5 lacks filter {' and '.join(absent)}"
    if install := [text for each in filters if (text := each.undecodable())]:
        return f"{reason}: {' and '.join(install)}"
    if any(isinstance(each, UnknownFilter) for each in filters):
        return f"{reason}, and so does tamis: set HDF5_PLUGIN_PATH to a folder with its plugin"
    return (
        f"{reason}, which tamis decodes for values of a fixed size only: set HDF5_PLUGIN_PATH to a folder that has it,"
        " such as what python -c 'import hdf5plugin; print(hdf5plugin.PLUGIN_PATH)' prints"
    )


def _has(each: Filter) -> bool:
    if each.id == Zfp.id and isinstance(each, UnknownFilter):
        return False  # its parameters are damaged, or of another codec: the plugin refuses them
    return h5z.filter_avail(each.id) and bool(h5z.get_filter_info(each.id) & h5z.FILTER_CONFIG_DECODE_ENABLED)


def _plugin(each: Filter) -> str:
    if each.id in REGISTERED:
        return REGISTERED[each.id]
    name = each.registered_name or getattr(each, "label", "").partition(";")[0].strip()
    return f"{name} [{each.id}]" if name else f"of filter {each.id}"


def _hint(absent: list[Filter]) -> str:
    if not absent or any(each.id not in _HDF5PLUGIN or each.id == Zfp.id for each in absent):
        return ""
    if "hdf5plugin" in sys.modules or importlib.util.find_spec("hdf5plugin") is None:
        return "pip install hdf5plugin" + (" with this filter" if "hdf5plugin" in sys.modules else "")
    return "import hdf5plugin in the program that reads"
