"""Arrays written into HDF5: whole, step by step, and the datasets that they go to."""
