"""What xarray imports with each search for an engine: the engine and the accessors of tamis, which import it when used.

Outside the package, because its import takes 0.4 s and registers filters with h5py and netCDF4.
"""

from tamis_xarray.engine import TamisEngine

__all__ = ["TamisEngine"]


def __dir__() -> list[str]:
    return [*__all__]
