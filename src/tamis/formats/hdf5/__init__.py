"""HDF5 and netCDF-4 files. Importing this package lets h5py read and write ZFP (filter 32013)."""

from __future__ import annotations

from tamis.formats.hdf5.lib.files import register

register()
