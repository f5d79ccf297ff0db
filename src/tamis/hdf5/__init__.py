"""HDF5 files, and tamis's filter inside h5py's library."""

from tamis.hdf5.groups import PhaseChange, create_group, group_filters, group_phase_change
from tamis.hdf5.storage import chunk_type, pipeline_of, read_chunk

__all__ = [
    "PhaseChange",
    "chunk_type",
    "create_group",
    "group_filters",
    "group_phase_change",
    "pipeline_of",
    "read_chunk",
]
