"""Two HDF5 files compared, except for numbers: structure, elements of any type, stored bytes."""
