"""xarray's engine ``"tamis"``, which xarray finds automatically, and the accessor ``Dataset.tamis``.

The accessor exists as soon as tamis and xarray are imported, or xarray looks for engines. The extra ``tamis[xarray]``
installs everything both need.
"""

from importlib.util import find_spec

if find_spec("xarray") is None:
    raise ImportError("tamis.xarray needs xarray, which is not installed: pip install 'tamis[xarray]'")

from tamis_xarray import TamisEngine

__all__ = ["TamisEngine"]


def __dir__() -> list[str]:
    return [*__all__]
