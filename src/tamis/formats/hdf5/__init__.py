"""HDF5 and netCDF-4 files: one as a store of arrays, and new ones. Importing this package registers ZFP with h5py.

- `store`, `stored_array`, `dataset`: a file, its datasets as stored arrays, and a dataset that is opened on demand.
- `dataset_facts`: what follows from type and creation properties of a dataset, in one record.
- `reader`: what `tamis.open` returns of a file.
- `library_reader`, `virtual_reader`, `chunk_access`: values read by HDF5, from other files, and chunk by chunk.
- `form`: what a new file holds of a store, and how it gets its content.
- `writer`: new files that are copies of HDF5 files, and the encoded chunks in them.
- `netcdf_target`: new netCDF-4 files with the content of other formats.
- `lib`: what h5py lacks, and facts of files and types; `tree`: all objects of a file; `model`: a file in netCDF's data
  model; `compare`: two files; `writing`: arrays in memory, stored as datasets.
"""

from __future__ import annotations

from tamis.formats.hdf5.lib.files import register

register()
