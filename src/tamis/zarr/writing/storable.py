"""Whether a Zarr store can have an array of a store of another format."""

from __future__ import annotations

from tamis.errors import FileError
from tamis.store.array import StoredArray
from tamis.store.data_model import NamedArray
from tamis.zarr.references.array_metadata import has_type, json_attributes
from tamis.zarr.writing.copied_array import stays
from tamis.zarr.writing.zarr_form import ZarrForm


def check_array(form: ZarrForm, variable: NamedArray, array: StoredArray) -> None:
    """Raise FileError if a store of this form cannot have the values or the attributes of an array."""
    if variable.shape != tuple(array.shape):
        raise FileError(
            f"expected as many values as its dimensions have, {variable.shape}, found {array.shape}:"
            " extend the variable in the source"
        )
    json_attributes(variable.path, variable.attributes)
    if variable.is_text or stays(array, form):
        return
    if array.dtype is None:
        raise FileError(f"expected numbers, characters or text, got {array.type_text}")
    dtype = variable.dtype if array.dtype.kind == "V" else array.dtype
    if not has_type(dtype, form.zarr_format):
        raise FileError(f"expected a type that Zarr {form.zarr_format} has, got {array.type_words}")
