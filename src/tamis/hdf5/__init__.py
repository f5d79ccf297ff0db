"""HDF5 files, and tamis's filter inside h5py's library.

Importing this package, which importing tamis does, lets h5py read and write ZFP (filter 32013).
"""

from tamis.hdf5.chunk_access import chunk_type, pipeline_of, read_chunk
from tamis.hdf5.lib.plugin import register as _register
from tamis.hdf5.tree.groups import PhaseChange, create_group, group_filters, group_phase_change
from tamis.hdf5.writing.appender import Appender, Partial
from tamis.hdf5.writing.creation import create_dataset
from tamis.hdf5.writing.dataset import write, write_stream

__all__ = [
    "Appender",
    "Partial",
    "PhaseChange",
    "chunk_type",
    "create_dataset",
    "create_group",
    "group_filters",
    "group_phase_change",
    "pipeline_of",
    "read_chunk",
    "write",
    "write_stream",
]


def __dir__() -> list[str]:
    return [*__all__]


_register()
