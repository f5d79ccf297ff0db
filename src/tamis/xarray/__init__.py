"""xarray's engine ``"tamis"``, which xarray finds by itself; the extra ``tamis[xarray]`` installs what it needs."""

from importlib.util import find_spec

if find_spec("xarray") is None:
    raise ImportError("tamis.xarray needs xarray, found none: pip install 'tamis[xarray]'")

from tamis.xarray.engine import TamisEngine

__all__ = ["TamisEngine"]


def __dir__() -> list[str]:
    return [*__all__]
