"""Status codes of netCDF-C as exceptions."""

from __future__ import annotations

from types import MappingProxyType

from tamis.errors import FileError, MissingFilterError, ParameterError, TamisError

CODES = MappingProxyType(
    {
        "NC_EBADID": -33,
        "NC_EINVAL": -36,
        "NC_EPERM": -37,
        "NC_ENOTINDEFINE": -38,
        "NC_EINDEFINE": -39,
        "NC_ENAMEINUSE": -42,
        "NC_EBADTYPE": -45,
        "NC_EBADDIM": -46,
        "NC_ENOTVAR": -49,
        "NC_EBADNAME": -59,
        "NC_EHDFERR": -101,
        "NC_ENOTNC4": -111,
        "NC_ESTRICTNC3": -112,
        "NC_ELATEDEF": -123,
        "NC_EBADCHUNK": -127,
        "NC_ENOTBUILT": -128,
        "NC_EFILTER": -132,
        "NC_ENOFILTER": -136,
        "NC_EPLUGIN": -142,
    }
)
"""Codes of netCDF-C by their names, as far as filters are concerned."""

_NAMES = {code: name for name, code in CODES.items()}
_MEANINGS = {
    "NC_EBADID": "the dataset is not open",
    "NC_EINVAL": "netCDF-C refuses the parameters",
    "NC_EPERM": "the dataset is open for reading only",
    "NC_EINDEFINE": "the dataset is not in define mode",
    "NC_ENOTVAR": "there is no such variable",
    "NC_EHDFERR": "HDF5 reports an error",
    "NC_ENOTNC4": "only netCDF-4 files have filters",
    "NC_ELATEDEF": "the variable is in the file already",
    "NC_EFILTER": "the filter does not take these parameters, or this type of variable",
    "NC_ENOFILTER": "netCDF's HDF5 does not have the filter",
    "NC_EPLUGIN": "a plugin could not be loaded",
}
_PARAMETER = {"NC_EINVAL", "NC_EBADTYPE", "NC_EBADDIM", "NC_EBADNAME", "NC_EBADCHUNK", "NC_EFILTER", "NC_ENAMEINUSE"}
_FILTER = {"NC_ENOFILTER", "NC_EPLUGIN", "NC_ENOTBUILT"}


class NetcdfError(TamisError):
    """A status of netCDF-C that is not NC_NOERR, or one that netCDF-C should have returned.

    Each is also a `ParameterError`, `MissingFilterError` or `FileError`; `path` and `dataset` name file and variable.

    Attributes
    ----------
    code
        The status, such as -136.
    """

    code: int = 0

    @property
    def name(self) -> str:
        """The name of the status, such as ``NC_ENOFILTER``."""
        return _NAMES.get(self.code, f"status {self.code}")


class NetcdfParameterError(NetcdfError, ParameterError):
    """A status that blames parameters."""


class NetcdfFilterError(NetcdfError, MissingFilterError):  # type: ignore[override,misc]  # ImportError has them too
    """A status that blames a filter that is not there."""


class NetcdfFileError(NetcdfError, FileError):
    """A status that blames the file, or the moment."""


def status_error(code: int, text: str = "") -> NetcdfError:
    """Return the exception of a status.

    Parameters
    ----------
    code
        The status.
    text
        Expectation, finding and advice; by default the meaning of the status.
    """
    name = _NAMES.get(code, "")
    kind = NetcdfParameterError if name in _PARAMETER else NetcdfFilterError if name in _FILTER else NetcdfFileError
    meaning = text or _MEANINGS.get(name, "netCDF-C failed")
    error = kind(f"{meaning} ({name}, {code})" if name else f"{meaning} (status {code})")
    error.code = code
    return error


def named_error(name: str, text: str) -> NetcdfError:
    """Return the exception of a status by its name; see `status_error`."""
    return status_error(CODES[name], text)
