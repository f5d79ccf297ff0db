"""Calls of libhdf5 that h5py lacks, and facts that only these tell: the chunk index, types, references, headers."""
