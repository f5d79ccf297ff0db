"""The data model of netCDF in HDF5 files."""
