"""What HDF5's library and h5py say: calls without a name in h5py, the chunk index, types, attributes, damage."""
