"""HDF5 files, and tamis's filter inside h5py's library."""

from tamis.hdf5.storage import chunk_type, pipeline_of

__all__ = ["chunk_type", "pipeline_of"]
