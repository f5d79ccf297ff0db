"""Files and folders of arrays, whatever their format: protocols, and what several formats share.

`protocols` defines a store, which is a file or folder of arrays; a stored array; and an array writer, which takes
chunks. `tamis.rewrite` knows no more than these three of any format.

- `facts`: what a format knows about an array, as records, and what follows from them for all formats.
- `arrays`: what several formats share.
- `source`: a format without chunks and filters as plain data, from which a store follows.
- `data_model`, `header`: netCDF's data model, and the header for CDL.
- `comparison`: two stores compared.
- `translation`: what becomes of each kind of thing in another format.
- `joined`, `extended`: several files as one store, and arrays up to the ends of their dimensions.
- `other_files`: what a target leads to.
- `first_bytes`, `readers`: what a file is, and who can read it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.lazy_names import face_names

if TYPE_CHECKING:
    from tamis.stores.data_model import Dimension
    from tamis.stores.facts import ELSEWHERE, IN_MEMORY, PackedTo, size_of, values_nbytes_of
    from tamis.stores.first_bytes import (
        READABLE,
        format_of,
        is_folder,
        is_folder_store,
        is_read,
        is_references,
        is_zarr,
        kind_of,
    )
    from tamis.stores.header import CdlType, Header, HeaderAttribute, HeaderGroup, HeaderVariable
    from tamis.stores.joined import JoinedStore
    from tamis.stores.losses import recorded_loss
    from tamis.stores.other_files import OtherFile, Places, TakenIn, needed_text, place
    from tamis.stores.protocols import Alike, Change, Linked, Store, StoreComparison, StoredArray, read_alike
    from tamis.stores.readers import EVERY_PROGRAM, NCO, NETCDF_PLUGINS, OF_HDF5, OF_HDF5PLUGIN, Readers, hdf5_text

__all__ = [
    "ELSEWHERE",
    "EVERY_PROGRAM",
    "IN_MEMORY",
    "NCO",
    "NETCDF_PLUGINS",
    "OF_HDF5",
    "OF_HDF5PLUGIN",
    "READABLE",
    "Alike",
    "CdlType",
    "Change",
    "Dimension",
    "Header",
    "HeaderAttribute",
    "HeaderGroup",
    "HeaderVariable",
    "JoinedStore",
    "Linked",
    "OtherFile",
    "PackedTo",
    "Places",
    "Readers",
    "Store",
    "StoreComparison",
    "StoredArray",
    "TakenIn",
    "format_of",
    "hdf5_text",
    "is_folder",
    "is_folder_store",
    "is_read",
    "is_references",
    "is_zarr",
    "kind_of",
    "needed_text",
    "place",
    "read_alike",
    "recorded_loss",
    "size_of",
    "values_nbytes_of",
]

__getattr__ = face_names(
    globals(),
    {
        "data_model": "Dimension",
        "facts": "ELSEWHERE IN_MEMORY PackedTo size_of values_nbytes_of",
        "first_bytes": "READABLE format_of is_folder is_folder_store is_read is_references is_zarr kind_of",
        "header": "CdlType Header HeaderAttribute HeaderGroup HeaderVariable",
        "joined": "JoinedStore",
        "losses": "recorded_loss",
        "other_files": "OtherFile Places TakenIn needed_text place",
        "protocols": "Alike Change Linked Store StoreComparison StoredArray read_alike",
        "readers": "EVERY_PROGRAM NCO NETCDF_PLUGINS OF_HDF5 OF_HDF5PLUGIN Readers hdf5_text",
    },
)
