"""HDF5 files, and tamis's filter inside h5py's library."""
