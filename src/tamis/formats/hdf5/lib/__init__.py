"""The border to libhdf5 and h5py: calls that h5py lacks, the chunk index, direct chunks, types, attributes, errors."""
