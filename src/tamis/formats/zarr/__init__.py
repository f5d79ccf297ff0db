"""Zarr, versions 2 and 3: the codecs for zarr-python and numcodecs, and their choice for a pipeline.

`stored` has existing hierarchies, `writing` new ones.

- `zarr2_codecs`, `zarr3_codecs`, `value_codecs`: the codecs.
- `packed_codecs`: floats that codecs pack, and attributes that say the same.
- `codec_choice`: the codecs that store the same as a pipeline.
- `masked`: chunks with the filter masks of HDF5, which Zarr lacks.
- `array_metadata`: the metadata of groups and of arrays of references.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.lazy_names import face_names

if TYPE_CHECKING:
    from tamis.formats.zarr.stored.readers import OF_TAMIS
    from tamis.formats.zarr.stored.shuffle_repair import repair_shuffles
    from tamis.formats.zarr.stored.store import check_installed

__all__ = [
    "OF_TAMIS",
    "check_installed",
    "repair_shuffles",
]

__getattr__ = face_names(
    globals(),
    {
        "stored.readers": "OF_TAMIS",
        "stored.shuffle_repair": "repair_shuffles",
        "stored.store": "check_installed",
    },
)
