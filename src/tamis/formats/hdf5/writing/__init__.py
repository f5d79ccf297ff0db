"""Write arrays into HDF5, whole or step by step, and create datasets for them."""
