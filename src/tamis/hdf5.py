"""HDF5 files, and tamis's filter inside h5py's library.

Importing this package, which importing tamis does, lets h5py read and write ZFP (filter 32013).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.formats import hdf5 as _formats  # registers the filter
from tamis.lazy_names import late_names

if TYPE_CHECKING:
    from tamis.formats.hdf5.chunk_access import chunk_type, pipeline_of, read_chunk
    from tamis.formats.hdf5.tree.create import PhaseChange, create_group, group_phase_change
    from tamis.formats.hdf5.tree.links import group_filters
    from tamis.formats.hdf5.writing.appender import Appender, Partial
    from tamis.formats.hdf5.writing.creation import create_dataset
    from tamis.formats.hdf5.writing.dataset import create_appender, write, write_stream

__all__ = [
    "Appender",
    "Partial",
    "PhaseChange",
    "chunk_type",
    "create_appender",
    "create_dataset",
    "create_group",
    "group_filters",
    "group_phase_change",
    "pipeline_of",
    "read_chunk",
    "write",
    "write_stream",
]


_LATE = {
    "chunk_access": "chunk_type pipeline_of read_chunk",
    "tree.create": "PhaseChange create_group group_phase_change",
    "tree.links": "group_filters",
    "writing.appender": "Appender Partial",
    "writing.creation": "create_dataset",
    "writing.dataset": "create_appender write write_stream",
}
"""Names that are imported when they are first used, by module."""

__getattr__ = late_names(
    globals(), {name: f"{_formats.__name__}.{module}" for module, names in _LATE.items() for name in names.split()}
)
