"""Files that are elsewhere: addresses, objects of stores, and their bytes as sources and as files for libhdf5."""
